//! Observers: what a direction notes about the packets that pass.
//!
//! The engine is compiled once per observer. [`Counters`] keeps what every run reports; an account
//! of [`Records`] also keeps a record per flow and samples of the queue, for measurements; an
//! account of [`Live`](crate::datapath::live::Live) counts for whoever looks at an attached engine. What an
//! observer ignores costs nothing.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use account::{Account, Book, Drops, Held};
use frame::FlowKey;
use sched::{Drop, DropReason, Event, FlowId, Lane, Nanos, Packet, Qdisc, Sink};

use crate::datapath::live::Seen;
use crate::datapath::report::{DropCount, FlowRecord, Observed, Sample, Tally};

/// A sink that a direction can run with.
pub trait Observer: Sink + Send + 'static {
    /// Buffers of packets that were dropped, for the direction to reuse.
    fn freed(&mut self) -> &mut Vec<u32>;

    /// What was dropped.
    fn dropped_so_far(&self) -> &Drops;

    /// A packet is about to be enqueued.
    #[inline(always)]
    fn arriving(&mut self, _packet: &Packet, _key: &FlowKey, _now: Nanos) {}

    /// From now on packets that leave the queue join another one, until they no longer do.
    fn moving(&mut self, _moving: bool) {}

    /// When the queue is to be looked at next.
    #[inline(always)]
    fn next_sample(&self) -> Nanos {
        Nanos::MAX
    }

    /// The queue, looked at.
    #[inline(always)]
    fn sample(&mut self, _packets: u64, _bytes: u64, _flows: usize, _now: Nanos) {}

    /// What was counted so far, for a status.
    fn seen(&self, _now: Nanos) -> Seen {
        Seen::default()
    }

    /// What was observed.
    fn finish(self) -> Option<Observed>
    where
        Self: Sized,
    {
        None
    }
}

/// Drops, as reports tell them.
pub(crate) fn drop_counts(drops: &Drops) -> Vec<DropCount> {
    let count = |(lane, reason, count): (Lane, DropReason, Tally)| DropCount {
        reason: reason.name().to_owned(),
        lane: Some(lane.0),
        count,
    };
    drops.iter().map(count).collect()
}

/// Counts drops, and ignores the rest.
#[derive(Debug, Default)]
pub struct Counters {
    freed: Vec<u32>,
    drops: Drops,
}

impl Sink for Counters {
    fn dropped(&mut self, packet: Packet, drop: Drop, _now: Nanos) {
        self.freed.push(packet.id as u32);
        self.drops.count(packet.size, drop);
    }
}

impl Observer for Counters {
    fn freed(&mut self) -> &mut Vec<u32> {
        &mut self.freed
    }

    fn dropped_so_far(&self) -> &Drops {
        &self.drops
    }
}

/// What is to be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observe {
    /// `CLOCK_MONOTONIC` time that observations count from.
    pub epoch: Nanos,
    /// Time between two samples of the queue; [`Nanos::MAX`] for none.
    pub sample_every: Nanos,
}

impl Observe {
    /// Samples every 10 ms, in times since `epoch`.
    #[must_use]
    pub const fn since(epoch: Nanos) -> Self {
        Self { epoch, sample_every: Nanos::from_millis(10) }
    }
}

/// A record of every flow, and samples of the queue.
pub struct Records {
    freed: Vec<u32>,
    observe: Observe,
    flows: HashMap<FlowId, Record, BuildHasherDefault<FingerprintHasher>>,
    samples: Vec<Sample>,
    next_sample: Nanos,
}

struct Record {
    key: FlowKey,
    arrived: Tally,
    departed: Tally,
    departed_by_lane: Vec<u64>,
    drops: Drops,
    marked: u64,
    fragments: u64,
    demotions: u64,
    sojourn_sum: u64,
    sojourn_max: u64,
    first_arrival: Nanos,
    last_arrival: Nanos,
}

impl Record {
    fn new(key: FlowKey, now: Nanos) -> Self {
        Self {
            key,
            arrived: Tally::default(),
            departed: Tally::default(),
            departed_by_lane: Vec::new(),
            drops: Drops::default(),
            marked: 0,
            fragments: 0,
            demotions: 0,
            sojourn_sum: 0,
            sojourn_max: 0,
            first_arrival: now,
            last_arrival: now,
        }
    }

    fn departs(&mut self, size: u32, lane: Lane, sojourn: Nanos) {
        self.departed.count(size);
        let lane = usize::from(lane.0);
        if lane >= self.departed_by_lane.len() {
            self.departed_by_lane.resize(lane + 1, 0);
        }
        self.departed_by_lane[lane] += 1;
        self.sojourn_sum = self.sojourn_sum.saturating_add(sojourn.0);
        self.sojourn_max = self.sojourn_max.max(sojourn.0);
    }

