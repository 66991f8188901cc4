//! The fate of every packet, in the order of arrivals.

use std::collections::{BTreeMap, VecDeque};

use sched::{DropReason, Lane, Nanos};

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its last bit left at this time.
    Departed(Nanos),
    /// It was dropped.
    Dropped(DropReason),
    /// It was queued when the run ended.
    Queued,
}

/// A packet that reached a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// Its place among the arrivals, from 0.
    pub index: u64,
    /// When it arrived.
    pub arrival: Nanos,
    /// Bytes on the wire.
    pub size: u32,
    /// Whatever the caller gave with the packet to know its flow by.
    pub tag: u64,
    /// The lane it was in, or would have joined.
    pub lane: Lane,
    /// What became of it.
    pub outcome: Outcome,
}

/// Holds back what is known until all earlier arrivals are known too. It is as long as the queue,
/// unless the discipline makes a packet wait while many others pass it; whoever cannot hold that
/// many takes records early, and gets those that were not settled a second time.
#[derive(Debug, Default)]
pub(crate) struct PacketLog {
    /// Index of the first record in `open`.
    first: u64,
    open: VecDeque<PacketRecord>,
    /// Of `open`, this many at the front are settled and may be taken.
    settled: usize,
    /// Taken before they were settled, by index.
    early: BTreeMap<u64, PacketRecord>,
    /// Settled after they were taken.
    late: Vec<PacketRecord>,
}

impl PacketLog {
    /// Index of the record.
    pub(crate) fn arrives(&mut self, arrival: Nanos, size: u32, tag: u64) -> u64 {
        let index = self.first + self.open.len() as u64;
        let (lane, outcome) = (Lane::SHORT, Outcome::Queued);
        self.open.push_back(PacketRecord { index, arrival, size, tag, lane, outcome });
        index
    }

    pub(crate) fn joins(&mut self, index: u64, lane: Lane) {
        self.record(index).lane = lane;
    }

    pub(crate) fn settles(&mut self, index: u64, outcome: Outcome) {
        if let Some(record) = self.early.remove(&index) {
            self.late.push(PacketRecord { outcome, ..record });
            return;
        }
        self.record(index).outcome = outcome;
        while self.open.get(self.settled).is_some_and(|r| r.outcome != Outcome::Queued) {
            self.settled += 1;
        }
    }

    pub(crate) fn take_settled(&mut self) -> impl Iterator<Item = PacketRecord> {
        let count = std::mem::take(&mut self.settled);
        self.first += count as u64;
        self.open.drain(..count)
    }

    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = PacketRecord> {
        self.settled = self.open.len();
        self.take_settled()
    }

    /// All but the latest `keep` records, settled or not.
    pub(crate) fn take_early(&mut self, keep: usize) -> impl Iterator<Item = PacketRecord> {
        let count = self.open.len().saturating_sub(keep);
        self.first += count as u64;
        self.settled = self.settled.saturating_sub(count);
        let early = &mut self.early;
        self.open.drain(..count).inspect(|record| {
            if record.outcome == Outcome::Queued {
                early.insert(record.index, *record);
            }
        })
    }

    /// Records taken early that have been settled since.
    pub(crate) fn take_late(&mut self) -> impl Iterator<Item = PacketRecord> {
        self.late.drain(..)
    }

    fn record(&mut self, index: u64) -> &mut PacketRecord {
        match index.checked_sub(self.first) {
            Some(at) => &mut self.open[at as usize],
            None => self.early.get_mut(&index).expect("taken early and not settled"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_in_the_order_of_arrivals() {
        let mut log = PacketLog::default();
        let indices: Vec<u64> = (0..4).map(|at| log.arrives(Nanos(at), 100, 0)).collect();
        log.settles(indices[1], Outcome::Dropped(DropReason::Full));
        assert_eq!(log.take_settled().count(), 0, "the first is still queued");
        log.settles(indices[0], Outcome::Departed(Nanos(9)));
        let taken: Vec<u64> = log.take_settled().map(|record| record.index).collect();
        assert_eq!(taken, [0, 1]);
        log.settles(indices[3], Outcome::Departed(Nanos(10)));
        let rest: Vec<Outcome> = log.take_all().map(|record| record.outcome).collect();
        assert_eq!(rest, [Outcome::Queued, Outcome::Departed(Nanos(10))]);
    }

    #[test]
    fn records_taken_early_come_again_when_they_are_settled() {
        let mut log = PacketLog::default();
        let indices: Vec<u64> = (0..5).map(|at| log.arrives(Nanos(at), 100, 0)).collect();
        log.settles(indices[1], Outcome::Departed(Nanos(9)));
        let early: Vec<(u64, Outcome)> =
            log.take_early(2).map(|record| (record.index, record.outcome)).collect();
        let (queued, departed) = (Outcome::Queued, Outcome::Departed(Nanos(9)));
        assert_eq!(early, [(0, queued), (1, departed), (2, queued)]);
        log.joins(indices[2], Lane::LONG);
        log.settles(indices[2], departed);
        log.settles(indices[3], departed);
        let late: Vec<(u64, Lane)> = log.take_late().map(|r| (r.index, r.lane)).collect();
        assert_eq!(late, [(2, Lane::LONG)]);
        let settled: Vec<u64> = log.take_settled().map(|record| record.index).collect();
        assert_eq!(settled, [3]);
        assert_eq!(log.take_all().count(), 1);
    }
}
