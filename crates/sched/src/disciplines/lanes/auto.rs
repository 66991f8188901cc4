//! Auto: SB with knockout whose threshold and weight follow the mean queue of the short lane.
//!
//! The flow scheduler paper (Divakaran et al., INRIA RR 7133) names the mean queue length as the
//! signal to adapt its parameters by, and leaves it to future work; the control law is ours. One
//! number, the *ease*, moves both. While the short lane is short, ease grows, and with it what
//! counts as short. While it is long, ease shrinks: less of a flow counts as short, and below 1
//! the long lane gives up its share as well.

use alloc::boxed::Box;

use super::Lanes;
use super::compose::{is_uncapped, keeps_order};
use super::lifetime::Lifetime;
use super::params::{BOUNDARY, CAP_HIGH, SHARING, THRESHOLD, WEIGHT};
use super::sampler::EveryFlow;
use super::service::Weighted;
use crate::interface::parts::{Accounting, Buffer, Parts, Service};
use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Factor, Info, Lane, Level, Nanos, Packet, Param,
    ParamError, Params, Qdisc, Queue, Share, Sink, Takes, shared,
};

const TARGET: Param<Level> = Param {
    name: "target",
    kind: Takes::LEVEL,
    default: "0.005",
    effect: "mean queue of the short lane above which ease shrinks; below half of it ease grows",
    source: "ours",
    live: true,
};

const UPDATE: Param<Nanos> = Param {
    name: "update",
    kind: Takes::time(Nanos::from_millis(1), Nanos::from_secs(3600)).or_unlimited(),
    default: "1s",
    effect: "the mean is over this time, and ease moves at its end; inf: never",
    source: "ours",
    live: true,
};

const STEP: Param<Share> = Param {
    name: "step",
    kind: Takes::share(Share::from_ppb(1_000_000), Share::from_ppb(500_000_000)),
    default: "0.1",
    effect: "fraction by which ease changes",
    source: "ours",
    live: true,
};

const RANGE: Param<Factor> = Param {
    name: "range",
    kind: Takes::factor(1_000, 1_000_000),
    default: "16",
    effect: "ease stays between 1/range and range",
    source: "ours",
    live: true,
};

const PARTS: Parts = Parts {
    accounting: Accounting::EveryFlow,
    service: Service::Adapted,
    buffer: Buffer::Knockout,
};

/// Size-based lanes with a knockout buffer, which set threshold and weight themselves.
pub(crate) struct Auto {
    lanes: Lanes<Lifetime<EveryFlow>, Weighted>,
    control: Control,
}

impl Discipline for Auto {
    const INFO: Info = Info {
        name: "auto",
        summary: "size-based lanes that adapt threshold and weight to the short lane's mean queue",
        source: "ours, after the future work of the flow scheduler paper (INRIA RR 7133)",
        parts: Some(|_| PARTS),
        least_lanes: 2,
        params: &[
            shared::LIMIT.any(),
            Param {
                effect: "how much of a flow is short at ease 1; its unit cannot change while the \
                         discipline runs",
                ..THRESHOLD.with_default("25packets", "flow scheduler paper, section 4")
            }
            .any(),
            BOUNDARY.with_default("after", "flow scheduler paper: packets up to theta").any(),
            Param {
                effect: "share of the link for the short lane while both are backlogged, at ease 1 \
                         and above; 1 is strict priority",
                ..WEIGHT
            }
            .any(),
            TARGET.any(),
            UPDATE.any(),
            STEP.any(),
            RANGE.any(),
            SHARING.any(),
            CAP_HIGH.any(),
            shared::IDLE.any(),
            shared::SWEEP.any(),
            shared::FLOWS.any(),
        ],
        keeps_order: |params| keeps_order(PARTS, params),
        work_conserving: is_uncapped,
        check,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        let (accounting, service) = (Lifetime::new(EveryFlow, params), Weighted::new(params, seed));
        let lanes = Lanes::new(accounting, service, PARTS.buffer, params);
        Box::new(Self { lanes, control: Control::new(params) })
    }
}

fn check(params: &Params) -> Result<(), ParamError> {
    match params.get(TARGET) {
        Level::At(amount)
            if amount != Amount::UNLIMITED && !amount.same_unit(params.get(shared::LIMIT)) =>
        {
            Err(params.conflict("target", "limit", "a share, or an amount in its unit"))
        }
        _ => Ok(()),
    }
}

