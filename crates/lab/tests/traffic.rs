//! Both roles of the lab's traffic, over the loopback interface of a namespace of its own.
//!
//! Not libtest's harness: this program is also the agents that the tests start and kill, and
//! it must enter its namespace before it has a second thread.

use std::process::{Command, ExitCode};
use std::sync::mpsc;
use std::thread;

use lab::traffic::{
    Cause, Cbr, ClientReport, ConnectionKind, Error, Pings, Plan, ServerReport, Session, Stream,
    Tcp, Transfer, cbr_packets, monotonic_ns, run_client, run_server,
};
use libtest_mimic::{Arguments, Failed, Trial};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;

const MS: u64 = 1_000_000;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("serve-agent") => return lab::traffic::serve_agent(),
        Some("client-agent") => return lab::traffic::client_agent(),
        _ => {}
    }
    if let Err(error) = enter_namespace() {
        eprintln!("no network namespace: {error}; run as root or allow user namespaces");
        return ExitCode::FAILURE;
    }
    let trials = vec![trial("all_kinds_of_traffic_arrive", all_kinds_of_traffic_arrive)];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok::<(), Failed>(())
    })
}

/// A fresh network namespace for the calling thread and those it starts.
fn enter_namespace() -> std::io::Result<()> {
    if geteuid().is_root() {
        unshare(CloneFlags::CLONE_NEWNET)?;
    } else {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
    }
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status()?;
    if up.success() { Ok(()) } else { Err(std::io::Error::other("ip link set lo up failed")) }
}

/// A plan on the loopback interface that begins soon; each test has ports of its own.
fn plan(port: u16, arrivals_end_ms: u64, drain_end_ms: u64) -> Plan {
    let here = "127.0.0.1".parse().unwrap();
    let mut plan = Plan::new(here, here);
    plan.port = port;
    plan.epoch_ns = monotonic_ns() + 300 * MS;
    plan.arrivals_end_ns = arrivals_end_ms * MS;
    plan.drain_end_ns = drain_end_ms * MS;
    plan
}

/// Runs both roles in this process.
fn run(plan: &Plan) -> (ServerReport, ClientReport) {
    thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel();
        let server = scope.spawn(|| run_server(plan, move || ready.send(()).unwrap()));
        is_ready.recv().unwrap();
        let client = run_client(plan, || {}).unwrap();
        (server.join().unwrap().unwrap(), client)
    })
}

fn all_kinds_of_traffic_arrive() {
    let mut plan = plan(5000, 600, 60_000);
    for id in 0..60 {
        plan.transfers.push(Transfer {
            id,
            start_ns: u64::from(id) * 10 * MS,
            size_bytes: 1 + u64::from(id) * 7919,
            tcp: Tcp::ALL[id as usize % 3],
        });
    }
    plan.downloads.push(Stream { id: 3, tcp: Tcp::Bbr, start_ns: 0, stop_ns: 500 * MS });
    plan.uploads.push(Stream { id: 4, tcp: Tcp::Reno, start_ns: 10 * MS, stop_ns: 500 * MS });
    plan.sessions.push(Session {
        id: 5,
        tcp: Tcp::Cubic,
        start_ns: 5 * MS,
        stop_ns: 505 * MS,
        period_ns: 50 * MS,
        size_bytes: 30_000,
    });
    for (name, rate_bps, packet_bytes) in [("voice", 64_000, 200), ("video", 500_000, 1000)] {
        plan.cbr.push(Cbr {
            name: name.into(),
            rate_bps,
            packet_bytes,
            start_ns: 7 * MS,
            stop_ns: 507 * MS,
        });
    }
    plan.pings.push(Pings {
        id: 6,
        packet_bytes: 64,
        period_ns: 20 * MS,
        start_ns: 0,
        stop_ns: 500 * MS,
    });
    let (server, client) = run(&plan);
    println!("{server:#?} {client:#?}");
}
