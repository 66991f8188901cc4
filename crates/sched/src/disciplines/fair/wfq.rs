//! WFQ, weighted fair queueing (PGPS): packets in the order in which a fluid system ends them.
//!
//! The fluid system (GPS) serves all backlogged flows at once, each in proportion to its weight.
//! Its virtual time V grows by work / (sum of the weights of flows backlogged *in it*). A packet of
//! L bytes of a flow of weight w starts at S = max(finish of the packet before it in its flow, V at
//! its arrival) and finishes at F = S + L/w; the packet with the least F is sent first, of equals
//! the one that arrived first. So a packet ends at most one largest packet later than in the fluid
//! system.
//!
//! V changes its slope where a flow becomes idle in the fluid system, which may be before or after
//! its packets have left: V is taken from one such point to the next. What has been sent is known
//! from departures, and between two of them from the time if `rate` is given (see `wire`).
//!
//! All of it is exact: virtual time counts in units of which a byte at any weight takes a whole
//! number, and work that does not make up a unit is kept as work. That is to say, the order is that
//! of the fluid system had every packet arrived earlier by less than (sum of weights) / 2^19 bytes
//! of link time; the difference never adds up. Long before numbers grow large, all are lowered.
//!
//! A packet that is pushed out leaves the fluid system as well, with what it was not yet served.
//!
//! Cost: a table look-up and a division per arrival, two operations on queues of flows.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::weights::{WEIGHTS, Weights};
use super::wire::Wire;
use super::{DROP, Fair, Joined, Queues, Service};
use crate::interface::{Discipline, FlowId, Info, Nanos, Packet, Params, Qdisc, Sink, shared};
use crate::queues::runs::{self, Heads};

/// Weighted fair queueing.
pub(crate) struct Wfq {
    weights: Weights,
    wire: Wire,
    /// V.
    time: u64,
    /// Work that is done, and not yet in V.
    work: u64,
    /// The sum of weights in the fluid system.
    weight: u64,
    /// Flows in the fluid system, by when they become idle in it.
    leaving: Heads,
    /// Entries of those so far, which tells them apart.
    entries: u32,
    /// Flows with a packet queued, by the finish of their heads.
    heads: Heads,
    /// By node of the packet store: the finish of the packet there.
    finishes: Vec<u64>,
}

/// A flow that is backlogged in the fluid system, or here, or in both.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fluid {
    flow: Option<FlowId>,
    /// The finish of its newest packet.
    finish: u64,
    /// The tag of its entry among those that leave, while it is in the fluid system: not above
    /// `finish`, which arrivals raise. 0 while it is not.
    listed: u64,
    weight: u32,
    /// The number of that entry. A flow that is pushed out and comes back may have the same tag.
    entry: u32,
}

impl Discipline for Wfq {
    const INFO: Info = Info {
        name: "wfq",
        summary: "weighted fair queueing: packets in the order in which a fluid system ends them",
        source: "Parekh, Gallager, \"A generalized processor sharing approach to flow control in \
                 integrated services networks: the single-node case\", 1993",
        params: &[shared::LIMIT.any(), WEIGHTS.any(), shared::RATE.any(), DROP.any()],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Fair::<Self>::boxed(params)
    }
}

/// Numbers are lowered when V reaches this.
const MOST_TIME: u64 = 1 << 54;

/// The entry of a flow in the fluid system.
#[inline]
fn leaving(queues: &Queues<Fluid>, slot: u32) -> Option<u128> {
    let Fluid { listed, entry, .. } = *queues.get(slot);
    (listed > 0).then(|| runs::pack(listed, u64::from(entry), slot))
}

/// The entry of a flow with a packet queued.
#[inline]
fn head(finishes: &[u64], queues: &Queues<Fluid>, slot: u32) -> Option<u128> {
    queues.entry(slot, *finishes.get(queues.head_node(slot) as usize)?)
}

impl Wfq {
    /// Brings V up to date.
    #[inline]
    fn advance<S: Sink>(&mut self, queues: &mut Queues<Fluid>, sink: &mut S) {
        while let Some(slot) = self.leaving.next(|slot| leaving(queues, slot)) {
            let flow = queues.of(slot);
            let needed = (flow.listed - self.time).saturating_mul(self.weight);
            if needed > self.work {
                break;
            }
            if flow.finish > flow.listed {
                flow.listed = flow.finish;
                self.leaving.served(leaving(queues, slot));
                continue;
            }
            self.work -= needed;
            self.time = flow.finish;
            self.weight -= u64::from(flow.weight);
            flow.listed = 0;
            self.leaving.served(None);
            self.forget_if_done(queues, slot, sink);
        }
        // From here to V nobody leaves. In an empty fluid system, work is lost.
        let step = self.work.checked_div(self.weight).unwrap_or(0);
        self.time += step;
        self.work = if self.weight == 0 { 0 } else { self.work - step * self.weight };
        if self.time >= MOST_TIME {
            self.lower(queues);
        }
    }

