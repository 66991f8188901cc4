//! WF2Q+, worst-case fair weighted fair queueing: the least finish among those that may have begun.
//!
//! The head of a flow of weight w starts at S and finishes at F = S + L/w, where S is the finish of
//! the packet that its flow sent last, or V if that is more when the flow becomes backlogged. Only
//! heads with S <= V are eligible: those that a fluid system would have begun to serve. Of these the
//! least F is sent; of equals the one that arrived first. So, unlike under WFQ, no flow gets ahead
//! of its share by more than a packet, only to wait the longer for it afterwards.
//!
//! V needs no fluid system: it grows by work / (sum of the weights of flows that are remembered),
//! and where that makes nobody eligible it is the least S of those that are backlogged. A flow is
//! remembered while it is backlogged or V has not reached what it was served.
//!
//! All of it is exact in the sense of `wfq`: virtual time counts in units of which a byte at any
//! weight takes a whole number, and work that does not make up a unit is kept as work.
//!
//! Cost: a table look-up and a division per arrival, a division and three operations on queues of
//! flows per departure.

use alloc::boxed::Box;

use super::weights::{WEIGHTS, Weights};
use super::wire::Wire;
use super::{DROP, Fair, Joined, Queues, Service};
use crate::interface::{Discipline, FlowId, Info, Nanos, Packet, Params, Qdisc, Sink, shared};
use crate::queues::runs::{self, Heads};

/// Worst-case fair weighted fair queueing, second form.
pub(crate) struct Wf2q {
    weights: Weights,
    wire: Wire,
    /// V.
    time: u64,
    /// Work that is done, and not yet in V.
    work: u64,
    /// The sum of the weights of remembered flows.
    weight: u64,
    /// Flows with S > V, or not looked at since V has reached it, by S. They may be idle.
    waiting: Heads,
    /// Backlogged flows with S <= V, by F.
    eligible: Heads,
    /// How many of these.
    ready: u64,
}

/// A remembered flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Started {
    flow: Option<FlowId>,
    /// S of its head, or of the next packet to come.
    start: u64,
    weight: u32,
    is_eligible: bool,
}

impl Discipline for Wf2q {
    const INFO: Info = Info {
        name: "wf2q+",
        summary: "worst-case fair wfq: the least finish among packets a fluid system has begun",
        source: "Bennett, Zhang, \"Hierarchical packet fair queueing algorithms\", 1997",
        params: &[shared::LIMIT.any(), WEIGHTS.any(), shared::RATE.any(), DROP.any()],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Fair::<Self>::boxed(params)
    }
}

/// Numbers are lowered when V reaches this.
const MOST_TIME: u64 = 1 << 54;

/// The entry of a flow that waits.
#[inline]
fn waiting(queues: &Queues<Started>, slot: u32) -> Option<u128> {
    let flow = queues.get(slot);
    (!flow.is_eligible).then(|| runs::pack(flow.start, 0, slot))
}

/// The entry of an eligible flow.
#[inline]
fn eligible(weights: &Weights, queues: &Queues<Started>, slot: u32) -> Option<u128> {
    let Started { start, weight, is_eligible, .. } = *queues.get(slot);
    let (size, _) = queues.head(slot)?;
    let finish = start.saturating_add(weights.cost(size, weight));
    if is_eligible { queues.entry(slot, finish) } else { None }
}

impl Wf2q {
    /// Brings V up to date, and takes up who is eligible by it.
    #[inline]
    fn advance<S: Sink>(&mut self, queues: &mut Queues<Started>, sink: &mut S) {
        let step = self.work.checked_div(self.weight).unwrap_or(0);
        self.time += step;
        self.work = if self.weight == 0 { 0 } else { self.work - step * self.weight };
        while let Some(slot) = self.waiting.next(|slot| waiting(queues, slot)) {
            let start = queues.get(slot).start;
            let is_due = start <= self.time;
            // With nobody eligible, V is the least S of those that are backlogged.
            if !is_due && (self.ready > 0 || queues.packets() == 0) {
                break;
            }
            self.waiting.served(None);
            if queues.is_idle(slot) {
                self.forget(queues, slot, sink);
                continue;
            }
            if !is_due {
                (self.time, self.work) = (start, 0);
            }
            self.take_up(queues, slot);
        }
        if self.time >= MOST_TIME {
            self.lower(queues);
        }
    }

