//! The processes that play client and server, each in a namespace of its own.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use netdev::netns::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;

use crate::config::AgentProgram;
use crate::traffic::{Message, Plan};

/// A running client or server. Dropping it ends the process.
pub(crate) struct Agent {
    role: &'static str,
    pid: Pid,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Spawned the process and waits for it: the process dies with the thread that spawned it.
    keeper: Option<JoinHandle<std::io::Result<ExitStatus>>>,
}

/// Why an agent did not deliver.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It could not be started.
    #[error("the {0} process does not start: {1}")]
    Start(&'static str, std::io::Error),
    /// It said what is wrong.
    #[error("the {0} gave up: {1}")]
    Failed(&'static str, String),
    /// It ended without a report.
    #[error("the {0} process died{how}", how = .1.map_or(String::new(), |status| format!(": {status}")))]
    Died(&'static str, Option<ExitStatus>),
    /// It said nothing in time.
    #[error("the {0} process did not report in time")]
    Silent(&'static str),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl AgentError {
    /// Whether the user wanted it to end.
    #[must_use]
    pub const fn is_interrupt(&self) -> bool {
        matches!(self, Self::Interrupted)
    }
}

impl Agent {
    /// Starts a role in a namespace and hands it the plan.
    pub(crate) fn start(
        role: &'static str,
        program: &AgentProgram,
        home: &Arc<Namespace>,
        plan: &Plan,
    ) -> Result<Self, AgentError> {
        let failed = |error| AgentError::Start(role, error);
        let home = Arc::clone(home);
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).arg(role);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let (started, report) = mpsc::channel();
        let keeper = thread::spawn(move || {
            let child = home.enter().and_then(|()| command.spawn());
            keep(child, &started)
        });
        let (id, mut stdin, stdout) = match report.recv() {
            Ok(parts) => parts,
            Err(_) => {
                let error = keeper.join().ok().and_then(Result::err);
                let error = error.unwrap_or_else(|| std::io::Error::other("no thread"));
                return Err(failed(error));
            }
        };
        let line = serde_json::to_string(plan).map_err(|e| failed(e.into()))? + "\n";
        let written = stdin.write_all(line.as_bytes());
        let agent = Self {
            role,
            pid: Pid::from_raw(id as i32),
            stdin: Some(stdin),
            lines: read_lines(stdout),
            keeper: Some(keeper),
        };
        match written {
            Ok(()) => Ok(agent),
            Err(_) => Err(agent.died()),
        }
    }

    /// Waits until the agent is ready.
    pub(crate) fn ready(&mut self, within: Duration, stop: &AtomicBool) -> Result<(), AgentError> {
        match self.message::<serde_json::Value>(within, stop)? {
            Message::Ready => Ok(()),
            Message::Failed(why) => Err(AgentError::Failed(self.role, why)),
            Message::Report(_) => Err(AgentError::Failed(self.role, "a report too early".into())),
        }
    }

    /// Waits for the agent's report.
    pub(crate) fn report<R: DeserializeOwned>(
        &mut self,
        within: Duration,
        stop: &AtomicBool,
    ) -> Result<R, AgentError> {
        match self.message(within, stop)? {
            Message::Report(report) => Ok(report),
            Message::Failed(why) => Err(AgentError::Failed(self.role, why)),
            Message::Ready => Err(AgentError::Failed(self.role, "ready twice".into())),
        }
    }

    fn message<R: DeserializeOwned>(
        &mut self,
        within: Duration,
        stop: &AtomicBool,
    ) -> Result<Message<R>, AgentError> {
        let deadline = Instant::now() + within;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(AgentError::Interrupted);
            }
            match self.lines.recv_timeout(Duration::from_millis(50)) {
                Ok(line) => {
                    return serde_json::from_str(&line)
                        .map_err(|error| AgentError::Failed(self.role, error.to_string()));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    return Err(AgentError::Silent(self.role));
                }
                Err(RecvTimeoutError::Timeout) => {}
                // A Ctrl-C reaches the agents too, perhaps first.
                Err(RecvTimeoutError::Disconnected) => {
                    thread::sleep(Duration::from_millis(20));
                    let interrupted = stop.load(Ordering::Relaxed);
                    return Err(if interrupted { AgentError::Interrupted } else { self.died() });
                }
            }
        }
    }

    fn died(&self) -> AgentError {
        AgentError::Died(self.role, None)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let Some(keeper) = self.keeper.take() else { return };
        let deadline = Instant::now() + Duration::from_millis(500);
        while !keeper.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        if !keeper.is_finished() {
            // The keeper has not reaped it yet, so the number is still this process.
            let _ = kill(self.pid, Signal::SIGKILL);
        }
        let _ = keeper.join();
    }
}

type Pipes = (u32, ChildStdin, ChildStdout);

fn keep(
    child: std::io::Result<Child>,
    started: &mpsc::Sender<Pipes>,
) -> std::io::Result<ExitStatus> {
    let mut child = child?;
    let id = child.id();
    if let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) {
        let _ = started.send((id, stdin, stdout));
    }
    child.wait()
}

fn read_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
