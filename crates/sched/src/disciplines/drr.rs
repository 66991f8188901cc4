//! DRR, deficit round robin: fair queueing per flow in constant time.
//!
//! Backlogged flows take turns. At its turn a flow's deficit grows by one quantum, and it sends
//! while its head fits in the deficit; what is left is carried to its next turn, and lost when
//! the flow empties. The turn ends when a packet is asked for that does not fit, not before.
//!
//! When the buffer is full the arrival is inserted first, and then the flow with most bytes
//! queued loses packets until the rest fits; of two such flows the one that has been backlogged
//! longest. A flow is remembered only while one of its packets is queued.
//!
//! Cost: constant while a quantum is at least a packet; below that, a packet takes several turns.

use alloc::boxed::Box;

use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, DropReason, Event, Info, Lane, Nanos, Packet,
    Param, ParamError, Params, Qdisc, Queue, Sink, Takes, shared,
};
use crate::queues::heap::Ranking;
use crate::queues::per_flow::{FlowQueue, Flows, NONE, PacketStore, Slot};

/// Deficit round robin.
pub(crate) struct Drr {
    limit: Amount,
    quantum: u64,
    victim: Victim,
    /// An entry per backlogged flow.
    flows: Flows<Flow>,
    packets: PacketStore,
    /// The flow whose turn it is, and the last one in line.
    first: u32,
    last: u32,
    /// Whether the first flow has had its quantum for this turn.
    in_turn: bool,
    ranking: Ranking,
    backlog: Backlog,
    /// Arrivals so far: the tag of a queued packet is its index among them.
    arrivals: u64,
}

/// Which packet of the longest queue is pushed out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Tail,
    Head,
}

/// A backlogged flow.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    queue: FlowQueue,
    bytes: u64,
    /// Bytes it may still send; less than its head between two turns.
    deficit: u64,
    /// The arrival that made it backlogged.
    since: u64,
    /// Neighbours in the line of backlogged flows.
    next: u32,
    prev: u32,
}

const QUANTUM: Param<u64> = Param {
    name: "quantum",
    kind: Takes::bytes(64, 1 << 20),
    default: "1500b",
    effect: "bytes a flow may send per turn; at least the largest packet for constant cost",
    source: "Shreedhar and Varghese; one Ethernet packet",
    live: true,
};

const VICTIM: Param<&'static str> = Param {
    name: "victim",
    kind: Takes::words(&["tail", "head"]),
    default: "tail",
    effect: "full buffer: which packet the longest queue loses",
    source: "longest queue: Shreedhar and Varghese; its head: ns-2; its tail: choice",
    live: true,
};

impl Discipline for Drr {
    const INFO: Info = Info {
        name: "drr",
        summary: "deficit round robin: one queue per flow, served in turns of a quantum",
        source: "Shreedhar, Varghese, \"Efficient fair queuing using deficit round robin\", 1996",
        params: &[shared::LIMIT.any(), QUANTUM.any(), VICTIM.any()],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Box::new(Self::new(params))
    }
}

impl Drr {
    fn new(params: &Params) -> Self {
        let mut drr = Self {
            limit: params.get(shared::LIMIT),
            quantum: 0,
            victim: Victim::Tail,
            // Flows are bounded by the packets queued.
            flows: Flows::new(NONE as usize),
            packets: PacketStore::new(shared::ring_capacity(params.get(shared::LIMIT))),
            first: NONE,
            last: NONE,
            in_turn: false,
            ranking: Ranking::default(),
            backlog: Backlog::default(),
            arrivals: 0,
        };
        drr.set(params);
        drr
    }

    fn set(&mut self, params: &Params) {
        self.limit = params.get(shared::LIMIT);
        self.quantum = params.get(QUANTUM);
        self.victim = match params.get(VICTIM) {
            "head" => Victim::Head,
            _ => Victim::Tail,
        };
    }

    /// Puts a packet at the end of its flow's queue, and a new flow at the end of the line.
    fn insert<S: Sink>(&mut self, packet: Packet, sink: &mut S) {
        let slot = match self.flows.slot(packet.flow) {
            Slot::Found(slot) => slot,
            Slot::Created(slot) => {
                sink.event(Event::FlowCreated { flow: packet.flow });
                self.flows[slot].since = self.arrivals;
                self.join_line(slot);
                slot
            }
            Slot::Full => unreachable!("there are as many packets as flows, and nodes for them"),
        };
        let flow = &mut self.flows[slot];
        self.packets.push_back(&mut flow.queue, packet, self.arrivals);
        flow.bytes += u64::from(packet.size);
        self.backlog.add(&packet);
        if self.ranking.is_active() {
            self.ranking.set(slot, self.flows[slot].rank());
        }
    }

