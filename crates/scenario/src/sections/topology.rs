//! Keys of topologies and links.

use sched::{Nanos, Rate};

use super::{count, key, needed, optional};
use crate::key::{KeyDef, Section, Takes};

const RATE: Takes = Takes::Rate { min: Rate(1_000), max: Rate(1_000_000_000_000) };
const DELAY: Takes = Takes::Time { min: Nanos(0), max: Nanos::from_secs(10), unlimited: false };
const LIMIT: Takes = Takes::Amount { min: 1, max: 1 << 32 };

const LINK_KEYS: &[KeyDef] = &[
    needed("rate", RATE, "Rate in both directions."),
    optional("back-rate", RATE, "`rate`", "Rate in the other direction, where that differs."),
    optional(
        "varying",
        Takes::Text,
        "a fixed rate",
        "How the rate [varies](#rates-that-vary) from `a` to `b`, or from left to right: \
         `\"trace:FILE\"`, `\"steps:0s=10mbit,5s=0bit,6s=2mbit\"`, or \
         `\"walk:min=2mbit,max=20mbit,every=200ms,step=0.2\"`.",
    ),
    optional("back-varying", Takes::Text, "a fixed rate", "The same in the other direction."),
    key("delay", DELAY, "0s", "Propagation delay in each direction."),
    optional(
        "overhead",
        Takes::Bytes { min: 1, max: 256 },
        "nothing",
        "What a packet takes on the link and in its queues beside its own bytes, in each direction: \
         14b for the header of an Ethernet frame, which `tc` and the lab count. Not part of `load`.",
    ),
    optional(
        "edge",
        Takes::Text,
        "",
        "An edge in front of the queue at each end, which tags the packets of short flows by DSCP for \
         `rio`, `rio-ps:classifier=tag` and `lanes:accounting=mark`: `threshold=10,update=inf`, or \
         an empty text for its defaults; parameters as those of `rio-ps`, and `long-dscp`.",
    ),
];

/// What happens to packets behind the transmitter.
const IMPAIRMENTS: &[KeyDef] = &[
    key(
        "loss",
        Takes::Number { min: 0.0, max: 0.99, open: false },
        "0",
        "Part of the packets that are lost behind the queue, at random, in each direction.",
    ),
    key(
        "jitter",
        DELAY,
        "0s",
        "Extra delay of a packet, uniform between 0 and this, in each direction; order is kept.",
    ),
    key(
        "reorder",
        Takes::Number { min: 0.0, max: 0.99, open: false },
        "0",
        "Part of the packets that are held up by `reorder-delay`, so that others pass them.",
    ),
    key("reorder-delay", DELAY, "1ms", "How long such a packet is held up."),
];

const FIFO_LIMIT: &[KeyDef] =
    &[key("limit", LIMIT, "1000packets", "What each of its queues holds.")];

pub(crate) static LINK: Section = Section {
    title: "A link",
    about: "Full duplex, a FIFO at each end: `access = { rate = \"100mbit\", delay = \"1ms\" }`.",
    keys: &[LINK_KEYS, FIFO_LIMIT, IMPAIRMENTS],
};

pub(crate) static TESTED_LINK: Section = Section {
    title: "A bottleneck",
    about: "A link with the scheduler under test at both ends.",
    keys: &[
        LINK_KEYS,
        &[
            key("limit", LIMIT, "300packets", "What each of its queues holds."),
            key(
                "back-scheduler",
                Takes::Scheduler(&["tested"]),
                "tested",
                "The scheduler of the other direction.",
            ),
        ],
        IMPAIRMENTS,
    ],
};

pub(crate) static DUMBBELL: Section = Section {
    title: "[topology] of kind \"dumbbell\"",
    about: "`left` nodes, a router, the bottleneck, a router, `right` nodes. The nodes are `left1`, \
            `left2`, ..., `right1`, ...; the link to sample and to draw loads from is `bottleneck`.",
    keys: &[&[
        needed("kind", Takes::Word(&["dumbbell"]), ""),
        key("pairs", count(10_000), "1", "Nodes on each side."),
        needed("access", Takes::Table(&LINK), "The link of every node, see [a link](#a-link)."),
        optional("right-access", Takes::Table(&LINK), "`access`", "The same for `right` nodes."),
        needed("bottleneck", Takes::Table(&TESTED_LINK), "See [a bottleneck](#a-bottleneck)."),
    ]],
};

