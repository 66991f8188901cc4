//! RIO-PS, preferential treatment of short flows: RIO whose In packets are those of short flows.
//!
//! Guo and Matta, "The war between mice and elephants", ICNP 2001, by the slides. An edge tags
//! the first packets of a flow as short; in the core, long packets are dropped (or marked) first,
//! in one FIFO. Here the edge may stand in front of the queue (`classifier=edge`), or be somewhere
//! else and have tagged the packets by DSCP (`classifier=tag`).

use alloc::boxed::Box;

use crate::disciplines::early;
use crate::disciplines::early::edge::{self, Edge};
use crate::disciplines::early::red::{MAX, MAX_PROBABILITY, MIN};
use crate::disciplines::early::rio::{Core, CurveParams, Curves};
use crate::interface::{
    Backlog, Dequeue, Discipline, Info, Lane, Level, Nanos, Packet, Param, ParamError, Params,
    Qdisc, Queue, Share, Sink, Takes, shared,
};

const SLIDES: &str = "mice and elephants slides, table III";

const CLASSIFIER: Param<&'static str> = Param {
    name: "classifier",
    kind: Takes::words(&["edge", "tag"]),
    default: "edge",
    effect: "what is short: by an edge in front of this queue, or by the DSCP that an \
             edge elsewhere has put into the packet",
    source: "mice and elephants slides (tag)",
    live: false,
};
const SHORT_MIN: Param<Level> = Param { name: "short-min", ..MIN.with_default("0.15", SLIDES) };
const SHORT_MAX: Param<Level> = Param { name: "short-max", ..MAX.with_default("0.35", SLIDES) };
const SHORT_PROBABILITY: Param<Share> =
    Param { name: "short-probability", ..MAX_PROBABILITY.with_default("0.05", SLIDES) };
const LONG_MIN: Param<Level> = Param { name: "long-min", ..MIN };
const LONG_MAX: Param<Level> = Param { name: "long-max", ..MAX };
const LONG_PROBABILITY: Param<Share> = Param { name: "long-probability", ..MAX_PROBABILITY };

const CURVES: Curves = Curves {
    high: CurveParams { min: SHORT_MIN, max: SHORT_MAX, probability: SHORT_PROBABILITY },
    low: CurveParams { min: LONG_MIN, max: LONG_MAX, probability: LONG_PROBABILITY },
};

/// RIO by the age of flows.
pub(crate) struct RioPs {
    core: Core,
    /// `None` where packets come with tags.
    edge: Option<Edge>,
    short_dscp: u8,
    params: Params,
}

impl Discipline for RioPs {
    const INFO: Info = Info {
        name: "rio-ps",
        summary: "one queue in which packets of short flows are dropped last",
        source: "Guo, Matta, \"The war between mice and elephants\", ICNP 2001, by the slides",
        params: &[
            shared::LIMIT.any(),
            CLASSIFIER.any(),
            edge::THRESHOLD.any(),
            edge::RATIO.any(),
            edge::UPDATE.any(),
            edge::IDLE.any(),
            edge::SWEEP.any(),
            edge::FLOWS.any(),
            shared::SHORT_DSCP.any(),
            SHORT_MIN.any(),
            SHORT_MAX.any(),
            SHORT_PROBABILITY.any(),
            LONG_MIN.any(),
            LONG_MAX.any(),
            LONG_PROBABILITY.any(),
            early::AVERAGING.any(),
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
        Box::new(Self {
            core: Core::new(&CURVES, params, seed),
            edge: (params.get(CLASSIFIER) == "edge").then(|| Edge::new(params)),
            short_dscp: params.get(shared::SHORT_DSCP) as u8,
            params: params.clone(),
        })
    }
}

fn check(params: &Params) -> Result<(), ParamError> {
    CURVES.check(params)
}

impl RioPs {
    #[inline]
    fn lane<S: Sink>(&mut self, packet: &Packet, now: Nanos, sink: &mut S) -> Lane {
        match &mut self.edge {
            Some(edge) => edge.classify(packet, now, sink),
            None => edge::lane(packet, self.short_dscp),
        }
    }
}

impl<S: Sink> Qdisc<S> for RioPs {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        let lane = self.lane(&packet, now, sink);
        self.core.enqueue(packet, lane, now, sink);
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        self.core.dequeue(now, sink)
    }
}

impl Queue for RioPs {
    fn backlog(&self) -> Backlog {
        self.core.backlog()
    }

    fn flows(&self) -> usize {
        self.edge.as_ref().map_or(0, Edge::flows)
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.params.check_live(params)?;
        check(params)?;
        self.core.change(params);
        if let Some(edge) = &mut self.edge {
            edge.change(params);
        }
        self.short_dscp = params.get(shared::SHORT_DSCP) as u8;
        self.params = params.clone();
        Ok(())
    }
}
