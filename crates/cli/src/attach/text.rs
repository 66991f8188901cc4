//! What is attached, for a terminal of 80 columns, with `tc`'s names where `tc` has them.

use std::time::Duration;

use engine::status::{
    Auto, EngineKind, Flow, Heading, Histogram, LaneCounters, Process, Qdisc, Seen, Standing,
    Status,
};
use sched::{Nanos, Rate};

use super::link;

/// Everything about what is attached.
pub(super) fn describe(status: &Status) -> String {
    let mut text = head(status);
    text += &lanes(status);
    text += &flows(status);
    if let Some(seen) = &status.seen {
        text += &busiest(status, seen);
    }
    text
}

/// Hosts and flows that are listed.
const LISTED: usize = 8;

/// Who has most of the link, where that is known; and why its packets wait, if that is.
fn busiest(status: &Status, seen: &Seen) -> String {
    let mut text = String::new();
    if !seen.busiest_hosts.is_empty() {
        text += &format!("\n {:<45}{:>8}{:>10}{:>8}\n", "busiest hosts", "flows", "now", "sent");
    }
    for host in seen.busiest_hosts.iter().take(LISTED) {
        let (now, sent) = (bits(host.arriving_bps), bytes(host.sent.bytes));
        text += &format!(" {:<45}{:>8}{now:>10}{sent:>8}\n", host.host, host.flows);
    }
    let aged = || seen.biggest_flows.iter().filter_map(|flow| Some((flow, flow.standing?)));
    if aged().next().is_some() {
        text += &format!(
            "\n {:<43}{:>8}{:>10}{:>9}{:>8}\n",
            "biggest flows", "tier", "excess", "now", "sent"
        );
    }
    for (flow, standing) in aged().take(LISTED) {
        text += &format!(
            " {:<43.43}{:>8}{:>10}{:>9}{:>8}\n",
            flow.flow,
            place(status, flow),
            bytes(standing.excess_bytes),
            bits(flow.arriving_bps),
            bytes(flow.sent.bytes)
        );
    }
    if status.engine == EngineKind::Marks && !seen.biggest_flows.is_empty() {
        text += &format!("\n {:<43}{:>10}{:>9}{:>8}\n", "long flows", "since", "now", "bytes");
        for flow in seen.biggest_flows.iter().take(LISTED) {
            let since = Duration::from_secs(flow.age.0 / 1_000_000_000);
            let (now, came) = (bits(flow.arriving_bps), bytes(flow.arrived.bytes));
            text += &format!(" {:<43.43}{since:>10?}{now:>9}{came:>8}\n", flow.flow);
        }
    }
    text
}

/// The lane of a flow, and its tier where there are such.
pub(crate) fn place(status: &Status, flow: &Flow) -> String {
    let name = |lane: u8| lane_name(&status.scheduler, lane.into(), status.lanes.len());
    match (flow.standing, flow.lane) {
        (Some(Standing { lane, tier, .. }), _) => format!("{} {tier}", name(lane)),
        (None, Some(lane)) => name(lane),
        (None, None) => "-".into(),
    }
}

fn head(status: &Status) -> String {
    let name = status.scheduler.split(':').next().unwrap_or_default();
    let rate = link::shown(status.link.rate);
    let uptime = Duration::from_secs(status.uptime.0 / 1_000_000_000);
    let direction = match status.direction {
        Heading::Egress => "",
        Heading::Ingress => " ingress",
    };
    let mut text = format!("{}{direction}: {name}, rate {rate}, ", status.device);
    text += &format!("attached for {}\n", humantime::format_duration(uptime));
    text += &match (&status.qdisc, &status.process) {
        (Some(Qdisc { kind, handle, queues: Some(queues), .. }), _) => {
            format!(" qdisc {kind} in each of {queues} queues below mq {handle}")
        }
        (Some(Qdisc { kind, handle, parent, .. }), _) => format!(" qdisc {kind} {handle} {parent}"),
        (_, Some(Process { pid, .. })) => match &status.peer {
            Some(peer) => format!(" bridge with {peer}, process {pid}"),
            None => format!(" userspace engine, process {pid}"),
        },
        _ => String::new(),
    };
    text += &format!(
        ", limit {}, overhead {}, burst-time {}\n",
        status.limit.as_deref().unwrap_or("none"),
        status.link.overhead,
        status.link.burst_time
    );
    if status.scheduler != name {
        text += &format!(" scheduler {}\n", status.scheduler);
    }
    text += &status.auto.as_ref().map(follows).unwrap_or_default();
    if let (None, Some(asked)) = (&status.auto, &status.follows) {
        text += &format!(" rate {asked}: the process that followed the link is gone\n");
    }
    text += &status.qdisc.as_ref().map(by_tc).unwrap_or_default();
    text += &status.process.as_ref().map(|process| by_process(status, process)).unwrap_or_default();
    text + &format!(", at most {}p\n\n", status.most_packets)
}

