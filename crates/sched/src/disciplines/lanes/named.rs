//! The disciplines of the literature that are nothing but a choice of parts and defaults.

use crate::interface::parts::{Accounting, Buffer, Parts, Service};
use crate::interface::{Info, Needs, Param, ParamDef, Params, Takes, shared};

use super::compose::{Named, buffer};
use super::params::{
    BOUNDARY, BUFFER, CAP_HIGH, COUNT_SAMPLED, EARLY_KEEP, INTERVAL, KEEP, PROBABILITY, SAMPLED_TO,
    SEGMENT, SHARING, THRESHOLD, WEIGHT,
};

/// Run2C (PS+PS): the first `threshold` packets of every flow ahead of the rest.
///
/// Avrachenkov, Ayesta, Brown, Nyberg: "Differentiation between short and long TCP flows:
/// predictability of the response time", INFOCOM 2004. A count for every flow, which never
/// expires by default (the ideal form); strict priority; the paper leaves the buffer open.
pub(crate) struct Run2c;

impl Named for Run2c {
    const INFO: Info = Info {
        name: "run2c",
        summary: "the first packets of every flow ahead of all others, by a count that never \
                  expires",
        source: "Avrachenkov, Ayesta, Brown, Nyberg, INFOCOM 2004",
        params: &[
            shared::LIMIT.any(),
            THRESHOLD.any(),
            BOUNDARY
                .with_default("after", "Run2C paper: packet number n is short iff n <= th")
                .any(),
            BUFFER.any(),
            shared::IDLE.with_default("inf", "Run2C paper, ideal form").any(),
            shared::SWEEP.any(),
            shared::FLOWS.any(),
        ],
        ..Info::PLAIN
    };

    fn parts(params: &Params) -> Parts {
        let buffer = buffer(params);
        Parts { accounting: Accounting::EveryFlow, service: Service::Strict, buffer }
    }
}

/// Run2C without a flow table: the packet's own byte offset says whether it is short.
///
/// The same paper: the offset travels in TCP sequence numbers whose initial values are restricted.
/// A retransmitted early byte is short again, so a flow can be reordered. Packets without an
/// offset (UDP) are counted as in `run2c`.
pub(crate) struct Run2cSeq;

impl Named for Run2cSeq {
    const INFO: Info = Info {
        name: "run2c-seq",
        summary: "the first bytes of every flow ahead of all others, read from the packet itself",
        source: "Avrachenkov, Ayesta, Brown, Nyberg, INFOCOM 2004",
        params: &[
            shared::LIMIT.any(),
            THRESHOLD.any(),
            BOUNDARY.with_default("after", "Run2C paper (packets without an offset)").any(),
            SEGMENT.any(),
            BUFFER.any(),
            shared::IDLE.any(),
            shared::SWEEP.any(),
            shared::FLOWS.any(),
        ],
        needs: Needs { offset: true, ..Needs::NOTHING },
        ..Info::PLAIN
    };

    fn parts(params: &Params) -> Parts {
        let buffer = buffer(params);
        Parts { accounting: Accounting::Offset, service: Service::Strict, buffer }
    }
}

/// X-Protect: Run2C over a flow table that only sampled flows enter.
///
/// Kortebi, Oueslati, Roberts: "Cross-protect", HPSR 2004, as the EFD paper (section 4) uses it:
/// each packet of an unknown flow brings the flow in with probability 1 %, 30 KB counted from
/// there on are short, entries idle for 30 s are swept out every 5 s.
pub(crate) struct XProtect;

impl Named for XProtect {
    const INFO: Info = Info {
        name: "x-protect",
        summary: "Run2C over sampled flows: 1 % of packets bring their flow into the table",
        source: "Kortebi, Oueslati, Roberts, HPSR 2004; EFD paper, section 4",
        params: &[
            shared::LIMIT.any(),
            THRESHOLD.with_default("30000b", "EFD paper, section 4: 30 KB").any(),
            BOUNDARY
                .with_default("after", "EFD paper: short while the count is within 30 KB")
                .any(),
            PROBABILITY.any(),
            SAMPLED_TO.any(),
            COUNT_SAMPLED.any(),
            BUFFER.any(),
            shared::IDLE.any(),
            shared::SWEEP.any(),
            shared::FLOWS.any(),
        ],
        ..Info::PLAIN
    };

    fn parts(params: &Params) -> Parts {
        let buffer = buffer(params);
        Parts { accounting: Accounting::Sampled, service: Service::Strict, buffer }
    }
}

/// SIFT: a flow is long for good once one of its packets has been sampled.
///
const RETEST: Param<bool> = Param {
    name: "retest",
    kind: Takes::FLAG,
    default: "no",
    effect: "a flow that was sampled is sampled again, and long from the second time on",
    source: "EFD paper, section 2 (form ours)",
    live: false,
};