    /// Counts out a packet that has just been taken from a flow's queue, and the flow if it was
    /// the last one.
    fn removed<S: Sink>(&mut self, slot: u32, packet: &Packet, sink: &mut S) {
        self.backlog.remove(packet);
        let flow = &mut self.flows[slot];
        flow.bytes -= u64::from(packet.size);
        if flow.queue.is_empty() {
            self.leave_line(slot);
            self.flows.remove(packet.flow);
            self.ranking.remove(slot);
            sink.event(Event::FlowRemoved { flow: packet.flow });
        } else if self.ranking.is_active() {
            self.ranking.set(slot, self.flows[slot].rank());
        }
    }

    /// Pushes packets out of the longest queue until the rest fits. Returns whether the packet
    /// that has just arrived is still there.
    #[cold]
    fn make_room<S: Sink>(&mut self, now: Nanos, sink: &mut S) -> bool {
        if !self.ranking.is_active() {
            let flows = &self.flows;
            let listed = |slot| (slot != NONE).then_some(slot);
            let line = core::iter::successors(listed(self.first), |slot| listed(flows[*slot].next));
            self.ranking.activate(line.map(|slot| (slot, flows[slot].rank())));
        }
        let mut survived = true;
        while self.backlog.in_unit_of(self.limit) > self.limit.value() {
            let Some(slot) = self.ranking.top() else { break };
            let queue = &mut self.flows[slot].queue;
            let victim = match self.victim {
                Victim::Tail => self.packets.pop_back(queue),
                Victim::Head => self.packets.pop_front(queue),
            };
            let Some((packet, index)) = victim else { break };
            self.removed(slot, &packet, sink);
            let is_arrival = index == self.arrivals;
            survived &= !is_arrival;
            let reason = if is_arrival { DropReason::Full } else { DropReason::PushedOut };
            sink.dropped(packet, Drop { reason, lane: Lane::ONLY }, now);
        }
        survived
    }

    /// The flow whose head is sent next. Gives quanta and passes turns on until one fits.
    fn next_flow(&mut self) -> Option<u32> {
        loop {
            let slot = self.first;
            if slot == NONE {
                return None;
            }
            let flow = &mut self.flows[slot];
            if !self.in_turn {
                self.in_turn = true;
                flow.deficit += self.quantum;
            }
            let head = self.packets.front(&flow.queue)?;
            if u64::from(head.packet.size) <= flow.deficit {
                return Some(slot);
            }
            self.leave_line(slot);
            self.join_line(slot);
        }
    }

    /// Puts a flow at the end of the line.
    fn join_line(&mut self, slot: u32) {
        let last = self.last;
        let flow = &mut self.flows[slot];
        flow.next = NONE;
        flow.prev = last;
        match last {
            NONE => self.first = slot,
            last => self.flows[last].next = slot,
        }
        self.last = slot;
    }

    /// Takes a flow out of the line; if it was the first, its turn is over.
    fn leave_line(&mut self, slot: u32) {
        let Flow { next, prev, .. } = self.flows[slot];
        match prev {
            NONE => {
                self.first = next;
                self.in_turn = false;
            }
            prev => self.flows[prev].next = next,
        }
        match next {
            NONE => self.last = prev,
            next => self.flows[next].prev = prev,
        }
    }
}

impl Flow {
    /// Most bytes first; of equals, the one that has been backlogged longest.
    fn rank(&self) -> u128 {
        u128::from(self.bytes) << 64 | u128::from(u64::MAX - self.since)
    }
}

impl<S: Sink> Qdisc<S> for Drr {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        if self.backlog.must_refuse(self.limit, &packet) {
            return sink.refused(packet, Lane::ONLY, now);
        }
        let has_room = self.backlog.has_room(self.limit, &packet);
        self.insert(packet, sink);
        if has_room || self.make_room(now, sink) {
            sink.enqueued(&packet, Lane::ONLY, now);
        }
        self.arrivals += 1;
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let Some(slot) = self.next_flow() else { return Dequeue::Empty };
        let flow = &mut self.flows[slot];
        let Some((packet, _)) = self.packets.pop_front(&mut flow.queue) else {
            return Dequeue::Empty;
        };
        flow.deficit -= u64::from(packet.size);
        self.removed(slot, &packet, sink);
        self.ranking.relax(self.backlog.in_unit_of(self.limit), self.limit.value());
        sink.dequeued(&packet, Lane::ONLY, now);
        Dequeue::unmarked(packet)
    }
}

impl Queue for Drr {
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn flows(&self) -> usize {
        self.flows.len()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.set(params);
        self.ranking.deactivate();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
