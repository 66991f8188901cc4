//! FSC, fair service curve: fair queueing in which a flow's first bytes are worth more.
//!
//! Every flow has a concave curve of two pieces that says how much service it has earned at a
//! virtual time: for its first `pbs` bytes (preferred burst size) it earns `bpr` times (burst to
//! preferred ratio) as fast as afterwards. The backlogged flow whose service is reached earliest by
//! its curve is served. So a short flow, or the first bytes of any, get up to `bpr` times the share
//! of a long one, and a flow that has used its burst up gets it back by not sending. With `bpr=1` or
//! `pbs=0b` this is plain fair queueing: the FSC paper's PFQ.
//!
//! When a flow becomes backlogged at virtual time v with a service of w, its curve becomes the
//! lesser of what it was and a new one that begins at (v, w). How little has to be kept for that is
//! in `curve`. When nothing is queued, all curves are forgotten.
//!
//! Cost: a table look-up per arrival, an operation on a queue of flows per departure.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::curve::{Curve, MOST_BPR, MOST_PBS};
use super::group::{Group, Member};
use super::marks::{self, ByCode};
use super::{DROP, Fair, Joined, Queues, Service};
use crate::discipline::{self, Discipline, Info, Needs, shared};
use crate::packet::Packet;
use crate::params::{Form, Kind, ParamDef, Params};
use crate::qdisc::{Qdisc, Sink};
use crate::units::Nanos;

/// Fair service curve.
pub(crate) struct Fsc {
    by_code: ByCode,
    /// The curve of all flows, and those of flows with certain code points.
    curves: Vec<Curve>,
    group: Group,
}

/// `bpr`: how much more the first bytes are worth.
pub(crate) const BPR: ParamDef = ParamDef {
    name: "bpr",
    kind: Kind::Factor { min: 1000, max: MOST_BPR },
    default: "4",
    effect: "burst to preferred ratio: how many times faster than later ones a flow's first bytes are \
             served; 1: fair queueing",
    source: "FSC paper, where it is recommended",
    live: true,
};

/// `pbs`: how many first bytes.
pub(crate) const PBS: ParamDef = ParamDef {
    name: "pbs",
    kind: Kind::Bytes { min: 0, max: MOST_PBS },
    default: "6000b",
    effect: "preferred burst size: how many bytes are the first ones; 0b: fair queueing",
    source: "FSC paper, where it is recommended",
    live: true,
};

const CURVES: ParamDef = ParamDef {
    name: "curves",
    kind: Kind::Form(&Form {
        name: "curves by DSCP",
        pattern: "none, or curves WEIGHTxBPR/PBS with the DSCP they are for: 2x4/6000b@ef+1@le",
        examples: &["2x4/6000b@ef+1@le", "8@be", "3x1.5/1kb@cs1/cs2+2x100/0b@af11"],
        check: |text| parse(text).map(|_| ()),
    }),
    default: "none",
    effect: "curves of flows whose first packet has such a DSCP; those of the others are \
             1xbpr/pbs",
    source: "ours",
    live: false,
};

impl Discipline for Fsc {
    const INFO: Info = Info {
        name: "fsc",
        summary: "fair service curve: fair queueing in which a flow's first bytes count less",
        source: "Stoica, Zhang, Ng, \"A hierarchical fair service curve algorithm for link-sharing, \
                 real-time and priority services\", 1997; FSC paper for bpr and pbs",
        parts: None,
        params: &[shared::LIMIT, BPR, PBS, CURVES, DROP],
        needs: Needs::NOTHING,
        keeps_order: discipline::always,
        work_conserving: discipline::always,
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Fair::<Self>::boxed(params)
    }
}

/// The curves of certain code points; number 0 is for all others.
fn parse(text: &str) -> Result<(ByCode, Vec<Curve>), String> {
    let (mut by_code, mut curves) = (ByCode::NONE, [Curve::new(1, 1000, 0)].to_vec());
    if text == "none" {
        return Ok((by_code, curves));
    }
    for marked in marks::list(text)? {
        if marked.codes.is_empty() {
            return Err(alloc::format!("'{}' is for no DSCP: {0}@ef", marked.what));
        }
        by_code.set(&marked.codes, curves.len() as u8);
        curves.push(Curve::parse(marked.what)?);
    }
    Ok((by_code, curves))
}

/// The curve that `bpr` and `pbs` describe.
pub(crate) fn curve_of(params: &Params) -> Curve {
    Curve::new(1, params.number(BPR.name), params.number(PBS.name))
}

impl Service for Fsc {
    type Flow = Member;

    fn new(params: &Params) -> Self {
        // Checked when the parameter was set.
        let parsed = parse(params.text("curves"));
        let (by_code, mut curves) = parsed.unwrap_or_else(|reason| panic!("curves: {reason}"));
        curves[0] = curve_of(params);
        Self { by_code, curves, group: Group::default() }
    }

    fn change(&mut self, queues: &Queues<Member>, params: &Params) {
        self.curves[0] = curve_of(params);
        self.group.change(queues, &self.curves);
    }

    #[inline]
    fn joined(&mut self, queues: &mut Queues<Member>, joined: Joined<'_>) {
        let curve = self.by_code.of(joined.packet);
        self.group.joined(queues, &self.curves, &joined, (curve, 0));
    }

    #[inline]
    fn next<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        _now: Nanos,
        _sink: &mut S,
    ) -> Option<u32> {
        self.group.next(queues)
    }

    #[inline]
    fn served<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        slot: u32,
        packet: &Packet,
        _now: Nanos,
        sink: &mut S,
    ) {
        self.group.served(queues, &self.curves, slot, packet.size, sink);
        if queues.packets() == 0 {
            self.group.restart(queues, sink);
        }
        self.group.lower_if_due(queues, 0);
    }

    fn pushed_out<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        slot: u32,
        _packet: &Packet,
        sink: &mut S,
    ) {
        if queues.is_idle(slot) {
            self.group.emptied(queues, &self.curves, slot, sink);
        }
    }
}
