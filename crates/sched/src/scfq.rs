//! SCFQ, self-clocked fair queueing: one queue per flow, equal shares, in the order of tags.
//!
//! A packet of L bytes has the tag F = max(F of the packet before it in its flow, v) + L, where
//! v is the tag of the packet in service. The smallest tag is sent first; of equal tags the one
//! whose packet arrived first. When nothing is queued, v and all tags start again at 0.
//!
//! Of that, little must be kept. While a flow is backlogged its last tag is not below v, so the
//! tags of its packets are the tag before its head plus sums of sizes. Once its last packet has
//! left, its last tag is not above v, so an idle flow need not be remembered. And a packet that
//! is dropped at the end of its queue takes its bytes, and so its tag, with it.
//!
//! The papers leave open whom a full buffer drops: the arrival, or the newest packet of the
//! longest queue.
//!
//! Cost: a table look-up per arrival, a heap operation per departure.

use alloc::boxed::Box;

use crate::discipline::{self, Discipline, Info, Needs, shared};
use crate::flowqueue::{FlowQueue, Flows, NONE, PacketStore, Slot};
use crate::heap::{MinHeap, Ranking};
use crate::packet::Packet;
use crate::params::{Kind, ParamDef, ParamError, Params};
use crate::qdisc::{Backlog, Dequeue, Drop, DropReason, Event, Lane, Qdisc, Sink};
use crate::units::{Amount, Nanos};

/// Self-clocked fair queueing.
pub(crate) struct Scfq {
    limit: Amount,
    drop: Policy,
    /// v: the tag of the packet that was sent last.
    virtual_time: u64,
    /// An entry per backlogged flow.
    flows: Flows<Flow>,
    packets: PacketStore,
    /// Backlogged flows by the tags of their heads, and entries of heads that were pushed out.
    heap: MinHeap,
    /// How many of those.
    stale: usize,
    ranking: Ranking,
    backlog: Backlog,
    /// Arrivals so far: what a queued packet is numbered by.
    arrivals: u64,
}

/// Whom a full buffer drops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Tail,
    LongestQueue,
}

/// A backlogged flow.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Flow {
    queue: FlowQueue,
    /// The tag before its head: the head's own tag is a packet size more.
    start: u64,
    bytes: u64,
    /// The arrival that made it backlogged.
    since: u64,
}

const DROP: ParamDef = ParamDef {
    name: "drop",
    kind: Kind::Choice(&["tail", "longest-queue"]),
    default: "tail",
    effect: "full buffer: drop the arrival, or the newest packet of the flow with most bytes queued",
    source: "EFD paper, section 4, which leaves it open",
    live: true,
};

impl Discipline for Scfq {
    const INFO: Info = Info {
        name: "scfq",
        summary: "self-clocked fair queueing: equal shares per flow, in the order of finish tags",
        source: "Golestani, \"A self-clocked fair queueing scheme for broadband applications\", 1994",
        parts: None,
        params: &[shared::LIMIT, DROP],
        needs: Needs::NOTHING,
        keeps_order: discipline::always,
        work_conserving: discipline::always,
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Box::new(Self::new(params))
    }
}

impl Scfq {
    fn new(params: &Params) -> Self {
        let mut scfq = Self {
            limit: params.amount("limit"),
            drop: Policy::Tail,
            virtual_time: 0,
            // Flows are bounded by the packets queued.
            flows: Flows::new(NONE as usize),
            packets: PacketStore::new(shared::ring_capacity(params.amount("limit"))),
            heap: MinHeap::default(),
            stale: 0,
            ranking: Ranking::default(),
            backlog: Backlog::default(),
            arrivals: 0,
        };
        scfq.set(params);
        scfq
    }

    fn set(&mut self, params: &Params) {
        self.limit = params.amount("limit");
        self.drop = match params.word("drop") {
            "longest-queue" => Policy::LongestQueue,
            _ => Policy::Tail,
        };
    }

    /// Puts a packet at the end of its flow's queue, and a new flow in the heap.
    #[inline]
    fn insert<S: Sink>(&mut self, packet: Packet, sink: &mut S) {
        let (slot, is_new) = match self.flows.slot(packet.flow) {
            Slot::Found(slot) => (slot, false),
            Slot::Created(slot) => (slot, true),
            Slot::Full => unreachable!("there are as many packets as flows, and nodes for them"),
        };
        let flow = &mut self.flows[slot];
        self.packets.push_back(&mut flow.queue, packet, self.arrivals);
        flow.bytes += u64::from(packet.size);
        if is_new {
            flow.start = self.virtual_time;
            flow.since = self.arrivals;
            sink.event(Event::FlowCreated { flow: packet.flow });
            self.heap.push(pack(flow.start + u64::from(packet.size), self.arrivals, slot));
        }
        self.backlog.add(&packet);
        if self.ranking.is_active() {
            self.ranking.set(slot, self.flows[slot].rank());
        }
    }

