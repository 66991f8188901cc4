//! A [`Summary`] for a terminal: tables that fit 100 columns, and a verdict in words.

use measure::SizeClass;
use measure::stats::Estimate;
use measure::text::{self, SchedulerTable, against, decimals, ratio, table, value, wrap};
use sched::Amount;

use crate::summary::{ClassSummary, DropSummary, SchedulerSummary, StreamSummary, Summary};
use crate::sweep::{Cell, CellResult};

/// The whole report.
#[must_use]
pub fn report(summary: &Summary) -> String {
    let mut parts = vec![
        heading("Transfers: mean completion time in ms (median, 95th percentile)"),
        completion_table(summary),
        heading("Against FIFO and FQ-CoDel: ratio of mean completion times, 95 % interval"),
        ratio_table(summary),
        heading("Beside them"),
        interactive_table(summary),
        streams_table(summary),
        heading("The queue towards the client"),
        queue_table(summary),
        wrap(
            "n: values behind a figure, of a ratio independent batches of them; -: too few values, or \
             no such thing; incomplete: not done when its block ended, so excluded from means; \
             fragments: entries in the flow table that a flow had one after another, a transfer, or \
             a download per 1000 packets.",
        ),
        String::new(),
    ];
    parts.extend(summary.schedulers.iter().filter_map(|s| verdict(s, summary)).map(|v| wrap(&v)));
    parts.join("\n") + "\n"
}

fn heading(text: &str) -> String {
    format!("\n{text}")
}

fn by_scheduler(summary: &Summary) -> SchedulerTable<'_, SchedulerSummary> {
    SchedulerTable::new(&summary.schedulers, |s| &s.scheduler)
}

fn completion_table(summary: &Summary) -> String {
    let title = |class: SizeClass| format!("{} packets", class.name());
    by_scheduler(summary).classes(title, |s, class| s.class(class).map(class_cell)).to_string()
}

fn class_cell(class: &ClassSummary) -> String {
    let times = &class.completion_ms;
    let mut cell = format!("{} ({}, {})", value(times.mean), value(times.median), value(times.p95));
    if let Some(slowdown) = class.slowdown {
        cell += &format!("\n{:.1} x idle", slowdown.value);
    }
    cell += &format!("\nn={}", times.n);
    if class.incomplete > 0 {
        cell += &format!(", {} incomplete", class.incomplete);
    }
    cell
}

fn ratio_table(summary: &Summary) -> String {
    let (short, long) = (SizeClass::UpTo20, SizeClass::UpTo1000);
    by_scheduler(summary)
        .column("<=20 / FIFO", |s| ratio_cell(s, "fifo", s.class(short).and_then(|c| c.vs_fifo)))
        .column("<=20 / FQ-CoDel", |s| {
            ratio_cell(s, "fq-codel", s.class(short).and_then(|c| c.vs_fq_codel))
        })
        .column("100-1000 / FIFO", |s| ratio_cell(s, "fifo", s.class(long).and_then(|c| c.vs_fifo)))
        .column("downloads / FIFO", |s| ratio_cell(s, "fifo", s.downloads_vs_fifo))
        .to_string()
}

fn is(s: &SchedulerSummary, name: &str) -> bool {
    s.scheduler.split(':').next() == Some(name)
}

fn ratio_cell(s: &SchedulerSummary, reference: &str, estimate: Option<Estimate>) -> String {
    // A second one of the same name has other parameters.
    let is_reference = is(s, reference) && estimate.is_some_and(|e| e.value == 1.0);
    let cell = against(estimate, is_reference);
    match estimate.filter(|_| !is_reference) {
        Some(e) => format!("{}\nn={}", cell.replace(" [", "\n["), e.n),
        None => cell,
    }
}

fn interactive_table(summary: &Summary) -> String {
    by_scheduler(summary)
        .column("voice\ndelay ms (p95)", |s| stream(&s.voice))
        .column("video\ndelay ms (p95)", |s| stream(&s.video))
        .column("ping\nrtt ms (p95)", |s| stream(&s.ping))
        .column("requests\nms (p95)", requests)
        .column("bulk flows\nMbit/s", bulk)
        .column("link\nused", |s| {
            s.utilisation.map_or("-".into(), |used| format!("{:.0} %", used * 100.0))
        })
        .to_string()
}

/// A scenario's streams that have no column of their own; nothing where there are none.
fn streams_table(summary: &Summary) -> String {
    let all = summary.schedulers.iter().flat_map(|s| s.streams.iter().map(move |of| (s, of)));
    let lines: Vec<_> = all.collect();
    if lines.is_empty() {
        return String::new();
    }
    let table = SchedulerTable::new(&lines, |(s, _)| &s.scheduler)
        .column("stream", |(_, (name, _))| (*name).clone())
        .column("delay ms (p95)", |(_, (_, summary))| stream(summary));
    format!("\nOther streams\n{table}")
}

fn stream(stream: &StreamSummary) -> String {
    let Some(loss) = stream.loss_percent() else { return "-".into() };
    let delay = &stream.delay_ms;
    let delay = format!("{} ({})", value(delay.mean), value(delay.p95));
    format!("{delay}\n{loss:.1} % lost\nn={}", stream.sent)
}

