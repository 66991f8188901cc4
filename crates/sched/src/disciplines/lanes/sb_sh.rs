//! SB-SH: size-based lanes over sample-and-hold, with the knockout buffer.
//!
//! Flow scheduler paper; sampling from Estan and Varghese, "New directions in traffic
//! measurement and accounting", SIGCOMM 2002. A flow is long iff its *estimated* size exceeds
//! the threshold; the estimate never exceeds the truth, so a short flow is never taken for long.

use alloc::boxed::Box;

use super::compose::{
    BOUNDARY, BUFFER, CAP_HIGH, EARLY_KEEP, INTERVAL, KEEP, PROBABILITY, SHARING, THRESHOLD,
    WEIGHT, is_strict, is_uncapped, with_buffer,
};
use super::{Lifetime, PerByte, Weighted};
use crate::interface::{Discipline, Info, Nanos, Params, Parts, Qdisc, Sink, shared};

/// Size-based lanes that count only the flows sample-and-hold has found.
pub struct SbSh;

impl Discipline for SbSh {
    const INFO: Info = Info {
        name: "sb-sh",
        summary: "size-based lanes over sampled flows: a small table, and no false positives",
        source: "flow scheduler paper (Divakaran et al., INRIA RR 7133)",
        parts: Some(Parts {
            accounting: "sample-and-hold per byte",
            service: "weighted",
            buffer: "knockout (or drop-tail)",
        }),
        params: &[
            shared::LIMIT,
            THRESHOLD.with_default("25packets", "flow scheduler paper, section 4"),
            BOUNDARY.with_default("after", "flow scheduler paper: estimate exceeds theta"),
            PROBABILITY,
            WEIGHT,
            SHARING,
            CAP_HIGH,
            BUFFER.with_default("knockout", "flow scheduler paper, section 3"),
            shared::IDLE,
            shared::SWEEP,
            INTERVAL,
            KEEP,
            EARLY_KEEP,
            shared::FLOWS,
        ],
        keeps_order: |params| is_strict(params) && params.time("interval") == Nanos::MAX,
        work_conserving: is_uncapped,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        let accounting = Lifetime::new(PerByte::new(params, seed), params);
        with_buffer(accounting, Weighted::new(params, seed), params)
    }
}
