//! What a discipline says of itself, and the parameters that several share.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use crate::interface::parts::{Buffer, Parts};
use crate::interface::{ParamDef, ParamError, Params, Qdisc, Sink};

/// What a discipline is.
#[derive(Debug)]
pub struct Info {
    /// Its name in specs.
    pub name: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// The paper or standard that defines it.
    pub source: &'static str,
    /// What it is made of with these parameters, if it has a short and a long lane.
    pub parts: Option<fn(&Params) -> Parts>,
    /// What people call its lanes, where these are not the short and the long one.
    pub lanes: &'static [&'static str],
    /// Lanes that it has whatever its parameters and the traffic are; packets may come in others.
    pub least_lanes: usize,
    /// Its parameters.
    pub params: &'static [ParamDef],
    /// What it must know about a packet that not every edge knows.
    pub needs: Needs,
    /// Refuses what the ranges of single parameters cannot say: values that contradict each other.
    pub check: fn(&Params) -> Result<(), ParamError>,
    /// Whether packets of one flow leave in the order of their arrival (invariant G5).
    pub keeps_order: fn(&Params) -> bool,
    /// Whether a backlog means that a packet may leave now (invariant G4).
    pub work_conserving: fn(&Params) -> bool,
}

impl Info {
    /// A discipline of no special kind: any values go together, a flow's packets keep their order,
    /// and a backlog means that a packet may leave. To be completed: `..Info::PLAIN`.
    pub const PLAIN: Self = Self {
        name: "",
        summary: "",
        source: "",
        parts: None,
        lanes: &[],
        least_lanes: 1,
        params: &[],
        needs: Needs::NOTHING,
        check: |_| Ok(()),
        keeps_order: always,
        work_conserving: always,
    };

    /// What people call one of so many lanes.
    #[must_use]
    pub fn lane_name(&self, lane: usize, lanes: usize) -> String {
        match (self.lanes.get(lane), lane, lanes) {
            (_, _, 0 | 1) => "queue".into(),
            (Some(name), ..) => (*name).into(),
            (None, 0, _) => "short".into(),
            (None, 1, 2) => "long".into(),
            (None, ..) => format!("lane {lane}"),
        }
    }

    /// The discipline's parameters at their defaults.
    ///
    /// # Panics
    /// If a default does not satisfy its own definition; a test of the registry rules that out.
    #[must_use]
    pub fn defaults(&self) -> Params {
        Params::defaults(self.name, self.params)
    }

    /// What its parts are, in words for lists; at its defaults, where parameters choose.
    #[must_use]
    pub fn parts_in_words(&self) -> Option<[String; 3]> {
        let Parts { accounting, service, buffer } = self.parts?(&self.defaults());
        let chosen = |name| self.params.iter().any(|def| def.name == name);
        if chosen("accounting") {
            return Some(["of your choice"; 3].map(String::from));
        }
        let mut dropped = String::from(buffer.description());
        if chosen("buffer") {
            let others = Buffer::ALL.into_iter().filter(|other| *other != buffer);
            others.for_each(|other| dropped += &format!(" (or {})", other.description()));
        }
        Some([accounting.description().into(), service.description().into(), dropped])
    }
}

/// Two disciplines are the same if they have the same name.
impl PartialEq for Info {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// For [`Info::keeps_order`] and [`Info::work_conserving`]: whatever the parameters are.
pub const fn always(_: &Params) -> bool {
    true
}

/// Knowledge about packets that a discipline cannot do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The size of the flow before it ends: simulators know it, a link never does.
    pub flow_size: bool,
    /// The packet's byte offset in its flow.
    pub offset: bool,
    /// Host fingerprints beside the flow's.
    pub hosts: bool,
}

impl Needs {
    /// Nothing but size and flow.
    pub const NOTHING: Self = Self { flow_size: false, offset: false, hosts: false };

    /// In words, what no live link tells: a discipline that needs it runs in front of none.
    #[must_use]
    pub const fn of_no_link(&self) -> Option<&'static str> {
        match (self.flow_size, self.offset) {
            (true, _) => Some("the size of a flow before it ends"),
            (false, true) => Some("a packet's byte offset in its flow"),
            (false, false) => None,
        }
    }
}

/// A discipline as its file presents it.
pub trait Discipline {
    /// What it is.
    const INFO: Info;

    /// A new, empty instance.
    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>>;
}

/// Parameters that several disciplines share, so that they mean the same in all of them.
pub mod shared {
    use crate::interface::{Amount, Nanos, Param, Rate, Takes};

    /// How many packets a ring is made for at once, so that it need not grow under way: the
    /// limit, or what a modest queue of small packets takes where the limit is in bytes.
    pub(crate) fn ring_capacity(limit: Amount) -> usize {
        let packets = match limit {
            Amount::Packets(n) => n,
            Amount::Bytes(n) => n / 256,
        };
        packets.clamp(16, 4096) as usize
    }

    /// `limit`: what the queue holds.
    pub const LIMIT: Param<Amount> = Param {
        name: "limit",
        kind: Takes::amount(1, 1 << 32),
        default: "300packets",
        effect: "what the queue holds before it drops; super-packets count as their segments",
        source: "EFD paper, section 4",
        live: true,
    };

    /// `rate`: the link's, for disciplines whose clock it drives.
    pub const RATE: Param<Rate> = Param {
        name: "rate",
        kind: Takes::rate(1, u64::MAX - 1),
        default: "inf",
        effect: "the link's rate, if known: how much of the packet on the wire is sent when another \
                 arrives; inf: none of it",
        source: "the link",
        live: true,
    };

    /// `flows`: the flow table's hard bound.
    pub const FLOWS: Param<u64> = Param {
        name: "flows",
        kind: Takes::count(1, 1 << 26),
        default: "65536",
        effect: "most flows tracked; when full, a flow with nothing queued is evicted, and \
            without one a new flow is short and not tracked",
        source: "ours",
        live: false,
    };

    /// `idle`: how long a flow is remembered.
    pub const IDLE: Param<Nanos> = Param {
        name: "idle",
        kind: Takes::time(Nanos::from_millis(1), Nanos::from_secs(2_592_000)).or_unlimited(),
        default: "30s",
        effect: "evict a flow after this time without a packet",
        source: "EFD paper, section 4",
        live: true,
    };

    /// `sweep`: how often idle flows are looked for.
    pub const SWEEP: Param<Nanos> = Param {
        name: "sweep",
        kind: Takes::time(Nanos::from_millis(1), Nanos::from_secs(3600)).or_unlimited(),
        default: "5s",
        effect: "look for idle flows this often",
        source: "EFD paper, section 4",
        live: true,
    };

    /// `short-dscp`: the tag of short packets.
    pub const SHORT_DSCP: Param<u64> = Param {
        name: "short-dscp",
        kind: Takes::count(0, 63),
        default: "10",
        effect: "the DSCP of spared packets; no others are spared",
        source: "ours: AF11 of RFC 2597",
        live: true,
    };
}
