//! CoDel, controlled delay: drops at the head when packets have waited too long for too long.
//!
//! The control law of RFC 8289, section 5, on whatever queue has a head: [`Control`] is its
//! state, [`Law`] its parameters, [`HeadQueue`] what it asks of the queue. If the sojourn time of
//! departing packets stays at or above `target` for an `interval`, the head is dropped (or
//! marked), and again after `interval / sqrt(n)` following the n-th drop, until a packet is
//! below target. What is left when a packet leaves must exceed `mtu`, or it is not dropped: so a
//! drop is always followed by another packet, and the queue never drops itself empty.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, DropReason, Info, Lane, Nanos, Packet, Param,
    ParamError, Params, Qdisc, Queue, Sink, Takes, shared,
};

const MICROSECOND: Nanos = Nanos(1_000);
const MINUTE: Nanos = Nanos::from_secs(60);

/// `target`: the standing delay that is accepted.
pub(crate) const TARGET: Param<Nanos> = Param {
    name: "target",
    kind: Takes::time(Nanos::ZERO, MINUTE).or_unlimited(),
    default: "5ms",
    effect: "the standing delay that is accepted; inf never drops",
    source: "RFC 8289",
    live: true,
};

/// `interval`: how long delay may stay above target before the first drop.
pub(crate) const INTERVAL: Param<Nanos> = Param {
    name: "interval",
    kind: Takes::time(MICROSECOND, MINUTE),
    default: "100ms",
    effect: "how long delay stays above target before the first drop; a large round-trip time",
    source: "RFC 8289",
    live: true,
};

/// `mtu`: the backlog that is left alone.
pub(crate) const MTU: Param<u64> = Param {
    name: "mtu",
    kind: Takes::bytes(0, 1 << 20),
    default: "1500b",
    effect: "with no more bytes than this behind it, a packet is not dropped",
    source: "RFC 8289, section 5 (MAXPACKET)",
    live: true,
};

/// `ecn`: mark instead of drop.
pub(crate) const ECN: Param<bool> = Param {
    name: "ecn",
    kind: Takes::FLAG,
    default: "no",
    effect: "mark ECN-capable packets instead of dropping them, at most one per departure",
    source: "Linux sch_codel",
    live: true,
};

/// The parameters of the control law.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Law {
    target: Nanos,
    interval: Nanos,
    mtu: u64,
    ecn: bool,
}

impl Law {
    /// From the parameters `target`, `interval`, `mtu` and `ecn`.
    pub(crate) fn new(params: &Params) -> Self {
        Self {
            target: params.get(TARGET),
            interval: params.get(INTERVAL),
            mtu: params.get(MTU),
            ecn: params.get(ECN),
        }
    }

    /// From the numbers themselves.
    pub(crate) const fn of(target: Nanos, interval: Nanos, mtu: u64, ecn: bool) -> Self {
        Self { target, interval, mtu, ecn }
    }

    fn spacing(&self, count: u32) -> Nanos {
        spacing(self.interval, count)
    }

    fn marks(&self, packet: &Packet) -> bool {
        self.ecn && packet.ecn().is_capable()
    }
}

/// `interval / sqrt(count)`, rounded down: the time between two signals.
pub(crate) fn spacing(interval: Nanos, count: u32) -> Nanos {
    let square = u128::from(interval.0).pow(2) / u128::from(count.max(1));
    Nanos(match u64::try_from(square) {
        Ok(square) => square.isqrt(),
        Err(_) => square.isqrt() as u64,
    })
}

/// What the control law asks of a queue.
pub(crate) trait HeadQueue {
    /// The head, and the time it arrived.
    fn head(&self) -> Option<(&Packet, Nanos)>;

    /// Bytes queued, the head among them.
    fn bytes(&self) -> u64;

    /// Drops the head.
    fn drop_head(&mut self, now: Nanos);
}

/// The state of the control law for one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Control {
    watch: Watch,
    course: Course,
}

impl Control {
    /// Drops what must go before the next packet leaves. That packet is then the head; returns
    /// whether it is to be marked, or `None` if the queue is empty.
    #[inline]
    pub(crate) fn before_departure<Q: HeadQueue>(
        &mut self,
        law: &Law,
        now: Nanos,
        queue: &mut Q,
    ) -> Option<bool> {
        let Self { watch, course } = self;
        let may_drop = watch.may_drop(law, now, queue)?;
        if may_drop || watch.dropping { watch.act(course, law, now, queue) } else { Some(false) }
    }

    /// Somebody else dropped `packets` at the head: the law goes on from there.
    pub(crate) fn count_drops(&mut self, packets: u32) {
        self.course.count_drops(packets);
    }
}

/// The part of a [`Control`] that every packet is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Watch {
    /// When packets will have been above target for an interval; [`Nanos::MAX`] while below.
    first_above: Nanos,
    dropping: bool,
}

/// The part of a [`Control`] that is needed where the law acts: how fast it drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Course {
    drop_next: Nanos,
    /// Drops since dropping began.
    count: u32,
    /// `count` as it was when dropping began.
    last_count: u32,
}

impl Default for Watch {
    fn default() -> Self {
        Self { first_above: Nanos::MAX, dropping: false }
    }
}

impl Watch {
    /// Whether the law has to [`act`](Self::act) before the head leaves, which arrived then, with
    /// so many bytes behind it.
    #[inline]
    pub(crate) fn must_act(&mut self, law: &Law, now: Nanos, arrived: Nanos, behind: u64) -> bool {
        self.may_drop_one(law, now, arrived, behind) || self.dropping
    }

