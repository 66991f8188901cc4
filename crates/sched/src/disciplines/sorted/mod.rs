//! Disciplines that serve flows in a sorted order: what LAS, LARS and SRPT share.
//!
//! Packets wait in per-flow queues; a heap of backlogged flows says whose head is next, so an
//! arrival to a backlogged flow touches no heap. An [`Order`] says what flows are sorted by. When
//! the buffer is full the arrival is inserted first, and then the flow that the order ranks
//! highest loses its newest packet until the rest fits; that may be the arrival itself. The
//! ranking is built at the first overflow and dropped once the buffer is half empty, so an
//! uncongested queue does not pay for it.
//!
//! Flow states outlive their packets: a sweep forgets flows without an arrival for `idle`. At
//! the bound of the table, the longest-idle of a few flows with nothing queued gives way. Where
//! there is none, the newcomer is *untracked*: its packet joins one anonymous FIFO that is ahead
//! of every tracked flow of the same arrival time. Being first in line, it cannot be overtaken
//! by a later packet of its own flow that does get an entry.
//!
//! A packet larger than the whole limit is refused at once: nobody should lose a packet to it.

mod entry;
pub(crate) mod lars;
pub(crate) mod las;
mod order;
pub(crate) mod srpt;

use self::entry::{pack, slot_of};
pub(crate) use self::order::Order;
use crate::interface::{
    Amount, Backlog, Dequeue, Drop, DropReason, Event, Lane, Nanos, Packet, ParamError, Params,
    Qdisc, Queue, Sink, shared,
};
use crate::queues::heap::{MinHeap, Ranking};
use crate::queues::per_flow::{FlowQueue, Flows, NONE, PacketStore, Slot};

/// A flow: its packets, what the order keeps, and when it was last heard of.
///
/// Aligned so that the 32 bytes it takes under LAS never straddle two cache lines.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(crate) struct FlowState<T> {
    queue: FlowQueue,
    order: T,
    seen: Seen,
}

/// When the last packet of a flow arrived, and whether the heap has an entry for the flow (for
/// a while also with nothing queued): 63 bits and one.
#[derive(Clone, Copy, Debug, Default)]
struct Seen(u64);

impl Seen {
    fn last_arrival(self) -> Nanos {
        Nanos(self.0 >> 1)
    }

    fn in_heap(self) -> bool {
        self.0 & 1 != 0
    }

    fn arrived(&mut self, now: Nanos) {
        self.0 = now.0 << 1 | self.0 & 1;
    }

    fn set_in_heap(&mut self, in_heap: bool) {
        self.0 = self.0 & !1 | u64::from(in_heap);
    }
}

/// The slot of the anonymous FIFO of untracked packets.
const UNTRACKED: u32 = 0;

/// A discipline that serves flows in the order `O`.
pub(crate) struct Sorted<O: Order> {
    params: Params,
    limit: Amount,
    sweep: Nanos,
    idle: Nanos,
    order: O,
    flows: Flows<FlowState<O::Flow>>,
    packets: PacketStore,
    heap: MinHeap,
    /// The flow whose last packet has just departed while its entry is still on top of the heap:
    /// the next flow to become backlogged takes the place over. What arrives is often what is
    /// served next, and then neither the way up nor the way down the heap is walked.
    vacated: u32,
    ranking: Ranking,
    backlog: Backlog,
    /// Arrivals so far: the tag of a queued packet is its index among them.
    arrivals: u64,
    next_sweep: Nanos,
}

impl<O: Order> Sorted<O> {
    /// An empty queue.
    pub(crate) fn new(params: &Params) -> Self {
        let limit = params.get(shared::LIMIT);
        let mut flows = Flows::new(params.get(shared::FLOWS) as usize);
        let untracked = flows.add_anonymous();
        debug_assert_eq!(untracked, UNTRACKED);
        Self {
            params: params.clone(),
            limit,
            sweep: params.get(shared::SWEEP),
            idle: params.get(shared::IDLE),
            order: O::new(params),
            flows,
            packets: PacketStore::new(shared::ring_capacity(limit)),
            heap: MinHeap::default(),
            vacated: NONE,
            ranking: Ranking::default(),
            backlog: Backlog::default(),
            arrivals: 0,
            next_sweep: params.get(shared::SWEEP),
        }
    }

