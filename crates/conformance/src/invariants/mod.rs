//! What each discipline must satisfy beyond the global invariants.

mod aqm;
mod fair;
mod lanes;
mod sizes;

use sched::{Info, Params, Spec};

use crate::ledger::{Ledger, Violation};
use crate::run::Step;

type Outcome = Result<(), Violation>;

/// A check of one run: called with each step and the books before and after it.
type Check = Box<dyn FnMut(&Ledger, &Step, &Ledger) -> Outcome>;

/// Who promises an invariant.
enum Of {
    /// Disciplines with a short and a long lane.
    Lanes,
    /// Those of these names.
    Named(&'static [&'static str]),
}

impl Of {
    fn includes(&self, info: &Info) -> bool {
        match self {
            Self::Lanes => info.parts.is_some(),
            Self::Named(names) => names.contains(&info.name),
        }
    }
}

/// An invariant, and who promises it.
struct Invariant {
    /// The disciplines that promise it.
    of: Of,
    /// The parameters for which they do. Where these change during a run, the check ends: it may
    /// have missed what it must remember.
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
    let all = [lanes::ALL, sizes::ALL, fair::ALL, aqm::ALL].into_iter().flatten();
    let promised = all.filter(|invariant| invariant.of.includes(spec.info()));
    let given = promised.filter(|invariant| (invariant.given)(spec.params()));
    let mut checks: Vec<_> = given.map(|promise| (promise.given, (promise.check)())).collect();
    let mut ledger = Ledger::default();
    for (index, step) in steps.iter().enumerate() {
        let here = |violation| format!("step {index}, {:?}: {violation}", step.call);
        let before = ledger.clone();
        ledger.enter(step).map_err(here)?;
        checks.retain(|(given, _)| given(&step.params));
        for (_, check) in &mut checks {
            check(&before, step, &ledger).map_err(here)?;
        }
    }
    Ok(())
}
