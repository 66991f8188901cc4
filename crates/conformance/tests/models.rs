//! Disciplines against naive models of themselves: departures, drops and flow tables identical
//! on random sequences, with bytes, super-packets and live changes.

use conformance::naive::{MODELS, compare};
use conformance::strategy::{self, Setup};
use sched::registry;

fn behaves_as_its_model(name: &str) {
    let &(_, except) = MODELS.iter().find(|(n, _)| *n == name).expect("a model");
    let info = registry::find(name).expect("a discipline of this name");
    for setup in Setup::ALL {
        strategy::for_all(info, except, setup, 256, &compare);
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
