//! A round with this kernel's own TCP, in the lab.

use std::sync::atomic::AtomicBool;

use lab::traffic::{Plan, Stream, Transfer};
use lab::{
    AgentProgram, Bottleneck, Config, Ends, Engine, Labels, Progress, Round, Rows, Scheduler,
    Timing, Traffic, Transfers,
};
use measure::{Flow, FlowKind};
use sched::{Amount, Nanos};

use crate::case::{Case, Work};
use crate::outcome::Outcome;

/// How a round is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// When a block is void, as the lab says it.
    pub late_limit: f64,
    /// Network parameters of the hosts, such as `ipv4.tcp_rmem`: names and values.
    pub parameters: Vec<(String, String)>,
    /// Who plays client and server.
    pub agent: AgentProgram,
}

/// Measures a round. Tells also how often it had to be repeated.
///
/// # Errors
/// If the namespaces cannot be had, or the machine is too slow.
pub fn run(
    case: &Case,
    work: &Work,
    round: u64,
    options: &Options,
) -> Result<(Outcome, u64), String> {
    let config = config(case, work, round, options);
    let mut measured = None;
    let finished = lab::run(&config, &AtomicBool::new(false), &mut |progress| match progress {
        Progress::Done(rows) if !rows.block.void => measured = Some(outcome(case, rows)),
        _ => {}
    });
    let finished = finished.map_err(|error| error.to_string())?;
    match (measured, finished.ended_early) {
        (Some(outcome), None) => Ok((outcome, finished.void)),
        (_, why) => Err(why.unwrap_or_else(|| "no block was measured".into())),
    }
}

fn config(case: &Case, work: &Work, round: u64, options: &Options) -> Config {
    let mut ends = Ends::default();
    ends.servers.extend(work.far.map(|_| case.detour()));
    let plans = plans(case, work, &ends);
    Config {
        schedulers: vec![Scheduler::Ours(case.spec())],
        link: Bottleneck {
            engine: Engine::Userspace,
            rate_bps: case.rate_bps,
            up_rate_bps: case.rate_bps,
            up_scheduler: None,
            limit: Amount::Packets(case.limit.into()),
            rtt: case.rtt,
            ends,
            parameters: options.parameters.clone(),
            edge: None,
            ecn: false,
            local_sender: false,
        },
        traffic: Traffic {
            transfers: Transfers::Listed(work.transfers.clone()),
            tcp: vec![case.tcp],
            downloads: plans.len() as u32,
            uploads: 0,
            interactive: false,
        },
        timing: Timing {
            warm_up_ns: case.warm_up.0,
            arrivals_ns: case.measured.since(case.warm_up).0,
            drain_ns: case.end.since(case.measured).0,
            rounds: 1,
            until_precise: None,
            jobs: 1,
            late_limit: options.late_limit,
        },
        idle_times: false,
        seed: round,
        rounds: vec![Round { seed: round, plans, varying: [None, None] }],
        labels: Labels::default(),
        agent: options.agent.clone(),
    }
}

/// A flow without end from each server, and the transfers from the first.
fn plans(case: &Case, work: &Work, ends: &Ends) -> Vec<Plan> {
    let plan = |(server, start): (u8, Nanos)| {
        let mut plan = ends.plan(server, 0);
        (plan.arrivals_end_ns, plan.drain_end_ns) = (case.measured.0, case.end.0);
        let (start_ns, stop_ns) = (start.0, case.end.0);
        plan.downloads.push(Stream { id: server.into(), tcp: case.tcp, start_ns, stop_ns });
        plan
    };
    let mut plans: Vec<Plan> =
        (0..).zip([Some(work.near), work.far].into_iter().flatten()).map(plan).collect();
    let transfers = (0..).zip(work.transfers.transfers()).map(|(id, transfer)| Transfer {
        id,
        start_ns: transfer.start_ns,
        size_bytes: transfer.size_bytes,
        tcp: case.tcp,
    });
    plans[0].transfers = transfers.collect();
    plans
}

fn outcome(case: &Case, rows: &Rows) -> Outcome {
    let of_kind = |kind| rows.flows.iter().filter(move |flow| flow.kind == kind);
    let window = case.warm_up.0..=case.measured.0;
    let samples = rows.samples.iter().filter(|s| &*s.link == "down" && window.contains(&s.t_ns));
    let queued: Vec<u64> = samples.map(|sample| sample.backlog_packets).collect();
    let sum = |count: fn(&Flow) -> Option<u64>| {
        of_kind(FlowKind::Download).filter_map(count).sum::<u64>() as f64
    };
    let (down, up) = (&rows.links[0], &rows.links[1]);
    Outcome {
        goodput_bps: of_kind(FlowKind::Download)
            .map(|flow| Outcome::rate_bps(case, flow.received_bytes))
            .collect(),
        queue_packets: queued.iter().sum::<u64>() as f64 / queued.len().max(1) as f64,
        loss: down.dropped_packets as f64 / down.arrived_packets.max(1) as f64,
        retransmissions: sum(|flow| flow.retransmissions),
        timeouts: sum(|flow| flow.timeouts),
        acks: up.arrived_packets as f64 / down.sent_packets.max(1) as f64,
        completion_ms: of_kind(FlowKind::Transfer)
            .map(|flow| flow.completion_ns.map(|ns| ns as f64 / 1e6))
            .collect(),
    }
}