fn by_tc(qdisc: &Qdisc) -> String {
    let tc = &qdisc.tc;
    let mut text = String::new();
    if qdisc.from_tc {
        text += " attached by tc, whose options come on top of these\n";
    }
    text += &format!(
        " Sent {} bytes {} pkt (dropped {}, overlimits {} requeues {})\n",
        tc.bytes, tc.packets, tc.drops, tc.overlimits, tc.requeues
    );
    text + &format!(" backlog {}b {}p", tc.backlog, tc.qlen)
}

/// How the rate follows the link.
fn follows(auto: &Auto) -> String {
    let Auto { floor_bps, base_bps, ceiling_bps, probe, blind, lowered, raised, .. } = auto;
    let [floor, base, ceiling] = [floor_bps, base_bps, ceiling_bps].map(|rate| Rate(*rate));
    let mut text = format!(" rate auto:{floor}..{base}..{ceiling} by {probe}");
    if auto.dry_run {
        text += "\n  a dry run: the rate stays at its base";
    }
    text += &match (blind, auto.round_trip_ns, auto.extra_delay_ns) {
        (true, ..) => ":\n  no answer: blind, at the base\n".into(),
        (false, Some(least), Some(extra)) => {
            format!(
                ":\n  round trip {} at best, now {} more\n",
                duration(Nanos(least)),
                duration(Nanos(extra))
            )
        }
        _ => "\n".into(),
    };
    text += &format!(" lowered {lowered} times, raised {raised} times\n");
    if let (Some(decision), Some(ago)) = (&auto.last_decision, auto.decided_ns_ago) {
        let (change, why) = decision.split_once(": ").unwrap_or((decision, ""));
        text += &format!(" last {change}, {} ago:\n  {why}\n", duration(Nanos(ago)));
    }
    text
}

fn by_process(status: &Status, process: &Process) -> String {
    let late = process.punctuality;
    let mut text = format!(
        " Sent {} bytes {} pkt (dropped {}, overlimits {})\n",
        status.sent_bytes(),
        status.sent_packets(),
        status.dropped_packets(),
        status.paced
    );
    if !status.link.rate.is_unlimited() {
        text += &format!(
            " started at most {} late; lost to the rate by lateness {}\n",
            duration(late.max_late),
            duration(late.lost)
        );
    }
    let backlog = |of: Counter| status.lanes.iter().map(of).sum::<u64>();
    let bytes = backlog(|lane| lane.backlog_bytes);
    text + &format!(" backlog {bytes}b {}p", backlog(|lane| lane.backlog_packets))
}

type Counter = fn(&LaneCounters) -> u64;

/// The name of a lane of a scheduler that has this many; only the kernel may know the scheduler.
pub(crate) fn lane_name(scheduler: &str, lane: usize, lanes: usize) -> String {
    let name = scheduler.split(':').next().unwrap_or_default();
    sched::registry::find(name).unwrap_or(&sched::Info::PLAIN).lane_name(lane, lanes)
}

/// Whether it counts how often a flow becomes long: marks do, and a discipline with a short and a
/// long lane, which one that only the kernel knows has.
pub(crate) fn counts_long(status: &Status) -> bool {
    let name = status.scheduler.split(':').next().unwrap_or_default();
    sched::registry::find(name).is_none_or(|info| info.parts.is_some())
}

fn lanes(status: &Status) -> String {
    let lanes = &status.lanes;
    let name = |lane: usize| match (lane_name(&status.scheduler, lane, lanes.len()), lanes.len()) {
        (name, 2) => format!("{name} lane"),
        (name, _) => name,
    };
    let mut text = row("", (0..lanes.len()).map(name));
    let counters: [(&str, bool, Counter); 8] = [
        ("sent packets", true, |lane| lane.sent_packets),
        ("sent bytes", true, |lane| lane.sent_bytes),
        ("dropped, queue full", true, |lane| lane.full),
        ("dropped, pushed out", true, |lane| lane.pushed_out),
        ("dropped, congestion", false, |lane| lane.congested),
        ("backlog packets", true, |lane| lane.backlog_packets),
        ("backlog segments", true, |lane| lane.backlog_segments),
        ("backlog bytes", true, |lane| lane.backlog_bytes),
    ];
    for (label, always, counter) in counters {
        if always || lanes.iter().any(|lane| counter(lane) > 0) {
            text += &row(label, lanes.iter().map(|lane| counter(lane).to_string()));
        }
    }
    for (label, part) in [("sojourn p50", 0.5), ("sojourn p99", 0.99), ("sojourn max", 1.0)] {
        text += &row(label, lanes.iter().map(|lane| quantile(&lane.sojourn, part)));
    }
    text
}

