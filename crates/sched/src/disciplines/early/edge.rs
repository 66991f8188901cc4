//! The edge of the mice and elephants architecture: tags the first packets of a flow as short.
//!
//! Guo and Matta, "The war between mice and elephants", ICNP 2001, by the slides. An [`Edge`]
//! counts the packets of every flow; those up to a threshold are short, the others long. The
//! threshold is fixed, or follows the mix of traffic: every `update` the number of active short
//! flows per active long one is compared with `ratio`, and the threshold moves one packet up
//! or down. A flow that has been idle for `idle` is a new one.
//!
//! The edge is apart from the queue (`rio-ps`, or lanes that go by marks), since it may stand
//! elsewhere: a [`Tagger`] at the ingress writes what it finds into the packet's DSCP, where
//! the core reads it.

use core::fmt;
use core::str::FromStr;

use crate::interface::{
    Drop, Event, FlowId, Lane, Nanos, Packet, Param, ParamDef, ParamError, Params, Sink, Takes,
    shared,
};
use crate::queues::flow_table::{Entry, FlowTable};

/// `threshold`: how many packets of a flow are short.
pub(crate) const THRESHOLD: Param<u64> = Param {
    name: "threshold",
    kind: Takes::count(1, 1 << 30),
    default: "10",
    effect: "initial number of packets of a flow that are short; setting it starts again from there",
    source: "ours; the slides give none",
    live: true,
};

/// `ratio`: the target of the threshold.
pub(crate) const RATIO: Param<u64> = Param {
    name: "ratio",
    kind: Takes::count(1, 1 << 20),
    default: "3",
    effect: "active short flows for each active long one (SLR) that the threshold is moved towards",
    source: "mice and elephants slides (barely legible)",
    live: true,
};

/// `update`: how often the threshold moves.
pub(crate) const UPDATE: Param<Nanos> = Param {
    name: "update",
    kind: Takes::time(Nanos::from_millis(1), Nanos::from_secs(86_400)).or_unlimited(),
    default: "10s",
    effect: "move the threshold by a packet this often (T_c); inf leaves it as it is",
    source: "mice and elephants slides",
    live: true,
};

/// `idle`: when a flow is forgotten.
pub(crate) const IDLE: Param<Nanos> = Param {
    effect: "a flow silent for this long (T_u) counts as a new flow",
    ..shared::IDLE.with_default("1s", "mice and elephants slides")
};

/// `sweep`: how often forgotten flows leave the table.
pub(crate) const SWEEP: Param<Nanos> = Param {
    effect: "take idle flows out of the table this often",
    ..shared::SWEEP.with_default("1s", "ours")
};

/// `flows`: the table's bound.
pub(crate) const FLOWS: Param<u64> = Param {
    effect: "most flows in the table; when full, the flow idle longest is evicted",
    ..shared::FLOWS
};

const LONG_DSCP: Param<u64> = Param {
    name: "long-dscp",
    default: "12",
    effect: "the DSCP of packets that are not spared",
    source: "ours: AF12 of RFC 2597, the same class with a higher drop precedence",
    ..shared::SHORT_DSCP
};

/// The lane of a packet that an edge has tagged.
#[inline]
pub(crate) const fn lane(packet: &Packet, short_dscp: u8) -> Lane {
    if packet.dscp == short_dscp { Lane::SHORT } else { Lane::LONG }
}

/// Finds packets short or long by what their flow has sent.
///
/// Cost: a look-up per packet, and every `update` and `sweep` a walk through the table. 16 bytes
/// a flow beside its fingerprint.
pub struct Edge {
    options: Options,
    /// L_t of the slides.
    threshold: u32,
    flows: FlowTable<Flow, 5>,
    next_update: Nanos,
    next_sweep: Nanos,
    /// The earlier of both.
    next_upkeep: Nanos,
}

#[derive(Clone, Copy, PartialEq)]
struct Options {
    threshold: u32,
    ratio: u64,
    update: Nanos,
    idle: Nanos,
    sweep: Nanos,
}

/// A flow since it was last idle.
#[derive(Clone, Copy, Default)]
struct Flow {
    last_seen: Nanos,
    /// Packets; super-packets count as their segments.
    count: u32,
    is_long: bool,
}

impl Options {
    fn from_params(params: &Params) -> Self {
        Self {
            threshold: params.get(THRESHOLD) as u32,
            ratio: params.get(RATIO),
            update: params.get(UPDATE),
            idle: params.get(IDLE),
            sweep: params.get(SWEEP),
        }
    }
}

impl Edge {
    /// An edge that has seen no packet. `params` has `threshold`, `ratio`, `update`, `idle`,
    /// `sweep` and `flows`.
    pub(crate) fn new(params: &Params) -> Self {
        let options = Options::from_params(params);
        Self {
            options,
            threshold: options.threshold,
            flows: FlowTable::new(0, params.get(FLOWS) as usize),
            next_update: Nanos::MAX,
            next_sweep: Nanos::MAX,
            next_upkeep: Nanos::ZERO,
        }
    }

