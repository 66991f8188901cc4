//! Being woken on time on a busy machine.

use std::io;
use std::mem;

/// Asks for real-time scheduling (the lowest priority of `SCHED_FIFO`) of the calling thread and
/// of those it starts: they sleep between packets, and are late only if something more urgent
/// runs. Needs `CAP_SYS_NICE`.
///
/// # Errors
/// If permission is lacking; the thread stays as it was.
pub fn real_time() -> io::Result<()> {
    // SAFETY: a sched_param of zeros is valid, and the call only reads it.
    let status = unsafe {
        let mut parameters: libc::sched_param = mem::zeroed();
        parameters.sched_priority = 1;
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters)
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
