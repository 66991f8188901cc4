//! A [`Report`] for a terminal: tables that fit 100 columns.

use measure::SizeClass;
use measure::text::{SchedulerTable, wrap};

use crate::config::Config;
use crate::facts::CaptureFacts;
use crate::report::{ClassReport, DelayReport, Report, SchedulerReport};

/// What every reader of the figures has to know.
pub const OPEN_LOOP: &str = "Open loop: every packet arrives when it was captured, whatever \
    happened to the ones before. TCP's packets were paced by the network they crossed, and do not \
    slow down for drops and delays here.";

/// The whole report.
#[must_use]
pub fn report(config: &Config, report: &Report) -> String {
    let parts = [
        wrap(&capture(&report.capture)),
        wrap(&link(config, &report.capture)),
        wrap(OPEN_LOOP),
        heading("Time in the queue in ms, by the number of packets that the capture has of a flow"),
        delay_table(report),
        heading("What was sent and dropped"),
        packet_table(report),
        heading("Dropped packets, by the number of packets that the capture has of a flow"),
        drop_table(report),
        wrap(
            "first 20: the first 20 packets of every flow; short and long: the lanes, where a \
             discipline has any; flow table: the entries that the discipline holds.",
        ),
    ];
    parts.join("\n") + "\n"
}

fn capture(facts: &CaptureFacts) -> String {
    let types: Vec<String> = facts
        .link_types
        .iter()
        .map(|t| t.name.map_or_else(|| format!("link type {}", t.linktype), str::to_owned))
        .collect();
    let compressed = if facts.gzip { ", gzip" } else { "" };
    let rates = facts.mean_rate_bps.map_or_else(String::new, |mean| {
        format!(
            ", on average {}, {} in the busiest second",
            mbit(mean),
            mbit(facts.busiest_second_bps as f64)
        )
    });
    let also = |packets: u64, what| match packets {
        0 => String::new(),
        _ => format!("; {packets} packets {what}"),
    };
    format!(
        "The capture: {}{compressed}; {}; {} packets, {} bytes, {} flows in {:.3} s{rates}{}{}.",
        facts.format,
        types.join(", "),
        facts.packets,
        facts.bytes,
        facts.flows,
        facts.duration_ns as f64 / 1e9,
        also(facts.cut_packets, "captured in part and counted in full"),
        also(facts.non_ip_packets, "are not IP"),
    )
}

fn link(config: &Config, facts: &CaptureFacts) -> String {
    let load = facts.offered_load.map_or_else(String::new, |load| {
        format!("; the capture offers {:.1} % of its rate", load * 100.0)
    });
    format!("The link: {}, queue limit {}{load}.", config.rate, config.limit)
}

fn mbit(bps: f64) -> String {
    format!("{} Mbit/s", value(bps / 1e6))
}

fn heading(text: &str) -> String {
    format!("\n{text}")
}

fn by_scheduler(report: &Report) -> SchedulerTable<'_, SchedulerReport> {
    SchedulerTable::new(&report.schedulers, |s| &s.scheduler)
}

/// With a column for each size class that the capture has flows of, titled with their number.
fn with_classes(
    table: SchedulerTable<'_, SchedulerReport>,
    report: &Report,
    cell: impl Fn(&ClassReport) -> String,
) -> String {
    let title = |class: SizeClass| {
        let flows = report.schedulers[0].class(class).map_or(0, |c| c.flows);
        format!("{}\n{flows} flow{}", class.name(), if flows == 1 { "" } else { "s" })
    };
    table.classes(title, |s, class| s.class(class).map(&cell)).to_string()
}

fn delay_table(report: &Report) -> String {
    let table = by_scheduler(report)
        .column("", |_| "mean\np50\np95\np99\nmax".into())
        .column("all", |s| delay(&s.delay))
        .column("first 20", |s| delay(&s.first_20_packets));
    with_classes(table, report, |class| delay(&class.delay))
}

fn delay(delay: &DelayReport) -> String {
    let quantiles = [delay.p50_ns, delay.p95_ns, delay.p99_ns, delay.max_ns];
    let lines = std::iter::once(delay.mean_ns)
        .chain(quantiles.map(|ns| ns.map(|ns| ns as f64)))
        .map(|ns| ns.map_or_else(|| "-".to_owned(), |ns| value(ns / 1e6)));
    lines.collect::<Vec<_>>().join("\n")
}

fn packet_table(report: &Report) -> String {
    by_scheduler(report)
        .column("sent\npackets", |s| s.sent_packets.to_string())
        .column("of these\nshort / long", shares)
        .column("dropped\nshort / long", lanes_dropped)
        .column("dropped for\nthis reason", reasons)
        .column("marked", |s| s.marked_packets.to_string())
        .column("link\nused", |s| {
            s.utilisation.map_or_else(|| "-".into(), |used| format!("{:.1} %", used * 100.0))
        })
        .column("queue, packets\nmean (peak)", |s| {
            format!("{}\n({})", value(s.backlog_mean_packets), s.backlog_peak_packets)
        })
        .column("flow table\nmean (peak)", |s| match s.flow_table_peak {
            0 => "-".into(),
            peak => format!("{}\n({peak})", value(s.flow_table_mean)),
        })
        .to_string()
}

fn shares(s: &SchedulerReport) -> String {
    if !s.has_lanes {
        return "-".into();
    }
    let short: f64 = s.lanes.iter().filter(|lane| lane.lane == 0).map(|lane| lane.share).sum();
    format!("{:.1} %\n/ {:.1} %", short * 100.0, (1.0 - short) * 100.0)
}

fn lanes_dropped(s: &SchedulerReport) -> String {
    if !s.has_lanes {
        return s.dropped_packets.to_string();
    }
    let short: u64 = s.drops.iter().filter(|d| d.lane == 0).map(|d| d.packets).sum();
    format!("{short}\n/ {}", s.dropped_packets - short)
}

fn reasons(s: &SchedulerReport) -> String {
    let mut reasons: Vec<(&str, u64)> = Vec::new();
    for drop in &s.drops {
        match reasons.iter_mut().find(|(reason, _)| *reason == drop.reason) {
            Some((_, packets)) => *packets += drop.packets,
            None => reasons.push((drop.reason, drop.packets)),
        }
    }
    if reasons.is_empty() {
        return "-".into();
    }
    let lines: Vec<String> = reasons.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    lines.join("\n")
}

fn drop_table(report: &Report) -> String {
    if report.schedulers.iter().all(|s| s.dropped_packets == 0) {
        return "none".into();
    }
    let all = |s: &SchedulerReport| part(s.dropped_packets, s.arrived_packets);
    let table = by_scheduler(report).column("all", all);
    with_classes(table, report, |class| part(class.dropped_packets, class.packets))
}

fn part(dropped: u64, of: u64) -> String {
    format!("{dropped} ({:.2} %)", dropped as f64 * 100.0 / of.max(1) as f64)
}

/// Three figures, or all of a whole number.
fn value(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if v < 0.001 => "<0.001".into(),
        v if v < 1.0 => format!("{v:.3}"),
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}