    /// As [`Control::before_departure`], once a packet may be dropped, or the last ones could.
    #[cold]
    pub(crate) fn act<Q: HeadQueue>(
        &mut self,
        course: &mut Course,
        law: &Law,
        now: Nanos,
        queue: &mut Q,
    ) -> Option<bool> {
        let may_drop = self.first_above != Nanos::MAX && now >= self.first_above;
        if !self.dropping {
            let marks = law.marks(queue.head()?.0);
            if !marks {
                queue.drop_head(now);
                self.may_drop(law, now, queue)?;
            }
            self.dropping = true;
            course.start(law, now);
            return Some(marks);
        }
        self.dropping = may_drop;
        while self.dropping && now >= course.drop_next {
            course.count_drops(1);
            if law.marks(queue.head()?.0) {
                course.go_on(law);
                return Some(true);
            }
            queue.drop_head(now);
            self.dropping = self.may_drop(law, now, queue)?;
            if self.dropping {
                course.go_on(law);
            }
        }
        Some(false)
    }

    /// Looks at the head: has delay been above target for an interval? `None` if there is none.
    #[inline]
    fn may_drop<Q: HeadQueue>(&mut self, law: &Law, now: Nanos, queue: &Q) -> Option<bool> {
        let Some((packet, arrived)) = queue.head() else {
            *self = Self::default();
            return None;
        };
        let behind = queue.bytes() - u64::from(packet.size);
        Some(self.may_drop_one(law, now, arrived, behind))
    }

    #[inline]
    fn may_drop_one(&mut self, law: &Law, now: Nanos, arrived: Nanos, behind: u64) -> bool {
        if now.since(arrived) < law.target || behind <= law.mtu {
            self.first_above = Nanos::MAX;
            return false;
        }
        if self.first_above == Nanos::MAX {
            self.first_above = now + law.interval;
            return false;
        }
        now >= self.first_above
    }
}

impl Course {
    /// As [`Control::count_drops`].
    pub(crate) fn count_drops(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Begins a run of drops. If the last one ended not long ago, the rate at which it
    /// controlled the queue is where this one starts.
    fn start(&mut self, law: &Law, now: Nanos) {
        let grown = self.count.saturating_sub(self.last_count);
        let is_recent = now.since(self.drop_next).0 < law.interval.0.saturating_mul(16);
        self.count = if grown > 1 && is_recent { grown } else { 1 };
        self.last_count = self.count;
        self.drop_next = now + law.spacing(self.count);
    }

    fn go_on(&mut self, law: &Law) {
        self.drop_next += law.spacing(self.count);
    }
}

/// One FIFO under CoDel.
pub(crate) struct Codel {
    limit: Amount,
    law: Law,
    control: Control,
    fifo: StampedFifo,
}

/// Packets with the times they arrived.
struct StampedFifo {
    queue: VecDeque<(Packet, Nanos)>,
    backlog: Backlog,
}

impl Discipline for Codel {
    const INFO: Info = Info {
        name: "codel",
        summary: "controlled delay: one queue, drops at the head when the delay stands",
        source: "RFC 8289; Nichols, Jacobson, \"Controlling queue delay\", 2012",
        params: &[
            shared::LIMIT.with_default("1000packets", "Linux sch_codel").any(),
            TARGET.any(),
            INTERVAL.any(),
            MTU.any(),
            ECN.any(),
        ],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        let limit = params.get(shared::LIMIT);
        let queue = VecDeque::with_capacity(shared::ring_capacity(limit));
        Box::new(Self {
            limit,
            law: Law::new(params),
            control: Control::default(),
            fifo: StampedFifo { queue, backlog: Backlog::default() },
        })
    }
}

impl StampedFifo {
    fn pop(&mut self) -> Option<Packet> {
        let (packet, _) = self.queue.pop_front()?;
        self.backlog.remove(&packet);
        Some(packet)
    }
}

/// The queue as the control law sees it.
struct Head<'a, S> {
    fifo: &'a mut StampedFifo,
    sink: &'a mut S,
}

impl<S: Sink> HeadQueue for Head<'_, S> {
    fn head(&self) -> Option<(&Packet, Nanos)> {
        self.fifo.queue.front().map(|(packet, arrived)| (packet, *arrived))
    }

    fn bytes(&self) -> u64 {
        self.fifo.backlog.bytes
    }

    fn drop_head(&mut self, now: Nanos) {
        if let Some(packet) = self.fifo.pop() {
            self.sink.dropped(
                packet,
                Drop { reason: DropReason::Congested, lane: Lane::ONLY },
                now,
            );
        }
    }
}

impl<S: Sink> Qdisc<S> for Codel {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        if !self.fifo.backlog.has_room(self.limit, &packet) {
            return sink.refused(packet, Lane::ONLY, now);
        }
        self.fifo.backlog.add(&packet);
        self.fifo.queue.push_back((packet, now));
        sink.enqueued(&packet, Lane::ONLY, now);
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let mut head = Head { fifo: &mut self.fifo, sink };
        let Some(mark) = self.control.before_departure(&self.law, now, &mut head) else {
            return Dequeue::Empty;
        };
        let Some(packet) = self.fifo.pop() else { return Dequeue::Empty };
        if mark {
            sink.marked(&packet, now);
        }
        sink.dequeued(&packet, Lane::ONLY, now);
        Dequeue::Packet { packet, mark }
    }
}

impl Queue for Codel {
    fn backlog(&self) -> Backlog {
        self.fifo.backlog
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.limit = params.get(shared::LIMIT);
        self.law = Law::new(params);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
