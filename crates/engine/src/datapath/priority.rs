//! What a thread can ask of the kernel to be woken up on time.

use nix::sys::prctl;
use sched::Nanos;

/// Without a deadline for this long, a thread drops back to normal priority.
const LINGER: Nanos = Nanos::from_millis(10);

/// Gives the calling thread exact timers.
pub(crate) fn take_exact_timers() {
    // The default slack of 50 us is several packets at 1 Gbit/s. If it stays, the shaper catches
    // up.
    let _ = prctl::set_timerslack(1);
}

/// A thread's priority: real-time while it has a deadline to keep (a transmission to start,
/// a frame to release), ordinary while it only waits for frames.
///
/// Without real-time priority whatever else runs on the machine makes a thread milliseconds late
/// now and then. With it, it is woken up on the processor where it last ran, which takes longer
/// than where the frame has just been handled: so it is not worth having on an idle link.
///
/// It is the lowest of the real-time priorities. It cannot hang a machine: the thread sleeps
/// whenever it has nothing to send, and the kernel keeps a share of each processor for the rest.
pub(crate) struct Priority {
    realtime: bool,
    /// Whether the system grants real-time priority, as far as has been seen.
    granted: bool,
    last_deadline: Nanos,
}

impl Priority {
    /// That of an ordinary thread.
    pub(crate) fn ordinary() -> Self {
        Self { realtime: false, granted: true, last_deadline: Nanos::ZERO }
    }

    /// Whether the system has not refused real-time priority.
    pub(crate) fn is_granted(&self) -> bool {
        self.granted
    }

    /// Adjusts the calling thread's priority before it sleeps.
    #[inline]
    pub(crate) fn adjust(&mut self, has_deadline: bool, now: Nanos) {
        if has_deadline {
            self.last_deadline = now;
            if !self.realtime && self.granted {
                self.granted = schedule(libc::SCHED_FIFO, 1);
                self.realtime = self.granted;
            }
        } else if self.realtime && now - self.last_deadline > LINGER {
            self.realtime = !schedule(libc::SCHED_OTHER, 0);
        }
    }
}

fn schedule(policy: i32, priority: i32) -> bool {
    let parameter = libc::sched_param { sched_priority: priority };
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the pointer is to a local; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) == 0 }
}
