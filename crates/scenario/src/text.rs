//! A [`Summary`] for a terminal: tables that fit 100 columns, and sentences.

use measure::SizeClass;
use measure::stats::Estimate;
use measure::text::{decimals, ratio, scheduler, table, value, wrap};

use crate::scenario::Scenario;
use crate::summary::{ClassSummary, SchedulerSummary, Summary, TimesSummary, TrafficKind};

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

fn classes(s: &SchedulerSummary, number: usize) -> &[ClassSummary] {
    match &s.traffic[number].kind {
        TrafficKind::Transfers { classes, .. } => classes,
        _ => &[],
    }
}

fn class(s: &SchedulerSummary, number: usize, packets: SizeClass) -> Option<&ClassSummary> {
    classes(s, number).iter().find(|class| class.packets == packets)
}

/// A table with a column per size class that occurs.
fn class_table(
    summary: &Summary,
    number: usize,
    cell: impl Fn(&SchedulerSummary, &ClassSummary) -> String,
) -> String {
    let occurs = |packets: &&SizeClass| {
        summary.schedulers.iter().any(|s| class(s, number, **packets).is_some())
    };
    let found: Vec<SizeClass> = SizeClass::ALL.iter().filter(occurs).copied().collect();
    let titles: Vec<String> = found.iter().map(|c| format!("{} packets", c.name())).collect();
    let mut header = vec!["scheduler"];
    header.extend(titles.iter().map(String::as_str));
    let mut table = table(&header);
    for s in &summary.schedulers {
        let cells = found.iter().map(|packets| match class(s, number, *packets) {
            Some(class) => cell(s, class),
            None => "-".into(),
        });
        table.add_row(std::iter::once(scheduler(&s.scheduler)).chain(cells));
    }
    table.to_string()
}

fn completion_table(summary: &Summary, number: usize) -> String {
    class_table(summary, number, |_, class| {
        let mut cell = with_interval(class.completion_ms);
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
    class_table(summary, number, |s, class| match class.vs_reference {
        Some(_) if s.scheduler == summary.reference => "the reference".into(),
        Some(estimate) => ratio(estimate),
        None => "-".into(),
    })
}

fn stream_table(summary: &Summary) -> String {
    let mut table = table(&["scheduler", "traffic", "mean", "95 %", "longest", "lost %", "n"]);
    for s in &summary.schedulers {
        for traffic in &s.traffic {
            let row = |times: &TimesSummary, lost: String, n: u64| {
                let max = times.max.map_or("-".into(), decimals);
                let name = scheduler(&s.scheduler);
                [
                    name,
                    traffic.name.clone(),
                    with_interval(times.mean),
                    value(times.p95),
                    max,
                    lost,
                    n.to_string(),
                ]
            };
            match &traffic.kind {
                TrafficKind::Transfers { pages: Some(pages), .. } => {
                    let lost = match pages.incomplete {
                        0 => "-".into(),
                        n => format!("{n} incomplete"),
                    };
                    let [name, traffic, rest @ ..] = row(&pages.times_ms, lost, pages.complete);
                    table.add_row([name, format!("{traffic} pages")].into_iter().chain(rest));
                }
                TrafficKind::Requests { times_ms, answered, unanswered } => {
                    let lost = match unanswered {
                        0 => "-".into(),
                        n => format!("{n} unanswered"),
                    };
                    table.add_row(row(times_ms, lost, *answered));
                }
                TrafficKind::Stream { sent, loss_percent, delay_ms } => {
                    table.add_row(row(delay_ms, with_interval(*loss_percent), *sent));
                }
                _ => {}
            }
        }
    }
    table.to_string()
}

fn long_table(summary: &Summary) -> String {
    let mut table = table(&["scheduler", "traffic", "Mbit/s", "ratio"]);
    for s in &summary.schedulers {
        for traffic in &s.traffic {
            let TrafficKind::Persistent { mbit, vs_reference } = &traffic.kind else { continue };
            let against = match vs_reference {
                Some(_) if s.scheduler == summary.reference => "the reference".into(),
                Some(estimate) => ratio(*estimate),
                None => "-".into(),
            };
            table.add_row([
                scheduler(&s.scheduler),
                traffic.name.clone(),
                with_interval(*mbit),
                against,
            ]);
        }
    }
    table.to_string()
}

fn queue_table(summary: &Summary, at: usize) -> String {
    let mut table = table(&[
        "scheduler",
        "link\nused %",
        "queue mean\n(peak)",
        "dropped\n%",
        "packets dropped\nshort / long lane",
        "marked\n%",
        "flow table\nmean (99 %, peak)",
    ]);
    for s in &summary.schedulers {
        let link = &s.links[at];
        let percent =
            |e: Option<Estimate>| e.map_or("-".into(), |e| format!("{:.1}", 100.0 * e.value));
        let entries = match link.entries_peak {
            0 => "-".into(),
            peak => format!("{} ({}, {peak})", value(link.entries_mean), value(link.entries_p99)),
        };
        table.add_row([
            scheduler(&s.scheduler),
            percent(link.utilisation),
            format!("{} ({})", value(link.backlog_mean), link.backlog_peak),
            value(link.drop_percent),
            format!("{} / {}", whole(link.dropped_short_lane), whole(link.dropped_long_lane)),
            value(link.marked_percent),
            entries,
        ]);
    }
    table.to_string()
}

fn tcp_table(summary: &Summary) -> String {
    let mut table =
        table(&["scheduler", "segments sent again", "timeouts", "of transfers <=20 packets"]);
    for s in &summary.schedulers {
        let cells = [s.retransmissions, s.timeouts, s.short_timeouts].map(whole);
        table.add_row(std::iter::once(scheduler(&s.scheduler)).chain(cells));
    }
    table.to_string()
}

fn whole(estimate: Option<Estimate>) -> String {
    estimate.map_or("-".into(), |e| format!("{:.0}", e.value))
}

fn with_interval(estimate: Option<Estimate>) -> String {
    match estimate {
        Some(Estimate { value, interval: Some((low, high)), .. }) => {
            format!("{} [{}, {}]", decimals(value), decimals(low), decimals(high))
        }
        other => value(other),
    }
}

/// One line on what a scheduler does for short and for long transfers.
fn verdict(s: &SchedulerSummary, summary: &Summary) -> Option<String> {
    if s.scheduler == summary.reference {
        return None;
    }
    let of_class = |packets| {
        let numbers = 0..s.traffic.len();
        numbers.filter_map(|n| class(s, n, packets)?.vs_reference).next()
    };
    let short = of_class(SizeClass::UpTo20)?;
    let reference = &summary.reference;
    let mut line = format!(
        "{}: transfers of <= 20 packets take {} {reference}'s time",
        s.scheduler,
        ratio(short)
    );
    if let Some(long) = of_class(SizeClass::UpTo1000) {
        line += &format!(", those of 100-1000 packets {}", ratio(long));
    }
    Some(line + ".")
}