fn requests(s: &SchedulerSummary) -> String {
    let times = &s.requests_ms;
    if times.n + s.requests_incomplete == 0 {
        return "-".into();
    }
    let mut cell = format!("{} ({})\nn={}", value(times.mean), value(times.p95), times.n);
    if s.requests_incomplete > 0 {
        cell += &format!("\n{} incomplete", s.requests_incomplete);
    }
    cell
}

fn bulk(s: &SchedulerSummary) -> String {
    let rate = |e: Estimate, name| format!("{:.2} {name}\nn={}", e.value, e.n);
    let rates = [s.downloads_mbit.map(|e| rate(e, "down")), s.uploads_mbit.map(|e| rate(e, "up"))];
    let rates: Vec<String> = rates.into_iter().flatten().collect();
    if rates.is_empty() { "-".into() } else { rates.join("\n") }
}

fn queue_table(summary: &Summary) -> String {
    let dropped = |s: &SchedulerSummary, counts: fn(&DropSummary) -> bool| -> u64 {
        s.drops.iter().filter(|d| counts(d)).map(|d| d.packets).sum()
    };
    // Of the flow table, where there is one.
    let number = |s: &SchedulerSummary, n: Option<f64>| {
        n.filter(|_| s.flow_table_peak > Some(0)).map_or("-".into(), decimals)
    };
    by_scheduler(summary)
        .column("drops short\n/ long lane", |s| {
            format!("{} / {}", dropped(s, |d| d.lane <= Some(0)), dropped(s, |d| d.lane > Some(0)))
        })
        .column("of transfers\n<=20 packets", |s| {
            dropped(s, |d| d.packets_class == Some(SizeClass::UpTo20)).to_string()
        })
        .column("flow table\nmean (peak)", |s| match s.flow_table_peak {
            Some(peak) if peak > 0 => format!("{} ({peak})", number(s, s.flow_table_mean)),
            _ => "-".into(),
        })
        .column("fragments:\na transfer", |s| number(s, s.transfer_fragments))
        .column("1000 of a\ndownload", |s| number(s, s.download_fragments_per_1000_packets))
        .column("resent\n(in vain)", |s| format!("{} ({})", s.retransmissions, s.duplicates))
        .column("time-\nouts", |s| s.timeouts.map_or("-".into(), |n| n.to_string()))
        .to_string()
}

/// The map of a sweep: per transfer size and number of bulk flows the fastest discipline, and each
/// one's mean completion time. A `+` marks a mean that transfers cut off at the end make a lower
/// bound.
#[must_use]
pub fn map(cells: &[Cell]) -> String {
    let (mut sizes, mut bulk) = (Vec::new(), Vec::new());
    for cell in cells {
        if !sizes.contains(&cell.size_bytes) {
            sizes.push(cell.size_bytes);
        }
        if !bulk.contains(&cell.bulk) {
            bulk.push(cell.bulk);
        }
    }
    let titles: Vec<String> =
        bulk.iter().map(|n| format!("{n} bulk flow{}", if *n == 1 { "" } else { "s" })).collect();
    let mut header = vec!["transfers of"];
    header.extend(titles.iter().map(String::as_str));
    let mut table = table(&header);
    for &size in &sizes {
        let mut row = vec![Amount::Bytes(size).to_string()];
        let of_size = |n: &u32| cells.iter().find(|c| c.size_bytes == size && c.bulk == *n);
        row.extend(bulk.iter().map(|n| of_size(n).map_or("-".into(), map_cell)));
        table.add_row(row);
    }
    format!("Mean completion time in ms, the fastest first\n{table}\n")
}

