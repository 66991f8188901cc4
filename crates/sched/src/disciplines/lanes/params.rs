//! The parameters of lane parts, which mean the same in every discipline that has the part.

use crate::interface::parts::Buffer;
use crate::interface::{Kind, Nanos, ParamDef, Share};

pub(super) const THRESHOLD: ParamDef = ParamDef {
    name: "threshold",
    kind: Kind::Amount { min: 0, max: 4_000_000_000, unlimited: true },
    default: "20packets",
    effect: "how much of a flow is short; its unit cannot change while the discipline runs",
    source: "EFD paper, section 4",
    live: true,
};

pub(super) const BOUNDARY: ParamDef = ParamDef {
    name: "boundary",
    kind: Kind::Choice(&["before", "after", "literal"]),
    default: "before",
    effect: "which packet of a flow is the first long one, with n counted before it: `before` n \
        >= threshold, `after` n + its size > threshold, `literal` n > threshold",
    source: "ours; the papers leave it open",
    live: true,
};

pub(super) const BUFFER: ParamDef = ParamDef {
    name: "buffer",
    kind: Kind::Choice(Buffer::WORDS),
    default: "drop-tail",
    effect: "full: drop the arrival, or let a short one push out the tail of the long lane",
    source: "flow scheduler paper, section 3",
    live: false,
};

pub(super) const WEIGHT: ParamDef = ParamDef {
    name: "weight",
    kind: Kind::Share { min: Share::from_ppb(1_000_000), max: Share::ONE },
    default: "0.8",
    effect: "share of the link for the short lane while both are backlogged; 1 is strict priority",
    source: "flow scheduler paper, section 4",
    live: true,
};

pub(super) const SHARING: ParamDef = ParamDef {
    name: "sharing",
    kind: Kind::Choice(&["scfq", "coin"]),
    default: "scfq",
    effect: "realise the weight by self-clocked fair queueing or by a coin at each packet",
    source: "ours; the flow scheduler paper leaves it open",
    live: false,
};

pub(super) const CAP_HIGH: ParamDef = ParamDef {
    name: "cap-high",
    kind: Kind::Rate { min: 1_000, max: 1_000_000_000_000 },
    default: "inf",
    effect: "hold the short lane to this rate even while the long lane is empty",
    source: "ours; the flow scheduler paper leaves it open",
    live: true,
};

pub(super) const PROBABILITY: ParamDef = ParamDef {
    name: "probability",
    kind: Kind::Share { min: Share::ZERO, max: Share::ONE },
    default: "0.01",
    effect: "chance that a packet brings its flow into the table (sample and hold: of 1000 bytes)",
    source: "EFD paper, section 4; flow scheduler paper, section 4",
    live: true,
};

pub(super) const SAMPLED_TO: ParamDef = ParamDef {
    name: "sampled-to",
    kind: Kind::Choice(&["high", "low", "rule"]),
    default: "high",
    effect: "lane of the packet that brought its flow into the table",
    source: "ours; the papers leave it open",
    live: true,
};

pub(super) const COUNT_SAMPLED: ParamDef = ParamDef {
    name: "count-sampled",
    kind: Kind::Flag,
    default: "yes",
    effect: "whether the packet that brought its flow into the table is in its count",
    source: "ours; the papers leave it open",
    live: true,
};

pub(super) const LOW_SHARE: ParamDef = ParamDef {
    name: "low-share",
    kind: Kind::Share { min: Share::ZERO, max: Share::from_ppb(900_000_000) },
    default: "0",
    effect: "least share of the link for the long lane while both are backlogged, without \
             reordering any flow, and of the buffer, which the short lane leaves free for it; 0 is \
             the paper, 0.1 a sound choice against starvation",
    source: "ours",
    live: true,
};

pub(super) const HOLD_ON_WIRE: ParamDef = ParamDef {
    name: "hold-on-wire",
    kind: Kind::Flag,
    default: "no",
    effect: "whether the packet being sent still counts as queued for its flow",
    source: "ours; the EFD paper leaves it open",
    live: true,
};

pub(super) const SEGMENT: ParamDef = ParamDef {
    name: "segment",
    kind: Kind::Bytes { min: 1, max: 65_535 },
    default: "1460b",
    effect: "payload bytes of a full packet: turns a threshold in packets into a byte offset",
    source: "Run2C paper",
    live: true,
};

pub(super) const INTERVAL: ParamDef = ParamDef {
    name: "interval",
    kind: Kind::Time { min: Nanos::from_millis(1), max: Nanos::from_secs(86_400), unlimited: true },
    default: "inf",
    effect: "measurement interval: at its end counts start again and small flows are forgotten, \
             which promotes long flows and may reorder them",
    source: "Estan and Varghese 2002",
    live: false,
};

pub(super) const KEEP: ParamDef = ParamDef {
    name: "keep",
    kind: Kind::Count { min: 0, max: 4_000_000_000 },
    default: "25",
    effect: "least count, in the threshold's unit, to stay in the table at an interval's end",
    source: "Estan and Varghese 2002",
    live: true,
};

pub(super) const EARLY_KEEP: ParamDef = ParamDef {
    name: "early-keep",
    kind: Kind::Count { min: 0, max: 4_000_000_000 },
    default: "0",
    effect: "the same for a flow that came into the table during the interval",
    source: "Estan and Varghese 2002",
    live: true,
};