pub(crate) static CHAIN: Section = Section {
    title: "[topology] of kind \"chain\"",
    about: "Floyd's chain of congested links. Routers `1a`, `1b`, `2a`, `2b`, ...; the bottlenecks \
            `hop1`, `hop2`, ... join `1a`-`1b`, `2a`-`2b`, .... Packets from \
            `source` to `sink` cross all of them; `cross1` sends to `sink1` across `hop1` alone, and so on.",
    keys: &[&[
        needed("kind", Takes::Word(&["chain"]), ""),
        key("hops", count(1_000), "5", "Congested links."),
        needed("access", Takes::Table(&LINK), "The link of every node."),
        needed("bottleneck", Takes::Table(&TESTED_LINK), "Each congested link."),
        optional("join", Takes::Table(&LINK), "`access`", "The links from one hop to the next."),
    ]],
};

pub(crate) static STAR: Section = Section {
    title: "[topology] of kind \"star\"",
    about: "Pools of nodes around a router `hub`. Each arm is a group of nodes `NAME1`, `NAME2`, ... on \
            a router `NAME-router`, which a link `NAME` joins to the hub.",
    keys: &[&[
        needed("kind", Takes::Word(&["star"]), ""),
        needed("arms", Takes::Tables(&ARM), "`[[topology.arms]]`, at least two."),
    ]],
};

pub(crate) static ARM: Section = Section {
    title: "[[topology.arms]] of a star",
    about: "One pool. Exactly one of `link` and `bottleneck` is given.",
    keys: &[&[
        needed("name", Takes::Text, "Name of the group of nodes, and of the link to the hub."),
        key("nodes", count(10_000), "1", "How many."),
        needed("access", Takes::Table(&LINK), "The link of every node to the pool's router."),
        optional("link", Takes::Table(&LINK), "", "The link from the pool's router to the hub."),
        optional(
            "bottleneck",
            Takes::Table(&TESTED_LINK),
            "",
            "The same with the scheduler under test.",
        ),
    ]],
};

pub(crate) static FREE: Section = Section {
    title: "[topology] of kind \"free\"",
    about: "Nodes and links as they are listed. A node exists by being named at the end of a link.",
    keys: &[&[
        needed("kind", Takes::Word(&["free"]), ""),
        needed("links", Takes::Tables(&PLACE), "`[[topology.links]]`, at least one."),
        optional(
            "routes",
            Takes::Tables(&ROUTE),
            "the fewest links, then the order of links",
            "`[[topology.routes]]`, if packets should not take the shortest path.",
        ),
    ]],
};

pub(crate) static PLACE: Section = Section {
    title: "[[topology.links]] of a free topology",
    about: "One link: its ends, and what [a link](#a-link) takes.",
    keys: &[
        &[
            needed("a", Takes::Text, "The node at one end; forward is from `a` to `b`."),
            needed("b", Takes::Text, "The node at the other end."),
            optional(
                "name",
                Takes::Text,
                "`A-B`",
                "Its name; the reverse direction is `NAME-back`.",
            ),
        ],
        LINK_KEYS,
        FIFO_LIMIT,
        &[
            key(
                "scheduler",
                Takes::Scheduler(&["tested"]),
                "fifo",
                "At the forward end; \"tested\": each of `[schedulers]` in turn.",
            ),
            optional(
                "back-scheduler",
                Takes::Scheduler(&["tested"]),
                "`scheduler`",
                "At the other end.",
            ),
        ],
        IMPAIRMENTS,
    ],
};

pub(crate) static ROUTE: Section = Section {
    title: "[[topology.routes]] of a free topology",
    about: "The path from the first node to the last, in one direction. No node twice.",
    keys: &[&[needed("path", Takes::Path, "Every node on the path, including both ends.")]],
};
