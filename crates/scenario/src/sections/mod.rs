//! Every key of a scenario file.

mod tcp;
mod topology;
mod traffic;

use sched::Nanos;

use crate::key::{Default, KeyDef, Section, Takes};

pub(crate) use tcp::TCP;
pub(crate) use topology::{ARM, CHAIN, DUMBBELL, FREE, LINK, PLACE, ROUTE, STAR, TESTED_LINK};
pub(crate) use traffic::{
    CBR, ON_OFF, OPEN_LOOP, PERIODIC, PERSISTENT, REQUESTS, TRACE, TRANSFERS, WEB,
};

/// The longest of all times: 30 days.
pub(crate) const LONGEST: Nanos = Nanos::from_secs(30 * 86_400);

/// The kinds of topology, by the word that chooses them.
pub(crate) const TOPOLOGIES: [(&str, &Section); 4] =
    [("dumbbell", &DUMBBELL), ("chain", &CHAIN), ("star", &STAR), ("free", &FREE)];

/// The kinds of traffic, by the word that chooses them.
pub(crate) const TRAFFIC: [(&str, &Section); 9] = [
    ("transfers", &TRANSFERS),
    ("persistent", &PERSISTENT),
    ("periodic", &PERIODIC),
    ("web", &WEB),
    ("requests", &REQUESTS),
    ("cbr", &CBR),
    ("on-off", &ON_OFF),
    ("trace", &TRACE),
    ("open-loop", &OPEN_LOOP),
];

/// Every section, in the order of the reference.
pub(crate) static ALL: &[&Section] = &[
    &SCENARIO,
    &SCHEDULERS,
    &DUMBBELL,
    &CHAIN,
    &STAR,
    &ARM,
    &FREE,
    &PLACE,
    &ROUTE,
    &LINK,
    &TESTED_LINK,
    &TCP,
    &TRANSFERS,
    &PERSISTENT,
    &PERIODIC,
    &WEB,
    &REQUESTS,
    &CBR,
    &ON_OFF,
    &TRACE,
    &OPEN_LOOP,
    &RECORD,
];

/// The document.
pub(crate) static ROOT: Section = Section {
    title: "The file",
    about: "",
    keys: &[&[
        needed("scenario", Takes::Table(&SCENARIO), ""),
        needed("schedulers", Takes::Table(&SCHEDULERS), ""),
        // The section that a topology's keys come from depends on its `kind`.
        needed("topology", Takes::Table(&DUMBBELL), ""),
        optional("tcp", Takes::Table(&TCP), "", ""),
        needed("traffic", Takes::Tables(&TRANSFERS), ""),
        optional("record", Takes::Table(&RECORD), "", ""),
    ]],
};

pub(crate) static SCENARIO: Section = Section {
    title: "[scenario]",
    about: "What the experiment is, and how long it runs.",
    keys: &[&[
        needed("title", Takes::Text, "One line."),
        key("description", Takes::Text, "", "Where it comes from, what was chosen and why."),
        needed(
            "duration",
            Takes::Time { min: Nanos(1_000), max: LONGEST, unlimited: false },
            "Simulated time of a run. A transfer that has not completed by then is incomplete.",
        ),
        key(
            "warm-up",
            Takes::Time { min: Nanos(0), max: LONGEST, unlimited: false },
            "0s",
            "The first part of a run does not count: transfers that start in it are excluded from \
             means, and time means of queues start at its end. Less than `duration`.",
        ),
        key(
            "seeds",
            Takes::Seeds,
            "1..10",
            "One run of each scheduler per seed. A seed decides every random number of the \
             workload, the same under every scheduler. At most 10000.",
        ),
        key(
            "bound",
            Takes::Count { min: 1, max: 10_000_000 },
            "1000000",
            "A run ends, and says so, as soon as more flows are open or more packets are in flight than \
             this: it bounds memory if the offered load exceeds the link.",
        ),
    ]],
};

pub(crate) static SCHEDULERS: Section = Section {
    title: "[schedulers]",
    about: "What is compared: each runs, on the same traffic, at the links that are `tested`.",
    keys: &[&[needed(
        "run",
        Takes::Schedulers,
        "Names with parameters, as `shortlane list` shows them. The limit of the queue comes from the \
         link unless it is given here. Ratios are taken to the first `fifo`, or else to the first one.",
    )]],
};

pub(crate) static RECORD: Section = Section {
    title: "[record]",
    about: "What is written with `--out`, beside blocks, links, flows and drops.",
    keys: &[&[
        key(
            "samples",
            Takes::Time { min: Nanos(1_000), max: LONGEST, unlimited: true },
            "100ms",
            "How often queue and flow table of every tested link are sampled; \"inf\": never.",
        ),
        key("probes", Takes::Flag, "true", "A row per packet of a constant-rate stream."),
        key(
            "progress",
            Takes::Count { min: 0, max: 1_000 },
            "0",
            "How many transfers have a row for each arrival of new bytes: the largest of traffic \
             `transfers` and `periodic` that start after the warm-up and in the first three quarters \
             of a run; of equal ones, the earliest. They are the same under every scheduler.",
        ),
        key(
            "progress-every",
            Takes::Time { min: Nanos(0), max: LONGEST, unlimited: false },
            "0s",
            "In each interval of this length only the first arrival has a row; 0s: all have one.",
        ),
    ]],
};

pub(crate) const fn needed(name: &'static str, takes: Takes, meaning: &'static str) -> KeyDef {
    KeyDef { name, takes, default: Default::Needed, meaning }
}

pub(crate) const fn key(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    meaning: &'static str,
) -> KeyDef {
    KeyDef { name, takes, default: Default::Is(default), meaning }
}

/// A key without a default value; `otherwise` says what holds without it.
pub(crate) const fn optional(
    name: &'static str,
    takes: Takes,
    otherwise: &'static str,
    meaning: &'static str,
) -> KeyDef {
    KeyDef { name, takes, default: Default::Words(otherwise), meaning }
}

/// Most of anything that is counted by the node or the flow.
pub(crate) const fn count(max: u64) -> Takes {
    Takes::Count { min: 1, max }
}