    /// The slot of the packet's flow, which is taken up if need be and possible.
    #[inline]
    fn find_flow<S: Sink>(&mut self, packet: &Packet, now: Nanos, sink: &mut S) -> u32 {
        let mut found = self.flows.slot(packet.flow);
        if found == Slot::Full {
            let rank =
                |flow: &FlowState<_>| (!flow.seen.in_heap()).then_some(flow.seen.last_arrival().0);
            if let Some(evicted) = self.flows.evict_near(packet.flow, rank) {
                sink.event(Event::FlowRemoved { flow: evicted });
                found = self.flows.slot(packet.flow);
            }
        }
        match found {
            Slot::Found(slot) => {
                self.flows[slot].seen.arrived(now);
                slot
            }
            Slot::Created(slot) => {
                let flow = &mut self.flows[slot];
                flow.seen.arrived(now);
                self.order.created(&mut flow.order, packet, self.arrivals);
                sink.event(Event::FlowCreated { flow: packet.flow });
                slot
            }
            Slot::Full => {
                sink.event(Event::FlowUntracked { flow: packet.flow });
                UNTRACKED
            }
        }
    }

    /// Puts a packet at the end of its flow's queue, and the flow in the heap.
    #[inline]
    fn insert(&mut self, slot: u32, packet: Packet) {
        let flow = &mut self.flows[slot];
        let first = flow.queue.is_empty();
        let node = self.packets.push_back(&mut flow.queue, packet, self.arrivals);
        if slot != UNTRACKED {
            self.order.joined(&mut flow.order, &packet, node, first);
        }
        if first {
            self.join_heap(slot);
        }
        self.backlog.add(&packet);
        if self.ranking.is_active() {
            self.update_rank(slot);
        }
    }

    /// Gives a flow that has become backlogged an entry.
    #[inline]
    fn join_heap(&mut self, slot: u32) {
        let Some(entry) = self.entry(slot) else { return };
        let vacated = core::mem::replace(&mut self.vacated, NONE);
        if vacated != NONE {
            // A departure may have lowered the key of the flow that left, so its entry must not
            // stay behind.
            self.flows[vacated].seen.set_in_heap(false);
        }
        // An entry left behind by a push-out serves again: it is not above the new key.
        match (vacated != NONE, self.flows[slot].seen.in_heap()) {
            (true, false) => self.heap.replace_top(entry),
            (true, true) => self.heap.pop(),
            (false, false) => self.heap.push(entry),
            (false, true) => {}
        }
        self.flows[slot].seen.set_in_heap(true);
    }

    /// Pushes packets out until the rest fits. Returns whether the packet that has just arrived
    /// is still there.
    #[cold]
    fn make_room<S: Sink>(&mut self, now: Nanos, sink: &mut S) -> bool {
        self.rebase_if_due(now);
        if !self.ranking.is_active() {
            let (heap, this) = (&self.heap, RankOf { order: &self.order, packets: &self.packets });
            let backlogged = heap.iter().filter_map(|entry| {
                let slot = slot_of(entry);
                Some((slot, this.rank(slot, &self.flows[slot])?))
            });
            self.ranking.activate(backlogged);
        }
        let mut survived = true;
        while self.backlog.in_unit_of(self.limit) > self.limit.value() {
            let Some(slot) = self.ranking.top() else { break };
            let flow = &mut self.flows[slot];
            let Some((packet, index)) = self.packets.pop_back(&mut flow.queue) else { break };
            if slot != UNTRACKED {
                self.order.pushed_out(&mut flow.order, &packet);
            }
            self.backlog.remove(&packet);
            self.update_rank(slot);
            let is_arrival = index == self.arrivals;
            survived &= !is_arrival;
            let reason = if is_arrival { DropReason::Full } else { DropReason::PushedOut };
            sink.dropped(packet, Drop { reason, lane: Lane::ONLY }, now);
        }
        if self.order.ranks_age() {
            self.ranking.deactivate();
        }
        survived
    }