    /// Gives a flow that is in the fluid system a new entry there.
    #[inline]
    fn list(&mut self, queues: &mut Queues<Fluid>, slot: u32) {
        self.entries = self.entries.wrapping_add(1);
        queues.of(slot).entry = self.entries;
        if let Some(entry) = leaving(queues, slot) {
            self.leaving.push(entry);
        }
    }

    /// Forgets a flow that is idle in both systems.
    #[inline]
    fn forget_if_done<S: Sink>(&self, queues: &mut Queues<Fluid>, slot: u32, sink: &mut S) {
        let Fluid { flow, listed, .. } = *queues.get(slot);
        if listed == 0
            && queues.is_idle(slot)
            && let Some(flow) = flow
        {
            queues.forget(flow, sink);
        }
    }

    /// A busy period has ended, in the fluid system as well.
    fn restart<S: Sink>(&mut self, queues: &mut Queues<Fluid>, sink: &mut S) {
        while let Some(slot) = self.leaving.next(|slot| leaving(queues, slot)) {
            queues.of(slot).listed = 0;
            self.leaving.served(None);
            self.forget_if_done(queues, slot, sink);
        }
        self.wire.restart();
        (self.time, self.work, self.weight) = (0, 0, 0);
        self.leaving.clear();
        self.heads.clear();
    }

    /// Lowers all numbers by the least that still matters.
    #[cold]
    fn lower(&mut self, queues: &mut Queues<Fluid>) {
        let first = self.heads.next(|slot| head(&self.finishes, queues, slot));
        let first = first.map_or(u64::MAX, |slot| self.finishes[queues.head_node(slot) as usize]);
        let base = self.time.min(first) - 1;
        self.time -= base;
        for flow in queues.all() {
            flow.finish = flow.finish.saturating_sub(base);
            flow.listed = flow.listed.saturating_sub(base);
        }
        for finish in &mut self.finishes {
            *finish = finish.saturating_sub(base);
        }
        self.heads.rebase(base);
        self.leaving.rebase(base);
    }
}

impl Service for Wfq {
    type Flow = Fluid;

    fn new(params: &Params) -> Self {
        let weights = Weights::from_params(params);
        Self {
            wire: Wire::new(weights.unit(), params),
            weights,
            time: 0,
            work: 0,
            weight: 0,
            leaving: Heads::default(),
            entries: 0,
            heads: Heads::default(),
            finishes: Vec::new(),
        }
    }

    fn change(&mut self, _queues: &Queues<Fluid>, params: &Params) {
        self.wire.change(params);
    }

    #[inline]
    fn arrival<S: Sink>(&mut self, queues: &mut Queues<Fluid>, now: Nanos, sink: &mut S) {
        self.work = self.work.saturating_add(self.wire.done(now));
        if queues.packets() == 0 && self.wire.is_idle() {
            self.restart(queues, sink);
        } else {
            self.advance(queues, sink);
        }
    }

    #[inline]
    fn joined(&mut self, queues: &mut Queues<Fluid>, joined: Joined<'_>) {
        let Joined { packet, slot, node, is_new, is_head } = joined;
        let flow = queues.of(slot);
        if is_new {
            (flow.flow, flow.weight) = (Some(packet.flow), self.weights.of(packet));
        }
        let cost = self.weights.cost(packet.size, flow.weight);
        // A packet of no bytes takes a unit, so that there is a time at which it leaves.
        let start = if flow.listed > 0 { flow.finish } else { self.time };
        flow.finish = start.saturating_add(cost.max(1));
        let (finish, joins) = (flow.finish, flow.listed == 0);
        if joins {
            flow.listed = finish;
            self.weight += u64::from(flow.weight);
            self.list(queues, slot);
        }
        if self.finishes.len() <= node as usize {
            self.finishes.resize(node as usize + 1, 0);
        }
        self.finishes[node as usize] = finish;
        if is_head && let Some(entry) = queues.entry(slot, finish) {
            self.heads.push(entry);
        }
        if let Some(slot) = self.heads.hint() {
            queues.warm(slot);
        }
    }

