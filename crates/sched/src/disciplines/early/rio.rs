//! RIO, RED with In and Out: one queue in which some packets are spared.
//!
//! Clark and Fang 1998. Edges tag packets as In or Out; the core has two RED curves in one
//! FIFO. In packets are dropped by the average number of In packets queued, Out packets by the
//! average of the whole queue, so that Out is dropped first. Unlike ns-2's, the whole queue's
//! average moves with every arrival, and the Out curve has a probability of its own.
//!
//! Events and drops have In packets in [`Lane::SHORT`] and Out packets in [`Lane::LONG`], though
//! both wait in one queue.

use alloc::boxed::Box;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::disciplines::early::edge;
use crate::disciplines::early::red::{MAX, MAX_PROBABILITY, MIN};
use crate::disciplines::early::{self, Average, Curve, Decision, Dropper, Wire};
use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, DropReason, Info, Lane, Level, Nanos, Packet,
    Param, ParamError, Params, Qdisc, Queue, Share, Sink, shared,
};
use crate::queues::ring::Ring;

/// The parameters of a curve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CurveParams {
    pub(crate) min: Param<Level>,
    pub(crate) max: Param<Level>,
    pub(crate) probability: Param<Share>,
}

impl CurveParams {
    fn curve(&self, limit: Amount, params: &Params) -> Curve {
        let (min, max) = (params.get(self.min), params.get(self.max));
        Curve::new(limit, min, max, params.get(self.probability), params.get(early::GENTLE))
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        early::check_thresholds(params, params.get(shared::LIMIT), self.min, self.max)
    }
}

/// The curves of spared packets and of the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Curves {
    pub(crate) high: CurveParams,
    pub(crate) low: CurveParams,
}

impl Curves {
    /// Checks the thresholds of both.
    pub(crate) fn check(&self, params: &Params) -> Result<(), ParamError> {
        self.high.check(params)?;
        self.low.check(params)
    }
}

/// One FIFO, two curves.
pub(crate) struct Core {
    curves: &'static Curves,
    limit: Amount,
    /// By the spared packets alone.
    high: Dropper,
    /// By the whole queue.
    low: Dropper,
    wait: bool,
    ecn: bool,
    wire: Wire,
    rng: Xoshiro256PlusPlus,
    queue: Ring,
    high_queued: Backlog,
}

impl Core {
    pub(crate) fn new(curves: &'static Curves, params: &Params, seed: u64) -> Self {
        let limit = params.get(shared::LIMIT);
        let average = Average::new(params.get(early::AVERAGING));
        Self {
            curves,
            limit,
            high: Dropper::new(average, curves.high.curve(limit, params)),
            low: Dropper::new(average, curves.low.curve(limit, params)),
            wait: params.get(early::WAIT),
            ecn: params.get(early::ECN),
            wire: Wire::new(params),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            queue: Ring::with_capacity(shared::ring_capacity(limit)),
            high_queued: Backlog::default(),
        }
    }

    /// Takes in a packet, which is spared if its lane is the high one.
    #[inline]
    pub(crate) fn enqueue<S: Sink>(
        &mut self,
        packet: Packet,
        lane: Lane,
        now: Nanos,
        sink: &mut S,
    ) {
        let decision = self.decide(lane, now);
        if !self.queue.backlog().has_room(self.limit, &packet) {
            self.dropper(lane).overflowed();
            return self.drop(packet, DropReason::Full, lane, now, sink);
        }
        let mark = match decision {
            Decision::Accept => false,
            Decision::Signal { may_mark } if may_mark && self.ecn && packet.ecn().is_capable() => {
                true
            }
            Decision::Signal { .. } => {
                return self.drop(packet, DropReason::Congested, lane, now, sink);
            }
        };
        let queued = self.queue.push(packet);
        queued.set_marked(mark);
        queued.set_long(lane != Lane::SHORT);
        if lane == Lane::SHORT {
            self.high_queued.add(&packet);
        }
        sink.enqueued(&packet, lane, now);
        if mark {
            sink.marked(&packet, now);
        }
    }

    #[inline]
    fn decide(&mut self, lane: Lane, now: Nanos) -> Decision {
        self.low.average.arrival(self.queue.in_unit_of(self.limit), now, &self.wire);
        if lane == Lane::SHORT {
            let queued = self.high_queued.in_unit_of(self.limit);
            self.high.average.arrival(queued, now, &self.wire);
            self.high.decide(self.high_queued.packets as usize, self.wait, &mut self.rng)
        } else {
            self.low.decide(self.queue.len(), self.wait, &mut self.rng)
        }
    }

    const fn dropper(&mut self, lane: Lane) -> &mut Dropper {
        if lane.0 == Lane::SHORT.0 { &mut self.high } else { &mut self.low }
    }

