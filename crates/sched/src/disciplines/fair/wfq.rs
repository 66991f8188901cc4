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
mod tests;
