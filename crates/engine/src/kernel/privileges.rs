//! Refusals that name all capabilities that are missing, before anything is done.

use netdev::capabilities::lacking;
pub(super) use netdev::capabilities::{BPF, Capability, FIND, NET_ADMIN, PERFMON};

use super::error::KernelError;

/// Refuses what the process has not all capabilities for.
pub(super) fn require(doing: &'static str, needed: &[Capability]) -> Result<(), KernelError> {
    match lacking(needed) {
        Some(capability) => Err(KernelError::NoPermission { doing, capability }),
        None => Ok(()),
    }
}
