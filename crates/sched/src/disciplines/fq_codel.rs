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
mod tests;