    /// A backlogged flow is eligible.
    #[inline]
    fn take_up(&mut self, queues: &mut Queues<Started>, slot: u32) {
        queues.of(slot).is_eligible = true;
        self.ready += 1;
        if let Some(entry) = eligible(&self.weights, queues, slot) {
            self.eligible.push(entry);
        }
    }

    #[inline]
    fn forget<S: Sink>(&mut self, queues: &mut Queues<Started>, slot: u32, sink: &mut S) {
        let Started { flow, weight, .. } = *queues.get(slot);
        self.weight -= u64::from(weight);
        if let Some(flow) = flow {
            queues.forget(flow, sink);
        }
    }

    /// A busy period has ended.
    fn restart<S: Sink>(&mut self, queues: &mut Queues<Started>, sink: &mut S) {
        while let Some(slot) = self.waiting.next(|slot| waiting(queues, slot)) {
            self.waiting.served(None);
            self.forget(queues, slot, sink);
        }
        self.wire.restart();
        (self.time, self.work) = (0, 0);
        self.waiting.clear();
        self.eligible.clear();
    }

    /// Lowers all numbers by the least that still matters.
    #[cold]
    fn lower(&mut self, queues: &mut Queues<Started>) {
        let starts = self.eligible.slots().filter(|slot| queues.get(*slot).is_eligible);
        let base = starts.map(|slot| queues.get(slot).start).fold(self.time, u64::min);
        self.time -= base;
        for flow in queues.all() {
            flow.start = flow.start.saturating_sub(base);
        }
        self.eligible.rebase(base);
        self.waiting.rebase(base);
    }
}

impl Service for Wf2q {
    type Flow = Started;

    fn new(params: &Params) -> Self {
        let weights = Weights::from_params(params);
        Self {
            wire: Wire::new(weights.unit(), params),
            weights,
            time: 0,
            work: 0,
            weight: 0,
            waiting: Heads::default(),
            eligible: Heads::default(),
            ready: 0,
        }
    }

    fn change(&mut self, _queues: &Queues<Started>, params: &Params) {
        self.wire.change(params);
    }

    #[inline]
    fn arrival<S: Sink>(&mut self, queues: &mut Queues<Started>, now: Nanos, sink: &mut S) {
        self.work = self.work.saturating_add(self.wire.done(now));
        if queues.packets() == 0 && self.wire.is_idle() {
            self.restart(queues, sink);
        } else {
            self.advance(queues, sink);
        }
    }

    #[inline]
    fn joined(&mut self, queues: &mut Queues<Started>, joined: Joined<'_>) {
        // A flow that is remembered has an entry; its S is above V if it was idle.
        if joined.is_new {
            let flow = queues.of(joined.slot);
            flow.flow = Some(joined.packet.flow);
            flow.weight = self.weights.of(joined.packet);
            flow.start = self.time;
            self.weight += u64::from(flow.weight);
            self.take_up(queues, joined.slot);
        }
        if let Some(slot) = self.eligible.hint() {
            queues.warm(slot);
        }
    }

    #[inline]
    fn next<S: Sink>(
        &mut self,
        queues: &mut Queues<Started>,
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
        self.advance(queues, sink);
        self.eligible.next(|slot| eligible(&self.weights, queues, slot))
    }

    #[inline]
    fn served<S: Sink>(
        &mut self,
        queues: &mut Queues<Started>,
        slot: u32,
        packet: &Packet,
        now: Nanos,
        sink: &mut S,
    ) {
        self.wire.start(packet.size, now);
        self.eligible.served(None);
        self.ready -= 1;
        let flow = queues.of(slot);
        flow.start = flow.start.saturating_add(self.weights.cost(packet.size, flow.weight));
        flow.is_eligible = false;
        if let Some(entry) = waiting(queues, slot) {
            self.waiting.push(entry);
        }
        if queues.packets() == 0 && self.wire.is_idle() {
            self.restart(queues, sink);
        }
    }

