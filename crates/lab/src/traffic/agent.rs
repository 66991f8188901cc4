//! A role as a process of its own, started by a parent that lives as long as it does.

use std::io::{self, BufRead, Read, Write};
use std::thread;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::getppid;
use serde::{Deserialize, Serialize};

use super::client::run_client;
use super::error::Error;
use super::plan::Plan;
use super::report::{ClientReport, ServerReport};
use super::server::run_server;

/// A line an agent writes to standard output: first `Ready`, then `Report`; or `Failed`, and
/// nothing after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message<R> {
    /// Sockets are open; the epoch may come.
    Ready,
    /// The run is over.
    Report(R),
    /// The role could not begin, for this reason.
    Failed(String),
}

/// The server as a process: reads a [`Plan`] as one line of JSON from standard input, writes
/// [`Message`]s of a [`ServerReport`] to standard output, one a line.
///
/// Keep its standard input open while it is wanted: it dies at end of file, and also (by
/// `PR_SET_PDEATHSIG`) with the *thread* that started it, so start it from one that stays.
///
/// Returns whether it went well.
#[must_use]
pub fn serve_agent() -> bool {
    agent(|plan, ready| -> Result<ServerReport, Error> { run_server(plan, ready) })
}

/// The client as a process; see [`serve_agent`].
#[must_use]
pub fn client_agent() -> bool {
    agent(|plan, ready| -> Result<ClientReport, Error> { run_client(plan, ready) })
}

fn agent<R: Serialize>(role: impl FnOnce(&Plan, &dyn Fn()) -> Result<R, Error>) -> bool {
    if !bound_to_parent() {
        return false;
    }
    come_first();
    let result = read_plan().and_then(|plan| {
        thread::spawn(die_at_end_of_input);
        role(&plan, &|| write_message::<R>(&Message::Ready))
    });
    match result {
        Ok(report) => {
            write_message(&Message::Report(report));
            true
        }
        Err(error) => {
            write_message::<R>(&Message::Failed(error.to_string()));
            false
        }
    }
}

/// Arranges to be killed when the parent ends; false if it already has.
fn bound_to_parent() -> bool {
    let parent = getppid();
    // A parent that died before this line closes standard input, which ends the agent too.
    set_pdeathsig(Signal::SIGKILL).is_ok() && getppid() == parent
}

/// Ahead of whatever else is busy here, though not of the bottleneck: connections that begin late
/// make a block void. An ordinary user cannot, and may see more of those.
fn come_first() {
    // SAFETY: the call takes three numbers and touches no memory.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
}

fn read_plan() -> Result<Plan, Error> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(Error::io("cannot read the plan"))?;
    serde_json::from_str(&line).map_err(|error| Error::Plan(error.to_string()))
}

fn die_at_end_of_input() {
    let mut ignored = [0; 64];
    while io::stdin().lock().read(&mut ignored).is_ok_and(|length| length > 0) {}
    std::process::exit(1);
}

/// Writes a line; a parent that does not read it is gone, and takes the agent with it.
fn write_message<R: Serialize>(message: &Message<R>) {
    let mut out = io::stdout().lock();
    let written = serde_json::to_writer(&mut out, message).map_err(io::Error::from);
    if written.and_then(|()| writeln!(out)).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}
