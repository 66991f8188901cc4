//! FQ-CoDel: deficit round robin over hashed queues, each under CoDel (RFC 8290).
//!
//! A flow's fingerprint names its bucket; flows that collide share one, as the RFC has it. A
//! bucket that was idle joins the list of new buckets, which is served before the old ones, so a
//! flow that never has more than a quantum queued passes everybody. On overflow the bucket with
//! most bytes loses packets at its head until half its bytes or a batch is gone; Linux does the
//! same inside its enqueue, and CoDel's count grows by what was lost.
//!
//! Cost: constant per packet; a look at every bucket once per overflow, not per packet lost.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::disciplines::codel::{Control, ECN, HeadQueue, INTERVAL, Law, MTU, TARGET};
use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, DropReason, Info, Lane, Nanos, Packet, Param,
    ParamError, Params, Qdisc, Queue, Sink, Takes, shared,
};
use crate::queues::per_flow::{FlowQueue, NONE, PacketStore};

/// Fair queueing with controlled delay.
pub(crate) struct FqCodel {
    params: Params,
    limit: Amount,
    memory: Amount,
    quantum: i64,
    drop_batch: u32,
    law: Law,
    buckets: Vec<Bucket>,
    new: List,
    old: List,
    packets: PacketStore,
    backlog: Backlog,
}

/// A hashed queue with its place in the rounds and its control state: one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket {
    queue: FlowQueue,
    bytes: u64,
    deficit: i64,
    control: Control,
    /// The next bucket of the same list, or [`NONE`].
    next: u32,
    /// Whether it is in a list; it stays in one for a while after it has emptied.
    listed: bool,
}

/// A list of buckets, linked through [`Bucket::next`].
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: Self = Self { first: NONE, last: NONE };

    fn push_back(&mut self, buckets: &mut [Bucket], index: u32) {
        buckets[index as usize].next = NONE;
        match self.last {
            NONE => self.first = index,
            last => buckets[last as usize].next = index,
        }
        self.last = index;
    }

    fn pop_front(&mut self, buckets: &[Bucket]) {
        if let Some(first) = buckets.get(self.first as usize) {
            self.first = first.next;
            if self.first == NONE {
                self.last = NONE;
            }
        }
    }
}

const BUCKETS: Param<u64> = Param {
    name: "buckets",
    kind: Takes::count(1, 1 << 20),
    default: "1024",
    effect: "queues that flows are hashed to",
    source: "RFC 8290, section 5.2",
    live: false,
};

const QUANTUM: Param<u64> = Param {
    name: "quantum",
    kind: Takes::bytes(64, 1 << 20),
    default: "1514b",
    effect: "bytes a queue may send per round",
    source: "RFC 8290, section 5.2",
    live: true,
};

const MEMORY: Param<u64> = Param {
    name: "memory",
    kind: Takes::bytes(1, 1 << 40),
    default: "32mb",
    effect: "bytes of packets that the queue holds before it drops, beside `limit`",
    source: "Linux sch_fq_codel",
    live: true,
};

const DROP_BATCH: Param<u64> = Param {
    name: "drop-batch",
    kind: Takes::count(1, 65_536),
    default: "64",
    effect: "most packets that the fattest queue loses per overflow",
    source: "Linux sch_fq_codel",
    live: true,
};

impl Discipline for FqCodel {
    const INFO: Info = Info {
        name: "fq-codel",
        summary: "fair queueing over hashed queues, CoDel in each, sparse flows first",
        source: "RFC 8290; Linux sch_fq_codel",
        params: &[
            shared::LIMIT.with_default("10240packets", "RFC 8290, section 5.2").any(),
            MEMORY.any(),
            BUCKETS.any(),
            QUANTUM.any(),
            DROP_BATCH.any(),
            TARGET.any(),
            INTERVAL.any(),
            MTU.any(),
            ECN.with_default("yes", "RFC 8290, section 5.2").any(),
        ],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Box::new(Self::new(params))
    }
}

