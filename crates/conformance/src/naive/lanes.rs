//! EFD, SB and SB-SH: one list of packets, each with its lane.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use sched::{Amount, Event, FlowId, Nanos, Packet, Params};

use super::{Model, cost};
use crate::run::Step;

/// The packets of both lanes in order of arrival, and who is lost.
#[derive(Hash)]
pub(super) struct Held {
    limit: Amount,
    knockout: bool,
    /// What of the limit the short lane leaves free.
    low_part: u64,
    packets: Vec<(Packet, bool)>,
}

impl Held {
    fn new(params: &Params, knockout: bool) -> Self {
        Self { limit: params.amount("limit"), knockout, low_part: 0, packets: Vec::new() }
    }

    pub(super) fn used(&self, which: impl Fn(bool) -> bool) -> u64 {
        let counted = self.packets.iter().filter(|(_, long)| which(*long));
        counted.map(|(packet, _)| cost(self.limit, packet)).sum()
    }

    /// Takes a packet in if there is room, or if room can be made for a short flow.
    fn admit(&mut self, packet: Packet, long: bool) -> Vec<u64> {
        let needed = cost(self.limit, &packet);
        let fits = |used: u64| used + needed <= self.limit.value();
        let short_used = self.used(|long| !long);
        if !long && short_used > 0 && !fits(short_used + self.low_part) {
            return vec![packet.id];
        }
        let may_push_out = self.knockout && !long && fits(short_used);
        if !fits(self.used(|_| true)) && !may_push_out {
            return vec![packet.id];
        }
        let mut lost = Vec::new();
        while self.used(|_| true) + needed > self.limit.value() {
            let last_long = self.packets.iter().rposition(|(_, long)| *long).expect("some long");
            lost.push(self.packets.remove(last_long).0.id);
        }
        self.packets.push((packet, long));
        lost
    }

    /// The oldest packet of a lane.
    fn head(&self, long: bool) -> Option<Packet> {
        self.packets.iter().find(|(_, l)| *l == long).map(|(packet, _)| *packet)
    }

    /// Removes the oldest packet of a lane.
    fn take(&mut self, long: bool) -> Option<Packet> {
        let first = self.packets.iter().position(|(_, l)| *l == long)?;
        Some(self.packets.remove(first).0)
    }

    fn has(&self, which: impl Fn(&Packet) -> bool) -> bool {
        self.packets.iter().any(|(packet, _)| which(packet))
    }
}

/// The count of a flow against the threshold.
#[derive(Default, Hash)]
struct Count {
    total: u64,
    /// The packet with which it became long; a flow stays long.
    long_since: Option<u64>,
}

impl Count {
    /// Counts a packet, and says whether it is one of a long flow.
    fn add(&mut self, packet: &Packet, threshold: Amount, boundary: &str) -> bool {
        let before = self.total;
        self.total += cost(threshold, packet);
        let short = match boundary {
            "before" => before < threshold.value(),
            "after" => self.total <= threshold.value(),
            "literal" => before <= threshold.value(),
            other => panic!("unknown boundary {other}"),
        };
        if !short && self.long_since.is_none() {
            self.long_since = Some(packet.id);
        }
        self.long_since.is_some()
    }
}

/// The model of `efd`.
#[derive(Hash)]
pub struct Efd {
    held: Held,
    threshold: Amount,
    boundary: &'static str,
    /// In parts per billion.
    low_share: i128,
    /// What the long lane is owed, in bytes times a billion.
    credit: i128,
    hold_on_wire: bool,
    on_wire: Option<FlowId>,
    flows: BTreeMap<FlowId, Count>,
}

impl Efd {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let mut efd = Self {
            held: Held::new(params, true),
            threshold: Amount::UNLIMITED,
            boundary: "",
            low_share: 0,
            credit: 0,
            hold_on_wire: false,
            on_wire: None,
            flows: BTreeMap::new(),
        };
        efd.change(params);
        efd
    }

    /// A flow is known while it has a packet here, or on the wire where that counts.
    fn forget_absent(&mut self) {
        let Self { held, flows, on_wire, .. } = self;
        flows.retain(|flow, _| held.has(|packet| packet.flow == *flow) || *on_wire == Some(*flow));
    }

    /// Whether the long lane's head is served though the short lane waits: it has been paid for,
    /// and all that was in the short lane when its flow became long has left.
    fn is_owed(&self, low: &Packet) -> bool {
        let since = self.flows[&low.flow].long_since.expect("a flow in the long lane is long");
        let may_wait = self.held.head(false).is_some_and(|high| high.id < since);
        self.low_share > 0 && !may_wait && self.credit >= i128::from(low.size) * BILLION
    }
}

const BILLION: i128 = 1_000_000_000;

