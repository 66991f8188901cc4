//! RED, random early detection: one queue that signals congestion before it is full.
//!
//! Floyd and Jacobson 1993. Arrivals are dropped, or marked where ECN allows, with a probability
//! that grows with the average queue between two thresholds. The defaults are those of the mice
//! and elephants slides, whose runs have ns-2's `gentle`, `wait` and `ecn` all on.

use alloc::boxed::Box;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::discipline::{self, Discipline, Info, Needs, shared};
use crate::early::{self, Average, Curve, Decision, Dropper, Wire};
use crate::packet::Packet;
use crate::params::{Kind, ParamDef, ParamError, Params};
use crate::qdisc::{Backlog, Dequeue, Drop, DropReason, Event, Lane, Qdisc, Sink};
use crate::ring::Ring;
use crate::units::{Amount, Nanos, Share};

const SLIDES: &str = "mice and elephants slides, table III";

/// `min`: the lower threshold.
pub(crate) const MIN: ParamDef = ParamDef {
    name: "min",
    kind: Kind::Level,
    default: "0.15",
    effect: "average queue below which nothing is dropped early",
    source: SLIDES,
    live: true,
};

/// `max`: the upper threshold.
pub(crate) const MAX: ParamDef = ParamDef {
    name: "max",
    kind: Kind::Level,
    default: "0.5",
    effect: "average queue at which the probability of a drop is max-probability",
    source: SLIDES,
    live: true,
};

/// `max-probability`: how likely a drop is there.
pub(crate) const MAX_PROBABILITY: ParamDef = ParamDef {
    name: "max-probability",
    kind: Kind::Share { min: Share::ZERO, max: Share::ONE },
    default: "0.1",
    effect: "probability of a drop or mark where the average queue is max",
    source: SLIDES,
    live: true,
};

/// Random early detection.
pub(crate) struct Red {
    limit: Amount,
    dropper: Dropper,
    wait: bool,
    ecn: bool,
    wire: Wire,
    rng: Xoshiro256PlusPlus,
    queue: Ring,
}

/// The curve of `min`, `max`, `max-probability` and `gentle`.
pub(crate) fn curve(limit: Amount, params: &Params) -> Curve {
    let (min, max) = (params.level("min"), params.level("max"));
    Curve::new(limit, min, max, params.share("max-probability"), params.flag("gentle"))
}

impl Discipline for Red {
    const INFO: Info = Info {
        name: "red",
        summary: "random early detection: one queue, drops or marks by its average length",
        source: "Floyd, Jacobson, \"Random early detection gateways\", 1993; ns-2",
        parts: None,
        params: &[
            shared::LIMIT,
            MIN,
            MAX,
            MAX_PROBABILITY,
            early::AVERAGING,
            early::GENTLE,
            early::WAIT,
            early::ECN,
            early::RATE,
            early::MEAN_PACKET,
        ],
        needs: Needs::NOTHING,
        keeps_order: discipline::always,
        work_conserving: discipline::always,
    };

    fn check(params: &Params) -> Result<(), ParamError> {
        early::check_thresholds(params, params.amount("limit"), "min", "max")
    }

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        let limit = params.amount("limit");
        let average = Average::new(params.share("averaging"));
        Box::new(Self {
            limit,
            dropper: Dropper::new(average, curve(limit, params)),
            wait: params.flag("wait"),
            ecn: params.flag("ecn"),
            wire: Wire::new(params),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            queue: Ring::with_capacity(shared::ring_capacity(limit)),
        })
    }
}

impl Red {
    #[cold]
    fn drop<S: Sink>(&mut self, packet: Packet, reason: DropReason, now: Nanos, sink: &mut S) {
        if self.queue.is_empty() {
            self.dropper.average.idle(now);
        }
        sink.dropped(packet, Drop { reason, lane: Lane::HIGH });
    }
}

impl<S: Sink> Qdisc<S> for Red {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        let queued = self.queue.in_unit_of(self.limit);
        self.dropper.average.arrival(queued, now, &self.wire);
        let decision = self.dropper.decide(self.queue.len(), self.wait, &mut self.rng);
        if !self.queue.backlog().has_room(self.limit, &packet) {
            self.dropper.overflowed();
            return self.drop(packet, DropReason::Full, now, sink);
        }
        let mark = match decision {
            Decision::Accept => false,
            Decision::Signal { may_mark } if may_mark && self.ecn && packet.ecn().is_capable() => {
                true
            }
            Decision::Signal { .. } => {
                return self.drop(packet, DropReason::Congested, now, sink);
            }
        };
        self.queue.push(packet).set_marked(mark);
        sink.event(Event::Enqueued { packet: packet.id, flow: packet.flow, lane: Lane::HIGH });
        if mark {
            sink.event(Event::Marked { packet: packet.id, flow: packet.flow });
        }
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let Some(packet) = self.queue.pop() else { return Dequeue::Empty };
        if self.queue.is_empty() {
            self.dropper.average.idle(self.wire.free_after(&packet, now));
        }
        sink.event(Event::Dequeued { packet: packet.id, flow: packet.flow, lane: Lane::HIGH });
        Dequeue::Packet { packet, mark: packet.is_marked() }
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        params.check()?;
        let limit = params.amount("limit");
        if !limit.same_unit(self.limit) {
            self.dropper.average.restart(self.queue.in_unit_of(limit));
        }
        self.limit = limit;
        self.dropper.average.set_weight(params.share("averaging"));
        self.dropper.curve = curve(limit, params);
        self.wait = params.flag("wait");
        self.ecn = params.flag("ecn");
        self.wire = Wire::new(params);
        Ok(())
    }
}
