//! Staying: in the foreground until a signal, or in the background as a process of its own.

#[cfg(feature = "kernel")]
mod background;

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use std::sync::atomic::AtomicBool;

#[cfg(feature = "kernel")]
use engine::follower::{Follower, Queues};
use engine::{EngineError, Forwarder};

#[cfg(feature = "kernel")]
pub(super) use self::background::{
    Errand, Log, background, command, read_unbuffered, serve, start,
};
use crate::Failure;
use crate::signals::stop_flag;

/// What stays.
pub(crate) trait Stays {
    /// Works until the flag is set or a client ends it, or tells why it has to end. `ready` is called
    /// when it works.
    fn stay(self, stop: &AtomicBool, ready: impl FnOnce()) -> Result<Option<String>, EngineError>;
}

impl Stays for Forwarder {
    fn stay(self, stop: &AtomicBool, ready: impl FnOnce()) -> Result<Option<String>, EngineError> {
        self.run_live(stop, ready).map(|report| report.fault)
    }
}

#[cfg(feature = "kernel")]
impl<Q: Queues> Stays for Follower<Q> {
    fn stay(self, stop: &AtomicBool, ready: impl FnOnce()) -> Result<Option<String>, EngineError> {
        self.run(stop, ready)
    }
}

/// Runs an engine until a signal or a client ends it, or an interface fails. `ready` is called when
/// it works.
pub(crate) fn foreground(engine: impl Stays, ready: impl FnOnce()) -> Result<(), Failure> {
    run(engine, || {
        ready();
        notify("READY=1");
    })
}

fn run(engine: impl Stays, ready: impl FnOnce()) -> Result<(), Failure> {
    let stop = stop_flag()?;
    let fault = engine.stay(&stop, ready);
    notify("STOPPING=1");
    match fault.map_err(|error| Failure::Failed(error.to_string()))? {
        Some(fault) => Err(Failure::Failed(fault)),
        None => Ok(()),
    }
}

/// Waits for a signal, while something else does the work.
#[cfg(feature = "kernel")]
pub(super) fn wait() -> Result<(), Failure> {
    use std::sync::atomic::Ordering;
    use std::thread;
    use std::time::Duration;

    let stop = stop_flag()?;
    notify("READY=1");
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(100));
    }
    notify("STOPPING=1");
    Ok(())
}

/// Tells systemd, if it has started this (`sd_notify(3)`).
fn notify(state: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return };
    let tell = || {
        let address = match path.as_encoded_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&path)?,
        };
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
    };
    // There is nowhere to report that this failed.
    let _: io::Result<usize> = tell();
}