    #[inline]
    fn next<S: Sink>(
        &mut self,
        queues: &mut Queues<Fluid>,
        now: Nanos,
        sink: &mut S,
    ) -> Option<u32> {
        if queues.packets() == 0 {
            self.work = self.work.saturating_add(self.wire.done(now));
            if self.wire.is_idle() {
                self.restart(queues, sink);
            }
            return None;
        }
        self.work = self.work.saturating_add(self.wire.rest());
        self.heads.next(|slot| head(&self.finishes, queues, slot))
    }

    #[inline]
    fn served<S: Sink>(
        &mut self,
        queues: &mut Queues<Fluid>,
        slot: u32,
        packet: &Packet,
        now: Nanos,
        sink: &mut S,
    ) {
        self.wire.start(packet.size, now);
        self.heads.served(head(&self.finishes, queues, slot));
        self.forget_if_done(queues, slot, sink);
        if queues.packets() == 0 && self.wire.is_idle() {
            self.restart(queues, sink);
        }
    }

    fn pushed_out<S: Sink>(
        &mut self,
        queues: &mut Queues<Fluid>,
        slot: u32,
        packet: &Packet,
        sink: &mut S,
    ) {
        let flow = queues.of(slot);
        if flow.listed > 0 {
            // Its finish is that of the packet, and V is before it.
            let start =
                flow.finish.saturating_sub(self.weights.cost(packet.size, flow.weight).max(1));
            flow.finish = start.max(self.time);
            if flow.finish < flow.listed {
                let stays = flow.finish > self.time;
                flow.listed = if stays { flow.finish } else { 0 };
                if !stays {
                    self.weight -= u64::from(flow.weight);
                }
                self.list(queues, slot);
                self.leaving.pushed_out(queues.flows(), |slot| leaving(queues, slot));
            }
        }
        if queues.is_idle(slot) {
            let live = queues.packets() as usize;
            self.forget_if_done(queues, slot, sink);
            self.heads.pushed_out(live, |slot| head(&self.finishes, queues, slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::super::Flow;
    use super::*;
    use crate::interface::{Drop, Qdisc};
    use crate::spec::Spec;
    use crate::testkit::{Bench, Random};

    #[test]
    fn a_flow_costs_sixty_four_bytes() {
        assert_eq!(size_of::<Flow<Fluid>>(), 64);
    }

    /// Flow n has the DSCP n, and this weight.
    const WEIGHTS: [f64; 4] = [1.0, 1.0, 4.0, 2.5];
    const SPEC: &str = "wfq:limit=100000packets,drop=tail,rate=8mbit,weights=2+8@2+5@3";

    fn packet(flow: u8, size: u32) -> Packet {
        let mut packet = Packet::new(FlowId::new(u64::from(flow) + 1), size);
        packet.dscp = flow;
        packet
    }

    /// When GPS at a byte per microsecond ends each of these packets: times, flows, sizes.
    fn fluid_ends(arrivals: &[(f64, u8, u32)]) -> Vec<f64> {
        let mut ends = alloc::vec![f64::INFINITY; arrivals.len()];
        let mut queues: [Vec<(usize, f64)>; 4] = Default::default();
        let (mut now, mut next) = (0.0, 0);
        loop {
            let flows = (0..4).filter(|flow| !queues[*flow].is_empty());
            let weight: f64 = flows.clone().map(|flow| WEIGHTS[flow]).sum();
            let head_ends = flows.map(|flow| now + queues[flow][0].1 * weight / WEIGHTS[flow]);
            let head_ends = head_ends.fold(f64::INFINITY, f64::min);
            let arrives = arrivals.get(next).map_or(f64::INFINITY, |arrival| arrival.0);
            let until = head_ends.min(arrives);
            if until.is_infinite() {
                return ends;
            }
            for flow in 0..4 {
                if let Some(head) = queues[flow].first_mut() {
                    head.1 -= (until - now) * WEIGHTS[flow] / weight;
                    if head.1 < 1e-7 {
                        ends[head.0] = until;
                        queues[flow].remove(0);
                    }
                }
            }
            now = until;
            if arrives <= head_ends {
                let (_, flow, size) = arrivals[next];
                queues[usize::from(flow)].push((next, f64::from(size)));
                next += 1;
            }
        }
    }

    /// Parekh and Gallager's theorem 1, on a link of a byte per microsecond.
    #[test]
    fn no_packet_ends_later_than_in_the_fluid_system_by_more_than_the_largest() {
        let mut latest = f64::MIN;
        for seed in 0..40 {
            let mut random = Random(seed);
            let mut time = 0;
            let arrivals: Vec<(f64, u8, u32)> = (0..600)
                .map(|n| {
                    time += random.below(if n / 100 % 2 == 0 { 600 } else { 2500 });
                    let size = [40, 1500, 1 + random.below(1500) as u32][random.below(3) as usize];
                    (time as f64, random.below(4) as u8, size)
                })
                .collect();
            let ends = fluid_ends(&arrivals);
            let mut wfq = Bench::new(SPEC);
            let (mut free, mut next) = (0.0, 0);
            for _ in 0..arrivals.len() {
                // The link takes its next packet when it is free, or when one comes.
                let due = if wfq.qdisc.backlog().packets > 0 { free } else { arrivals[next].0 };
                let due = due.max(free);
                while let Some((time, flow, size)) = arrivals.get(next).filter(|a| a.0 <= due) {
                    wfq.now = Nanos((*time * 1000.0) as u64);
                    wfq.offer(packet(*flow, *size));
                    next += 1;
                }
                wfq.now = Nanos((due * 1000.0) as u64);
                let sent = wfq.dequeue().expect("a packet is there");
                free = due + f64::from(sent.size);
                let late = free - ends[sent.id as usize];
                assert!(late <= 1500.001, "seed {seed}: {} is {late} us late", sent.id);
                latest = latest.max(late);
            }
        }
        assert!(latest > 1000.0, "the bound is nearly met: {latest}");
    }

    /// Packets so large that numbers are lowered every few of them, and flows that come and go.
    #[test]
    fn a_busy_period_of_any_length_keeps_the_shares() {
        let spec: Spec = "wfq:limit=100000packets".parse().unwrap();
        let mut wfq: Fair<Wfq> = Fair::new(spec.params());
        let mut sink: Vec<(Packet, Drop)> = Vec::new();
        let mut random = Random(3);
        let offer = |wfq: &mut Fair<Wfq>, flow: u64, size: u32| {
            let mut sink: Vec<(Packet, Drop)> = Vec::new();
            wfq.enqueue(Packet::new(FlowId::new(flow), size), Nanos::ZERO, &mut sink);
        };
        let mut served: BTreeMap<u64, u64> = BTreeMap::new();
        for flow in [1, 2, 1, 2] {
            offer(&mut wfq, flow, 1 << 31);
        }
        for _ in 0..5000 {
            if random.below(3) == 0 {
                offer(&mut wfq, 3 + random.below(5), random.below(1 << 32) as u32);
            }
            let Some(sent) = wfq.dequeue(Nanos::ZERO, &mut sink).packet() else { break };
            *served.entry(sent.flow.get()).or_default() += u64::from(sent.size);
            if sent.flow.get() <= 2 {
                offer(&mut wfq, sent.flow.get(), 1 + random.below(1 << 32) as u32);
            }
            assert!(wfq.service.time < 2 * MOST_TIME, "{}", wfq.service.time);
            let apart = served.get(&1).unwrap_or(&0).abs_diff(*served.get(&2).unwrap_or(&0));
            assert!(apart <= 2 << 32, "{apart}");
        }
        assert!(served.values().sum::<u64>() > 100 * (MOST_TIME >> 20), "lowered many times");
    }

    /// A flow that is pushed out time and again comes back with the same finish every time. What it
    /// left behind is swept out with the rest, also while it is in the fluid system itself.
    #[test]
    fn a_flow_that_comes_back_leaves_nothing_behind() {
        let mut wfq = Bench::new("wfq:limit=2packets");
        wfq.enqueue(1, 40);
        wfq.enqueue(2, 40);
        for _ in 0..16 {
            wfq.enqueue(3, 1500);
        }
        wfq.change("wfq:limit=3packets").unwrap();
        wfq.enqueue(3, 1500);
        for _ in 0..16 {
            wfq.enqueue(4, 9000);
        }
        assert_eq!(wfq.take_drops().len(), 32);
        assert_eq!(wfq.drain(), [0, 1, 18]);
        assert_eq!(wfq.qdisc.flows(), 0);
    }

    #[test]
    fn a_weight_that_is_none_is_refused_with_the_reason() {
        for (weights, reason) in [
            ("0", "weight '0' is not a whole number from 1 to 1000"),
            ("1+-2@ef", "weight '-2'"),
            ("1+2@ef/46", "code 46 is there twice"),
            ("1+2@zz", "'zz' is not a DSCP"),
            ("997+991@ef+983@le", "no common multiple up to"),
        ] {
            for name in ["wfq", "wf2q+"] {
                let error = alloc::format!("{name}:weights={weights}").parse::<Spec>().unwrap_err();
                let error = alloc::format!("{error}");
                assert!(error.contains(reason) && error.contains("1+4@ef"), "{error}");
            }
        }
    }
}
