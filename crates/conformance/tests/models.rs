//! Disciplines against naive models of themselves: departures, drops and flow tables identical
//! on random sequences, with bytes, super-packets and live changes.

use conformance::naive::{MODELS, compare};
use conformance::strategy::{self, Setup};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sched::registry;

fn behaves_as_its_model(name: &str) {
    let &(_, except) = MODELS.iter().find(|(n, _)| *n == name).expect("a model");
    let info = registry::find(name).expect("a discipline of this name");
    for setup in Setup::ALL {
        let inputs = (
            strategy::spec(info, except, setup),
            strategy::operations(info, except, 200),
            any::<u64>(),
        );
        TestRunner::new(Config { cases: 256, failure_persistence: None, ..Config::default() })
            .run(&inputs, |(spec, operations, seed)| {
                compare(&spec, &operations, seed).map_err(TestCaseError::fail)
            })
            .unwrap_or_else(|failure| panic!("{name}, {setup:?}: {failure}"));
    }
}

#[test]
fn efd() {
    behaves_as_its_model("efd");
}

#[test]
fn sb() {
    behaves_as_its_model("sb");
}

#[test]
fn sb_with_knockout() {
    behaves_as_its_model("sb-ko");
}

#[test]
fn sample_and_hold() {
    behaves_as_its_model("sb-sh");
}
