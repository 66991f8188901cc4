//! Observers: what a direction notes about the packets that pass.
//!
//! The engine is compiled once per observer. [`Counters`] keeps what every run reports;
//! [`Ledger`] also keeps a record per flow and samples of the queue, for measurements;
//! [`Live`](crate::live::Live) counts for whoever looks at an attached engine. What an observer
//! ignores costs nothing.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use frame::FlowKey;
use sched::{Drop, DropReason, Event, FlowId, Lane, Nanos, Packet, Qdisc, Sink};

use crate::live::Seen;
use crate::report::{DropCount, FlowRecord, Observed, Sample, Tally};

/// A sink that a direction can run with.
pub trait Observer: Sink + Send + 'static {
    /// What was dropped, for the report and for the direction to reuse the buffers.
    fn drops(&mut self) -> &mut Drops;

    /// A packet is about to be enqueued.
    #[inline(always)]
    fn arriving(&mut self, _packet: &Packet, _key: &FlowKey, _now: Nanos) {}

    /// The discipline is about to be asked for a packet.
    #[inline(always)]
    fn serving(&mut self, _now: Nanos) {}

    /// A packet has left the queue.
    #[inline(always)]
    fn departing(&mut self, _packet: &Packet) {}

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

/// Drops of a discipline: counted, and their buffers kept for reuse.
#[derive(Debug, Default)]
pub struct Drops {
    /// Buffers that are free again.
    pub freed: Vec<u32>,
    counts: DropCounts,
}

impl Drops {
    #[inline]
    pub(crate) fn note(&mut self, packet: &Packet, drop: Drop) {
        self.freed.push(packet.id as u32);
        self.counts.count(packet.size, drop);
    }

    /// How many, by reason and lane.
    #[must_use]
    pub fn report(&self) -> Vec<DropCount> {
        self.counts.report()
    }
}

/// By lane, then by reason.
#[derive(Clone, Debug, Default)]
struct DropCounts(Vec<[Tally; DropReason::ALL.len()]>);

impl DropCounts {
    #[inline]
    fn count(&mut self, size: u32, drop: Drop) {
        let lane = usize::from(drop.lane.0);
        if lane >= self.0.len() {
            self.0.resize(lane + 1, Default::default());
        }
        self.0[lane][drop.reason as usize].count(size);
    }

    fn report(&self) -> Vec<DropCount> {
        let lanes = self.0.iter().enumerate();
        let each = lanes.flat_map(|(lane, reasons)| {
            DropReason::ALL.iter().zip(reasons).map(move |(reason, count)| DropCount {
                reason: reason.name().to_owned(),
                lane: Some(lane as u8),
                count: *count,
            })
        });
        each.filter(|drop| drop.count.packets > 0).collect()
    }
}

/// Counts drops, and ignores the rest.
#[derive(Debug, Default)]
pub struct Counters {
    drops: Drops,
}

impl Sink for Counters {
    fn dropped(&mut self, packet: Packet, drop: Drop, _now: Nanos) {
        self.drops.note(&packet, drop);
    }
}