impl FqCodel {
    pub(crate) fn new(params: &Params) -> Self {
        let limit = params.get(shared::LIMIT);
        let mut fq_codel = Self {
            params: params.clone(),
            limit,
            memory: Amount::Bytes(0),
            quantum: 0,
            drop_batch: 0,
            law: Law::new(params),
            buckets: alloc::vec![Bucket::default(); params.get(BUCKETS) as usize],
            new: List::EMPTY,
            old: List::EMPTY,
            packets: PacketStore::new(shared::ring_capacity(limit)),
            backlog: Backlog::default(),
        };
        fq_codel.set(params);
        fq_codel
    }

    fn set(&mut self, params: &Params) {
        self.limit = params.get(shared::LIMIT);
        self.memory = Amount::Bytes(params.get(MEMORY));
        self.quantum = params.get(QUANTUM) as i64;
        self.drop_batch = params.get(DROP_BATCH) as u32;
        self.law = Law::new(params);
    }

    fn bucket_of(&self, packet: &Packet) -> u32 {
        packet.flow.get() as u32 % self.buckets.len() as u32
    }

    fn must_refuse(&self, packet: &Packet) -> bool {
        self.backlog.must_refuse(self.limit, packet)
            || self.backlog.must_refuse(self.memory, packet)
    }

    fn is_over(&self) -> bool {
        let exceeds = |limit| self.backlog.in_unit_of(limit) > limit.value();
        exceeds(self.limit) || exceeds(self.memory)
    }

    /// Appends a packet to its bucket, which becomes a new one if it was idle.
    fn insert(&mut self, index: u32, packet: Packet, now: Nanos) {
        let bucket = &mut self.buckets[index as usize];
        self.packets.push_back(&mut bucket.queue, packet, now.0);
        bucket.bytes += u64::from(packet.size);
        self.backlog.add(&packet);
        if !bucket.listed {
            bucket.listed = true;
            bucket.deficit = self.quantum;
            self.new.push_back(&mut self.buckets, index);
        }
    }

    /// Drops a batch at the head of the bucket with most bytes; of equals, the first. Returns
    /// whether the newest packet of bucket `arrival` is still there.
    #[cold]
    fn drop_from_fattest<S: Sink>(&mut self, arrival: u32, now: Nanos, sink: &mut S) -> bool {
        let backlogged = (0..).zip(&mut self.buckets).filter(|(_, b)| !b.queue.is_empty());
        let Some((index, fattest)) = backlogged.min_by_key(|(_, b)| Reverse(b.bytes)) else {
            return true;
        };
        let enough = fattest.bytes / 2;
        let (mut dropped, mut bytes) = (0, 0);
        let mut survived = true;
        while let Some((packet, _)) = self.packets.pop_front(&mut fattest.queue) {
            dropped += 1;
            bytes += u64::from(packet.size);
            self.backlog.remove(&packet);
            let is_arrival = index == arrival && fattest.queue.is_empty();
            survived &= !is_arrival;
            let reason = if is_arrival { DropReason::Full } else { DropReason::PushedOut };
            sink.dropped(packet, Drop { reason, lane: Lane::ONLY }, now);
            if dropped >= self.drop_batch || bytes >= enough {
                break;
            }
        }
        fattest.bytes -= bytes;
        fattest.control.count_drops(dropped);
        survived
    }

    /// The next packet of a bucket by CoDel, and whether it is marked.
    #[inline]
    fn dequeue_from<S: Sink>(
        &mut self,
        index: u32,
        now: Nanos,
        sink: &mut S,
    ) -> Option<(Packet, bool)> {
        let bucket = &mut self.buckets[index as usize];
        let mut head = Head {
            queue: &mut bucket.queue,
            bytes: &mut bucket.bytes,
            packets: &mut self.packets,
            backlog: &mut self.backlog,
            sink,
        };
        let mark = bucket.control.before_departure(&self.law, now, &mut head)?;
        let packet = head.pop()?;
        bucket.deficit -= i64::from(packet.size);
        Some((packet, mark))
    }
}

