//! An engine in a process of its own, to be killed.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::userspace::HookKind;
use engine::{Forwarder, Report};
use netdev::netns::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::hosts::link;

/// What the process is to run.
const ORDER: &str = "SHORTLANE_TEST_ENGINE";
const READY: &str = "the engine runs";

/// Both directions of `eth0`, under the same discipline at the same rate.
pub(crate) struct Process {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Process {
    /// Starts this program again, on a host, and waits until its engine runs.
    pub(crate) fn start(host: &Namespace, spec: &str, rate: u64, hook: HookKind) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["--exact", "process::engine_of_another_test", "--nocapture"])
            .env(ORDER, format!("{spec};{rate};{hook:?}"))
            .stdout(Stdio::piped());
        let mut child = host.run(|| command.spawn()).unwrap().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains(READY) {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the engine has ended");
        }
        Self { child, output }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Memory that it uses, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Waits for its end, and for all that the kernel does about it.
    pub(crate) fn wait(&mut self) {
        self.child.wait().unwrap();
    }

    /// Ends it in order, and returns what it reports.
    pub(crate) fn end(mut self) -> Report {
        self.signal(Signal::SIGTERM);
        let mut output = String::new();
        self.output.read_to_string(&mut output).unwrap();
        self.wait();
        let json = output.lines().find(|line| line.starts_with('{')).expect("a report");
        serde_json::from_str(json).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: i32) {
    STOP.store(true, std::sync::atomic::Ordering::Relaxed);
}

/// Not a test by itself: others start it as a process, with an order in the environment.
#[test]
fn engine_of_another_test() {
    let Ok(order) = env::var(ORDER) else { return };
    let [spec, rate, hook] = order.split(';').collect::<Vec<_>>().try_into().unwrap();
    let rate = rate.parse().unwrap();
    let kinds = [HookKind::Auto, HookKind::Tcx, HookKind::Clsact];
    let hook = kinds.into_iter().find(|kind| format!("{kind:?}") == hook).unwrap();
    // SAFETY: the handler only stores a flag.
    unsafe {
        nix::sys::signal::signal(Signal::SIGTERM, nix::sys::signal::SigHandler::Handler(stop))
            .unwrap();
    }
    let engine = Forwarder::attach("eth0", link(spec, rate), link(spec, rate), hook).unwrap();
    let ready = || {
        // A heartbeat of every direction is at most 10 ms away.
        std::thread::sleep(Duration::from_millis(100));
        println!("\n{READY}");
    };
    let report = engine.run_live(&STOP, ready).unwrap();
    println!("{}", serde_json::to_string(&report).unwrap());
}