    fn into_row(self, epoch: Nanos) -> FlowRecord {
        FlowRecord {
            flow: self.key.to_string(),
            arrived: self.arrived,
            departed: self.departed,
            departed_by_lane: self.departed_by_lane,
            drops: drop_counts(&self.drops),
            marked: self.marked,
            fragments: self.fragments,
            demotions: self.demotions,
            sojourn_sum_ns: self.sojourn_sum,
            sojourn_max_ns: self.sojourn_max,
            first_arrival_ns: self.first_arrival.since(epoch).0,
            last_arrival_ns: self.last_arrival.since(epoch).0,
        }
    }
}

impl Records {
    /// An account without records yet.
    #[must_use]
    pub fn account(observe: Observe) -> Account<Self> {
        let records = Self {
            freed: Vec::new(),
            observe,
            flows: HashMap::default(),
            samples: Vec::new(),
            next_sample: observe.epoch + observe.sample_every,
        };
        Account::new(records, 0)
    }

    fn change(&mut self, flow: FlowId, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.flows.get_mut(&flow) {
            change(record);
        }
    }
}

impl Book for Records {
    type Ticket = ();

    fn dequeued(&mut self, packet: &Packet, lane: Lane, held: Held<()>, now: Nanos) {
        let sojourn = now.since(held.arrival);
        self.change(packet.flow, |record| record.departs(packet.size, lane, sojourn));
    }

    fn dropped(&mut self, packet: Packet, drop: Drop, _held: Held<()>) {
        self.freed.push(packet.id as u32);
        self.change(packet.flow, |record| record.drops.count(packet.size, drop));
    }

    fn marked(&mut self, packet: &Packet, _held: Held<()>) {
        self.change(packet.flow, |record| record.marked += 1);
    }

    fn flow(&mut self, event: Event) {
        match event {
            Event::FlowCreated { flow } => self.change(flow, |record| record.fragments += 1),
            Event::Demoted { flow } => self.change(flow, |record| record.demotions += 1),
            _ => {}
        }
    }
}

impl Observer for Account<Records> {
    fn freed(&mut self) -> &mut Vec<u32> {
        &mut self.book.freed
    }

    fn dropped_so_far(&self) -> &Drops {
        &self.totals().drops
    }

    fn arriving(&mut self, packet: &Packet, key: &FlowKey, now: Nanos) {
        self.arriving(packet, (), now);
        let flows = &mut self.book.flows;
        let record = flows.entry(packet.flow).or_insert_with(|| Record::new(*key, now));
        record.arrived.count(packet.size);
        record.last_arrival = now;
    }

    fn moving(&mut self, moving: bool) {
        self.moving(moving);
    }

    fn next_sample(&self) -> Nanos {
        self.book.next_sample
    }

    fn sample(&mut self, packets: u64, bytes: u64, flows: usize, now: Nanos) {
        let (short_lane_packets, flows) = (self.short_lane(), flows as u64);
        let sent_bytes = self.totals().sent().bytes;
        let Observe { epoch, sample_every } = self.book.observe;
        let t_ns = now.since(epoch).0;
        let sample = Sample { t_ns, packets, bytes, short_lane_packets, flows, sent_bytes };
        self.book.samples.push(sample);
        // Keeps to the grid; a sample that came a whole period late is not made up for.
        let every = sample_every.0.max(1);
        self.book.next_sample = epoch + Nanos((t_ns / every + 1).saturating_mul(every));
    }

    fn finish(self) -> Option<Observed> {
        let Records { observe, flows, samples, .. } = self.book;
        let mut flows: Vec<_> =
            flows.into_values().map(|record| record.into_row(observe.epoch)).collect();
        flows.sort_by(|a, b| (a.first_arrival_ns, &a.flow).cmp(&(b.first_arrival_ns, &b.flow)));
        Some(Observed { samples, flows })
    }
}

/// Looks at the queue if it is time to.
pub(crate) fn sample_if_due<O: Observer>(observer: &mut O, qdisc: &dyn Qdisc<O>, now: Nanos) {
    if observer.next_sample() <= now {
        let backlog = qdisc.backlog();
        observer.sample(backlog.packets, backlog.bytes, qdisc.flows(), now);
    }
}

/// Fingerprints are keyed hashes already.
#[derive(Default)]
struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_waited_for_centuries_do_not_overflow_their_flows_sum() {
        let endpoints = frame::Endpoints::Mac([1; 6], [2; 6]);
        let key = FlowKey { endpoints, selector: frame::Selector::None, protocol: 0, vlans: 0 };
        let mut record = Record::new(key, Nanos::ZERO);
        record.departs(100, Lane(0), Nanos(u64::MAX - 1));
        record.departs(100, Lane(0), Nanos(u64::MAX / 2));
        let row = record.into_row(Nanos::ZERO);
        assert_eq!((row.sojourn_sum_ns, row.sojourn_max_ns), (u64::MAX, u64::MAX - 1));
    }
}