impl Model for Efd {
    fn enqueue(&mut self, packet: Packet, _now: Nanos, _said: &Step) -> Vec<u64> {
        let flow = self.flows.entry(packet.flow).or_default();
        let long = flow.add(&packet, self.threshold, self.boundary);
        let lost = self.held.admit(packet, long);
        self.forget_absent();
        lost
    }

    fn dequeue(&mut self, _now: Nanos, _said: &Step) -> Option<u64> {
        self.on_wire = None;
        self.forget_absent();
        let long = match (self.held.head(false), self.held.head(true)) {
            (Some(_), Some(low)) => self.is_owed(&low),
            (high, _) => high.is_none(),
        };
        let packet = self.held.take(long)?;
        if self.held.head(false).is_some() && self.held.head(true).is_some() {
            let size = i128::from(packet.size);
            self.credit += size * self.low_share - if long { size * BILLION } else { 0 };
        } else {
            self.credit = 0;
        }
        self.on_wire = self.hold_on_wire.then_some(packet.flow);
        self.forget_absent();
        Some(packet.id)
    }

    fn change(&mut self, params: &Params) {
        self.held.limit = params.amount("limit");
        self.threshold = params.amount("threshold");
        self.boundary = params.word("boundary");
        self.low_share = i128::from(params.share("low-share").ppb());
        let limit = i128::from(self.held.limit.value());
        self.held.low_part = u64::try_from(limit * self.low_share / BILLION).expect("a part");
        self.credit = 0;
        self.hold_on_wire = params.flag("hold-on-wire");
    }

    fn flows(&self) -> usize {
        self.flows.len()
    }

    fn digest(&self, mut into: &mut dyn Hasher) -> bool {
        self.hash(&mut into);
        true
    }
}

/// Two-class self-clocked fair queueing by the book: every packet is stamped at its arrival.
#[derive(Hash)]
pub(super) struct Shares {
    /// Of the short lane, in parts per billion.
    pub(super) weight: u128,
    /// Stamps of queued packets by id, in bytes times parts per billion.
    stamps: BTreeMap<u64, u128>,
    last_stamp: [u128; 2],
    now: u128,
}

impl Shares {
    fn stamp(&mut self, packet: &Packet, long: bool) {
        let weight = if long { self.weight } else { 1_000_000_000 - self.weight };
        let last = &mut self.last_stamp[usize::from(long)];
        *last = (*last).max(self.now) + u128::from(packet.size) * weight;
        self.stamps.insert(packet.id, *last);
    }

    /// The lane of the smaller stamp; of equal ones, that of the earlier arrival.
    fn choose(&self, held: &Held) -> bool {
        match (held.head(false), held.head(true)) {
            (Some(high), Some(low)) => {
                let key = |packet: &Packet| (self.stamps[&packet.id], packet.id);
                key(&low) < key(&high)
            }
            (high, _) => high.is_none(),
        }
    }

    fn sent(&mut self, packet: &Packet, held: &Held) {
        self.now = self.stamps[&packet.id];
        self.stamps.remove(&packet.id);
        if held.packets.is_empty() {
            (self.now, self.last_stamp) = (0, [0, 0]);
        }
    }

    /// The last packet of the long lane is gone: the next one follows the one before it.
    fn pushed_out(&mut self, held: &Held) {
        self.stamps.retain(|id, _| held.has(|packet| packet.id == *id));
        let last = held.packets.iter().rfind(|(_, long)| *long);
        self.last_stamp[1] = last.map_or(0, |(packet, _)| self.stamps[&packet.id]);
    }

    /// Under a new weight all stamps are made anew.
    pub(super) fn restart(&mut self, weight: u32, held: &Held) {
        (self.weight, self.now, self.last_stamp) = (u128::from(weight), 0, [0, 0]);
        held.packets.iter().for_each(|(packet, long)| self.stamp(packet, *long));
    }
}

/// A flow since it became known.
#[derive(Hash)]
struct Flow {
    count: Count,
    /// The packet that made it known.
    first: u64,
    /// Whether that was in this measurement interval.
    is_new: bool,
    last_arrival: Nanos,
}

/// Flows that are forgotten when they have been idle.
#[derive(Hash)]
struct Known {
    flows: BTreeMap<FlowId, Flow>,
    idle: Nanos,
    sweep: Nanos,
    next_sweep: Nanos,
    interval: Nanos,
    /// When the measurement interval ends, once the first arrival has begun it.
    end: Option<Nanos>,
    /// The counts that known and new flows need at the end of an interval.
    keep: (u64, u64),
}

