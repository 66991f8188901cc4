//! What is kept of a run for the summary. Its size does not depend on simulated time, but for a few
//! bytes per transfer until all schedulers have run the same seed: transfers are compared in pairs.

use std::collections::BTreeMap;

use account::Histogram;
use measure::{LinkUse, SizeClass};

/// One run: one scheduler, one seed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// By traffic.
    pub(crate) traffic: Vec<TrafficTally>,
    /// By tested direction.
    pub(crate) links: Vec<LinkTally>,
    /// Segments that TCP sent again.
    pub(crate) retransmissions: u64,
    /// Retransmission timeouts, those of the handshake among them.
    pub(crate) timeouts: u64,
    /// Of these, timeouts of transfers of at most 20 packets.
    pub(crate) short_timeouts: u64,
    /// Packets that reached the end of a link.
    pub(crate) packet_hops: u64,
}

/// Compares the runs of one seed with one of them, after which single transfers are forgotten.
pub(crate) fn pair<'a>(reference: &Tally, runs: impl Iterator<Item = &'a mut Tally>) {
    for run in runs {
        for (own, theirs) in run.traffic.iter_mut().zip(&reference.traffic) {
            own.against = own.times.sums(&theirs.times);
            own.times = Times::default();
        }
    }
}

/// Flows of one traffic that count: those that did not start in the warm-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrafficTally {
    /// By size class, in the order of [`SizeClass::ALL`].
    pub(crate) classes: [ClassTally; 4],
    /// Completion times by index, for pairs; empty once these are made.
    pub(crate) times: Times,
    /// By size class: sums of completion times here and under the reference, of the transfers
    /// complete under both.
    pub(crate) against: [(f64, f64); 4],
    /// Application bytes received in the whole run, those of the warm-up among them.
    pub(crate) received_bytes: u64,
    /// Packets of streams sent.
    pub(crate) packets_sent: u64,
    /// Of these, packets lost.
    pub(crate) packets_lost: u64,
    /// Response times of requests, or delays of packets, in ns; quantiles to 3 %.
    pub(crate) times_ns: Histogram<5>,
    /// Requests without an answer by the end.
    pub(crate) unanswered: u64,
}

/// Transfers of one size class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassTally {
    /// Completion times of the complete ones, in ns.
    pub(crate) completion_ns: Mean,
    /// Completion time over that on an idle network.
    pub(crate) slowdown: Mean,
    /// Transfers not complete by the end.
    pub(crate) incomplete: u64,
}

/// One direction with the scheduler under test.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkTally {
    /// Its row, whose packets and bytes are those of the whole run.
    pub(crate) row: LinkUse,
    /// Packets after the warm-up: dropped in or before the short lane, and any other.
    pub(crate) dropped: [u64; 2],
    /// That arrived.
    pub(crate) arrived: u64,
    /// That were marked.
    pub(crate) marked: u64,
}

/// A mean that is made up one value at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mean {
    sum: f64,
    n: u64,
}

impl Mean {
    pub(crate) fn add(&mut self, value: f64) {
        self.sum += value;
        self.n += 1;
    }

    pub(crate) fn n(&self) -> u64 {
        self.n
    }

    pub(crate) fn value(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }
}

/// Completion times by the number of a transfer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(BTreeMap<u64, u64>);

/// Bits for the size class of a transfer; the rest is the time.
const CLASS_BITS: u32 = 2;

impl Times {
    /// A complete transfer.
    pub(crate) fn set(&mut self, index: u64, class: SizeClass, completion_ns: u64) {
        self.0.insert(index, (completion_ns << CLASS_BITS) | class as u64);
    }

    /// Sums over the transfers complete here and there, by class: ours, theirs.
    pub(crate) fn sums(&self, other: &Self) -> [(f64, f64); 4] {
        let mut sums = [(0.0, 0.0); 4];
        for (index, ours) in &self.0 {
            if let Some(theirs) = other.0.get(index) {
                let sum = &mut sums[(ours & ((1 << CLASS_BITS) - 1)) as usize];
                sum.0 += (ours >> CLASS_BITS) as f64;
                sum.1 += (theirs >> CLASS_BITS) as f64;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_complete_under_both_is_compared() {
        let (mut a, mut b) = (Times::default(), Times::default());
        a.set(0, SizeClass::UpTo20, 10);
        a.set(2, SizeClass::Over1000, 70);
        a.set(5, SizeClass::UpTo20, 5);
        b.set(2, SizeClass::Over1000, 30);
        b.set(1, SizeClass::UpTo20, 9);
        b.set(0, SizeClass::UpTo20, 20);
        assert_eq!(a.sums(&b), [(10.0, 20.0), (0.0, 0.0), (0.0, 0.0), (70.0, 30.0)]);
    }
}
