//! A [`Summary`] for a terminal: tables that fit 100 columns, and sentences.

use measure::SizeClass;
use measure::stats::Estimate;
use measure::text::{self, SchedulerTable, against, decimals, interval, ratio, value, wrap};

use crate::scenario::Scenario;
use crate::summary::{ClassSummary, SchedulerSummary, Summary, TrafficKind, TrafficSummary};

/// The whole report; empty where no seed is complete.
#[must_use]
pub fn report(scenario: &Scenario, summary: &Summary) -> String {
    let Some(first) = summary.schedulers.first().filter(|_| summary.seeds > 0) else {
        return String::new();
    };
    let mut parts = vec![wrap(&format!("{}: {}", scenario.name, scenario.title))];
    let (mut streams, mut long) = (false, false);
    for (number, traffic) in first.traffic.iter().enumerate() {
        match &traffic.kind {
            TrafficKind::Transfers { pages, .. } => {
                streams |= pages.is_some();
                parts.push(format!(
                    "\n{}: mean completion time in ms [95 % interval over seeds]",
                    traffic.name
                ));
                parts.push(completion_table(summary, number));
                parts.push(format!(
                    "\n{}: ratio to {}, of transfers complete under both",
                    traffic.name, summary.reference
                ));
                parts.push(ratio_table(summary, number));
            }
            TrafficKind::Persistent { .. } => long = true,
            TrafficKind::Requests { .. } | TrafficKind::Stream { .. } => streams = true,
        }
    }
    if streams {
        parts.push("\nStreams, requests, pages: delay or response time in ms".into());
        parts.push(stream_table(summary));
    }
    if long {
        parts.push(format!("\nFlows without end: Mbit/s, and the ratio to {}", summary.reference));
        parts.push(long_table(summary));
    }
    for (at, link) in first.links.iter().enumerate() {
        let used = |s: &SchedulerSummary| s.links[at].drop_percent.is_some_and(|e| e.value > 0.0);
        // The way back of acknowledgments is of interest only where it is short of room.
        if at == 0 || !link.link.ends_with("-back") || summary.schedulers.iter().any(used) {
            parts.push(format!("\nThe queue of {}, after the warm-up", link.link));
            parts.push(queue_table(summary, at));
        }
    }
    if summary.has_tcp {
        parts.push("\nTCP, in a run".into());
        parts.push(tcp_table(summary));
    }
    parts.push(wrap(&legend(summary)));
    parts.extend(summary.schedulers.iter().filter_map(|s| verdict(s, summary)).map(|v| wrap(&v)));
    parts.join("\n") + "\n"
}

fn legend(summary: &Summary) -> String {
    let seeds = match summary.seeds {
        1 => "One seed: nothing here has an interval (--seeds 1..10)".to_owned(),
        n => format!("Means of {n} seeds"),
    };
    format!(
        "{seeds}. n: transfers, over all seeds; -: no such thing; incomplete: not done at the end of \
         the run, so excluded from means."
    )
}

fn class(s: &SchedulerSummary, number: usize, packets: SizeClass) -> Option<&ClassSummary> {
    let TrafficKind::Transfers { classes, .. } = &s.traffic[number].kind else { return None };
    classes.iter().find(|class| class.packets == packets)
}

fn by_scheduler(summary: &Summary) -> SchedulerTable<'_, SchedulerSummary> {
    SchedulerTable::new(&summary.schedulers, |s| &s.scheduler)
}

/// A table with a column per size class that occurs.
fn class_table(
    summary: &Summary,
    number: usize,
    cell: impl Fn(&SchedulerSummary, &ClassSummary) -> String,
) -> String {
    let cell = |s: &SchedulerSummary, packets| class(s, number, packets).map(|c| cell(s, c));
    by_scheduler(summary).classes(|class| format!("{} packets", class.name()), cell).to_string()
}

fn completion_table(summary: &Summary, number: usize) -> String {
    class_table(summary, number, |_, class| {
        let mut cell = interval(class.completion_ms);
        if let Some(slowdown) = class.slowdown {
            cell += &format!("\n{} x idle", decimals(slowdown.value));
        }
        if class.complete > 0 {
            cell += &format!("\nn={}", class.complete);
        }
        if class.incomplete > 0 {
            cell += &format!("\n{} incomplete", class.incomplete);
        }
        cell
    })
}

fn ratio_table(summary: &Summary, number: usize) -> String {
    class_table(summary, number, |s, class| against(class.vs_reference, is_reference(s, summary)))
}

fn is_reference(s: &SchedulerSummary, summary: &Summary) -> bool {
    s.scheduler == summary.reference
}

/// One traffic under one scheduler, and what is said of it.
type Line<'a, T> = (&'a SchedulerSummary, &'a TrafficSummary, T);

