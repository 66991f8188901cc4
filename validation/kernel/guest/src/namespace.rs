//! Network namespaces by name, as `ip netns` has them, and the interfaces in them.

use std::fs::File;
use std::{fs, thread};

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, setns};

/// The name of the namespace that the program was started in.
pub(crate) const HERE: &str = "";

/// Runs `job` on a thread in a namespace.
pub(crate) fn run<T: Send>(name: &str, job: impl FnOnce() -> T + Send) -> Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| enter(name).map(|()| job()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn enter(name: &str) -> Result<()> {
    if name == HERE {
        return Ok(());
    }
    let file = File::open(format!("/run/netns/{name}")).context(name.to_owned())?;
    setns(file, CloneFlags::CLONE_NEWNET).context("entering a namespace")
}

/// The index of an interface of the calling thread's namespace.
pub(crate) fn ifindex(interface: &str) -> Result<u32> {
    nix::net::if_::if_nametoindex(interface).with_context(|| interface.to_owned())
}

/// What an interface of the first namespace has counted, such as `tx_packets`.
pub(crate) fn statistic(interface: &str, name: &str) -> Result<u64> {
    let path = format!("/sys/class/net/{interface}/statistics/{name}");
    Ok(fs::read_to_string(path)?.trim().parse()?)
}