    /// Counts out a packet that has just been taken from a flow's queue, and the flow if it was
    /// the last one. Returns whether it was.
    #[inline]
    fn removed<S: Sink>(&mut self, slot: u32, packet: &Packet, sink: &mut S) -> bool {
        self.backlog.remove(packet);
        let flow = &mut self.flows[slot];
        flow.bytes -= u64::from(packet.size);
        let is_idle = flow.queue.is_empty();
        if is_idle {
            self.flows.remove(packet.flow);
            self.ranking.remove(slot);
            sink.event(Event::FlowRemoved { flow: packet.flow });
        } else if self.ranking.is_active() {
            self.ranking.set(slot, self.flows[slot].rank());
        }
        is_idle
    }

    /// Pushes packets out of the longest queue until the rest fits. Returns whether the packet
    /// that has just arrived is still there.
    #[cold]
    fn make_room<S: Sink>(&mut self, sink: &mut S) -> bool {
        if !self.ranking.is_active() {
            let flows = &self.flows;
            let backlogged = self.heap.iter().map(slot_of).filter(|s| !flows[*s].queue.is_empty());
            self.ranking.activate(backlogged.map(|slot| (slot, flows[slot].rank())));
        }
        let mut survived = true;
        while self.backlog.in_unit_of(self.limit) > self.limit.value() {
            let Some(slot) = self.ranking.top() else { break };
            let queue = &mut self.flows[slot].queue;
            let Some((packet, index)) = self.packets.pop_back(queue) else { break };
            if self.removed(slot, &packet, sink) {
                self.stale += 1;
            }
            let is_arrival = index == self.arrivals;
            survived &= !is_arrival;
            let reason = if is_arrival { DropReason::Full } else { DropReason::PushedOut };
            sink.dropped(packet, Drop { reason, lane: Lane::HIGH });
        }
        // However long nothing is sent, the heap stays as large as what is queued.
        if self.stale > self.flows.len() + 16 {
            self.drop_stale();
        }
        survived
    }

    /// The heap entry of a flow, while it is backlogged.
    #[inline]
    fn entry(&self, slot: u32) -> Option<u128> {
        let flow = &self.flows[slot];
        let head = self.packets.front(&flow.queue)?;
        Some(pack(flow.start + u64::from(head.packet.size), head.tag, slot))
    }

    /// The flow that is served next. Drops stale entries on the way.
    #[inline]
    fn next_flow(&mut self) -> Option<u32> {
        loop {
            let top = self.heap.peek()?;
            let slot = slot_of(top);
            // The slot may belong to another flow by now, which has an entry of its own.
            if self.entry(slot) == Some(top) {
                return Some(slot);
            }
            self.heap.pop();
            self.stale -= 1;
        }
    }

    #[cold]
    fn drop_stale(&mut self) {
        let mut heap = core::mem::take(&mut self.heap);
        heap.refill(|entry| (self.entry(slot_of(entry)) == Some(entry)).then_some(entry));
        self.heap = heap;
        self.stale = 0;
    }
}

impl Flow {
    /// Most bytes first; of equals, the one that has been backlogged longest.
    fn rank(&self) -> u128 {
        u128::from(self.bytes) << 64 | u128::from(u64::MAX - self.since)
    }
}

const SLOT_BITS: u32 = 32;
const INDEX_BITS: u32 = 40;
const TAG_BITS: u32 = 56;

/// A heap entry: tag, arrival of the head, slot. A tag saturates at 2^56 bytes, which is two
/// months of 100 Gbit/s without an empty queue; flows are then served in the order of their heads.
/// The index only breaks ties, so that it starts again after 2^40 packets does no harm.
#[inline]
fn pack(tag: u64, index: u64, slot: u32) -> u128 {
    let tag = tag.min((1 << TAG_BITS) - 1);
    u128::from(tag) << (INDEX_BITS + SLOT_BITS)
        | u128::from(index & ((1 << INDEX_BITS) - 1)) << SLOT_BITS
        | u128::from(slot)
}

#[inline]
const fn slot_of(entry: u128) -> u32 {
    entry as u32
}

impl<S: Sink> Qdisc<S> for Scfq {
    fn enqueue(&mut self, packet: Packet, _now: Nanos, sink: &mut S) {
        let has_room = self.backlog.has_room(self.limit, &packet);
        let is_refused = match self.drop {
            Policy::Tail => !has_room,
            Policy::LongestQueue => self.backlog.must_refuse(self.limit, &packet),
        };
        if is_refused {
            return sink.dropped(packet, Drop { reason: DropReason::Full, lane: Lane::HIGH });
        }
        self.insert(packet, sink);
        if has_room || self.make_room(sink) {
            sink.event(Event::Enqueued { packet: packet.id, flow: packet.flow, lane: Lane::HIGH });
        }
        self.arrivals += 1;
    }