/// Psounis, Ghosh, Prabhakar, Wang: "SIFT: a simple algorithm for tracking elephant flows, and
/// taking advantage of power laws", Allerton 2005, with the weight that the flow scheduler paper
/// gives it. No threshold: short flows are unlucky with probability 1-(1-p)^(n-1).
pub(crate) struct Sift;

impl Named for Sift {
    const INFO: Info = Info {
        name: "sift",
        summary: "a flow is long once one of its packets was sampled; weighted lanes",
        source: "Psounis, Ghosh, Prabhakar, Wang, Allerton 2005; flow scheduler paper",
        params: &[
            shared::LIMIT.any(),
            PROBABILITY.any(),
            SAMPLED_TO.any(),
            RETEST.any(),
            WEIGHT.any(),
            SHARING.any(),
            CAP_HIGH.any(),
            BUFFER.any(),
            shared::IDLE.any(),
            shared::SWEEP.any(),
            shared::FLOWS.any(),
        ],
        ..Info::PLAIN
    };

    fn parts(params: &Params) -> Parts {
        let twice = params.get(RETEST);
        let accounting = if twice { Accounting::Retest } else { Accounting::Sampled };
        Parts { accounting, service: Service::Weighted, buffer: buffer(params) }
    }
}

const SB_PARAMS: &[ParamDef] = &[
    shared::LIMIT.any(),
    THRESHOLD.with_default("25packets", "flow scheduler paper, section 4").any(),
    BOUNDARY.with_default("after", "flow scheduler paper: packets up to theta").any(),
    WEIGHT.any(),
    SHARING.any(),
    CAP_HIGH.any(),
    shared::IDLE.any(),
    shared::SWEEP.any(),
    shared::FLOWS.any(),
];

/// SB: size-based lanes with a weight and a shared drop-tail buffer.
///
/// Divakaran, Carofiglio, Altman, Vicat-Blanc Primet: "A Flow Scheduler Architecture", INRIA
/// RR 7133, 2009. Every flow is counted; its first `threshold` packets go to the short lane,
/// which has share `weight` of the link while both lanes are backlogged. With a weight below 1
/// a flow that straddles the lanes can be reordered.
pub(crate) struct Sb;

impl Named for Sb {
    const INFO: Info = Info {
        name: "sb",
        summary: "size-based lanes: the first packets of every flow get 80 % of the link",
        source: "flow scheduler paper (Divakaran et al., INRIA RR 7133)",
        params: SB_PARAMS,
        ..Info::PLAIN
    };

    fn parts(_params: &Params) -> Parts {
        let accounting = Accounting::EveryFlow;
        Parts { accounting, service: Service::Weighted, buffer: Buffer::DropTail }
    }
}

/// SB+KO: the same with a knockout buffer.
pub(crate) struct SbKo;

impl Named for SbKo {
    const INFO: Info = Info {
        name: "sb-ko",
        summary: "size-based lanes; at a full buffer a short packet knocks a long one out",
        source: "flow scheduler paper (Divakaran et al., INRIA RR 7133)",
        params: SB_PARAMS,
        ..Info::PLAIN
    };

    fn parts(_params: &Params) -> Parts {
        let accounting = Accounting::EveryFlow;
        Parts { accounting, service: Service::Weighted, buffer: Buffer::Knockout }
    }
}

/// SB-SH: size-based lanes that count only the flows that sample-and-hold has found.
///
/// Flow scheduler paper; sampling from Estan and Varghese, "New directions in traffic
/// measurement and accounting", SIGCOMM 2002. A flow is long iff its *estimated* size exceeds
/// the threshold; the estimate never exceeds the truth, so a short flow is never taken for long.
pub(crate) struct SbSh;

impl Named for SbSh {
    const INFO: Info = Info {
        name: "sb-sh",
        summary: "size-based lanes over sampled flows: a small table, and no false positives",
        source: "flow scheduler paper (Divakaran et al., INRIA RR 7133)",
        params: &[
            shared::LIMIT.any(),
            THRESHOLD.with_default("25packets", "flow scheduler paper, section 4").any(),
            BOUNDARY.with_default("after", "flow scheduler paper: estimate exceeds theta").any(),
            PROBABILITY.any(),
            WEIGHT.any(),
            SHARING.any(),
            CAP_HIGH.any(),
            BUFFER.with_default("knockout", "flow scheduler paper, section 3").any(),
            shared::IDLE.any(),
            shared::SWEEP.any(),
            INTERVAL.any(),
            KEEP.any(),
            EARLY_KEEP.any(),
            shared::FLOWS.any(),
        ],
        ..Info::PLAIN
    };

    fn parts(params: &Params) -> Parts {
        let (accounting, service) = (Accounting::SampleAndHold, Service::Weighted);
        Parts { accounting, service, buffer: buffer(params) }
    }
}
