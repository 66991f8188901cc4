//! EFD, early flow discard: a flow is short until `threshold` of its packets have come without
//! the queue ever running out of them.
//!
//! Chen, Heusse, Urvoy-Keller: "EFD: An efficient low-overhead scheduler", IFIP Networking 2011.
//! Strict priority for the first packets of an episode, push-out of the long lane's tail, and a
//! flow table that is never larger than the queue. Never reorders a flow.

use alloc::boxed::Box;

use super::compose::{BOUNDARY, HOLD_ON_WIRE, LOW_SHARE, THRESHOLD};
use super::{Guaranteed, Knockout, Lanes, WhileQueued};
use crate::interface::{Discipline, Info, Params, Parts, Qdisc, Sink, shared};

/// Early flow discard.
pub struct Efd;

impl Discipline for Efd {
    const INFO: Info = Info {
        name: "efd",
        summary: "early flow discard: the first packets of a flow first, and no memory of a flow \
                  that has nothing queued",
        source: "Chen, Heusse, Urvoy-Keller, IFIP Networking 2011",
        parts: Some(Parts {
            accounting: "while-queued",
            service: "strict, with low-share guaranteed",
            buffer: "knockout",
        }),
        params: &[
            shared::LIMIT,
            THRESHOLD,
            BOUNDARY,
            LOW_SHARE,
            HOLD_ON_WIRE,
            // The queue's limit bounds the table first, unless it is in bytes of tiny packets.
            shared::FLOWS.with_default("1048576", "ours"),
        ],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        let (accounting, service) = (WhileQueued::new(params), Guaranteed::new(params));
        Box::new(Lanes::<_, _, Knockout>::new(accounting, service, params))
    }
}