    /// Starts to load what the next departure will need, while the arrival's own loads are
    /// under way. Nothing waits for the values, so with many flows the misses overlap.
    #[inline]
    fn warm_next(&self) {
        if let Some(top) = self.heap.peek() {
            let queue = &self.flows[slot_of(top)].queue;
            core::hint::black_box(self.packets.front(queue).map_or(0, |node| node.tag));
        }
    }

    /// Brings the rank of a flow up to date.
    fn update_rank(&mut self, slot: u32) {
        let this = RankOf { order: &self.order, packets: &self.packets };
        match this.rank(slot, &self.flows[slot]) {
            Some(rank) => self.ranking.set(slot, rank),
            None => self.ranking.remove(slot),
        }
    }

    /// The heap entry of a backlogged flow.
    #[inline]
    fn entry(&self, slot: u32) -> Option<u128> {
        let flow = &self.flows[slot];
        let head = self.packets.front(&flow.queue)?;
        let key = match slot {
            UNTRACKED => (0, head.tag),
            _ => self.order.key(&flow.order, head),
        };
        Some(pack(key, slot))
    }

    /// The backlogged flow that is served next. Corrects entries that push-outs left behind.
    #[inline]
    fn next_flow(&mut self) -> Option<u32> {
        self.vacated = NONE;
        loop {
            let top = self.heap.peek()?;
            let slot = slot_of(top);
            match self.entry(slot) {
                Some(entry) if entry == top => return Some(slot),
                Some(entry) => self.heap.replace_top(entry),
                None => {
                    self.flows[slot].seen.set_in_heap(false);
                    self.heap.pop();
                }
            }
        }
    }

    /// Forgets idle flows when it is time to.
    #[inline]
    fn sweep_if_due<S: Sink>(&mut self, now: Nanos, sink: &mut S) {
        if now >= self.next_sweep {
            self.sweep(now, sink);
        }
    }

    #[cold]
    fn sweep<S: Sink>(&mut self, now: Nanos, sink: &mut S) {
        self.next_sweep = now + self.sweep;
        self.renew_heap();
        let idle = self.idle;
        self.flows.retain(
            |flow| flow.seen.in_heap() || now.since(flow.seen.last_arrival()) <= idle,
            |flow| sink.event(Event::FlowRemoved { flow }),
        );
    }

    /// Tells the order the time, and brings its numbers down if they have grown too large.
    #[inline]
    fn rebase_if_due(&mut self, now: Nanos) {
        if self.order.tick(now) {
            self.rebase();
        }
    }

    #[cold]
    fn rebase(&mut self) {
        self.order.rebase(self.flows.states_mut().map(|flow| &mut flow.order));
        self.ranking.deactivate();
        self.renew_heap();
    }

    /// Brings every heap entry up to date, and leaves out those of flows with nothing queued.
    fn renew_heap(&mut self) {
        self.vacated = NONE;
        let mut heap = core::mem::take(&mut self.heap);
        heap.refill(|entry| {
            let slot = slot_of(entry);
            let entry = self.entry(slot);
            self.flows[slot].seen.set_in_heap(entry.is_some());
            entry
        });
        self.heap = heap;
    }
}

/// Enough of a [`Sorted`] to rank a flow while its ranking is being built.
struct RankOf<'a, O> {
    order: &'a O,
    packets: &'a PacketStore,
}

impl<O: Order> RankOf<'_, O> {
    /// The rank of a flow that has something to lose.
    fn rank(&self, slot: u32, flow: &FlowState<O::Flow>) -> Option<u128> {
        let tail = self.packets.back(&flow.queue)?;
        let (first, second) = match slot {
            UNTRACKED => (0, tail.tag),
            _ => self.order.rank(&flow.order, &flow.queue, tail),
        };
        Some(u128::from(first) << 64 | u128::from(second))
    }
}

