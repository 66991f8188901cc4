//! Namespaces and plans for the tests.

use std::io;
use std::panic::resume_unwind;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use lab::traffic::{
    ClientReport, Plan, ServerReport, Stream, Tcp, Transfer, monotonic, run_client, run_server,
};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};
use units::Nanos;

pub(crate) const MS: Nanos = Nanos::from_millis(1);

/// More than loopback carries before any hard stop of these tests.
pub(crate) const ENDLESS: u64 = 1 << 50;

/// Enters a fresh network namespace, with a user namespace where that needs one. Only possible
/// while the process has one thread.
pub(crate) fn enter_first_namespace() -> io::Result<()> {
    let (user, group) = (getuid(), getgid());
    if !user.is_root() {
        unshare(CloneFlags::CLONE_NEWUSER)?;
        std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    }
    unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
}

/// A fresh network namespace for the calling thread, and those and what it starts.
pub(crate) fn enter_namespace() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    command("ip link set lo up");
    Ok(())
}

/// Runs a test in a namespace that nobody else uses.
pub(crate) fn in_namespace(test: fn()) {
    let run = move || {
        enter_namespace().unwrap();
        test();
    };
    thread::spawn(run).join().unwrap_or_else(|panic| resume_unwind(panic));
}

/// Runs a command in the calling thread's namespace.
pub(crate) fn command(line: &str) {
    let mut words = line.split(' ');
    let status = Command::new(words.next().unwrap_or_default()).args(words).status();
    assert!(status.is_ok_and(|status| status.success()), "{line}");
}

/// A plan between this host and itself that begins soon.
pub(crate) fn plan(arrivals_end_ms: u64, drain_end_ms: u64) -> Plan {
    let here = "127.0.0.1".parse().unwrap();
    let mut plan = Plan::new(here, here);
    plan.epoch = monotonic() + 1500 * MS;
    plan.arrivals_end = arrivals_end_ms * MS;
    plan.drain_end = drain_end_ms * MS;
    plan
}

pub(crate) fn transfer(id: u32, start_ms: u64, size_bytes: u64) -> Transfer {
    Transfer { id, start: start_ms * MS, size_bytes, tcp: Tcp::Cubic }
}

pub(crate) fn stream(id: u32, tcp: Tcp, start_ms: u64, stop_ms: u64) -> Stream {
    Stream { id, tcp, start: start_ms * MS, stop: stop_ms * MS }
}

/// Runs both roles in this process.
pub(crate) fn run(plan: &Plan) -> (ServerReport, ClientReport) {
    with_server(plan, || run_client(plan, || {}).unwrap())
}

/// Runs the server in this process while `client` does something.
pub(crate) fn with_server<R>(plan: &Plan, client: impl FnOnce() -> R) -> (ServerReport, R) {
    thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel();
        let server = scope.spawn(|| run_server(plan, move || ready.send(()).unwrap()));
        // If the server fails it drops the sender; its error is then shown below.
        let result = is_ready.recv().map(|()| client());
        (server.join().unwrap().unwrap(), result.unwrap())
    })
}

/// Sleeps until a time of the plan.
pub(crate) fn sleep_until(plan: &Plan, at_ms: u64) {
    let at = plan.epoch + at_ms * MS;
    thread::sleep(std::time::Duration::from_nanos((at - monotonic()).0));
}
