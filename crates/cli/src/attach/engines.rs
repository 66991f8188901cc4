//! The engines, as `attach` and its kin see them: one after the other is asked.

use engine::LinkChanges;
use engine::control::Changes;
use engine::status::{EngineKind, Status};

use super::goal::Goal;
use super::in_userspace::Userspace;
#[cfg(not(feature = "kernel"))]
use super::missing::Missing;
use super::order::Order;
#[cfg(feature = "kernel")]
use super::{in_kernel::Kernel, in_marks::Marks};
use crate::{Call, Failure};

/// What runs disciplines on a device.
pub(super) trait Engine: Sync {
    /// Why it cannot do this, for the next one to do it.
    fn obstacle(&self, order: &Order) -> Result<Option<String>, Failure>;

    /// What of it is on the order's device already, in words. One that does not answer fails,
    /// unless it is to be replaced.
    #[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "nothing is attached without"))]
    fn holder(&self, order: &Order) -> Result<Option<String>, Failure>;

    /// Attaches, since (if that is told) the engines before it cannot.
    fn attach(&self, order: &Order, since: Option<&str>, call: &Call) -> Result<(), Failure>;

    /// Changes what of it is on a device, if anything is; tells whether.
    fn change(&self, device: &str, changes: &Changes) -> Result<bool, Failure>;

    /// What a change has to do for what runs to become what is wanted.
    fn changes(&self, wanted: &Order, runs: &Status) -> LinkChanges {
        // A rate that follows the link is where it is.
        let rate = wanted.goal(runs.direction).and_then(Goal::fixed).unwrap_or(runs.link.rate);
        runs.link.changes_to(wanted.options.at(rate))
    }

    /// What is wanted in the place of what runs, if no change makes it that.
    fn other_than(&self, wanted: &Order, runs: &Status) -> Result<Option<String>, Failure> {
        Ok(wanted.other_than(runs)?.map(|spec| spec.to_string()))
    }

    /// Takes what of it is off a device, if anything is; tells whether.
    fn detach(&self, device: &str) -> Result<bool, Failure>;

    /// What of it is on a device, or on all of this network namespace.
    fn show(&self, device: Option<&str>) -> Result<Vec<Status>, Failure>;
}

/// In the order in which `auto` asks what they can do. What is on a device is looked for from the
/// other end: a process says at once that it is there, and the kernel says what is there if
/// nothing of ours is.
#[cfg(feature = "kernel")]
static ENGINES: [(EngineKind, &dyn Engine); 3] = [
    (EngineKind::Kernel, &Kernel),
    (EngineKind::Marks, &Marks),
    (EngineKind::Userspace, &Userspace),
];
#[cfg(not(feature = "kernel"))]
static ENGINES: [(EngineKind, &dyn Engine); 3] = [
    (EngineKind::Kernel, &Missing),
    (EngineKind::Marks, &Missing),
    (EngineKind::Userspace, &Userspace),
];

/// The engine of this kind.
pub(super) fn engine(kind: EngineKind) -> &'static dyn Engine {
    let at = match kind {
        EngineKind::Kernel => 0,
        EngineKind::Marks => 1,
        EngineKind::Userspace => 2,
    };
    ENGINES[at].1
}

/// The first engine that can do this, and why those before it cannot.
pub(super) fn first_that_can(
    order: &Order,
) -> Result<(&'static dyn Engine, Option<String>), Failure> {
    let mut since: Vec<String> = Vec::new();
    for (_, engine) in ENGINES {
        match engine.obstacle(order)? {
            None => return Ok((engine, (!since.is_empty()).then(|| since.join(", and ")))),
            // Two may lack the same.
            Some(obstacle) if since.contains(&obstacle) => {}
            Some(obstacle) => since.push(obstacle),
        }
    }
    Err(Failure::Failed(since.join(", and ")))
}

/// The engines in the order in which what is on a device is looked for.
pub(super) fn by_lookup() -> impl Iterator<Item = (EngineKind, &'static dyn Engine)> {
    ENGINES.into_iter().rev()
}
