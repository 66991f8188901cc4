//! What a thread can ask of the kernel to be woken up on time.

use nix::sys::prctl;

/// Asks for exact timers and, where that is permitted, for real-time priority. Returns whether
/// the latter was granted: without it, whatever else runs on the machine makes the thread late
/// now and then.
///
/// The priority is the lowest of the real-time ones. It cannot hang a machine: the thread sleeps
/// whenever it has nothing to send, and the kernel keeps a share of each processor for the rest.
pub(crate) fn be_punctual() -> bool {
    // The default slack of 50 us is several packets at 1 Gbit/s. If it stays, the shaper
    // catches up.
    let _ = prctl::set_timerslack(1);
    let lowest = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the pointer is to a local; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const lowest) == 0 }
}