    fn dequeue(&mut self, _now: Nanos, sink: &mut S) -> Dequeue {
        let Some(slot) = self.next_flow() else { return Dequeue::Empty };
        let flow = &mut self.flows[slot];
        let Some((packet, _)) = self.packets.pop_front(&mut flow.queue) else {
            return Dequeue::Empty;
        };
        flow.start += u64::from(packet.size);
        self.virtual_time = flow.start;
        self.removed(slot, &packet, sink);
        match self.entry(slot) {
            Some(entry) => self.heap.replace_top(entry),
            None => self.heap.pop(),
        }
        if self.backlog.packets == 0 {
            self.virtual_time = 0;
            self.drop_stale();
        }
        self.ranking.relax(self.backlog.in_unit_of(self.limit), self.limit.value());
        sink.event(Event::Dequeued { packet: packet.id, flow: packet.flow, lane: Lane::HIGH });
        Dequeue::unmarked(packet)
    }

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
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;
    use crate::packet::FlowId;
    use crate::spec::Spec;
    use crate::testkit::{Bench, Random};

    #[test]
    fn a_backlogged_flow_costs_thirty_two_bytes() {
        assert_eq!(size_of::<Flow>(), 32);
    }

    #[test]
    fn an_entry_sorts_by_tag_then_arrival_and_knows_its_slot() {
        assert!(pack(1, (1 << 40) - 1, 7) < pack(2, 0, 0));
        assert!(pack(1, 5, 7) < pack(1, 6, 0));
        assert_eq!(slot_of(pack(u64::MAX, u64::MAX, NONE - 1)), NONE - 1);
        assert_eq!(pack(1 << 56, 3, 1), pack(u64::MAX, 3, 1), "tags saturate");
    }

    /// Tags of flow 1: 1000, 2000, 3000. Of flow 2: 400, 800, 1200.
    #[test]
    fn the_smallest_tag_goes_first() {
        let mut scfq = Bench::new("scfq");
        for _ in 0..3 {
            scfq.enqueue(1, 1000); // ids 0, 1, 2
        }
        for _ in 0..3 {
            scfq.enqueue(2, 400); // ids 3, 4, 5
        }
        assert_eq!(scfq.depart(3), [3, 4, 0]); // v is 1000
        scfq.enqueue(3, 500); // id 6: tag 1500
        scfq.enqueue(2, 300); // id 7: tag 1500, behind 1200; it arrived later
        assert_eq!(scfq.drain(), [5, 6, 7, 1, 2]);
        assert_eq!(scfq.qdisc.flows(), 0, "an idle flow is forgotten");
    }

    #[test]
    fn a_dropped_arrival_does_not_advance_its_flow() {
        let mut scfq = Bench::new("scfq:limit=3packets");
        scfq.enqueue(1, 1000); // id 0, tag 1000
        scfq.enqueue(1, 1000); // id 1, tag 2000
        scfq.enqueue(2, 1100); // id 2, tag 1100
        scfq.enqueue(2, 1100); // id 3: lost
        scfq.enqueue(3, 500); // id 4: lost, and leaves no entry
        assert_eq!(scfq.take_drops(), [(3, DropReason::Full), (4, DropReason::Full)]);
        assert_eq!(scfq.qdisc.flows(), 2);
        assert_eq!(scfq.depart(1), [0]);
        scfq.enqueue(2, 800); // id 5: tag 1900; were the lost one counted, 3000
        assert_eq!(scfq.drain(), [2, 5, 1]);
    }

    #[test]
    fn the_longest_queue_loses_its_newest_packet_and_the_tag_of_it() {
        let mut scfq = Bench::new("scfq:limit=3packets,drop=longest-queue");
        scfq.enqueue(1, 1000); // id 0, tag 1000
        scfq.enqueue(1, 1000); // id 1, tag 2000
        scfq.enqueue(2, 1500); // id 2, tag 1500
        scfq.enqueue(3, 700); // id 3, tag 700
        assert_eq!(scfq.take_drops(), [(1, DropReason::PushedOut)]);
        assert_eq!(scfq.depart(1), [3]);
        scfq.enqueue(1, 450); // id 4: tag 1450; were the lost one counted, 2450
        assert_eq!(scfq.depart(2), [0, 4]);
        // The longest is the arrival's own queue.
        scfq.enqueue(2, 100); // id 5
        scfq.enqueue(2, 100); // id 6
        scfq.enqueue(2, 100); // id 7
        assert_eq!(scfq.take_drops(), [(7, DropReason::Full)]);
        assert_eq!(scfq.drain(), [2, 5, 6]);
    }