/// A bucket as the control law sees it.
struct Head<'a, S> {
    queue: &'a mut FlowQueue,
    bytes: &'a mut u64,
    packets: &'a mut PacketStore,
    backlog: &'a mut Backlog,
    sink: &'a mut S,
}

impl<S> Head<'_, S> {
    #[inline]
    fn pop(&mut self) -> Option<Packet> {
        let (packet, _) = self.packets.pop_front(self.queue)?;
        *self.bytes -= u64::from(packet.size);
        self.backlog.remove(&packet);
        Some(packet)
    }
}

impl<S: Sink> HeadQueue for Head<'_, S> {
    #[inline]
    fn head(&self) -> Option<(&Packet, Nanos)> {
        self.packets.front(self.queue).map(|node| (&node.packet, Nanos(node.tag)))
    }

    #[inline]
    fn bytes(&self) -> u64 {
        *self.bytes
    }

    fn drop_head(&mut self, now: Nanos) {
        if let Some(packet) = self.pop() {
            self.sink.dropped(
                packet,
                Drop { reason: DropReason::Congested, lane: Lane::ONLY },
                now,
            );
        }
    }
}

impl<S: Sink> Qdisc<S> for FqCodel {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        if self.must_refuse(&packet) {
            return sink.refused(packet, Lane::ONLY, now);
        }
        let index = self.bucket_of(&packet);
        self.insert(index, packet, now);
        let mut survived = true;
        while self.is_over() {
            survived &= self.drop_from_fattest(index, now, sink);
        }
        if survived {
            sink.enqueued(&packet, Lane::ONLY, now);
        }
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        loop {
            let is_new = self.new.first != NONE;
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = list.first;
            let Some(bucket) = self.buckets.get_mut(index as usize) else { return Dequeue::Empty };
            if bucket.deficit <= 0 {
                bucket.deficit += self.quantum;
                list.pop_front(&self.buckets);
                self.old.push_back(&mut self.buckets, index);
                continue;
            }
            let Some((packet, mark)) = self.dequeue_from(index, now, sink) else {
                self.pass_on_empty(index, is_new);
                continue;
            };
            if mark {
                sink.marked(&packet, now);
            }
            sink.dequeued(&packet, Lane::ONLY, now);
            return Dequeue::Packet { packet, mark };
        }
    }
}

impl Queue for FqCodel {
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.params.check_live(params)?;
        self.set(params);
        self.params = params.clone();
        Ok(())
    }
}

