//! Keys of traffic.

use sched::{Nanos, Rate};

use super::{LONGEST, TCP, count, key, needed, optional};
use crate::key::{KeyDef, Section, Takes};

const LOAD: Takes = Takes::Number { min: 0.0, max: 10.0, open: true };
const RATE: Takes = Takes::Rate { min: Rate(1), max: Rate(1_000_000_000_000) };
const ANY_TIME: Takes = Takes::Time { min: Nanos(0), max: LONGEST, unlimited: false };
const EVERY: Takes = Takes::Time { min: Nanos(1_000), max: LONGEST, unlimited: false };
const SIZE: Takes = Takes::Bytes { min: 1, max: 1 << 40 };
const SMALL: Takes = Takes::Bytes { min: 1, max: 1 << 30 };
const PACKET: Takes = Takes::Bytes { min: 28, max: 65_535 };

/// What all traffic has.
const COMMON: &[KeyDef] = &[
    optional("name", Takes::Text, "its kind", "Its name in results; each is used once."),
    optional("from", Takes::Places, "`left` of a dumbbell", "Where its data come from."),
    optional("to", Takes::Places, "`right` of a dumbbell", "Where its data go."),
    key("start", ANY_TIME, "0s", "When it starts."),
    key(
        "dscp",
        Takes::Count { min: 0, max: 63 },
        "0",
        "DSCP of its packets, of acknowledgments too, for schedulers with weights or classes; an \
         `edge` replaces it.",
    ),
    key(
        "rows",
        Takes::Flag,
        "true",
        "Whether its flows have rows in table `flows`: the rows of many small flows are most of the \
         results.",
    ),
];

const STOP: &[KeyDef] = &[optional(
    "stop",
    EVERY,
    "the end of the run",
    "No flow of it starts after this time; later than `start`.",
)];

const PICK: &[KeyDef] = &[key(
    "pick",
    Takes::Word(&["random", "paired", "in-turn"]),
    "random",
    "\"random\": each flow draws one end from `from` and one from `to`; \"paired\": it draws a place, \
     and takes the nodes at that place of both; \"in-turn\": the places one after another.",
)];

const OPENS: &[KeyDef] = &[key(
    "opens",
    Takes::Word(&["sender", "receiver"]),
    "sender",
    "Who opens the connection. \"receiver\": the end that the data go to, which asks for them with \
     16 bytes once the connection is established, as in the lab; that takes half a round trip longer.",
)];

const WITH_TCP: &[KeyDef] = &[optional(
    "tcp",
    Takes::Table(&TCP),
    "that of `[tcp]`",
    "TCP of these flows: keys as in [`[tcp]`](#tcp), \
      and those not given as there.",
)];

/// How much of it there is.
const VOLUME: &[KeyDef] = &[
    optional(
        "load",
        LOAD,
        "one of `load`, `rate` and `arrivals`",
        "Offered load: part of the rate of link `at`, headers included.",
    ),
    optional("rate", RATE, "see `load`", "Offered rate, headers included."),
    optional(
        "arrivals",
        Takes::Number { min: 0.0, max: 1e7, open: true },
        "see `load`",
        "New flows a second, on average.",
    ),
    optional("at", Takes::Text, "the first tested link", "The link that `load` refers to."),
];

const SIZES: &[KeyDef] = &[key(
    "sizes",
    Takes::Law,
    "zipf:alpha=1.1,max=1000packets",
    "Law of the application bytes of a flow: [sizes](#size-laws).",
)];

const STRATIFIED: &[KeyDef] = &[key(
    "stratified",
    Takes::Flag,
    "true",
    "Sizes are spread evenly over their law, in random order, and the number of flows is that of the \
     mean: seeds differ less where tails are heavy. `false`: every flow draws for itself.",
)];

const LIST: &[KeyDef] = &[optional(
    "list",
    Takes::File,
    "arrivals are drawn",
    "A CSV file with columns `start_s,size_bytes` instead; then neither volume nor sizes.",
)];

const STREAM: &[KeyDef] = &[
    key(
        "flows",
        count(100_000),
        "1",
        "How many streams of this kind, each with a phase of its own.",
    ),
    key("packet", PACKET, "1500b", "Size of a packet, IP and UDP headers included."),
];

const KIND: &str = "";

pub(crate) static TRANSFERS: Section = Section {
    title: "[[traffic]] of kind \"transfers\"",
    about: "Poisson arrivals; each opens a TCP connection, transfers its size in bytes one way, and closes.",
    keys: &[
        &[needed("kind", Takes::Word(&["transfers"]), KIND)],
        COMMON,
        STOP,
        PICK,
        VOLUME,
        SIZES,
        STRATIFIED,
        LIST,
        OPENS,
        WITH_TCP,
    ],
};

pub(crate) static PERSISTENT: Section = Section {
    title: "[[traffic]] of kind \"persistent\"",
    about: "TCP flows that never end: downloads beside everything else.",
    keys: &[
        &[needed("kind", Takes::Word(&["persistent"]), KIND)],
        COMMON,
        &[
            key("flows", count(1_000_000), "1", "How many; the ends are taken in turn."),
            key("stagger", ANY_TIME, "20ms", "Time between one's start and the next's."),
        ],
        OPENS,
        WITH_TCP,
    ],
};

