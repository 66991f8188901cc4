//! A [`Summary`] for a terminal: tables that fit 100 columns, and a verdict in words.

use measure::SizeClass;
use measure::stats::Estimate;
use measure::text::{decimals, ratio, table, value, wrap};

use crate::summary::{SchedulerSummary, StreamSummary, Summary};
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
             fragments: entries in the flow table that a flow had one after another.",
        ),
        String::new(),
    ];
    parts.extend(summary.schedulers.iter().filter_map(|s| verdict(s, summary)).map(|v| wrap(&v)));
    parts.join("\n") + "\n"
}

fn heading(text: &str) -> String {
    format!("\n{text}")
}

fn completion_table(summary: &Summary) -> String {
    let classes = SizeClass::ALL.iter().filter(|class| {
        summary.schedulers.iter().any(|s| s.classes.iter().any(|c| c.packets == **class))
    });
    let classes: Vec<SizeClass> = classes.copied().collect();
    let titles: Vec<String> =
        classes.iter().map(|class| format!("{} packets", class.name())).collect();
    let mut header = vec!["scheduler"];
    header.extend(titles.iter().map(String::as_str));
    let mut table = table(&header);
    for scheduler in &summary.schedulers {
        let mut row = vec![name(scheduler)];
        row.extend(classes.iter().map(|class| class_cell(scheduler, *class)));
        table.add_row(row);
    }
    table.to_string()
}

fn class_cell(scheduler: &SchedulerSummary, class: SizeClass) -> String {
    let Some(class) = scheduler.classes.iter().find(|c| c.packets == class) else {
        return "-".into();
    };
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
    let mut table = table(&[
        "scheduler",
        "<=20 / FIFO",
        "<=20 / FQ-CoDel",
        "100-1000 / FIFO",
        "downloads / FIFO",
    ]);
    for s in &summary.schedulers {
        let class = |class| s.classes.iter().find(|c| c.packets == class);
        let (short, long) = (class(SizeClass::UpTo20), class(SizeClass::UpTo1000));
        let (is_fifo, is_fq_codel) = (is(s, "fifo"), is(s, "fq-codel"));
        table.add_row([
            name(s),
            ratio_cell(is_fifo, short.and_then(|c| c.vs_fifo)),
            ratio_cell(is_fq_codel, short.and_then(|c| c.vs_fq_codel)),
            ratio_cell(is_fifo, long.and_then(|c| c.vs_fifo)),
            ratio_cell(is_fifo, s.downloads_vs_fifo),
        ]);
    }
    table.to_string()
}

fn name(s: &SchedulerSummary) -> String {
    measure::text::scheduler(&s.scheduler)
}

fn is(s: &SchedulerSummary, name: &str) -> bool {
    s.scheduler.split(':').next() == Some(name)
}

fn ratio_cell(is_reference: bool, estimate: Option<Estimate>) -> String {
    match estimate {
        // A second one of the same name has other parameters.
        Some(e) if is_reference && e.value == 1.0 => "the reference".into(),
        Some(e) => format!("{}\nn={}", ratio(e).replace(" [", "\n["), e.n),
        None => "-".into(),
    }
}

fn interactive_table(summary: &Summary) -> String {
    let mut table = table(&[
        "scheduler",
        "voice\ndelay ms (p95)",
        "video\ndelay ms (p95)",
        "ping\nrtt ms (p95)",
        "requests\nms (p95)",
        "bulk flows\nMbit/s",
        "link\nused",
    ]);
    for s in &summary.schedulers {
        let rate = |name: &str, rate: Option<Estimate>| {
            rate.map(|e| format!("{:.2} {name}\nn={}", e.value, e.n))
        };
        let rates = [rate("down", s.downloads_mbit), rate("up", s.uploads_mbit)];
        let rates: Vec<String> = rates.into_iter().flatten().collect();
        table.add_row([
            name(s),
            stream(&s.voice),
            stream(&s.video),
            stream(&s.ping),
            requests(s),
            if rates.is_empty() { "-".into() } else { rates.join("\n") },
            s.utilisation.map_or("-".into(), |u| format!("{:.0} %", u * 100.0)),
        ]);
    }
    table.to_string()
}

/// A scenario's streams that have no column of their own; nothing where there are none.
fn streams_table(summary: &Summary) -> String {
    let mut table = table(&["scheduler", "stream", "delay ms (p95)"]);
    for s in &summary.schedulers {
        for (name, summary) in &s.streams {
            table.add_row([self::name(s), name.clone(), stream(summary)]);
        }
    }
    if table.is_empty() { String::new() } else { format!("\nOther streams\n{table}") }
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

fn queue_table(summary: &Summary) -> String {
    let mut table = table(&[
        "scheduler",
        "drops short\n/ long lane",
        "of transfers\n<=20 packets",
        "flow table\nmean (peak)",
        "fragments: of\na transfer",
        "1000 packets of\na download",
        "sent\nagain",
        "time-\nouts",
    ]);
    for s in &summary.schedulers {
        let in_lane = |long: bool| -> u64 {
            s.drops.iter().filter(|d| (d.lane > Some(0)) == long).map(|d| d.packets).sum()
        };
        let short = s.drops.iter().filter(|d| d.packets_class == Some(SizeClass::UpTo20));
        let has_table = s.flow_table_peak.is_some_and(|peak| peak > 0);
        let number = |n: Option<f64>| n.filter(|_| has_table).map_or("-".into(), decimals);
        table.add_row([
            name(s),
            format!("{} / {}", in_lane(false), in_lane(true)),
            short.map(|d| d.packets).sum::<u64>().to_string(),
            match s.flow_table_peak.filter(|_| has_table) {
                Some(peak) => format!("{} ({peak})", number(s.flow_table_mean)),
                None => "-".into(),
            },
            number(s.transfer_fragments),
            number(s.download_fragments_per_1000_packets),
            s.retransmissions.to_string(),
            s.timeouts.map_or("-".into(), |n| n.to_string()),
        ]);
    }
    table.to_string()
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
        let mut row = vec![bytes(size)];
        let of_size = |n: &u32| cells.iter().find(|c| c.size_bytes == size && c.bulk == *n);
        row.extend(bulk.iter().map(|n| of_size(n).map_or("-".into(), map_cell)));
        table.add_row(row);
    }
    format!("Mean completion time in ms, the fastest first\n{table}\n")
}

/// As they are given on the command line.
fn bytes(n: u64) -> String {
    match n {
        n if n.is_multiple_of(1 << 20) => format!("{}mb", n >> 20),
        n if n.is_multiple_of(1 << 10) => format!("{}kb", n >> 10),
        n => format!("{n}b"),
    }
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
    let short = s.classes.iter().find(|c| c.packets == SizeClass::UpTo20)?;
    let named = |name| summary.schedulers.iter().find(|other| is(other, name));
    let mut says = Vec::new();
    for (name, ratio) in [("FIFO", short.vs_fifo), ("FQ-CoDel", short.vs_fq_codel)] {
        if let Some(ratio) = ratio.filter(|_| !is(s, &name.to_lowercase())) {
            says.push(format!("{} {name}'s time", measure::text::ratio(ratio)));
        }
    }
    if says.is_empty() {
        return None;
    }
    let mut line = format!("{}: transfers of <= 20 packets take {}", s.scheduler, says.join(", "));
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
    use crate::summary::{ClassSummary, DropSummary};

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
