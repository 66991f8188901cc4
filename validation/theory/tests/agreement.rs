//! A small study on every test run. Seeds are fixed, so it cannot fail by chance.

use std::sync::LazyLock;

use theory::report::{Verdict, markdown};
use theory::study::{self, Extent, MODELS, Row, simultaneous};

static ROWS: LazyLock<Vec<Row>> =
    LazyLock::new(|| study::run(&Extent::QUICK, 2, &|_, _| ()).expect("it runs"));

#[test]
fn simulation_and_theory_agree() {
    let verdict = Verdict::of(&ROWS);
    assert!(verdict.holds(), "{}", markdown(&ROWS, &Extent::QUICK));
}

#[test]
fn every_discipline_is_told_from_every_other_model() {
    let confidence = simultaneous(ROWS.len());
    for simulated in MODELS {
        for theory in MODELS.into_iter().filter(|theory| *theory != simulated) {
            let of = |model| ROWS.iter().filter(move |row| row.model == model);
            // Rows of a model come in one order of cases and classes.
            let contradicted = of(simulated).zip(of(theory)).any(|(row, other)| {
                assert_eq!((row.case.law, row.class), (other.case.law, other.class));
                (row.simulated - other.theory).abs() > row.reach(confidence)
            });
            assert!(contradicted, "{simulated:?} might be {theory:?}");
        }
    }
}