fn row(label: &str, cells: impl ExactSizeIterator<Item = String>) -> String {
    let width = (57 / cells.len().max(1)).min(20);
    let cells: String = cells.map(|cell| format!("{cell:>width$}")).collect();
    format!(" {label:<22}{cells}\n")
}

fn quantile(times: &Histogram, part: f64) -> String {
    below(times.quantile(part))
}

/// Sojourn times are counted in buckets: the bound of the one that is meant.
pub(crate) fn below(bound: Nanos) -> String {
    match bound {
        Nanos::ZERO => "-".into(),
        Nanos::MAX => "> 1min".into(),
        bound => format!("< {}", duration(bound)),
    }
}

/// Three digits.
pub(crate) fn duration(Nanos(ns): Nanos) -> String {
    let (value, unit) = match ns {
        0..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        1_000_000_000..60_000_000_000 => (ns as f64 / 1e9, "s"),
        60_000_000_000..3_600_000_000_000 => (ns as f64 / 60e9, "min"),
        _ => (ns as f64 / 3600e9, "h"),
    };
    format!("{}{unit}", measure::text::decimals(value))
}

fn flows(status: &Status) -> String {
    let bound = status.flow_bound.map_or(String::new(), |bound| format!(" of {bound}"));
    let mut text = format!(
        "\n flows now {}, at most {}{bound}\n flows inserted {}, evicted {}",
        status.flows, status.most_flows, status.flows_created, status.flows_removed
    );
    if counts_long(status) {
        text += &format!(", became long {}", status.demoted);
    }
    text.push('\n');
    let of_qdisc = |of: fn(&Qdisc) -> u64| status.qdisc.as_ref().map_or(0, of);
    let in_kernel = status.process.as_ref().map_or(0, |process| process.lost_in_kernel);
    let passed = status.process.as_ref().map_or(0, |process| process.passed.packets);
    let rare = [
        (status.marked, "marked".to_owned()),
        (status.promoted, "became short again".into()),
        (status.flows_untracked, "without room in the flow table".into()),
        (status.super_packets, "super-packets".into()),
        (status.fragments, "fragments".into()),
        (status.not_ip, "not IP".into()),
        (of_qdisc(|qdisc| qdisc.no_slots), "dropped without a slot".into()),
        (of_qdisc(|qdisc| qdisc.lost), "lost by a defect: please report it".into()),
        (in_kernel, "that arrived too fast to be received".into()),
        (passed, "that bypassed the engine while it did not respond".into()),
    ];
    let by_engine = status.drops.iter().filter(|drop| drop.lane.is_none());
    let by_engine = by_engine.filter(|_| status.engine == EngineKind::Userspace);
    let by_engine = by_engine.map(|drop| (drop.packets, format!("dropped: {}", drop.reason)));
    let said: Vec<String> = rare
        .into_iter()
        .chain(by_engine)
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !said.is_empty() {
        text += &wrapped(" packets: ", &said);
    }
    text
}

/// A list on lines of 80 columns.
fn wrapped(label: &str, parts: &[String]) -> String {
    let mut lines = vec![label.to_owned()];
    for (at, part) in parts.iter().enumerate() {
        let part = if at + 1 < parts.len() { format!("{part}, ") } else { part.clone() };
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line + part.trim_end().chars().count() > 80 {
            lines.push(" ".repeat(label.len()));
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(&part);
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A rate in few letters.
pub(crate) fn bits(rate: u64) -> String {
    scaled(rate, 1000.0, ["bit", "kbit", "mbit", "gbit"])
}

/// An amount in few letters.
pub(crate) fn bytes(count: u64) -> String {
    scaled(count, 1024.0, ["b", "kb", "mb", "gb"])
}

/// Three digits or so, with the unit.
fn scaled(value: u64, step: f64, units: [&str; 4]) -> String {
    let mut scaled = value as f64;
    let mut unit = 0;
    while scaled >= step && unit + 1 < units.len() {
        scaled /= step;
        unit += 1;
    }
    match unit {
        0 => format!("{value}{}", units[0]),
        _ => format!("{}{}", measure::text::decimals(scaled), units[unit]),
    }
}
