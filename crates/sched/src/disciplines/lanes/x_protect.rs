//! X-Protect: Run2C over a flow table that only sampled flows enter.
//!
//! Kortebi, Oueslati, Roberts: "Cross-protect", HPSR 2004, as the EFD paper (section 4) uses it:
//! each packet of an unknown flow brings the flow in with probability 1 %, 30 KB counted from
//! there on are short, entries idle for 30 s are swept out every 5 s.

use alloc::boxed::Box;

use super::compose::{
    BOUNDARY, BUFFER, COUNT_SAMPLED, PROBABILITY, SAMPLED_TO, THRESHOLD, with_buffer,
};
use super::{Lifetime, PerPacket, Strict};
use crate::interface::{Discipline, Info, Params, Parts, Qdisc, Sink, shared};

/// Run2C with sampling per packet.
pub struct XProtect;

impl Discipline for XProtect {
    const INFO: Info = Info {
        name: "x-protect",
        summary: "Run2C over sampled flows: 1 % of packets bring their flow into the table",
        source: "Kortebi, Oueslati, Roberts, HPSR 2004; EFD paper, section 4",
        parts: Some(Parts {
            accounting: "sampled per packet",
            service: "strict",
            buffer: "drop-tail (or knockout)",
        }),
        params: &[
            shared::LIMIT,
            THRESHOLD.with_default("30000b", "EFD paper, section 4: 30 KB"),
            BOUNDARY.with_default("after", "EFD paper: short while the count is within 30 KB"),
            PROBABILITY,
            SAMPLED_TO,
            COUNT_SAMPLED,
            BUFFER,
            shared::IDLE,
            shared::SWEEP,
            shared::FLOWS,
        ],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        with_buffer(Lifetime::new(PerPacket::new(params, seed), params), Strict, params)
    }
}