impl<S: Sink, O: Order> Qdisc<S> for Sorted<O> {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        self.warm_next();
        self.sweep_if_due(now, sink);
        let slot = self.find_flow(&packet, now, sink);
        let has_room = self.backlog.has_room(self.limit, &packet);
        if !has_room && self.backlog.must_refuse(self.limit, &packet) {
            if slot != UNTRACKED {
                self.order.refused(&mut self.flows[slot].order, &packet);
            }
            return sink.refused(packet, Lane::ONLY, now);
        }
        self.insert(slot, packet);
        if has_room || self.make_room(now, sink) {
            sink.enqueued(&packet, Lane::ONLY, now);
        }
        self.arrivals += 1;
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        self.sweep_if_due(now, sink);
        self.rebase_if_due(now);
        let Some(slot) = self.next_flow() else { return Dequeue::Empty };
        let flow = &mut self.flows[slot];
        let Some((packet, _)) = self.packets.pop_front(&mut flow.queue) else {
            return Dequeue::Empty;
        };
        if slot != UNTRACKED {
            self.order.departed(&mut flow.order, &packet, flow.queue.head(), now);
        }
        match self.entry(slot) {
            Some(entry) => self.heap.replace_top(entry),
            None => self.vacated = slot,
        }
        self.backlog.remove(&packet);
        self.ranking.relax(self.backlog.in_unit_of(self.limit), self.limit.value());
        if self.ranking.is_active() {
            self.update_rank(slot);
        }
        sink.dequeued(&packet, Lane::ONLY, now);
        Dequeue::unmarked(packet)
    }
}

impl<O: Order> Queue for Sorted<O> {
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn flows(&self) -> usize {
        self.flows.len()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.params.check_live(params)?;
        let last_sweep = self.next_sweep.since(self.sweep);
        self.limit = params.get(shared::LIMIT);
        self.sweep = params.get(shared::SWEEP);
        self.idle = params.get(shared::IDLE);
        self.next_sweep = last_sweep + self.sweep;
        if self.order.rescales(params) {
            self.rebase();
        }
        self.order.change(params);
        self.ranking.deactivate();
        self.params = params.clone();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use super::*;
    use crate::disciplines::sorted::las::Las;
    use crate::interface::{Drop, FlowId};
    use crate::testkit::Random;

    /// However packets come, go and are pushed out, a backlogged flow has one entry, and no flow
    /// has two.
    #[test]
    fn no_flow_is_in_the_heap_twice() {
        let spec: crate::spec::Spec = "las:limit=12packets".parse().unwrap();
        let mut las = Sorted::<Las>::new(spec.params());
        let mut sink: Vec<(Packet, Drop)> = Vec::new();
        let mut random = Random(9);
        for step in 0..50_000 {
            if random.below(100) < 52 + step / 10_000 {
                let packet = Packet::new(FlowId::new(1 + random.below(20)), 1500);
                las.enqueue(packet, Nanos::ZERO, &mut sink);
            } else {
                las.dequeue(Nanos::ZERO, &mut sink);
            }
            let entries: Vec<u32> = las.heap.iter().map(slot_of).collect();
            let slots: BTreeSet<u32> = entries.iter().copied().collect();
            assert_eq!(entries.len(), slots.len(), "step {step}");
            assert!(slots.iter().all(|slot| las.flows[*slot].seen.in_heap()));
        }
    }

    #[test]
    fn the_ranking_lives_only_under_pressure() {
        let spec: crate::spec::Spec = "las:limit=10packets".parse().unwrap();
        let mut las = Sorted::<Las>::new(spec.params());
        let mut sink: Vec<(Packet, Drop)> = Vec::new();
        let mut enqueue = |las: &mut Sorted<Las>, flow| {
            las.enqueue(Packet::new(FlowId::new(flow), 100), Nanos::ZERO, &mut sink);
        };
        (1..=10).for_each(|flow| enqueue(&mut las, flow));
        assert!(!las.ranking.is_active());
        enqueue(&mut las, 11);
        assert!(las.ranking.is_active());
        let mut sink: Vec<(Packet, Drop)> = Vec::new();
        for _ in 0..5 {
            las.dequeue(Nanos::ZERO, &mut sink);
        }
        assert!(las.ranking.is_active(), "half full");
        las.dequeue(Nanos::ZERO, &mut sink);
        assert!(!las.ranking.is_active());
    }
}