impl FqCodel {
    /// Takes an empty bucket from the front of its list. A new one passes through the old list
    /// while there is one, lest a flow regain its priority each time its queue runs empty.
    fn pass_on_empty(&mut self, index: u32, is_new: bool) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        list.pop_front(&self.buckets);
        if is_new && self.old.first != NONE {
            self.old.push_back(&mut self.buckets, index);
        } else {
            self.buckets[index as usize].listed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::format;

    use super::*;
    use crate::interface::Event;
    use crate::interface::{Ecn, FlowId};
    use crate::testkit::{Bench, Random};

    #[test]
    fn a_bucket_is_one_cache_line() {
        assert_eq!(size_of::<Bucket>(), 64);
    }

    #[test]
    fn buckets_take_turns_of_a_quantum() {
        let mut fq = Bench::new("fq-codel");
        for _ in 0..4 {
            fq.enqueue(1, 1500); // ids 0, 2, 4, 6
            fq.enqueue(2, 1500); // ids 1, 3, 5, 7
        }
        // 14 of 1514 are left after the first packet, so each sends two before its deficit is
        // spent; from then on a quantum is one packet.
        assert_eq!(fq.drain(), [0, 2, 1, 3, 4, 5, 6, 7]);
        // A deficit of nothing is spent too.
        fq.change("fq-codel:quantum=1500b").unwrap();
        for flow in [1, 1, 2, 2] {
            fq.enqueue(flow, 1500); // ids 8 to 11
        }
        assert_eq!(fq.drain(), [8, 10, 9, 11]);
    }

    #[test]
    fn a_sparse_flow_passes_all_that_are_backlogged() {
        let mut fq = Bench::new("fq-codel");
        for _ in 0..10 {
            fq.enqueue(1, 1500);
            fq.enqueue(2, 1500);
        }
        assert_eq!(fq.depart(5).len(), 5);
        for _ in 0..3 {
            let id = fq.enqueue(3, 200);
            assert_eq!(fq.depart(1), [id], "before the old ones");
            assert_eq!(fq.depart(4).len(), 4, "a round, so that its bucket leaves the lists");
        }
    }

    #[test]
    fn an_emptied_new_bucket_waits_among_the_old() {
        let mut fq = Bench::new("fq-codel");
        for _ in 0..6 {
            fq.enqueue(1, 1500); // ids 0 to 5
        }
        assert_eq!(fq.depart(2), [0, 1]);
        fq.enqueue(2, 100); // id 6: new
        assert_eq!(fq.depart(2), [6, 2]); // and then its bucket is found empty
        fq.enqueue(2, 100); // id 7: still listed, so not new again, but next among the old
        fq.enqueue(3, 100); // id 8: new
        assert_eq!(fq.depart(2), [8, 7]);
    }

    #[test]
    fn flows_that_collide_share_a_queue() {
        let mut fq = Bench::new("fq-codel:buckets=10");
        fq.enqueue(3, 1500);
        fq.enqueue(3, 1500);
        fq.enqueue(13, 100);
        assert_eq!(fq.drain(), [0, 1, 2]);
    }

    #[test]
    fn overflow_takes_half_of_the_fattest_bucket_or_a_batch() {
        for (batch, lost) in [(64, 5), (2, 2)] {
            let mut fq = Bench::new(&format!("fq-codel:limit=10packets,drop-batch={batch}"));
            for _ in 0..10 {
                fq.enqueue(1, 1000); // ids 0 to 9
            }
            fq.enqueue(2, 1000);
            let expected: Vec<_> = (0..lost).map(|id| (id, DropReason::PushedOut)).collect();
            assert_eq!(fq.take_drops(), expected);
            assert_eq!(fq.qdisc.backlog().packets, 11 - lost);
        }
    }

    #[test]
    fn overflow_adds_to_the_count_of_codel() {
        let spec: crate::spec::Spec = "fq-codel:limit=10packets".parse().unwrap();
        let mut fq = FqCodel::new(spec.params());
        let mut sink = Vec::new();
        for id in 0..11 {
            fq.enqueue(Packet::new(FlowId::new(5), 1000).with_id(id), Nanos::ZERO, &mut sink);
        }
        assert_eq!(sink.len(), 6, "half of 11000 bytes");
        let mut expected = Control::default();
        expected.count_drops(6);
        assert_eq!(fq.buckets[5].control, expected);
    }

    #[test]
    fn an_arrival_can_be_the_fattest_itself() {
        let mut fq = Bench::new("fq-codel:limit=1packets");
        fq.enqueue(1, 100);
        fq.enqueue(2, 1500);
        assert_eq!(fq.take_drops(), [(1, DropReason::Full)]);
        fq.enqueue(3, 50);
        assert_eq!(fq.take_drops(), [(0, DropReason::PushedOut)]);
        assert_eq!(fq.drain(), [2]);
    }

    #[test]
    fn memory_is_a_limit_too() {
        let mut fq = Bench::new("fq-codel:memory=3000b,drop-batch=1");
        for _ in 0..3 {
            fq.enqueue(1, 1500);
        }
        assert_eq!(fq.take_drops(), [(0, DropReason::PushedOut)]);
        fq.enqueue(2, 3001);
        assert_eq!(fq.take_drops(), [(3, DropReason::Full)]);
        // Lowered below the backlog, it refuses arrivals and drops nothing else.
        fq.change("fq-codel:memory=2000b,drop-batch=1").unwrap();
        fq.enqueue(2, 100);
        assert_eq!(fq.take_drops(), [(4, DropReason::Full)]);
    }

    #[test]
    fn a_packet_that_can_never_fit_pushes_nobody_out() {
        let mut fq = Bench::new("fq-codel:limit=10packets");
        fq.enqueue(1, 1500);
        fq.offer(Packet::new(FlowId::new(2), 1000).with_segments(11));
        assert_eq!(fq.take_drops(), [(1, DropReason::Full)]);
    }

    #[test]
    fn each_bucket_is_under_codel_and_marks_by_default() {
        for (ecn, dropped) in [(Ecn::Ect0, 0), (Ecn::NotEct, 1)] {
            let mut fq = Bench::new("fq-codel");
            for _ in 0..20 {
                fq.offer(Packet::new(FlowId::new(1), 1500).with_ecn(ecn));
            }
            fq.advance(Nanos::from_millis(5));
            fq.dequeue();
            fq.advance(Nanos::from_millis(100));
            fq.enqueue(2, 100);
            fq.dequeue();
            let marks = fq.log.events.iter().filter(|e| matches!(e, Event::Marked { .. })).count();
            assert_eq!((fq.take_drops().len(), marks), (dropped, 1 - dropped));
        }
    }

    #[test]
    fn what_is_not_live_is_refused_by_name() {
        let mut fq = Bench::new("fq-codel");
        let error = fq.change("fq-codel:buckets=9").unwrap_err();
        assert_eq!(format!("{error}"), "fq-codel: buckets cannot change while the discipline runs");
        fq.change("fq-codel:quantum=300b,target=1ms,ecn=no,drop-batch=1,limit=1packets").unwrap();
    }

    /// Overload with everything at once: the limits hold after every arrival, a backlog yields
    /// a packet, order holds within a flow, and all is accounted for.
    #[test]
    fn the_limits_hold_and_nothing_is_lost_or_overtaken() {
        for seed in 0..100 {
            let mut random = Random(seed);
            let limit = 5 + random.below(40);
            let memory = 3000 + random.below(40_000);
            let spec = format!(
                "fq-codel:limit={limit}packets,memory={memory}b,buckets=7,target=1ms,interval=10ms"
            );
            let mut fq = Bench::new(&spec);
            let mut last: BTreeMap<u64, u64> = BTreeMap::new();
            let (mut arrivals, mut departures) = (0, 0);
            for _ in 0..3000 {
                fq.advance(Nanos(random.below(2_000_000)));
                if random.below(100) < 53 {
                    let segments = 1 + (random.below(8) / 7 * random.below(4)) as u16;
                    let flow = FlowId::new(1 + random.below(20));
                    let packet = Packet::new(flow, random.below(1501) as u32);
                    fq.offer(packet.with_segments(segments));
                    arrivals += 1;
                    let backlog = fq.qdisc.backlog();
                    assert!(backlog.segments <= limit && backlog.bytes <= memory, "seed {seed}");
                } else {
                    let backlog = fq.qdisc.backlog().packets;
                    let packet = fq.dequeue();
                    assert_eq!(packet.is_some(), backlog > 0, "seed {seed}");
                    let Some(packet) = packet else { continue };
                    departures += 1;
                    let before = last.insert(packet.flow.get(), packet.id);
                    assert!(before.is_none_or(|id| id < packet.id), "seed {seed}");
                }
            }
            let dropped = fq.log.drops.len() as u64;
            assert_eq!(arrivals, departures + dropped + fq.qdisc.backlog().packets);
        }
    }

    /// Buckets that stay backlogged differ by a quantum and a packet per round at most.
    #[test]
    fn backlogged_buckets_share_to_within_a_quantum_and_a_packet() {
        let mut random = Random(8);
        let mut fq = Bench::new("fq-codel:target=inf,quantum=600b");
        for _ in 0..9000 {
            fq.enqueue(1 + random.below(3), 1 + random.below(1500) as u32);
        }
        let mut served = [0i64; 3];
        for _ in 0..4500 {
            let packet = fq.dequeue().unwrap();
            served[packet.flow.get() as usize - 1] += i64::from(packet.size);
            let spread = served.iter().max().unwrap() - served.iter().min().unwrap();
            assert!(spread <= 600 + 2 * 1500, "{served:?}");
        }
    }
}
