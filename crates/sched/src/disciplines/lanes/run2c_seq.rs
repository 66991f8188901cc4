//! Run2C without a flow table: the packet's own byte offset says whether it is short.
//!
//! Avrachenkov, Ayesta, Brown, Nyberg, INFOCOM 2004: the offset travels in TCP sequence numbers
//! whose initial values are restricted. A retransmitted early byte is short again, so a flow can
//! be reordered. Packets without an offset (UDP) are counted as in `run2c`.

use alloc::boxed::Box;

use super::compose::{BOUNDARY, BUFFER, SEGMENT, THRESHOLD, with_buffer};
use super::{Offset, Strict};
use crate::interface::{Discipline, Info, Needs, Params, Parts, Qdisc, Sink, shared};

/// The stateless form.
pub struct Run2cSeq;

impl Discipline for Run2cSeq {
    const INFO: Info = Info {
        name: "run2c-seq",
        summary: "the first bytes of every flow ahead of all others, read from the packet itself",
        source: "Avrachenkov, Ayesta, Brown, Nyberg, INFOCOM 2004",
        parts: Some(Parts {
            accounting: "sequence offset",
            service: "strict",
            buffer: "drop-tail (or knockout)",
        }),
        params: &[
            shared::LIMIT,
            THRESHOLD,
            BOUNDARY.with_default("after", "Run2C paper (packets without an offset)"),
            SEGMENT,
            BUFFER,
            shared::IDLE,
            shared::SWEEP,
            shared::FLOWS,
        ],
        needs: Needs { offset: true, ..Needs::NOTHING },
        keeps_order: |_| false,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        with_buffer(Offset::new(params), Strict, params)
    }
}
