//! A [`Summary`] for a terminal: tables that fit 100 columns, and a verdict in words.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};
use measure::SizeClass;
use measure::stats::Estimate;

use crate::summary::{ClassSummary, SchedulerSummary, StreamSummary, Summary};
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
        heading("The queue towards the client"),
        queue_table(summary),
    ];
    parts.extend(summary.schedulers.iter().filter_map(|s| verdict(s, summary)));
    parts.join("\n") + "\n"
}

fn heading(text: &str) -> String {
    format!("\n{text}")
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
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
        let mut row = vec![scheduler.scheduler.clone()];
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
    cell += &format!("\nn={}", times.n);
    if class.incomplete > 0 {
        cell += &format!(", {} incomplete", class.incomplete);
    }
    if let Some(slowdown) = class.slowdown {
        cell += &format!(", {:.1} x idle", slowdown.value);
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
        let ratio = |class, pick: fn(&ClassSummary) -> Option<Estimate>| {
            s.classes.iter().find(|c| c.packets == class).and_then(pick).map_or("-".into(), ratio)
        };
        table.add_row([
            s.scheduler.clone(),
            ratio(SizeClass::UpTo20, |c| c.vs_fifo),
            ratio(SizeClass::UpTo20, |c| c.vs_fq_codel),
            ratio(SizeClass::UpTo1000, |c| c.vs_fifo),
            s.downloads_vs_fifo.map_or("-".into(), self::ratio),
        ]);
    }
    table.to_string()
}

fn interactive_table(summary: &Summary) -> String {
    let mut table = table(&[
        "scheduler",
        "voice: loss,\ndelay ms (p95)",
        "video: loss,\ndelay ms (p95)",
        "ping: loss,\nrtt ms (p95)",
        "requests\nms (p95)",
        "downloads\nMbit/s",
        "link\nused",
    ]);
    for s in &summary.schedulers {
        let requests = &s.requests_ms;
        table.add_row([
            s.scheduler.clone(),
            stream(&s.voice),
            stream(&s.video),
            stream(&s.ping),
            format!("{} ({})", value(requests.mean), value(requests.p95)),
            s.downloads_mbit.map_or("-".into(), |e| format!("{:.2}", e.value)),
            s.utilisation.map_or("-".into(), |u| format!("{:.0} %", u * 100.0)),
        ]);
    }
    table.to_string()
}

fn stream(stream: &StreamSummary) -> String {
    let Some(loss) = stream.loss_percent() else { return "-".into() };
    format!("{loss:.1} %, {} ({})", value(stream.delay_ms.mean), value(stream.delay_ms.p95))
}

fn queue_table(summary: &Summary) -> String {
    let mut table = table(&[
        "scheduler",
        "drops short\n/ long lane",
        "of these, transfers\n<=20 packets",
        "flow table\nmean (peak)",
        "fragments: transfer,\ndownload /1000 pkts",
        "sent again",
        "timeouts",
    ]);
    for s in &summary.schedulers {
        let in_lane = |long: bool| -> u64 {
            s.drops.iter().filter(|d| (d.lane > Some(0)) == long).map(|d| d.packets).sum()
        };
        let short = s.drops.iter().filter(|d| d.packets_class == Some(SizeClass::UpTo20));
        let has_table = s.flow_table_peak.is_some_and(|peak| peak > 0);
        let number = |n: Option<f64>| n.filter(|_| has_table).map_or("-".into(), decimals);
        table.add_row([
            s.scheduler.clone(),
            format!("{} / {}", in_lane(false), in_lane(true)),
            short.map(|d| d.packets).sum::<u64>().to_string(),
            format!(
                "{} ({})",
                number(s.flow_table_mean),
                number(s.flow_table_peak.map(|n| n as f64))
            ),
            format!(
                "{}, {}",
                number(s.transfer_fragments),
                number(s.download_fragments_per_1000_packets)
            ),
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
    let titles: Vec<String> = bulk.iter().map(|n| format!("{n} bulk flows")).collect();
    let mut header = vec!["transfers of"];
    header.extend(titles.iter().map(String::as_str));
    let mut table = table(&header);
    for &size in &sizes {
        let mut row = vec![format!("{} kB", size / 1000)];
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
        format!("{} {}{bound}", r.scheduler, decimals(r.mean_ms))
    };
    results.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// One line on what a discipline does for whom, against FIFO and FQ-CoDel.
fn verdict(s: &SchedulerSummary, summary: &Summary) -> Option<String> {
    let short = s.classes.iter().find(|c| c.packets == SizeClass::UpTo20)?;
    let named = |name: &str| {
        summary.schedulers.iter().find(|other| other.scheduler.split(':').next() == Some(name))
    };
    let mut says = Vec::new();
    for (name, ratio) in [("FIFO", short.vs_fifo), ("FQ-CoDel", short.vs_fq_codel)] {
        let other = named(&name.to_lowercase());
        if let Some(ratio) = ratio.filter(|_| other.is_none_or(|o| o.scheduler != s.scheduler)) {
            says.push(format!("{} {name}'s time", self::ratio(ratio)));
        }
    }
    if says.is_empty() {
        return None;
    }
    let mut line = format!("{}: transfers of <= 20 packets take {}", s.scheduler, says.join(", "));
    if let Some(loss) = s.voice.loss_percent() {
        line += &format!("; voice loses {loss:.1} %");
        let others = ["fifo", "fq-codel"].iter().filter_map(|name| named(name));
        let others: Vec<String> = others
            .filter(|other| other.scheduler != s.scheduler)
            .filter_map(|o| Some(format!("{} {:.1} %", o.scheduler, o.voice.loss_percent()?)))
            .collect();
        if !others.is_empty() {
            line += &format!(" ({})", others.join(", "));
        }
    }
    if let Some(downloads) = s.downloads_vs_fifo.filter(|_| short.vs_fifo.is_some()) {
        line += &format!("; long downloads get {} FIFO's rate", ratio(downloads));
    }
    Some(format!("{line}."))
}

fn value(estimate: Option<Estimate>) -> String {
    estimate.map_or("-".into(), |e| decimals(e.value))
}

/// Three digits or so.
fn decimals(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn ratio(estimate: Estimate) -> String {
    if estimate.value == 1.0 && estimate.interval.is_none_or(|(low, high)| low == high) {
        return "1".into();
    }
    match estimate.interval {
        Some((low, high)) => format!("{:.2} x [{low:.2}, {high:.2}]", estimate.value),
        None => format!("{:.2} x", estimate.value),
    }
}
