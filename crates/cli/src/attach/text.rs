//! An attached qdisc for a terminal of 80 columns, with `tc`'s names where `tc` has them.

use std::time::Duration;

use engine::kernel::{Histogram, LaneCounters, Shown};
use sched::Nanos;
use sched::params::text::{Rate, Time};

/// Everything about a qdisc.
pub(super) fn describe(shown: &Shown) -> String {
    let mut text = head(shown);
    text += &lanes(&shown.status.lanes);
    text += &flows(shown);
    text
}

fn head(shown: &Shown) -> String {
    let (status, tc) = (&shown.status, &shown.tc);
    let name = status.scheduler.split(':').next().unwrap_or_default();
    let rate = status.rate_bps.map_or("unlimited".to_owned(), |rate| Rate(rate).to_string());
    let uptime = Duration::from_secs(shown.uptime_ns / 1_000_000_000);
    let mut text = format!("{}: {name}, rate {rate}, ", shown.device);
    text += &format!("attached for {}\n", humantime::format_duration(uptime));
    text += &format!(
        " qdisc {} {} {}, limit {}, overhead {}b, burst-time {}\n",
        shown.kind,
        shown.handle,
        shown.parent,
        status.limit,
        status.overhead_bytes,
        Time(Nanos(status.burst_ns))
    );
    if status.scheduler != name {
        text += &format!(" scheduler {}\n", status.scheduler);
    }
    if status.from_tc {
        text += " attached by tc, whose options come on top of these\n";
    }
    text += &format!(
        " Sent {} bytes {} pkt (dropped {}, overlimits {} requeues {})\n",
        tc.bytes, tc.packets, tc.drops, tc.overlimits, tc.requeues
    );
    text + &format!(" backlog {}b {}p, at most {}p\n\n", tc.backlog, tc.qlen, status.most_packets)
}

type Counter = fn(&LaneCounters) -> u64;

fn lanes(lanes: &[LaneCounters; 2]) -> String {
    let mut text = row("", &["short lane".into(), "long lane".into()]);
    let counters: [(&str, Counter); 7] = [
        ("sent packets", |lane| lane.sent_packets),
        ("sent bytes", |lane| lane.sent_bytes),
        ("dropped, queue full", |lane| lane.full),
        ("dropped, pushed out", |lane| lane.pushed_out),
        ("backlog packets", |lane| lane.backlog_packets),
        ("backlog segments", |lane| lane.backlog_segments),
        ("backlog bytes", |lane| lane.backlog_bytes),
    ];
    for (label, counter) in counters {
        text += &row(label, &lanes.each_ref().map(|lane| counter(lane).to_string()));
    }
    for (label, part) in [("sojourn p50", 0.5), ("sojourn p99", 0.99), ("sojourn max", 1.0)] {
        text += &row(label, &lanes.each_ref().map(|lane| quantile(&lane.sojourn, part)));
    }
    text
}

fn row(label: &str, cells: &[String; 2]) -> String {
    format!(" {label:<22}{:>20}{:>20}\n", cells[0], cells[1])
}

/// Sojourn times are counted in buckets: the bound of the one that is meant.
fn quantile(times: &Histogram, part: f64) -> String {
    match times.quantile_ns(part) {
        0 => "-".into(),
        u64::MAX => "> 1min".into(),
        bound => format!("< {}", duration(bound)),
    }
}

/// Three digits.
fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    format!("{}{unit}", measure::text::decimals(value))
}

fn flows(shown: &Shown) -> String {
    let status = &shown.status;
    let mut text = format!(
        "\n flows now {}, at most {} of {}; taken up {}, forgotten {}, became long {}\n",
        status.flows,
        status.most_flows,
        status.flow_bound,
        status.flows_created,
        status.flows_removed,
        status.demoted
    );
    let rare = [
        (status.flows_untracked, "without room in the flow table"),
        (status.super_packets, "super-packets"),
        (status.fragments, "fragments"),
        (status.not_ip, "not IP"),
        (status.no_slots, "dropped without a slot"),
        (status.lost, "lost by a defect: please report it"),
    ];
    let said: Vec<String> = rare
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !said.is_empty() {
        text += &format!(" packets: {}\n", said.join(", "));
    }
    text
}
