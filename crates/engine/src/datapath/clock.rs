//! The engine's clock.

use nix::time::{ClockId, clock_gettime};
use sched::Nanos;

/// `CLOCK_MONOTONIC`: the same for all processes of a machine.
#[inline]
#[must_use]
pub fn now() -> Nanos {
    // It can only fail for a clock that does not exist or a bad address; neither is the case.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Nanos::ZERO, |time| {
        Nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
    })
}
