//! The parameters of lane parts, which mean the same in every discipline that has the part.

use crate::interface::parts::Buffer;
use crate::interface::{Amount, Nanos, Param, Rate, Share, Takes};

pub(super) const THRESHOLD: Param<Amount> = Param {
    name: "threshold",
    kind: Takes::amount(0, 4_000_000_000).or_unlimited(),
    default: "20packets",
    effect: "how much of a flow is short; its unit cannot change while the discipline runs",
    source: "EFD paper, section 4",
    live: true,
};

pub(super) const BOUNDARY: Param<&'static str> = Param {
    name: "boundary",
    kind: Takes::words(&["before", "after", "literal"]),
    default: "before",
    effect: "which packet of a flow is the first long one, with n counted before it: `before` n \
        >= threshold, `after` n + its size > threshold, `literal` n > threshold",
    source: "ours; the papers leave it open",
    live: true,
};

pub(super) const BUFFER: Param<&'static str> = Param {
    name: "buffer",
    kind: Takes::words(Buffer::WORDS),
    default: "drop-tail",
    effect: "full: drop the arrival, or let a short one push out the tail of the long lane",
    source: "flow scheduler paper, section 3",
    live: false,
};

pub(super) const WEIGHT: Param<Share> = Param {
    name: "weight",
    kind: Takes::share(Share::from_ppb(1_000_000), Share::ONE),
    default: "0.8",
    effect: "share of the link for the short lane while both are backlogged; 1 is strict priority",
    source: "flow scheduler paper, section 4",
    live: true,
};

pub(super) const SHARING: Param<&'static str> = Param {
    name: "sharing",
    kind: Takes::words(&["scfq", "coin"]),
    default: "scfq",
    effect: "realise the weight by self-clocked fair queueing or by a coin at each packet",
    source: "ours; the flow scheduler paper leaves it open",
    live: false,
};

pub(super) const CAP_HIGH: Param<Rate> = Param {
    name: "cap-high",
    kind: Takes::rate(1_000, 1_000_000_000_000),
    default: "inf",
    effect: "hold the short lane to this rate even while the long lane is empty",
    source: "ours; the flow scheduler paper leaves it open",
    live: true,
};

pub(super) const PROBABILITY: Param<Share> = Param {
    name: "probability",
    kind: Takes::share(Share::ZERO, Share::ONE),
    default: "0.01",
    effect: "probability that a packet adds its flow to the table (sample and hold: per 1000 bytes)",
    source: "EFD paper, section 4; flow scheduler paper, section 4",
    live: true,
};

pub(super) const SAMPLED_TO: Param<&'static str> = Param {
    name: "sampled-to",
    kind: Takes::words(&["high", "low", "rule"]),
    default: "high",
    effect: "lane of the packet that added its flow to the table",
    source: "ours; the papers leave it open",
    live: true,
};

pub(super) const COUNT_SAMPLED: Param<bool> = Param {
    name: "count-sampled",
    kind: Takes::FLAG,
    default: "yes",
    effect: "whether the packet that added its flow to the table is in its count",
    source: "ours; the papers leave it open",
    live: true,
};

pub(super) const LOW_SHARE: Param<Share> = Param {
    name: "low-share",
    kind: Takes::share(Share::ZERO, Share::from_ppb(900_000_000)),
    default: "0",
    effect: "least share of the link for the long lane while both are backlogged, without \
             reordering any flow, and of the buffer, which the short lane leaves free for it; 0 is \
             the paper, 0.1 a good value against starvation",
    source: "ours",
    live: true,
};

pub(super) const HOLD_ON_WIRE: Param<bool> = Param {
    name: "hold-on-wire",
    kind: Takes::FLAG,
    default: "no",
    effect: "whether the packet being sent still counts as queued for its flow",
    source: "ours; the EFD paper leaves it open",
    live: true,
};

pub(super) const SEGMENT: Param<u64> = Param {
    name: "segment",
    kind: Takes::bytes(1, 65_535),
    default: "1460b",
    effect: "payload bytes of a full packet: turns a threshold in packets into a byte offset",
    source: "Run2C paper",
    live: true,
};

pub(super) const INTERVAL: Param<Nanos> = Param {
    name: "interval",
    kind: Takes::time(Nanos::from_millis(1), Nanos::from_secs(86_400)).or_unlimited(),
    default: "inf",
    effect: "measurement interval: at its end counts start again and small flows are evicted, \
             which promotes long flows and may reorder them",
    source: "Estan and Varghese 2002",
    live: false,
};

pub(super) const KEEP: Param<u64> = Param {
    name: "keep",
    kind: Takes::count(0, 4_000_000_000),
    default: "25",
    effect: "least count, in the threshold's unit, to stay in the table at an interval's end",
    source: "Estan and Varghese 2002",
    live: true,
};

pub(super) const EARLY_KEEP: Param<u64> = Param {
    name: "early-keep",
    kind: Takes::count(0, 4_000_000_000),
    default: "0",
    effect: "the same for a flow added to the table during the interval",
    source: "Estan and Varghese 2002",
    live: true,
};
