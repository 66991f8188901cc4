//! A `shortlane lab` under test: its output as it comes, its processes, and what it leaves.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, str};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::Value;

/// Long beyond every run here: only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Marks the processes of one run, however they got there: children inherit the environment.
const MARK: &str = "SHORTLANE_TEST_RUN";

/// A running command.
pub(crate) struct Run {
    child: Child,
    mark: String,
    stdout: JoinHandle<String>,
    lines: Receiver<String>,
    said: String,
}

/// A command that has ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Starts `program` in a process group of its own, as a shell does.
    pub(crate) fn start(program: &[&str], arguments: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{MARK}={}-{number}", std::process::id());
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args(arguments).process_group(0);
        command.env(MARK, mark.split_once('=').unwrap().1);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        let stdout = thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            text
        });
        Self { child, mark, stdout, lines, said: String::new() }
    }

    /// Waits until a line on standard error has `part`.
    pub(crate) fn wait_for(&mut self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no '{part}' on standard error: {}", self.said)
            };
            self.said += &format!("{line}\n");
            if line.contains(part) {
                return;
            }
        }
    }

    /// Waits until client or server runs, and returns it; `None` if the command ended instead.
    pub(crate) fn wait_for_agent(&mut self, role: &str) -> Option<Pid> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let agent = processes(&self.mark).into_iter().find(|pid| {
                let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                command.ends_with(format!("lab-agent\0{role}\0").as_bytes())
            });
            if agent.is_some() {
                return agent;
            }
            if self.child.try_wait().unwrap().is_some() {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("no {role} process")
    }

    /// Sends a signal to the command alone.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// Sends a signal to the command and its children, as a terminal does.
    pub(crate) fn signal_all(&self, signal: Signal) {
        killpg(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Waits for the end, and checks that no process is left, and so no namespace either: none
    /// of them has a name.
    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                self.signal(Signal::SIGKILL);
                panic!("does not end: {}", self.said);
            }
            thread::sleep(Duration::from_millis(10));
        };
        let vanished = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(10));
            processes(&self.mark).is_empty()
        });
        assert!(vanished, "left: {:?}", processes(&self.mark));
        let mut stderr = self.said;
        self.lines.iter().for_each(|line| stderr += &format!("{line}\n"));
        Ended { status, stdout: self.stdout.join().unwrap(), stderr }
    }
}

/// The live processes with a mark in their environment.
fn processes(mark: &str) -> Vec<Pid> {
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id: &i32| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    })
    .map(Pid::from_raw)
    .collect()
}

/// Runs a lab that is meant to succeed.
pub(crate) fn succeed(program: &[&str], arguments: &[&str]) -> Ended {
    let ended = Run::start(program, arguments).end();
    assert!(ended.status.success(), "{arguments:?}: {}", ended.stderr);
    ended
}

impl Ended {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}
