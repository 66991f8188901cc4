//! Every discipline in the registry, in every set-up, against all that must hold for it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use conformance::strategy::{self, Setup};
use conformance::{Arrival, Operation, check, values};
use sched::{Info, Spec, registry};

/// Runs a test on every discipline, and then says which of them failed.
fn for_every_discipline(test: impl Fn(&'static Info)) {
    let fails = |info: &&'static Info| catch_unwind(AssertUnwindSafe(|| test(info))).is_err();
    let failed: Vec<_> = registry::ALL.iter().copied().filter(fails).collect();
    let names: Vec<_> = failed.iter().map(|info| info.name).collect();
    assert!(names.is_empty(), "failed: {}", names.join(", "));
}

fn random_sequences_hold(setup: Setup, cases: u32) {
    for_every_discipline(|info| strategy::for_all(info, &[], setup, cases, &check));
}

#[test]
fn with_defaults() {
    random_sequences_hold(Setup::Defaults, 96);
}

#[test]
fn with_a_few_packets_of_room() {
    random_sequences_hold(Setup::Tiny, 256);
}

#[test]
fn with_limits_in_bytes() {
    random_sequences_hold(Setup::Bytes, 192);
}

#[test]
fn with_any_parameters() {
    random_sequences_hold(Setup::Random, 256);
}

/// As a coarse clock does between two of its ticks.
#[test]
fn while_time_stands_still() {
    for_every_discipline(|info| {
        strategy::for_all(info, &[], Setup::Random, 128, &|spec, operations, seed| {
            let still = operations.iter().filter(|one| !matches!(one, Operation::Advance(_)));
            check(spec, &still.cloned().collect::<Vec<_>>(), seed)
        });
    });
}

/// Both ends of every range can be built and used.
#[test]
fn at_both_ends_of_every_parameter() {
    let operations: Vec<_> = (0..40u8)
        .flat_map(|n| [Operation::arrival(n % 4, 100 + u32::from(n)), Operation::arrival(1, 1500)])
        .chain((0..90).map(|_| Operation::Dequeue))
        .collect();
    for_every_discipline(|info| {
        for def in info.params {
            for value in values::extremes(def) {
                let spec = Spec::named(info.name).and_then(|spec| spec.with(def.name, &value));
                let spec = spec.unwrap_or_else(|e| panic!("{e}"));
                check(&spec, &operations, 1).unwrap_or_else(|violation| panic!("{violation}"));
            }
        }
    });
}

/// A queue far larger and a table far fuller than random sequences make them.
#[test]
fn with_many_packets_of_many_flows() {
    let arrivals = (0..700u32).map(|n| Operation::arrival((n * 7 % 251) as u8, 40 + n % 1460));
    let operations: Vec<_> = arrivals
        .enumerate()
        .flat_map(|(n, arrival)| {
            [Some(arrival), (n % 3 == 0).then_some(Operation::Dequeue)].into_iter().flatten()
        })
        .chain((0..500).map(|_| Operation::Dequeue))
        .collect();
    for_every_discipline(|info| {
        let spec = strategy::sized(&Spec::named(info.name).unwrap(), "350packets", "9packets");
        check(&spec, &operations, 1).unwrap_or_else(|violation| panic!("{violation}"));
    });
}

/// Hosts share equally by either end, for as long as few enough flows are met for it to hold.
#[test]
fn cake_shares_among_hosts() {
    let info = registry::find("cake").expect("a discipline of this name");
    for isolation in ["dual-srchost", "dual-dsthost"] {
        for rate in ["inf", "10mbit"] {
            let spec = format!("cake:rtt=inf,isolation={isolation},rate={rate}");
            let spec: Spec = spec.parse().expect("a spec");
            strategy::for_all(info, &[], Setup::Defaults, 128, &|_, operations, seed| {
                // No change, so that queues stay backlogged for long, and six flows.
                let few = operations.iter().filter_map(|operation| match operation {
                    Operation::Enqueue(arrival) => {
                        Some(Operation::Enqueue(Arrival { flow: arrival.flow % 6, ..*arrival }))
                    }
                    Operation::Change(..) => None,
                    other => Some(other.clone()),
                });
                let few: Vec<_> = few.chain((0..160).map(|_| Operation::Dequeue)).collect();
                check(&spec, &few, seed)
            });
        }
    }
}

/// One flow of one host beside five of another, all with more than they can send.
#[test]
fn cake_gives_a_host_with_one_flow_half_of_the_link() {
    // Flow 1 comes from one host; 0, 3, 6, 9 and 12 come from another.
    let spec = "cake:rtt=inf,isolation=dual-srchost,rate=10mbit".parse().expect("a spec");
    let flows = [1, 0, 3, 6, 9, 12];
    let arrivals = (0..1200).map(|n| Operation::arrival(flows[n % 2 * (1 + n / 2 % 5)], 1500));
    let operations: Vec<_> = arrivals.chain((0..1000).map(|_| Operation::Dequeue)).collect();
    check(&spec, &operations, 1).unwrap_or_else(|violation| panic!("{violation}"));
    let steps = conformance::run::run(&spec, &operations, 1);
    let alone = conformance::operation::flow_id(1);
    let sent = steps.iter().filter_map(conformance::run::Step::departed);
    let share = sent.filter(|packet| packet.flow == alone).count();
    assert!((495..=505).contains(&share), "{share} of 1000");
}
