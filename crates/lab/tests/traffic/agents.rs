//! Roles as processes: they end with their plan, with their parent, or by kill -9.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use lab::traffic::{
    Cause, ClientReport, ConnectionKind, Message, Plan, ServerReport, Tcp, monotonic, run_client,
};
use serde::de::DeserializeOwned;

use crate::setup::{ENDLESS, plan, sleep_until, stream, transfer, with_server};

/// This program as an agent; killed when dropped.
struct Agent {
    process: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Agent {
    /// Starts one and writes it a line.
    fn start(role: &str, line: &str) -> Self {
        Self::start_by(Command::new(std::env::current_exe().unwrap()).arg(role), line)
    }

    /// Starts one that may open 40 files, with a plan, and waits until it is ready.
    fn ready_with_few_files(role: &str, plan: &Plan) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -n 40; exec \"$0\" \"$1\""]);
        shell.arg(std::env::current_exe().unwrap()).arg(role);
        let mut agent = Self::start_by(&mut shell, &serde_json::to_string(plan).unwrap());
        assert_eq!(agent.message::<()>(), Some(Message::Ready));
        agent
    }

    fn start_by(command: &mut Command, line: &str) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = process.stdin.take().unwrap();
        writeln!(input, "{line}").unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, input: Some(input), lines }
    }

    /// Starts one with a plan and waits until it is ready.
    fn ready(role: &str, plan: &Plan) -> Self {
        let mut agent = Self::start(role, &serde_json::to_string(plan).unwrap());
        assert_eq!(agent.message::<()>(), Some(Message::Ready));
        agent
    }

    /// Its next message; `None` when it has ended.
    fn message<R: DeserializeOwned>(&mut self) -> Option<Message<R>> {
        self.lines.next().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
    }

    fn report<R: DeserializeOwned>(&mut self) -> R {
        match self.message() {
            Some(Message::Report(report)) => report,
            Some(Message::Failed(why)) => panic!("{why}"),
            _ => panic!("no report"),
        }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn agents_run_a_plan() {
    let mut plan = plan(300, 60_000);
    plan.transfers = (0..10).map(|id| transfer(id, u64::from(id) * 20, 30_000)).collect();
    plan.downloads.push(stream(1, Tcp::Reno, 0, 200));
    let mut server = Agent::ready("serve-agent", &plan);
    let mut client = Agent::ready("client-agent", &plan);
    let measured: ClientReport = client.report();
    let served: ServerReport = server.report();
    assert!(measured.transfers.iter().all(|row| row.bytes == 30_000 && row.failure.is_none()));
    assert_eq!(served.connections.len(), 11);
    assert!(client.process.wait().unwrap().success());
    assert!(server.process.wait().unwrap().success());
}

pub(crate) fn an_agent_refuses_what_is_no_plan() {
    for line in ["", "{}", "[1, 2", "{\"server\": 7}"] {
        let mut agent = Agent::start("serve-agent", line);
        match agent.message::<()>() {
            Some(Message::Failed(why)) => assert!(why.starts_with("bad traffic plan: "), "{why}"),
            other => panic!("{line}: {other:?}"),
        }
        assert_eq!(agent.message::<()>(), None);
        assert!(!agent.process.wait().unwrap().success());
    }
}

pub(crate) fn files_used_up_fail_transfers_only() {
    let mut plan = plan(100, 500);
    plan.transfers = (0..60).map(|id| transfer(id, 0, ENDLESS)).collect();
    let (server, client): (_, ClientReport) =
        with_server(&plan, || Agent::ready_with_few_files("client-agent", &plan).report());
    let of = |cause| client.transfers.iter().filter(|row| row.failure == Some(cause)).count();
    assert!((1..40).contains(&of(Cause::HardStop)), "{:?}", client.failures);
    assert_eq!(of(Cause::HardStop) + of(Cause::FilesUsedUp), 60, "{:?}", client.failures);
    assert_eq!(server.connections.len(), of(Cause::HardStop));
}

pub(crate) fn a_server_out_of_files_serves_whom_it_can() {
    let mut plan = plan(100, 800);
    plan.transfers = (0..60).map(|id| transfer(id, 0, ENDLESS)).collect();
    let mut server = Agent::ready_with_few_files("serve-agent", &plan);
    let client = run_client(&plan, || {}).unwrap();
    let served: ServerReport = server.report();
    assert_eq!(client.failures, BTreeMap::from([(Cause::HardStop.to_string(), 60)]));
    assert!(served.failures[&Cause::FilesUsedUp.to_string()] > 0, "{:?}", served.failures);
    let fed = client.transfers.iter().filter(|row| row.bytes > 0).count();
    assert!((1..40).contains(&fed), "{fed} were served");
}

pub(crate) fn the_client_survives_a_killed_server() {
    let mut plan = plan(900, 1000);
    plan.transfers = vec![transfer(1, 0, 5000), transfer(2, 0, ENDLESS), transfer(3, 800, 5000)];
    plan.downloads.push(stream(1, Tcp::Cubic, 0, 900));
    let mut server = Agent::ready("serve-agent", &plan);
    let client = std::thread::scope(|scope| {
        let client = scope.spawn(|| run_client(&plan, || {}));
        sleep_until(&plan, 400);
        server.kill();
        client.join().unwrap().unwrap()
    });
    let cut = |cause| matches!(cause, Some(Cause::Reset | Cause::ClosedEarly));
    let [done, endless, later] = &client.transfers[..] else { panic!("{:?}", client.transfers) };
    assert_eq!((done.failure, done.bytes), (None, 5000));
    assert!(cut(endless.failure) && endless.bytes > 0 && endless.end.is_none(), "{endless:?}");
    assert_eq!((later.failure, later.bytes), (Some(Cause::Refused), 0));
    let download = &client.downloads[0];
    assert!(cut(download.failure) && download.received.total() > 0, "{download:?}");
    assert_eq!(client.failures.values().sum::<u64>(), 3);
}

pub(crate) fn the_server_survives_a_killed_client() {
    let mut plan = plan(900, 60_000);
    plan.transfers = vec![transfer(1, 0, 5000), transfer(2, 0, ENDLESS)];
    plan.uploads.push(stream(1, Tcp::Cubic, 0, 60_000));
    let (server, ()) = with_server(&plan, || {
        let mut client = Agent::ready("client-agent", &plan);
        sleep_until(&plan, 400);
        client.kill();
    });
    assert!(monotonic() < plan.epoch + plan.drain_end, "waited for the hard stop");
    let row = |id| server.connections.iter().find(|row| row.id == id).unwrap();
    assert_eq!((row(1).kind, row(1).failure), (ConnectionKind::Transfer, None));
    assert!(matches!(row(2).failure, Some(Cause::Reset | Cause::ClosedEarly)), "{:?}", row(2));
    assert!(row(2).info.unwrap().bytes_acked.unwrap() > 0);
    assert!(server.uploads[0].received.total() > 0);
}

pub(crate) fn an_agent_dies_at_end_of_input() {
    let mut agent = Agent::ready("serve-agent", &plan(100, 60_000));
    drop(agent.input.take());
    assert!(!agent.process.wait().unwrap().success());
    assert_eq!(agent.message::<()>(), None);
}

/// Kills the parent of an agent whose input stays open: only `PR_SET_PDEATHSIG` can end it.
pub(crate) fn an_agent_dies_with_its_parent() {
    let plan = serde_json::to_string(&plan(100, 60_000)).unwrap();
    let mut parent = Agent::start("parent-of-agent", &plan);
    assert_eq!(parent.message::<()>(), Some(Message::Ready));
    parent.kill();
    // The agent holds the other end of this pipe as long as it lives.
    assert_eq!(parent.message::<()>(), None);
}

/// The body of that parent: its input and output are the agent's.
pub(crate) fn be_parent_of_agent() -> ExitCode {
    let agent = Command::new(std::env::current_exe().unwrap()).arg("serve-agent").spawn();
    let status = agent.and_then(|mut agent| agent.wait());
    if status.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
