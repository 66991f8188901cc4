//! The clock of a plan: time since its epoch, and timers.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{
    ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags,
};
use nix::time::{ClockId, clock_gettime};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;
use units::Nanos;

use super::error::Error;

/// `CLOCK_MONOTONIC`; an epoch is chosen on it.
#[must_use]
pub fn monotonic() -> Nanos {
    // It cannot fail: Linux always has this clock.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).map_or(Nanos::MAX, Nanos)
}

/// Time since an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Nanos,
}

impl Clock {
    pub(crate) fn new(epoch: Nanos) -> Self {
        Self { epoch }
    }

    /// The clock of a run that is about to begin.
    pub(crate) fn starting(epoch: Nanos) -> Result<Self, Error> {
        match monotonic().0.checked_sub(epoch.0) {
            Some(late) => Err(Error::Late(late / 1000)),
            None => Ok(Self::new(epoch)),
        }
    }

    /// Time since the epoch; 0 before it.
    pub(crate) fn now(self) -> Nanos {
        monotonic() - self.epoch
    }

    /// A time since the epoch for tokio's timers (1 ms fine: for deadlines only).
    pub(crate) fn deadline(self, at: Nanos) -> Instant {
        let left = self.epoch + at - monotonic();
        Instant::now() + Duration::from_nanos(left.0)
    }
}

/// A timer that wakes as precisely as the kernel can, against absolute times: no drift.
///
/// Tokio's own timers round up to the next millisecond.
pub(crate) struct Alarm {
    clock: Clock,
    timer: AsyncFd<Timer>,
}

struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Alarm {
    pub(crate) fn new(clock: Clock) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(TimerClock::CLOCK_MONOTONIC, flags)?;
        // SAFETY: `Timer` owns its descriptor and keeps the same one until it is dropped.
        let timer = unsafe { AsyncFd::register_with_interest(Timer(timer), Interest::READABLE)? };
        Ok(Self { clock, timer })
    }

    /// Returns at `at` since the epoch, or at once if that has passed. Cancel-safe.
    pub(crate) async fn wait_until(&mut self, at: Nanos) -> io::Result<()> {
        let at = self.clock.epoch + at;
        while monotonic() < at {
            // Setting the timer also takes back an expiry nobody has read.
            self.timer.get_ref().0.set(
                Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(at.0))),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            )?;
            let mut expired = self.timer.readable().await?;
            // Readiness left over from a cancelled wait is cleared by the read that would block.
            let _ = expired.try_io(|timer| timer.get_ref().0.wait().map_err(io::Error::from));
        }
        Ok(())
    }
}
