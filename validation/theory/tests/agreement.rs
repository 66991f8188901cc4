//! A small study on every test run. Seeds are fixed, so it cannot fail by chance.

use theory::report::{Verdict, markdown};
use theory::study::{self, Extent};

#[test]
fn simulation_and_theory_agree() {
    let rows = study::run(&Extent::QUICK, 2).expect("it runs");
    let verdict = Verdict::of(&rows);
    assert!(verdict.holds(), "{}", markdown(&rows, &Extent::QUICK));
}
