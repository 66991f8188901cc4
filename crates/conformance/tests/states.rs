//! Every state that a few operations lead to: equal ones are walked on from once.

use conformance::search::walk;
use conformance::{Arrival, Offset, Operation};
use sched::{Ecn, Nanos, Spec};

/// Arrivals of three flows that meet in a table, two of them of one host; among them a small packet,
/// one that may be marked, and a super-packet.
fn arrivals() -> Vec<Operation> {
    let arrival = |flow, size, segments, ecn| {
        let offset = Offset::Unknown;
        Operation::Enqueue(Arrival { flow, size, segments, ecn, offset, tagged: false })
    };
    vec![
        arrival(0, 1000, 1, Ecn::NotEct),
        arrival(1, 1000, 1, Ecn::Ect0),
        arrival(3, 1000, 1, Ecn::NotEct),
        arrival(0, 100, 1, Ecn::NotEct),
        arrival(1, 2896, 2, Ecn::NotEct),
    ]
}

fn changed(name: &'static str, value: &str) -> Operation {
    Operation::Change(name, value.to_owned())
}

/// Arrivals, departures, time that passes, parameters that change.
fn alphabet(spec: &Spec) -> Vec<Operation> {
    let mut all = arrivals();
    all.push(Operation::Dequeue);
    all.extend([Nanos(20_000_000), Nanos(3_000_000_000)].map(Operation::Advance));
    all.extend([changed("limit", "1packets"), changed("limit", "3packets")]);
    if spec.params().has("threshold") {
        all.extend([changed("threshold", "1packets"), changed("threshold", "2packets")]);
    }
    all
}

/// The disciplines, and how many operations the quick and the long walk do.
const WALKS: &[(&str, usize, usize)] = &[
    ("efd:limit=3packets,threshold=1packets", 5, 9),
    ("efd:limit=3packets,threshold=2000b,boundary=literal,hold-on-wire=yes", 5, 9),
    ("efd:limit=3packets,threshold=1packets,low-share=0.5", 5, 9),
    ("sb:limit=3packets,threshold=1packets,weight=0.5", 4, 6),
    ("sb-ko:limit=3packets,threshold=1packets,weight=0.5", 4, 6),
    ("sb-sh:limit=3packets,threshold=1packets,probability=1", 4, 6),
    ("fq-lanes:limit=3packets", 4, 6),
    ("fq-lanes:limit=3packets,flows=2,hosts=source", 4, 6),
];

fn walk_all(depth: impl Fn(usize, usize) -> usize) {
    println!("| Discipline | Operations | States | Steps |\n|---|---|---|---|");
    for (spec, quick, long) in WALKS {
        let (text, depth) = (spec, depth(*quick, *long));
        let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{error}"));
        let walked = walk(&spec, &alphabet(&spec), depth);
        let walked = walked.unwrap_or_else(|violation| panic!("{violation}"));
        println!("| `{text}` | {depth} | {} | {} |", walked.all(), walked.steps);
        assert!(walked.all() > 500, "{spec}: {walked:?}");
    }
}

#[test]
fn no_state_of_few_operations_contradicts_the_model() {
    walk_all(|quick, _| quick);
}

#[test]
#[ignore = "minutes: make test-states"]
fn no_state_of_more_operations_contradicts_the_model() {
    walk_all(|_, long| long);
}