    /// Every flow has one packet, so that a push-out takes a head, and its slot is used again.
    #[test]
    fn a_head_that_is_pushed_out_leaves_nothing_behind() {
        let mut scfq = Bench::new("scfq:limit=2packets,drop=longest-queue");
        scfq.enqueue(1, 1000); // id 0
        scfq.enqueue(2, 900); // id 1
        scfq.enqueue(3, 800); // id 2 pushes out id 0
        scfq.enqueue(1, 850); // id 3 pushes out id 1
        let lost: Vec<u64> = scfq.take_drops().iter().map(|drop| drop.0).collect();
        assert_eq!((lost, scfq.qdisc.flows()), ([0, 1].into(), 2));
        assert_eq!(scfq.drain(), [2, 3]);
    }

    fn new(spec: &str) -> Scfq {
        let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{error}"));
        Scfq::new(spec.params())
    }

    #[test]
    fn the_heap_stays_small_while_nothing_is_sent() {
        let mut scfq = new("scfq:limit=50packets,drop=longest-queue");
        let mut sink: Vec<(Packet, Drop)> = Vec::new();
        for flow in 1..=10_000 {
            scfq.enqueue(Packet::new(FlowId::new(flow), 1000), Nanos::ZERO, &mut sink);
            let entries = scfq.heap.iter().count();
            assert!(entries <= 2 * 50 + 17, "{entries} entries for 50 packets");
            assert_eq!(entries, scfq.flows.len() + scfq.stale);
        }
    }

    #[test]
    fn virtual_time_grows_in_a_busy_period_and_starts_again_after_it() {
        for (seed, policy) in (0..50).flat_map(|n| [(n, "tail"), (n, "longest-queue")]) {
            let mut scfq = new(&format!("scfq:limit=20packets,drop={policy}"));
            let mut sink: Vec<(Packet, Drop)> = Vec::new();
            let mut random = Random(seed);
            let (mut busy_periods, mut last) = (0, 0);
            for step in 0..3000 {
                if random.below(100) < if step / 100 % 2 == 0 { 60 } else { 30 } {
                    let flow = FlowId::new(1 + random.below(6));
                    let packet = Packet::new(flow, 40 + random.below(1461) as u32);
                    scfq.enqueue(packet, Nanos::ZERO, &mut sink);
                } else if scfq.dequeue(Nanos::ZERO, &mut sink).packet().is_some() {
                    if scfq.backlog.packets == 0 {
                        assert_eq!((scfq.virtual_time, scfq.stale), (0, 0));
                        assert_eq!(scfq.heap.peek(), None);
                        busy_periods += 1;
                    } else {
                        assert!(scfq.virtual_time >= last, "seed {seed}, step {step}");
                    }
                    last = scfq.virtual_time;
                }
            }
            assert!(busy_periods > 3);
        }
    }

    /// Golestani's bound: of two flows that are backlogged throughout any interval, the service
    /// differs by the sum of their largest packets at most.
    #[test]
    fn backlogged_flows_share_to_within_a_packet_each() {
        for seed in 0..60 {
            let mut random = Random(seed);
            let largest: [u32; 4] = core::array::from_fn(|_| 40 + random.below(8961) as u32);
            let mut scfq = Bench::new("scfq:limit=100000packets");
            let mut queued = [0u32; 4];
            // Bytes by which one flow is ahead of another: now, least, most since both have been
            // backlogged.
            let mut leads: BTreeMap<(usize, usize), [i64; 3]> = BTreeMap::new();
            let mut checked = 0;
            for _ in 0..6000 {
                if random.below(100) < 51 {
                    let flow = random.below(4) as usize;
                    scfq.enqueue(
                        flow as u64 + 1,
                        1 + random.below(u64::from(largest[flow])) as u32,
                    );
                    queued[flow] += 1;
                    continue;
                }
                let Some(packet) = scfq.dequeue() else { continue };
                let flow = packet.flow.get() as usize - 1;
                queued[flow] -= 1;
                leads.retain(|(a, b), _| queued[*a] > 0 && queued[*b] > 0);
                let others = (0..4).filter(|other| *other != flow && queued[*other] > 0);
                for other in others.filter(|_| queued[flow] > 0) {
                    let pair = (flow.min(other), flow.max(other));
                    let bytes = i64::from(packet.size);
                    let [now, least, most] = leads.entry(pair).or_default();
                    *now += if flow == pair.0 { bytes } else { -bytes };
                    (*least, *most) = ((*least).min(*now), (*most).max(*now));
                    let bound = i64::from(largest[pair.0]) + i64::from(largest[pair.1]);
                    assert!(*most - *least <= bound, "{pair:?}: {least} to {most}, bound {bound}");
                    checked += 1;
                }
            }
            assert!(checked > 500, "{checked} intervals");
        }
    }
}
