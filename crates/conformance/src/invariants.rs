//! What each discipline must satisfy beyond the global invariants.

use sched::Spec;

use crate::ledger::{Ledger, Violation};
use crate::run::Step;

/// An invariant of some disciplines, checked at every step.
struct Invariant {
    /// The disciplines that promise it.
    of: &'static [&'static str],
    check: fn(&Ledger, &Step) -> Result<(), Violation>,
}

/// Every invariant, with the disciplines that promise it.
const ALL: &[Invariant] = &[Invariant { of: &["fifo"], check: departs_oldest_first }];

/// Checks the invariants of `spec` over the steps of one run.
///
/// # Errors
/// The first violation, with the step at which it showed.
pub fn check(spec: &Spec, steps: &[Step]) -> Result<(), Violation> {
    for invariant in ALL.iter().filter(|invariant| invariant.of.contains(&spec.info().name)) {
        let mut ledger = Ledger::default();
        for (index, step) in steps.iter().enumerate() {
            let here = |violation| format!("step {index}, {:?}: {violation}", step.call);
            (invariant.check)(&ledger, step).map_err(here)?;
            ledger.enter(step).map_err(here)?;
        }
    }
    Ok(())
}

fn departs_oldest_first(before: &Ledger, step: &Step) -> Result<(), Violation> {
    let oldest = before.queued.keys().next();
    match step.departed() {
        Some(packet) if Some(&packet.id) != oldest => Err(format!("{packet:?} is not the oldest")),
        _ => Ok(()),
    }
}
