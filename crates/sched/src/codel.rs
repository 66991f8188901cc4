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

use crate::packet::Packet;
use crate::params::{Kind, ParamDef, Params};
use crate::qdisc::{Backlog, Dequeue, Drop, DropReason, Event, Lane, Qdisc, Sink};
use crate::registry::{self, Discipline, Info, Needs, shared};
use crate::spec::SpecError;
use crate::units::{Amount, Nanos};

const MICROSECOND: Nanos = Nanos(1_000);
const MINUTE: Nanos = Nanos::from_secs(60);

/// `target`: the standing delay that is accepted.
pub(crate) const TARGET: ParamDef = ParamDef {
    name: "target",
    kind: Kind::Time { min: Nanos::ZERO, max: MINUTE, unlimited: true },
    default: "5ms",
    effect: "the standing delay that is accepted; inf never drops",
    source: "RFC 8289",
    live: true,
};

/// `interval`: how long delay may stay above target before the first drop.
pub(crate) const INTERVAL: ParamDef = ParamDef {
    name: "interval",
    kind: Kind::Time { min: MICROSECOND, max: MINUTE, unlimited: false },
    default: "100ms",
    effect: "how long delay stays above target before the first drop; a large round-trip time",
    source: "RFC 8289",
    live: true,
};

/// `mtu`: the backlog that is left alone.
pub(crate) const MTU: ParamDef = ParamDef {
    name: "mtu",
    kind: Kind::Bytes { min: 0, max: 1 << 20 },
    default: "1500b",
    effect: "with no more bytes than this behind it, a packet is not dropped",
    source: "RFC 8289, section 5 (MAXPACKET)",
    live: true,
};

/// `ecn`: mark instead of drop.
pub(crate) const ECN: ParamDef = ParamDef {
    name: "ecn",
    kind: Kind::Flag,
    default: "no",
    effect: "mark ECN-capable packets instead of dropping them, at most one per departure",
    source: "Linux sch_codel",
    live: true,
};

/// The parameters of the control law.
#[derive(Clone, Copy, Debug)]
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
            target: params.time("target"),
            interval: params.time("interval"),
            mtu: params.number("mtu"),
            ecn: params.flag("ecn"),
        }
    }

    /// `interval / sqrt(count)`, rounded down.
    fn spacing(&self, count: u32) -> Nanos {
        let square = u128::from(self.interval.0).pow(2) / u128::from(count.max(1));
        Nanos(match u64::try_from(square) {
            Ok(square) => square.isqrt(),
            Err(_) => square.isqrt() as u64,
        })
    }

    fn marks(&self, packet: &Packet) -> bool {
        self.ecn && packet.ecn().is_capable()
    }
}

/// What the control law asks of a queue.
pub(crate) trait HeadQueue {
    /// The head, and the time it arrived.
    fn head(&self) -> Option<(&Packet, Nanos)>;

    /// Bytes queued, the head among them.
    fn bytes(&self) -> u64;

    /// Drops the head.
    fn drop_head(&mut self);
}

/// The state of the control law for one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    /// When packets will have been above target for an interval; [`Nanos::MAX`] while below.
    first_above: Nanos,
    drop_next: Nanos,
    /// Drops since dropping began.
    count: u32,
    /// `count` as it was when dropping began.
    last_count: u32,
    dropping: bool,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            first_above: Nanos::MAX,
            drop_next: Nanos::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }
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
        let may_drop = self.may_drop(law, now, queue)?;
        if may_drop || self.dropping { self.act(law, now, queue, may_drop) } else { Some(false) }
    }

    /// The same once a packet may be dropped, or the last ones could.
    #[cold]
    fn act<Q: HeadQueue>(
        &mut self,
        law: &Law,
        now: Nanos,
        queue: &mut Q,
        may_drop: bool,
    ) -> Option<bool> {
        if !self.dropping {
            let marks = law.marks(queue.head()?.0);
            if !marks {
                queue.drop_head();
                self.may_drop(law, now, queue)?;
            }
            self.start_dropping(law, now);
            return Some(marks);
        }
        self.dropping = may_drop;
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if law.marks(queue.head()?.0) {
                self.drop_next = self.drop_next + law.spacing(self.count);
                return Some(true);
            }
            queue.drop_head();
            self.dropping = self.may_drop(law, now, queue)?;
            if self.dropping {
                self.drop_next = self.drop_next + law.spacing(self.count);
            }
        }
        Some(false)
    }

    /// Somebody else dropped `packets` at the head: the law goes on from there.
    pub(crate) fn count_drops(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Looks at the head: has delay been above target for an interval? `None` if there is none.
    #[inline]
    fn may_drop<Q: HeadQueue>(&mut self, law: &Law, now: Nanos, queue: &Q) -> Option<bool> {
        let Some((packet, arrived)) = queue.head() else {
            self.first_above = Nanos::MAX;
            self.dropping = false;
            return None;
        };
        let bytes_behind = queue.bytes() - u64::from(packet.size);
        if now.since(arrived) < law.target || bytes_behind <= law.mtu {
            self.first_above = Nanos::MAX;
            return Some(false);
        }
        if self.first_above == Nanos::MAX {
            self.first_above = now + law.interval;
            return Some(false);
        }
        Some(now >= self.first_above)
    }

    /// Begins a run of drops. If the last one ended not long ago, the rate at which it
    /// controlled the queue is where this one starts.
    fn start_dropping(&mut self, law: &Law, now: Nanos) {
        self.dropping = true;
        let grown = self.count.saturating_sub(self.last_count);
        let is_recent = now.since(self.drop_next).0 < law.interval.0.saturating_mul(16);
        self.count = if grown > 1 && is_recent { grown } else { 1 };
        self.last_count = self.count;
        self.drop_next = now + law.spacing(self.count);
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
        parts: None,
        params: &[
            shared::LIMIT.with_default("1000packets", "Linux sch_codel"),
            TARGET,
            INTERVAL,
            MTU,
            ECN,
        ],
        needs: Needs::NOTHING,
        keeps_order: registry::always,
        work_conserving: registry::always,
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        let limit = params.amount("limit");
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

    fn drop_head(&mut self) {
        if let Some(packet) = self.fifo.pop() {
            self.sink.dropped(packet, Drop { reason: DropReason::Congested, lane: Lane::HIGH });
        }
    }
}

impl<S: Sink> Qdisc<S> for Codel {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        if !self.fifo.backlog.has_room(self.limit, &packet) {
            return sink.dropped(packet, Drop { reason: DropReason::Full, lane: Lane::HIGH });
        }
        self.fifo.backlog.add(&packet);
        self.fifo.queue.push_back((packet, now));
        sink.event(Event::Enqueued { packet: packet.id, flow: packet.flow, lane: Lane::HIGH });
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let mut head = Head { fifo: &mut self.fifo, sink };
        let Some(mark) = self.control.before_departure(&self.law, now, &mut head) else {
            return Dequeue::Empty;
        };
        let Some(packet) = self.fifo.pop() else { return Dequeue::Empty };
        if mark {
            sink.event(Event::Marked { packet: packet.id, flow: packet.flow });
        }
        sink.event(Event::Dequeued { packet: packet.id, flow: packet.flow, lane: Lane::HIGH });
        Dequeue::Packet { packet, mark }
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog
    }

    fn change(&mut self, params: &Params) -> Result<(), SpecError> {
        self.limit = params.amount("limit");
        self.law = Law::new(params);
        Ok(())
    }
}