impl Auto {
    /// Accounts for the time since the last call, and moves ease when it is time.
    #[inline]
    fn keep_up(&mut self, now: Nanos) {
        let queued = self.lanes.queues.used(Lane::SHORT, self.lanes.limits.whole);
        if self.control.has_moved(queued, now) {
            self.apply();
        }
    }

    /// Sets threshold and weight by ease.
    #[cold]
    fn apply(&mut self) {
        let Self { lanes, control } = self;
        lanes.accounting.set_threshold(control.threshold());
        lanes.service.set_weight(control.weight(), &lanes.queues);
    }
}

impl<S: Sink> Qdisc<S> for Auto {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        self.keep_up(now);
        self.lanes.enqueue(packet, now, sink);
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        self.keep_up(now);
        self.lanes.dequeue(now, sink)
    }
}

impl Queue for Auto {
    fn backlog(&self) -> Backlog {
        self.lanes.backlog()
    }

    fn flows(&self) -> usize {
        self.lanes.flows()
    }

    /// Ease stays as it is, within the new range; a new measurement begins.
    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.lanes.change(params)?;
        self.control = Control { ease: self.control.ease, ..Control::new(params) }.within_range();
        self.apply();
        Ok(())
    }
}

/// The measurement of the short lane's mean queue, and ease.
struct Control {
    at_one: (Amount, Share),
    /// In units of 2^-`LEVEL_BITS` of the limit's.
    target: u64,
    update: Nanos,
    step: Share,
    least: u64,
    most: u64,
    /// In units of 2^-`EASE_BITS`.
    ease: u64,
    /// When the measurement began, if it has.
    since: Option<Nanos>,
    last: Nanos,
    /// The integral of the queue over time since then, in nanoseconds.
    area: u128,
}

const LEVEL_BITS: u32 = 8;
const EASE_BITS: u32 = 20;
const ONE: u64 = 1 << EASE_BITS;
const THOUSAND: u64 = 1_000;
const BILLION: u64 = 1_000_000_000;

impl Control {
    fn new(params: &Params) -> Self {
        let Factor(range) = params.get(RANGE);
        Self {
            at_one: (params.get(THRESHOLD), params.get(WEIGHT)),
            target: params.get(TARGET).under(params.get(shared::LIMIT), LEVEL_BITS),
            update: params.get(UPDATE),
            step: params.get(STEP),
            least: ONE * THOUSAND / range,
            most: ONE * range / THOUSAND,
            ease: ONE,
            since: None,
            last: Nanos::ZERO,
            area: 0,
        }
    }

    fn within_range(mut self) -> Self {
        self.ease = self.ease.clamp(self.least, self.most);
        self
    }

    /// The short lane has held `queued` since the last call; returns whether ease has moved.
    #[inline]
    fn has_moved(&mut self, queued: u64, now: Nanos) -> bool {
        self.area += u128::from(queued) * u128::from(now.since(self.last).0);
        self.last = now;
        let measured = match self.since {
            Some(since) => now.since(since),
            None => Nanos::ZERO,
        };
        if self.since.is_some() && measured < self.update {
            return false;
        }
        let area = (core::mem::take(&mut self.area)) << LEVEL_BITS;
        // The first arrival or departure begins the first measurement.
        self.since.replace(now).is_some() && self.moved(area, measured)
    }

    #[cold]
    fn moved(&mut self, area: u128, measured: Nanos) -> bool {
        let most = u128::from(self.target) * u128::from(measured.0);
        let step = self.ease * u64::from(self.step.ppb()) / BILLION;
        let before = self.ease;
        if area > most {
            self.ease = (self.ease - step).max(self.least);
        } else if 2 * area < most {
            self.ease = (self.ease + step).min(self.most);
        }
        self.ease != before
    }

    /// How much of a flow is short.
    fn threshold(&self) -> Amount {
        let scaled = |n: u64| {
            let scaled = (u128::from(n) * u128::from(self.ease)) >> EASE_BITS;
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        match self.at_one.0 {
            Amount::UNLIMITED => Amount::UNLIMITED,
            Amount::Packets(n) => Amount::Packets(scaled(n)),
            Amount::Bytes(n) => Amount::Bytes(scaled(n)),
        }
    }

    /// What is left of the link by a long lane whose share shrinks with ease below 1. A larger
    /// share would not help it: while ease grows, the short lane hardly has a queue.
    fn weight(&self) -> Share {
        let long = u64::from(self.at_one.1.rest().ppb()) * self.ease.min(ONE);
        Share::from_ppb((long >> EASE_BITS) as u32).rest()
    }
}