impl Known {
    /// Ends a measurement interval: small flows are forgotten, counts start again.
    fn measure(&mut self, now: Nanos, held: &Held) {
        if self.end.is_some_and(|end| now >= end) {
            let (known, new) = self.keep;
            self.flows.retain(|id, flow| {
                let needed = if flow.is_new { new.min(known) } else { known };
                held.has(|packet| packet.flow == *id && packet.id >= flow.first)
                    || flow.count.total >= needed
            });
            for flow in self.flows.values_mut() {
                (flow.count, flow.is_new) = (Count::default(), false);
            }
            self.end = None;
        }
        self.end.get_or_insert(now + self.interval);
    }

    /// Forgets idle flows at the first arrival after each `sweep`; never one that has a
    /// packet here since it became known.
    fn upkeep(&mut self, now: Nanos, held: &Held) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + self.sweep;
        let (idle, tick) = (self.idle, |time: Nanos| time.0 >> 20);
        if idle < Nanos::MAX {
            // Time is kept in steps of 2^20 ns.
            let age = |seen| (tick(now) - tick(seen)) << 20;
            self.flows.retain(|id, flow| {
                held.has(|packet| packet.flow == *id && packet.id >= flow.first)
                    || age(flow.last_arrival) <= idle.0
            });
        }
    }

    fn change(&mut self, params: &Params) {
        self.idle = params.time("idle");
        self.sweep = params.time("sweep");
        self.next_sweep = Nanos::ZERO;
        if params.has("interval") {
            self.interval = params.time("interval");
            self.keep = (params.number("keep"), params.number("early-keep"));
        }
        self.end = None;
    }
}

/// The model of `sb` and `sb-ko`, with shares by fair queueing, and of `sb-sh`.
#[derive(Hash)]
pub struct Sb {
    pub(super) held: Held,
    pub(super) shares: Shares,
    known: Known,
    pub(super) threshold: Amount,
    boundary: &'static str,
    /// Whether flows are taken up by chance.
    samples: bool,
}

impl Sb {
    /// An empty queue that counts every flow.
    #[must_use]
    pub fn every_flow(params: &Params, knockout: bool) -> Self {
        Self::new(params, knockout, false)
    }

    /// An empty queue that holds a flow once it has been sampled.
    #[must_use]
    pub fn sample_and_hold(params: &Params) -> Self {
        Self::new(params, params.word("buffer") == "knockout", true)
    }

    fn new(params: &Params, knockout: bool, samples: bool) -> Self {
        let mut sb = Self {
            held: Held::new(params, knockout),
            shares: Shares { weight: 0, stamps: BTreeMap::new(), last_stamp: [0, 0], now: 0 },
            known: Known {
                flows: BTreeMap::new(),
                idle: Nanos::MAX,
                sweep: Nanos::MAX,
                next_sweep: Nanos::ZERO,
                interval: Nanos::MAX,
                end: None,
                keep: (0, 0),
            },
            threshold: Amount::UNLIMITED,
            boundary: "",
            samples,
        };
        sb.change(params);
        sb
    }
}

impl Model for Sb {
    fn enqueue(&mut self, packet: Packet, now: Nanos, said: &Step) -> Vec<u64> {
        self.known.upkeep(now, &self.held);
        self.known.measure(now, &self.held);
        let is_known = self.known.flows.contains_key(&packet.flow);
        let is_taken_up =
            |event| matches!(event, Event::FlowCreated { flow } if flow == packet.flow);
        let sampled = said.events().any(is_taken_up);
        let mut long = false;
        if is_known || sampled || !self.samples {
            let flow = self.known.flows.entry(packet.flow).or_insert_with(|| Flow {
                count: Count::default(),
                first: packet.id,
                is_new: true,
                last_arrival: now,
            });
            flow.last_arrival = now;
            long = flow.count.add(&packet, self.threshold, self.boundary);
        }
        let lost = self.held.admit(packet, long);
        if lost.contains(&packet.id) {
            return lost;
        }
        if !lost.is_empty() {
            self.shares.pushed_out(&self.held);
        }
        self.shares.stamp(&packet, long);
        lost
    }

    fn dequeue(&mut self, _now: Nanos, _said: &Step) -> Option<u64> {
        let long = self.shares.choose(&self.held);
        let packet = self.held.take(long)?;
        self.shares.sent(&packet, &self.held);
        Some(packet.id)
    }

    fn change(&mut self, params: &Params) {
        self.held.limit = params.amount("limit");
        self.threshold = params.amount("threshold");
        self.boundary = params.word("boundary");
        self.known.change(params);
        self.shares.restart(params.share("weight").ppb(), &self.held);
    }

    fn flows(&self) -> usize {
        self.known.flows.len()
    }

    fn digest(&self, mut into: &mut dyn Hasher) -> bool {
        self.hash(&mut into);
        true
    }
}
