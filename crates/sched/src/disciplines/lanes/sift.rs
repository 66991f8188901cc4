//! SIFT: a flow is long for good once one of its packets has been sampled.
//!
//! Psounis, Ghosh, Prabhakar, Wang: "SIFT: a simple algorithm for tracking elephant flows, and
//! taking advantage of power laws", Allerton 2005, with the weight that the flow scheduler paper
//! gives it. No threshold: short flows are unlucky with probability 1-(1-p)^(n-1).

use alloc::boxed::Box;

use super::compose::{
    BUFFER, CAP_HIGH, PROBABILITY, SAMPLED_TO, SHARING, WEIGHT, is_strict, is_uncapped, with_buffer,
};
use super::{Lifetime, PerPacket, Retest, Weighted};
use crate::interface::{Discipline, Info, Kind, ParamDef, Params, Parts, Qdisc, Sink, shared};

/// Sampling without a threshold.
pub struct Sift;

impl Discipline for Sift {
    const INFO: Info = Info {
        name: "sift",
        summary: "a flow is long once one of its packets was sampled; weighted lanes",
        source: "Psounis, Ghosh, Prabhakar, Wang, Allerton 2005; flow scheduler paper",
        parts: Some(Parts {
            accounting: "sampled per packet",
            service: "weighted",
            buffer: "drop-tail (or knockout)",
        }),
        params: &[
            shared::LIMIT,
            PROBABILITY,
            SAMPLED_TO,
            ParamDef {
                name: "retest",
                kind: Kind::Flag,
                default: "no",
                effect: "a flow that was sampled is sampled again, and long from the second time on",
                source: "EFD paper, section 2 (form ours)",
                live: false,
            },
            WEIGHT,
            SHARING,
            CAP_HIGH,
            BUFFER,
            shared::IDLE,
            shared::SWEEP,
            shared::FLOWS,
        ],
        keeps_order: is_strict,
        work_conserving: is_uncapped,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        let service = Weighted::new(params, seed);
        if params.flag("retest") {
            with_buffer(Lifetime::new(Retest::new(params, seed), params), service, params)
        } else {
            with_buffer(Lifetime::new(PerPacket::new(params, seed), params), service, params)
        }
    }
}
