//! What a program without engines for a single device says of them.

use engine::control::Changes;
use engine::status::Status;

use super::engines::Engine;
use super::order::Order;
use crate::{Call, Failure};

/// What it is built without, and what gets it.
pub(crate) const MISSING: [&str; 2] = [
    "this program was built without the engines for a single device, as there was no clang or no \
     libelf",
    "in Shortlane's sources `scripts/setup.sh bpf` installs these, and `make build` then builds \
     the engines",
];

pub(crate) fn missing() -> Failure {
    Failure::Failed(MISSING.join("; "))
}

/// In the place of an engine inside the kernel.
pub(super) struct Missing;

impl Engine for Missing {
    fn obstacle(&self, _: &Order) -> Result<Option<String>, Failure> {
        Err(missing())
    }

    fn holder(&self, _: &Order) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    fn attach(&self, _: &Order, _: Option<&str>, _: &Call) -> Result<(), Failure> {
        Err(missing())
    }

    fn change(&self, _: &str, _: &Changes) -> Result<bool, Failure> {
        Err(missing())
    }

    fn detach(&self, _: &str) -> Result<bool, Failure> {
        Err(missing())
    }

    /// Whatever a qdisc of ours does is not for this program to see.
    fn show(&self, device: Option<&str>) -> Result<Vec<Status>, Failure> {
        device.map_or_else(|| Ok(Vec::new()), |_| Err(missing()))
    }
}

/// In the place of the userspace engine's process.
pub(super) mod process {
    use super::{Call, Failure, Order, missing};

    pub(in super::super) fn attach(_: &Order, _: Option<&str>, _: &Call) -> Result<(), Failure> {
        Err(missing())
    }

    pub(in super::super) fn serve(_: &Call) -> Result<(), Failure> {
        Err(missing())
    }

    pub(in super::super) fn take_queues_off(_: &str) -> Result<(), Failure> {
        Ok(())
    }

    pub(in super::super) fn tidy_up(_: &str) -> Result<bool, Failure> {
        Ok(false)
    }
}