pub(crate) static PERIODIC: Section = Section {
    title: "[[traffic]] of kind \"periodic\"",
    about: "Rounds of transfers at fixed times: foreground flows to measure by.",
    keys: &[
        &[needed("kind", Takes::Word(&["periodic"]), KIND)],
        COMMON,
        STOP,
        &[
            key("flows", count(100_000), "1", "Transfers in a round; the ends are taken in turn."),
            needed("every", EVERY, "Time from one round to the next."),
            key(
                "spread",
                ANY_TIME,
                "0s",
                "The transfers of a round start at random within this time.",
            ),
            needed("size", SIZE, "Application bytes of a transfer."),
        ],
        OPENS,
        WITH_TCP,
    ],
};

pub(crate) static WEB: Section = Section {
    title: "[[traffic]] of kind \"web\"",
    about: "Users open a page, think, and open the next. Each object of a page is asked for on a \
            connection of its own. A page is complete with its last object; only then does its user think. \
            `from` is where pages are, `to` where users are; every page draws its server.",
    keys: &[
        &[needed("kind", Takes::Word(&["web"]), KIND)],
        COMMON,
        STOP,
        &[
            key("users", count(1_000_000), "10", "How many; they stay from the start to the end."),
            key(
                "think",
                Takes::TimeLaw,
                "exponential:mean=9.5s",
                "From a complete page to the next.",
            ),
            key("objects", Takes::CountLaw, "uniform:min=2,max=7", "Objects of a page."),
            key("gap", Takes::TimeLaw, "exponential:mean=50ms", "From one object to the next."),
            key(
                "sizes",
                Takes::Law,
                "bounded-pareto:shape=1.2,min=2kb,max=10mb",
                "Law of the bytes of an object.",
            ),
            key("request", SMALL, "300b", "Bytes that an object is asked for with."),
            key(
                "connections",
                count(1_000),
                "6",
                "Connections of a user at a time; further objects wait.",
            ),
        ],
        WITH_TCP,
    ],
};

pub(crate) static REQUESTS: Section = Section {
    title: "[[traffic]] of kind \"requests\"",
    about: "Requests on connections that stay open, one at a random point of each interval, and their \
            responses: what a client of a service waits for. `from` is where the responses come from. A \
            response time counts from when the request was due.",
    keys: &[
        &[needed("kind", Takes::Word(&["requests"]), KIND)],
        COMMON,
        STOP,
        &[
            key("flows", count(100_000), "1", "Connections; the ends are taken in turn."),
            key("every", EVERY, "250ms", "The interval."),
            key("request", SMALL, "300b", "Application bytes of a request."),
            key("size", SMALL, "4000b", "Application bytes of a response."),
        ],
        WITH_TCP,
    ],
};

pub(crate) static CBR: Section = Section {
    title: "[[traffic]] of kind \"cbr\"",
    about: "UDP at a constant rate: voice is 64 kbit/s in packets of 160 bytes.",
    keys: &[
        &[needed("kind", Takes::Word(&["cbr"]), KIND)],
        COMMON,
        STOP,
        &[needed("rate", RATE, "Rate of each, IP and UDP headers included.")],
        STREAM,
    ],
};

pub(crate) static ON_OFF: Section = Section {
    title: "[[traffic]] of kind \"on-off\"",
    about: "UDP at a constant rate during random periods, with silence between them.",
    keys: &[
        &[needed("kind", Takes::Word(&["on-off"]), KIND)],
        COMMON,
        STOP,
        &[
            needed(
                "rate",
                RATE,
                "Rate of each while it is on, however short that is: what a period has no time \
                 for is left to the next ones.",
            ),
            key(
                "on",
                Takes::TimeLaw,
                "exponential:mean=1s",
                "Length of an on period; not always 0.",
            ),
            key("off", Takes::TimeLaw, "exponential:mean=1s", "Length of an off period."),
        ],
        STREAM,
    ],
};

pub(crate) static TRACE: Section = Section {
    title: "[[traffic]] of kind \"trace\"",
    about: "UDP packets at listed times.",
    keys: &[
        &[needed("kind", Takes::Word(&["trace"]), KIND)],
        COMMON,
        STOP,
        &[needed(
            "list",
            Takes::File,
            "A CSV file with columns `time_s,packet_bytes,stream`: headers included, any number of \
             streams; times count from `start`. The first of `from` sends to the first of `to`.",
        )],
    ],
};

pub(crate) static OPEN_LOOP: Section = Section {
    title: "[[traffic]] of kind \"open-loop\"",
    about: "Poisson arrivals without a transport: all packets of a flow leave their node at once. For \
            comparison with queueing theory; the queues must be large enough.",
    keys: &[
        &[needed("kind", Takes::Word(&["open-loop"]), KIND)],
        COMMON,
        STOP,
        PICK,
        VOLUME,
        SIZES,
        STRATIFIED,
        LIST,
        &[key(
            "packet",
            PACKET,
            "1500b",
            "Size of a full packet; the last one of a flow carries the rest.",
        )],
    ],
};
