//! A round with this kernel's own TCP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use engine::{EngineError, Forwarder, Observe, Report};
use lab::traffic::{
    ClientReport, ConnectionKind, Error, Plan, ServerReport, Stream, Transfer, monotonic_ns,
    run_client, run_server,
};
use netdev::netns::Namespace;
use sched::Nanos;

use crate::case::{Case, Work};
use crate::outcome::Outcome;
use crate::testbed::{CLIENT, FAR, Hosts, NEAR};

/// Why a round has no outcome.
#[derive(Debug)]
pub enum Failure {
    /// The machine was too slow: the round is to be repeated.
    Void(String),
    /// It cannot be measured here.
    Fatal(String),
}

/// Time for the roles to start, and for a control connection each.
const START: Nanos = Nanos::from_millis(500);
/// Longer than a role takes to say that it is ready.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// How a round is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// It is void if a shaper gave up more of its sending time than this part,
    pub late_limit: f64,
    /// or anything was later than this.
    pub latest: Nanos,
    /// Network parameters of the hosts, such as `ipv4.tcp_rmem`: names and values.
    pub parameters: Vec<(String, String)>,
}

/// Measures a round.
///
/// # Errors
/// If it is void, or the namespaces cannot be had.
pub fn run(case: &Case, work: &Work, options: &Options) -> Result<Outcome, Failure> {
    let fatal = |error: &dyn std::fmt::Display| Failure::Fatal(error.to_string());
    let hosts = Hosts::new(&options.parameters).map_err(|e| fatal(&e))?;
    let bottleneck = hosts.bottleneck(case).map_err(|e| fatal(&e))?;
    let detour = hosts.detour(case).map_err(|e| fatal(&e))?;
    let epoch = Nanos(monotonic_ns()) + START + case.rtt + case.detour();
    let stop = AtomicBool::new(false);
    let (reports, bottleneck, detour) = thread::scope(|scope| {
        let start = |engine: Forwarder| {
            let stop = &stop;
            scope.spawn(move || engine.run_observed(stop, Observe::since(epoch)))
        };
        let bottleneck = start(bottleneck);
        let detour = detour.map(start);
        let reports = traffic(&hosts, case, work, epoch);
        stop.store(true, Ordering::Relaxed);
        (reports, join(bottleneck), detour.map(join))
    });
    let checked = |report: Result<Report, EngineError>| {
        let report = report.map_err(|e| fatal(&e))?;
        match on_time(&report, options) {
            Ok(()) => Ok(report),
            Err(reason) => Err(Failure::Void(reason)),
        }
    };
    let bottleneck = checked(bottleneck)?;
    detour.map(checked).transpose()?;
    let reports = reports.map_err(|e| Failure::Void(e.to_string()))?;
    let late = reports.iter().map(|(client, _)| client.worst_late_ns).max().unwrap_or(0);
    if late > options.latest.0 {
        return Err(Failure::Void(format!("the client was {} ms late", late / 1_000_000)));
    }
    Ok(outcome(case, &reports, &bottleneck))
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Whether the engine kept up.
fn on_time(report: &Report, options: &Options) -> Result<(), String> {
    if let Some(fault) = &report.fault {
        return Err(fault.clone());
    }
    for direction in &report.directions {
        let punctuality = &direction.punctuality;
        let lost = punctuality.lost_ns as f64 / direction.duration_ns.max(1) as f64;
        if lost > options.late_limit {
            return Err(format!("the pacer gave up {:.1} % of its time", 100.0 * lost));
        }
        if punctuality.max_late_ns > options.latest.0 {
            return Err(format!("the pacer woke {} ms late", punctuality.max_late_ns / 1_000_000));
        }
        if direction.lost_in_kernel > 0 {
            return Err(format!(
                "the engine was too late for {} packets",
                direction.lost_in_kernel
            ));
        }
    }
    Ok(())
}

type Reports = Vec<(ClientReport, ServerReport)>;

/// Plays client and server for each server's plan.
fn traffic(hosts: &Hosts, case: &Case, work: &Work, epoch: Nanos) -> Result<Reports, Error> {
    let mut pairs = vec![(&hosts.near, plan(case, epoch, NEAR, work.near))];
    let transfers = (0..).zip(work.transfers.transfers()).map(|(id, transfer)| Transfer {
        id,
        start_ns: transfer.start_ns,
        size_bytes: transfer.size_bytes,
        tcp: case.tcp,
    });
    pairs[0].1.transfers = transfers.collect();
    if let Some(start) = work.far {
        pairs.push((&hosts.far, plan(case, epoch, FAR, start)));
    }
    thread::scope(|scope| {
        let mut servers = Vec::new();
        for (host, plan) in &pairs {
            let (ready, is_ready) = mpsc::channel();
            servers.push(scope.spawn(move || {
                play(host, || {
                    run_server(plan, || {
                        let _ = ready.send(());
                    })
                })
            }));
            // If it fails before that, its report says why.
            let _ = is_ready.recv_timeout(READY_WITHIN);
        }
        let client = |plan| scope.spawn(move || play(&hosts.client, || run_client(plan, || ())));
        let clients: Vec<_> = pairs.iter().map(|(_, plan)| client(plan)).collect();
        let clients: Vec<_> = clients.into_iter().map(join).collect();
        let servers: Vec<_> = servers.into_iter().map(join).collect();
        clients.into_iter().zip(servers).map(|(client, server)| Ok((client?, server?))).collect()
    })
}

fn play<T: Send>(
    host: &Namespace,
    role: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    host.run(role)
        .map_err(|source| Error::Io { what: "cannot enter a namespace".into(), source })?
}

/// One flow without end from `server`.
fn plan(case: &Case, epoch: Nanos, server: &str, start: Nanos) -> Plan {
    let parse = |text: &str| text.parse().expect("a constant address");
    let mut plan = Plan::new(parse(server), parse(CLIENT));
    plan.epoch_ns = epoch.0;
    plan.arrivals_end_ns = case.measured.0;
    plan.drain_end_ns = case.end.0;
    plan.downloads.push(Stream { id: 0, tcp: case.tcp, start_ns: start.0, stop_ns: case.end.0 });
    plan
}

fn outcome(case: &Case, reports: &Reports, bottleneck: &Report) -> Outcome {
    let to_client = &bottleneck.directions[1];
    let samples = to_client.observed.as_ref().map_or(&[][..], |observed| &observed.samples);
    let window = case.warm_up.0..=case.measured.0;
    let queued: Vec<u64> =
        samples.iter().filter(|s| window.contains(&s.t_ns)).map(|s| s.packets).collect();
    let downloads = reports.iter().flat_map(|(client, _)| &client.downloads);
    let goodput_bps = downloads
        .map(|row| Outcome::rate_bps(case, row.received.between(case.warm_up.0, case.measured.0)))
        .collect();
    let transfers = reports.iter().flat_map(|(client, _)| &client.transfers);
    let completion_ms =
        transfers.map(|row| row.completion_ns().map(|ns| ns as f64 / 1e6)).collect();
    let senders = || {
        let rows = reports.iter().flat_map(|(_, server)| &server.connections);
        rows.filter(|row| row.kind == ConnectionKind::Download).filter_map(|row| row.info)
    };
    Outcome {
        goodput_bps,
        queue_packets: queued.iter().sum::<u64>() as f64 / queued.len().max(1) as f64,
        loss: to_client.dropped().packets as f64 / to_client.received.packets.max(1) as f64,
        retransmissions: senders().filter_map(|info| info.retransmissions).map(f64::from).sum(),
        timeouts: senders().filter_map(|info| info.timeouts).map(f64::from).sum(),
        acks: bottleneck.directions[0].received.packets as f64
            / to_client.sent.packets.max(1) as f64,
        completion_ms,
    }
}