fn map_cell(cell: &Cell) -> String {
    let mut results: Vec<_> = cell.results.iter().collect();
    results.sort_by(|a, b| a.mean_ms.total_cmp(&b.mean_ms));
    let line = |r: &&CellResult| {
        let bound = if r.incomplete > 0 { "+" } else { "" };
        format!("{} {}{bound}, n={}", r.scheduler, decimals(r.mean_ms), r.n)
    };
    results.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// One line on what a discipline does for whom, against FIFO and FQ-CoDel; FIFO is what the others
/// are held against.
fn verdict(s: &SchedulerSummary, summary: &Summary) -> Option<String> {
    if is(s, "fifo") {
        return None;
    }
    let short = s.class(SizeClass::UpTo20)?;
    let named = |name| summary.schedulers.iter().find(|other| is(other, name));
    let mut ratios = vec![(short.vs_fifo, "FIFO")];
    if !is(s, "fq-codel") {
        ratios.push((short.vs_fq_codel, "FQ-CoDel"));
    }
    let ratios: Vec<_> =
        ratios.into_iter().filter_map(|(ratio, name)| Some((ratio?, name))).collect();
    if ratios.is_empty() {
        return None;
    }
    let mut line = text::verdict(&s.scheduler, &ratios);
    if let Some(loss) = s.voice.loss_percent() {
        line += &format!("; voice loses {loss:.1} %");
        let others = ["fifo", "fq-codel"].into_iter().filter(|name| !is(s, name));
        let others: Vec<String> = others
            .filter_map(|name| Some((name, named(name)?.voice.loss_percent()?)))
            .map(|(name, loss)| format!("{name} {loss:.1} %"))
            .collect();
        if !others.is_empty() {
            line += &format!(" ({})", others.join(", "));
        }
    }
    if let Some(downloads) = s.downloads_vs_fifo {
        line += &match downloads.interval {
            Some((low, high)) if low <= 1.0 && 1.0 <= high => {
                format!("; long downloads get about FIFO's rate ({})", ratio(downloads))
            }
            _ => format!("; long downloads get {} FIFO's rate", ratio(downloads)),
        };
    }
    Some(format!("{line}."))
}

#[cfg(test)]
mod tests {
    use measure::stats;
    use measure::text::WIDTH;

    use super::*;

    fn estimate(value: f64) -> Option<Estimate> {
        Some(Estimate { value, interval: Some((value * 0.81, value * 1.23)), n: 1234 })
    }

    /// As wide as it gets: four classes, big numbers.
    fn scheduler(name: &str, vs_fifo: Option<Estimate>) -> SchedulerSummary {
        let values = stats::Summary::of(&[12_345.6; 200]);
        let class = |&packets: &SizeClass| ClassSummary {
            packets,
            completion_ms: values,
            slowdown: estimate(123.4),
            incomplete: 123,
            vs_fifo,
            vs_fq_codel: estimate(10.96),
        };
        let stream = || StreamSummary { sent: 12_000, lost: 1_200, delay_ms: values };
        SchedulerSummary {
            scheduler: name.into(),
            classes: SizeClass::ALL.iter().map(class).collect(),
            requests_ms: values,
            requests_incomplete: 12,
            voice: stream(),
            video: stream(),
            ping: stream(),
            streams: [("call".to_owned(), stream())].into(),
            downloads_vs_fifo: vs_fifo,
            downloads_mbit: estimate(1234.5),
            uploads_mbit: estimate(1234.5),
            utilisation: Some(1.0),
            drops: vec![DropSummary {
                lane: Some(1),
                reason: "limit".into(),
                packets_class: Some(SizeClass::UpTo20),
                packets: 123_456,
            }],
            flow_table_mean: Some(1234.5),
            flow_table_peak: Some(12_345),
            download_fragments_per_1000_packets: Some(123.4),
            transfer_fragments: Some(12.3),
            retransmissions: 123_456,
            duplicates: 12_345,
            timeouts: Some(12_345),
        }
    }

    #[test]
    fn a_report_fits_a_terminal_and_has_a_verdict_for_all_but_fifo() {
        let same = Some(Estimate { value: 1.0, interval: Some((1.0, 1.0)), n: 9 });
        let schedulers = vec![
            scheduler("fifo", same),
            scheduler("fq-codel", estimate(0.09)),
            scheduler("efd:threshold=10packets,low-share=0.25,hold-on-wire=yes", estimate(1.05)),
        ];
        let report = report(&Summary { rounds: 12, schedulers });
        for line in report.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}\nin\n{report}");
        }
        let verdicts: Vec<&str> =
            report.lines().filter(|line| line.contains(": transfers of")).collect();
        assert!(
            verdicts[0].starts_with(
                "fq-codel: transfers of <= 20 packets take 0.09 x [0.07, 0.11] FIFO's time; voice"
            ),
            "{report}"
        );
        assert!(verdicts[1].starts_with("efd:threshold=10packets"), "{report}");
        assert_eq!(verdicts.len(), 2);
        assert!(
            report.replace("\n    ", " ").contains("long downloads get about FIFO's rate (1.05 x")
        );
        assert!(report.contains("the reference") && report.contains("n=200, 123 incomplete"));
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let mut bare = scheduler("fifo", None);
        let nothing = || StreamSummary { sent: 0, lost: 0, delay_ms: stats::Summary::of(&[]) };
        (bare.voice, bare.video, bare.ping) = (nothing(), nothing(), nothing());
        (bare.requests_ms, bare.requests_incomplete) = (stats::Summary::of(&[]), 0);
        (bare.downloads_mbit, bare.uploads_mbit, bare.utilisation) = (None, None, None);
        let table = interactive_table(&Summary { rounds: 1, schedulers: vec![bare] });
        let row = table.lines().find(|line| line.contains("fifo")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["fifo", "-", "-", "-", "-", "-", "-"]);
    }

    #[test]
    fn the_map_has_sizes_as_they_were_given() {
        let result = CellResult { scheduler: "efd".into(), mean_ms: 12.34, n: 4, incomplete: 1 };
        let cell = Cell { size_bytes: 50 * 1024, bulk: 4, results: vec![result] };
        let map = map(&[cell]);
        assert!(map.contains(" 50kb ") && map.contains("4 bulk flows"), "{map}");
        assert!(map.contains("efd 12.3+, n=4"), "{map}");
    }
}