fn lines<'a, T>(
    summary: &'a Summary,
    says: impl Fn(&'a TrafficKind) -> Option<T>,
) -> Vec<Line<'a, T>> {
    let all = summary.schedulers.iter().flat_map(|s| s.traffic.iter().map(move |t| (s, t)));
    all.filter_map(|(s, traffic)| Some((s, traffic, says(&traffic.kind)?))).collect()
}

fn by_traffic<'a, T>(lines: &'a [Line<'_, T>]) -> SchedulerTable<'a, Line<'a, T>> {
    SchedulerTable::new(lines, |(s, ..)| &s.scheduler).column("traffic", |(_, traffic, _)| {
        let pages = matches!(traffic.kind, TrafficKind::Transfers { .. });
        format!("{}{}", traffic.name, if pages { " pages" } else { "" })
    })
}

fn stream_table(summary: &Summary) -> String {
    let some = |n: u64, what| if n == 0 { "-".into() } else { format!("{n} {what}") };
    let lines = lines(summary, |kind| match kind {
        TrafficKind::Transfers { pages: Some(pages), .. } => {
            Some((&pages.times_ms, some(pages.incomplete, "incomplete"), pages.complete))
        }
        TrafficKind::Requests { times_ms, answered, unanswered } => {
            Some((times_ms, some(*unanswered, "unanswered"), *answered))
        }
        TrafficKind::Stream { sent, loss_percent, delay_ms } => {
            Some((delay_ms, interval(*loss_percent), *sent))
        }
        _ => None,
    });
    by_traffic(&lines)
        .column("mean", |(.., (times, ..))| interval(times.mean))
        .column("95 %", |(.., (times, ..))| value(times.p95))
        .column("longest", |(.., (times, ..))| times.max.map_or("-".into(), decimals))
        .column("lost %", |(.., (_, lost, _))| lost.clone())
        .column("n", |(.., (_, _, n))| n.to_string())
        .to_string()
}

fn long_table(summary: &Summary) -> String {
    let lines = lines(summary, |kind| match kind {
        TrafficKind::Persistent { mbit, vs_reference } => Some((*mbit, *vs_reference)),
        _ => None,
    });
    by_traffic(&lines)
        .column("Mbit/s", |(.., (mbit, _))| interval(*mbit))
        .column("ratio", |(s, _, (_, ratio))| against(*ratio, is_reference(s, summary)))
        .to_string()
}

fn queue_table(summary: &Summary, at: usize) -> String {
    let percent = |e: Option<Estimate>| e.map_or("-".into(), |e| format!("{:.1}", 100.0 * e.value));
    let lines: Vec<_> = summary.schedulers.iter().map(|s| (s, &s.links[at])).collect();
    SchedulerTable::new(&lines, |(s, _)| &s.scheduler)
        .column("link\nused %", |(_, link)| percent(link.utilisation))
        .column("queue mean\n(peak)", |(_, link)| {
            format!("{} ({})", value(link.backlog_mean), link.backlog_peak)
        })
        .column("dropped\n%", |(_, link)| value(link.drop_percent))
        .column("packets dropped\nshort / long lane", |(_, link)| {
            format!("{} / {}", whole(link.dropped_short_lane), whole(link.dropped_long_lane))
        })
        .column("marked\n%", |(_, link)| value(link.marked_percent))
        .column("flow table\nmean (99 %, peak)", |(_, link)| match link.entries_peak {
            0 => "-".into(),
            peak => format!("{} ({}, {peak})", value(link.entries_mean), value(link.entries_p99)),
        })
        .to_string()
}

fn tcp_table(summary: &Summary) -> String {
    by_scheduler(summary)
        .column("segments sent again", |s| whole(s.retransmissions))
        .column("timeouts", |s| whole(s.timeouts))
        .column("of transfers <=20 packets", |s| whole(s.short_timeouts))
        .to_string()
}

fn whole(estimate: Option<Estimate>) -> String {
    estimate.map_or("-".into(), |e| format!("{:.0}", e.value))
}

/// One line on what a scheduler does for short and for long transfers.
fn verdict(s: &SchedulerSummary, summary: &Summary) -> Option<String> {
    if is_reference(s, summary) {
        return None;
    }
    let of_class = |packets| {
        let numbers = 0..s.traffic.len();
        numbers.filter_map(|n| class(s, n, packets)?.vs_reference).next()
    };
    let short = (of_class(SizeClass::UpTo20)?, summary.reference.as_str());
    let mut line = text::verdict(&s.scheduler, &[short]);
    if let Some(long) = of_class(SizeClass::UpTo1000) {
        line += &format!(", those of 100-1000 packets {}", ratio(long));
    }
    Some(line + ".")
}
