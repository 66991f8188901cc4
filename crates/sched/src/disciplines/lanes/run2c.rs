//! Run2C (PS+PS): the first `threshold` packets of every flow ahead of the rest.
//!
//! Avrachenkov, Ayesta, Brown, Nyberg: "Differentiation between short and long TCP flows:
//! predictability of the response time", INFOCOM 2004. A count for every flow, which never
//! expires by default (the ideal form); strict priority; the paper leaves the buffer open.

use alloc::boxed::Box;

use super::compose::{BOUNDARY, BUFFER, THRESHOLD, with_buffer};
use super::{EveryFlow, Lifetime, Strict};
use crate::interface::{Discipline, Info, Params, Parts, Qdisc, Sink, shared};

/// The ideal form: a count for every flow.
pub struct Run2c;

impl Discipline for Run2c {
    const INFO: Info = Info {
        name: "run2c",
        summary: "the first packets of every flow ahead of all others, by a count that never \
                  expires",
        source: "Avrachenkov, Ayesta, Brown, Nyberg, INFOCOM 2004",
        parts: Some(Parts {
            accounting: "every flow",
            service: "strict",
            buffer: "drop-tail (or knockout)",
        }),
        params: &[
            shared::LIMIT,
            THRESHOLD,
            BOUNDARY.with_default("after", "Run2C paper: packet number n is short iff n <= th"),
            BUFFER,
            shared::IDLE.with_default("inf", "Run2C paper, ideal form"),
            shared::SWEEP,
            shared::FLOWS,
        ],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        with_buffer(Lifetime::new(EveryFlow, params), Strict, params)
    }
}