    fn pushed_out<S: Sink>(
        &mut self,
        queues: &mut Queues<Started>,
        slot: u32,
        _packet: &Packet,
        sink: &mut S,
    ) {
        // One that waits keeps its entry. V has passed the start of one that is eligible.
        if queues.is_idle(slot) && queues.get(slot).is_eligible {
            self.ready -= 1;
            self.forget(queues, slot, sink);
            let Self { eligible: heads, weights, ready, .. } = self;
            heads.pushed_out(*ready as usize, |slot| eligible(weights, queues, slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::super::Flow;
    use super::*;
    use crate::interface::{Drop, Qdisc};
    use crate::spec::Spec;
    use crate::testkit::Random;

    #[test]
    fn a_flow_costs_sixty_four_bytes() {
        assert_eq!(size_of::<Flow<Started>>(), 64);
    }

    fn new(spec: &str) -> Fair<Wf2q> {
        let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{error}"));
        Fair::new(spec.params())
    }

    /// Who is sent had S <= V, and the least F of those; V never falls while something is queued.
    #[test]
    fn only_what_a_fluid_system_has_begun_is_sent() {
        for (seed, drop) in (0..60).flat_map(|seed| [(seed, "tail"), (seed, "longest-queue")]) {
            let spec = "wf2q+:limit=20packets,rate=10mbit,weights=1+3@1+7@2";
            let mut queue = new(&alloc::format!("{spec},drop={drop}"));
            let mut sink: Vec<(Packet, Drop)> = Vec::new();
            let mut random = Random(seed);
            let (mut now, mut last, mut waited) = (Nanos::ZERO, 0, 0);
            for _ in 0..2000 {
                now += Nanos(random.below(1_000_000));
                if random.below(100) < 55 {
                    let flow = random.below(6);
                    let mut packet = Packet::new(FlowId::new(flow + 1), random.below(1501) as u32);
                    packet.dscp = flow as u8 % 3;
                    queue.enqueue(packet, now, &mut sink);
                    continue;
                }
                let Fair { queues, service, .. } = &mut queue;
                let Some(slot) = service.next(queues, now, &mut sink) else {
                    last = 0;
                    continue;
                };
                let finish = |queues: &Queues<Started>, slot: u32| {
                    let Started { start, weight, .. } = *queues.get(slot);
                    start + service.weights.cost(queues.head(slot).unwrap().0, weight)
                };
                assert!(queues.get(slot).start <= service.time);
                for other in (0..6).filter(|other| *other < queues.flows() as u32 && *other != slot)
                {
                    if queues.is_idle(other) {
                        continue;
                    }
                    let is_eligible = queues.get(other).start <= service.time;
                    assert!(!is_eligible || finish(queues, other) >= finish(queues, slot));
                    waited += u32::from(!is_eligible);
                }
                assert!(service.time >= last);
                last = service.time;
                assert!(queue.dequeue(now, &mut sink).packet().is_some());
                last = if queue.queues.packets() == 0 { 0 } else { last };
            }
            assert!(waited > 20, "{waited} flows had to wait");
        }
    }

    /// Packets so large that numbers are lowered every few of them.
    #[test]
    fn a_busy_period_of_any_length_keeps_the_shares() {
        let mut queue = new("wf2q+:limit=100000packets");
        let mut sink: Vec<(Packet, Drop)> = Vec::new();
        let mut random = Random(5);
        let mut served = [0u64; 3];
        let mut offer = |queue: &mut Fair<Wf2q>, flow: u64| {
            let mut sink: Vec<(Packet, Drop)> = Vec::new();
            let size = 1 + random.below(1 << 32) as u32;
            queue.enqueue(Packet::new(FlowId::new(flow + 1), size), Nanos::ZERO, &mut sink);
        };
        (0..3).for_each(|flow| offer(&mut queue, flow));
        (0..3).for_each(|flow| offer(&mut queue, flow));
        for _ in 0..5000 {
            let sent = queue.dequeue(Nanos::ZERO, &mut sink).packet().unwrap();
            let flow = sent.flow.get() - 1;
            served[flow as usize] += u64::from(sent.size);
            offer(&mut queue, flow);
            assert!(queue.service.time < 2 * MOST_TIME);
            let spread = served.iter().max().unwrap() - served.iter().min().unwrap();
            assert!(spread <= 2 << 32, "{served:?}");
        }
        assert!(served[0] > 100 * (MOST_TIME >> 20), "lowered many times");
    }
}
