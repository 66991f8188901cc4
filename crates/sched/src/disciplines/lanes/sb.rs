//! SB and SB+KO: size-based lanes with a weight, without and with the knockout buffer.
//!
//! Divakaran, Carofiglio, Altman, Vicat-Blanc Primet: "A Flow Scheduler Architecture", INRIA
//! RR 7133, 2009. Every flow is counted; its first `threshold` packets go to the short lane,
//! which has share `weight` of the link while both lanes are backlogged. With a weight below 1
//! a flow that straddles the lanes can be reordered.

use alloc::boxed::Box;

use super::compose::{BOUNDARY, CAP_HIGH, SHARING, THRESHOLD, WEIGHT, is_strict, is_uncapped};
use super::{Buffer, DropTail, EveryFlow, Knockout, Lanes, Lifetime, Weighted};
use crate::interface::{Discipline, Info, ParamDef, Params, Parts, Qdisc, Sink, shared};

const PARAMS: &[ParamDef] = &[
    shared::LIMIT,
    THRESHOLD.with_default("25packets", "flow scheduler paper, section 4"),
    BOUNDARY.with_default("after", "flow scheduler paper: packets up to theta"),
    WEIGHT,
    SHARING,
    CAP_HIGH,
    shared::IDLE,
    shared::SWEEP,
    shared::FLOWS,
];

fn build<S: Sink + 'static, B: Buffer>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
    let (accounting, service) = (Lifetime::new(EveryFlow, params), Weighted::new(params, seed));
    Box::new(Lanes::<_, _, B>::new(accounting, service, params))
}

/// Size-based lanes with a shared drop-tail buffer.
pub struct Sb;

impl Discipline for Sb {
    const INFO: Info = Info {
        name: "sb",
        summary: "size-based lanes: the first packets of every flow get 80 % of the link",
        source: "flow scheduler paper (Divakaran et al., INRIA RR 7133)",
        parts: Some(Parts { accounting: "every flow", service: "weighted", buffer: "drop-tail" }),
        params: PARAMS,
        keeps_order: is_strict,
        work_conserving: is_uncapped,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        build::<S, DropTail>(params, seed)
    }
}

/// Size-based lanes with a knockout buffer.
pub struct SbKo;

impl Discipline for SbKo {
    const INFO: Info = Info {
        name: "sb-ko",
        summary: "size-based lanes; at a full buffer a short packet knocks a long one out",
        source: "flow scheduler paper (Divakaran et al., INRIA RR 7133)",
        parts: Some(Parts { accounting: "every flow", service: "weighted", buffer: "knockout" }),
        params: PARAMS,
        keeps_order: is_strict,
        work_conserving: is_uncapped,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        build::<S, Knockout>(params, seed)
    }
}