impl Observer for Counters {
    fn drops(&mut self) -> &mut Drops {
        &mut self.drops
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

/// Keeps a record of every flow, and samples of the queue.
pub struct Ledger {
    drops: Drops,
    observe: Observe,
    now: Nanos,
    flows: HashMap<FlowId, Account, BuildHasherDefault<FingerprintHasher>>,
    /// By buffer.
    held: Vec<Held>,
    /// Packets in the short lane.
    short_lane: u64,
    samples: Vec<Sample>,
    next_sample: Nanos,
}

/// What is known of the packet in a buffer.
#[derive(Clone, Copy, Default)]
struct Held {
    arrival: Nanos,
    /// Whether it is in the short lane.
    is_short: bool,
}

struct Account {
    key: FlowKey,
    arrived: Tally,
    departed: Tally,
    departed_by_lane: Vec<u64>,
    dropped: DropCounts,
    marked: u64,
    fragments: u64,
    demotions: u64,
    sojourn_sum: u64,
    sojourn_max: u64,
    first_arrival: Nanos,
    last_arrival: Nanos,
}

impl Account {
    fn new(key: FlowKey, now: Nanos) -> Self {
        Self {
            key,
            arrived: Tally::default(),
            departed: Tally::default(),
            departed_by_lane: Vec::new(),
            dropped: DropCounts::default(),
            marked: 0,
            fragments: 0,
            demotions: 0,
            sojourn_sum: 0,
            sojourn_max: 0,
            first_arrival: now,
            last_arrival: now,
        }
    }

    fn departs(&mut self, lane: Lane, sojourn: Nanos) {
        let lane = usize::from(lane.0);
        if lane >= self.departed_by_lane.len() {
            self.departed_by_lane.resize(lane + 1, 0);
        }
        self.departed_by_lane[lane] += 1;
        self.sojourn_sum += sojourn.0;
        self.sojourn_max = self.sojourn_max.max(sojourn.0);
    }

    fn record(self, epoch: Nanos) -> FlowRecord {
        FlowRecord {
            flow: self.key.to_string(),
            arrived: self.arrived,
            departed: self.departed,
            departed_by_lane: self.departed_by_lane,
            drops: self.dropped.report(),
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

impl Ledger {
    /// An empty ledger.
    #[must_use]
    pub fn new(observe: Observe) -> Self {
        Self {
            drops: Drops::default(),
            observe,
            now: observe.epoch,
            flows: HashMap::default(),
            held: Vec::new(),
            short_lane: 0,
            samples: Vec::new(),
            next_sample: observe.epoch + observe.sample_every,
        }
    }

    /// A packet is no longer queued.
    fn leaves_its_lane(&mut self, packet: u64) {
        let held = &mut self.held[packet as usize];
        self.short_lane -= u64::from(held.is_short);
        held.is_short = false;
    }

    fn account(&mut self, flow: FlowId, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.flows.get_mut(&flow) {
            change(account);
        }
    }
}

impl Sink for Ledger {
    fn dropped(&mut self, packet: Packet, drop: Drop, _now: Nanos) {
        self.leaves_its_lane(packet.id);
        self.drops.note(&packet, drop);
        self.account(packet.flow, |account| account.dropped.count(packet.size, drop));
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Enqueued { packet, lane, .. } => {
                let is_short = lane == Lane::SHORT;
                self.short_lane += u64::from(is_short);
                self.held[packet as usize].is_short = is_short;
            }
            Event::Dequeued { packet, flow, lane } => {
                self.leaves_its_lane(packet);
                let sojourn = self.now.since(self.held[packet as usize].arrival);
                self.account(flow, |account| account.departs(lane, sojourn));
            }
            Event::Marked { flow, .. } => self.account(flow, |account| account.marked += 1),
            Event::FlowCreated { flow } => self.account(flow, |account| account.fragments += 1),
            Event::Demoted { flow } => self.account(flow, |account| account.demotions += 1),
            Event::Promoted { .. } | Event::FlowRemoved { .. } | Event::FlowUntracked { .. } => {}
        }
    }
}

impl Observer for Ledger {
    fn drops(&mut self) -> &mut Drops {
        &mut self.drops
    }

    fn arriving(&mut self, packet: &Packet, key: &FlowKey, now: Nanos) {
        self.now = now;
        let buffer = packet.id as usize;
        if buffer >= self.held.len() {
            self.held.resize(buffer + 1, Held::default());
        }
        self.held[buffer] = Held { arrival: now, is_short: false };
        let account = self.flows.entry(packet.flow).or_insert_with(|| Account::new(*key, now));
        account.arrived.count(packet.size);
        account.last_arrival = now;
    }

    fn serving(&mut self, now: Nanos) {
        self.now = now;
    }

    fn departing(&mut self, packet: &Packet) {
        self.account(packet.flow, |account| account.departed.count(packet.size));
    }

    fn next_sample(&self) -> Nanos {
        self.next_sample
    }

    fn sample(&mut self, packets: u64, bytes: u64, flows: usize, now: Nanos) {
        let t_ns = now.since(self.observe.epoch).0;
        let (short_lane_packets, flows) = (self.short_lane, flows as u64);
        self.samples.push(Sample { t_ns, packets, bytes, short_lane_packets, flows });
        // Keeps to the grid; a sample that came a whole period late is not made up for.
        let every = self.observe.sample_every.0.max(1);
        self.next_sample = self.observe.epoch + Nanos((t_ns / every + 1).saturating_mul(every));
    }

    fn finish(self) -> Option<Observed> {
        let epoch = self.observe.epoch;
        let mut flows: Vec<_> =
            self.flows.into_values().map(|account| account.record(epoch)).collect();
        flows.sort_by(|a, b| (a.first_arrival_ns, &a.flow).cmp(&(b.first_arrival_ns, &b.flow)));
        Some(Observed { samples: self.samples, flows })
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