    /// The lane of an arrival: short packets belong in [`Lane::SHORT`], long ones in
    /// [`Lane::LONG`]. What becomes of flows goes to `sink`.
    #[inline]
    pub fn classify<S: Sink>(&mut self, packet: &Packet, now: Nanos, sink: &mut S) -> Lane {
        if now >= self.next_upkeep {
            self.upkeep(now, sink);
        }
        if self.flows.is_full() && self.flows.get(packet.flow).is_none() {
            self.make_room(packet.flow, sink);
        }
        let flow = match self.flows.entry(packet.flow) {
            Entry::Found(flow) => flow,
            Entry::Created(flow) => {
                sink.event(Event::FlowCreated { flow: packet.flow });
                flow.last_seen = now;
                flow
            }
            Entry::Full => return Lane::SHORT,
        };
        if now.since(flow.last_seen) > self.options.idle {
            flow.count = 0;
        }
        let is_long = flow.count >= self.threshold;
        flow.count = flow.count.saturating_add(u32::from(packet.segments));
        flow.last_seen = now;
        if is_long != flow.is_long {
            flow.is_long = is_long;
            let flow = packet.flow;
            sink.event(if is_long { Event::Demoted { flow } } else { Event::Promoted { flow } });
        }
        if is_long { Lane::LONG } else { Lane::SHORT }
    }

    /// The number of packets of a flow that are short now.
    #[must_use]
    pub const fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Entries in the flow table.
    #[must_use]
    pub const fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Takes over live parameters.
    pub(crate) fn change(&mut self, params: &Params) {
        let options = Options::from_params(params);
        if options.threshold != self.options.threshold {
            self.threshold = options.threshold;
        }
        if (options.update, options.sweep) != (self.options.update, self.options.sweep) {
            // The next arrival begins the new spans.
            self.next_upkeep = Nanos::ZERO;
        }
        self.options = options;
    }

    /// Moves the threshold and takes out idle flows, when it is time.
    #[cold]
    fn upkeep<S: Sink>(&mut self, now: Nanos, sink: &mut S) {
        let Options { update, idle, sweep, .. } = self.options;
        if self.next_upkeep == Nanos::ZERO {
            (self.next_update, self.next_sweep) = (now + update, now + sweep);
        }
        if now >= self.next_update {
            self.adjust(self.next_update);
            // While nobody sends the threshold stays, however many updates pass.
            let passed = (now - self.next_update).0 / update.0 + 1;
            self.next_update += Nanos(update.0.saturating_mul(passed));
        }
        if now >= self.next_sweep {
            self.flows.retain(
                |flow| now.since(flow.last_seen) <= idle,
                |flow| sink.event(Event::FlowRemoved { flow }),
            );
            self.next_sweep = now + sweep;
        }
        self.next_upkeep = self.next_update.min(self.next_sweep);
    }

    /// Moves the threshold by the flows that were active `at` this time.
    fn adjust(&mut self, at: Nanos) {
        let Options { idle, ratio, .. } = self.options;
        let threshold = self.threshold;
        let (mut short, mut long) = (0u64, 0u64);
        for (_, flow) in self.flows.iter().filter(|(_, f)| at.since(f.last_seen) <= idle) {
            if flow.count > threshold { long += 1 } else { short += 1 }
        }
        // Without a long flow the ratio is beyond any target.
        let wanted = long * ratio;
        if short > wanted {
            self.threshold = (threshold - 1).max(1);
        } else if short < wanted {
            self.threshold = threshold.saturating_add(1);
        }
    }

    /// Takes out a flow that has long been idle.
    #[cold]
    fn make_room<S: Sink>(&mut self, newcomer: FlowId, sink: &mut S) {
        if let Some(oldest) = self.flows.least_near(newcomer, |flow| Some(flow.last_seen.0)) {
            self.flows.remove(oldest);
            sink.event(Event::FlowRemoved { flow: oldest });
        }
    }
}

const NAME: &str = "edge";
const PARAMS: &[ParamDef] = &[
    THRESHOLD.any(),
    RATIO.any(),
    UPDATE.any(),
    IDLE.any(),
    SWEEP.any(),
    FLOWS.any(),
    shared::SHORT_DSCP.any(),
    LONG_DSCP.any(),
];

/// An edge that stands apart from the queue, by its parameters: `threshold=10,update=inf`.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeSpec(Params);

impl EdgeSpec {
    /// The definitions of its parameters.
    pub const PARAMS: &'static [ParamDef] = PARAMS;

    /// A new edge.
    #[must_use]
    pub fn build(&self) -> Tagger {
        Tagger {
            edge: Edge::new(&self.0),
            dscps: [shared::SHORT_DSCP, LONG_DSCP].map(|dscp| self.0.get(dscp) as u8),
        }
    }
}

impl Default for EdgeSpec {
    fn default() -> Self {
        Self(Params::defaults(NAME, PARAMS))
    }
}

impl FromStr for EdgeSpec {
    type Err = ParamError;

    fn from_str(text: &str) -> Result<Self, ParamError> {
        let mut params = Params::defaults(NAME, PARAMS);
        params.read(text)?;
        if params.get(shared::SHORT_DSCP) == params.get(LONG_DSCP) {
            return Err(params.conflict(shared::SHORT_DSCP.name, LONG_DSCP.name, "another DSCP"));
        }
        Ok(Self(params))
    }
}

/// The parameters that were given.
impl fmt::Display for EdgeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_given(f)
    }
}

/// An edge that tags packets.
pub struct Tagger {
    edge: Edge,
    /// Of short packets, and of long ones.
    dscps: [u8; 2],
}

/// Hears nothing.
struct Deaf;

impl Sink for Deaf {
    fn dropped(&mut self, _packet: Packet, _drop: Drop, _now: Nanos) {}
}

impl Tagger {
    /// Writes what the packet is into its DSCP bits. The caller does the same with the frame.
    #[inline]
    pub fn tag(&mut self, packet: &mut Packet, now: Nanos) {
        let lane = self.edge.classify(packet, now, &mut Deaf);
        packet.dscp = self.dscps[usize::from(lane != Lane::SHORT)];
    }

    /// The edge.
    #[must_use]
    pub const fn edge(&self) -> &Edge {
        &self.edge
    }
}

#[cfg(test)]
mod tests;