    #[cold]
    fn drop<S: Sink>(
        &mut self,
        packet: Packet,
        reason: DropReason,
        lane: Lane,
        now: Nanos,
        sink: &mut S,
    ) {
        if self.queue.is_empty() {
            self.low.average.idle(now);
        }
        if lane == Lane::SHORT && self.high_queued.packets == 0 {
            self.high.average.idle(now);
        }
        sink.dropped(packet, Drop { reason, lane }, now);
    }

    /// The head.
    #[inline]
    pub(crate) fn dequeue<S: Sink>(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let Some(packet) = self.queue.pop() else { return Dequeue::Empty };
        let lane = if packet.is_long() { Lane::LONG } else { Lane::SHORT };
        if self.queue.is_empty() {
            self.low.average.idle(self.wire.free_after(&packet, now));
        }
        if lane == Lane::SHORT {
            self.high_queued.remove(&packet);
            if self.high_queued.packets == 0 {
                self.high.average.idle(self.wire.free_after(&packet, now));
            }
        }
        sink.dequeued(&packet, lane, now);
        Dequeue::Packet { packet, mark: packet.is_marked() }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Takes over parameters that have been checked.
    pub(crate) fn change(&mut self, params: &Params) {
        let limit = params.get(shared::LIMIT);
        if !limit.same_unit(self.limit) {
            self.low.average.restart(self.queue.in_unit_of(limit));
            self.high.average.restart(self.high_queued.in_unit_of(limit));
        }
        self.limit = limit;
        for dropper in [&mut self.high, &mut self.low] {
            dropper.average.set_weight(params.get(early::AVERAGING));
        }
        self.high.curve = self.curves.high.curve(limit, params);
        self.low.curve = self.curves.low.curve(limit, params);
        self.wait = params.get(early::WAIT);
        self.ecn = params.get(early::ECN);
        self.wire = Wire::new(params);
    }
}

const IN_DSCP: Param<u64> = Param { name: "in-dscp", ..shared::SHORT_DSCP };
const IN_MIN: Param<Level> =
    Param { name: "in-min", ..MIN.with_default("0.3", "ns-2: 15 of 50 packets") };
const IN_MAX: Param<Level> =
    Param { name: "in-max", ..MAX.with_default("0.6", "ns-2: 30 of 50 packets") };
const IN_PROBABILITY: Param<Share> =
    Param { name: "in-probability", ..MAX_PROBABILITY.with_default("0.02", "ns-2") };
const OUT_MIN: Param<Level> =
    Param { name: "out-min", ..MIN.with_default("0.1", "ns-2: 5 of 50 packets") };
const OUT_MAX: Param<Level> =
    Param { name: "out-max", ..MAX.with_default("0.3", "ns-2: 15 of 50 packets") };
const OUT_PROBABILITY: Param<Share> =
    Param { name: "out-probability", ..MAX_PROBABILITY.with_default("0.1", "ns-2") };

const CURVES: Curves = Curves {
    high: CurveParams { min: IN_MIN, max: IN_MAX, probability: IN_PROBABILITY },
    low: CurveParams { min: OUT_MIN, max: OUT_MAX, probability: OUT_PROBABILITY },
};

/// RED with In and Out by the packet's DSCP.
pub(crate) struct Rio {
    core: Core,
    in_dscp: u8,
}

impl Discipline for Rio {
    const INFO: Info = Info {
        name: "rio",
        summary: "RED with In and Out: packets that an edge has tagged In are dropped last",
        source: "Clark, Fang, \"Explicit allocation of best-effort packet delivery service\", \
                 1998; ns-2",
        params: &[
            shared::LIMIT.any(),
            IN_DSCP.any(),
            IN_MIN.any(),
            IN_MAX.any(),
            IN_PROBABILITY.any(),
            OUT_MIN.any(),
            OUT_MAX.any(),
            OUT_PROBABILITY.any(),
            early::AVERAGING.with_default("0.002", "ns-2").any(),
            early::GENTLE.any(),
            early::WAIT.any(),
            early::ECN.any(),
            early::RATE.any(),
            early::MEAN_PACKET.any(),
        ],
        check,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        let core = Core::new(&CURVES, params, seed);
        Box::new(Self { core, in_dscp: params.get(IN_DSCP) as u8 })
    }
}

fn check(params: &Params) -> Result<(), ParamError> {
    CURVES.check(params)
}

impl<S: Sink> Qdisc<S> for Rio {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        let lane = edge::lane(&packet, self.in_dscp);
        self.core.enqueue(packet, lane, now, sink);
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        self.core.dequeue(now, sink)
    }
}

impl Queue for Rio {
    fn backlog(&self) -> Backlog {
        self.core.backlog()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        check(params)?;
        self.core.change(params);
        self.in_dscp = params.get(IN_DSCP) as u8;
        Ok(())
    }
}
