//! What each discipline must satisfy beyond the global invariants.

mod aqm;
mod fair;
mod lanes;
mod sizes;

use sched::{Params, Spec};

use crate::ledger::{Ledger, Violation};
use crate::run::Step;

type Outcome = Result<(), Violation>;

/// A check of one run: called with each step and the books before and after it.
type Check = Box<dyn FnMut(&Ledger, &Step, &Ledger) -> Outcome>;

/// An invariant, and who promises it.
struct Invariant {
    /// The disciplines that promise it.
    of: &'static [&'static str],
    /// The parameters for which they do; they may change during a run.
    given: fn(&Params) -> bool,
    /// A new check, with whatever it must remember between steps.
    check: fn() -> Check,
}

/// For [`Invariant::given`].
fn always(_: &Params) -> bool {
    true
}

/// Checks the invariants of `spec` over the steps of one run.
///
/// # Errors
/// The first violation, with the step at which it showed.
pub fn check(spec: &Spec, steps: &[Step]) -> Outcome {
    let name = spec.info().name;
    let all = [lanes::ALL, sizes::ALL, fair::ALL, aqm::ALL].into_iter().flatten();
    let promised = all.filter(|invariant| invariant.of.contains(&name));
    let mut checks: Vec<_> = promised.map(|promise| (promise, (promise.check)())).collect();
    let mut ledger = Ledger::default();
    for (index, step) in steps.iter().enumerate() {
        let here = |violation| format!("step {index}, {:?}: {violation}", step.call);
        let before = ledger.clone();
        ledger.enter(step).map_err(here)?;
        for (promise, check) in &mut checks {
            if (promise.given)(&step.params) {
                check(&before, step, &ledger).map_err(here)?;
            }
        }
    }
    Ok(())
}
