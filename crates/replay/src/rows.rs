//! Rows of the results schema.

use measure::{AnyRow, Block, DropCount, Flow, FlowKind, Key, LinkUse, SizeClass, Text};

use crate::config::Config;
use crate::flows;
use crate::report::{Report, SchedulerReport};
use crate::tables::Tables;
use crate::trial::{FlowOutcome, Trial};

/// The run's name in all tables.
pub const RUN: &str = "replay";

pub(crate) fn key(config: &Config, scheduler: &Text, block: u64) -> Key {
    Key { run: RUN.into(), scheduler: scheduler.clone(), seed: config.seed, round: 0, block }
}

/// The name of the only link.
pub(crate) fn link() -> Text {
    "link".into()
}

pub(crate) fn flow(key: Key, flow: &flows::Flow, outcome: &FlowOutcome) -> Flow {
    let account = &outcome.account;
    let dropped = account.dropped.map(|reasons| reasons.iter().map(|n| u64::from(*n)).sum::<u64>());
    let dropped_bytes: u64 = account.dropped_bytes.iter().flatten().sum();
    let sent = account.sent.map(u64::from);
    let complete = sent[0] + sent[1] == flow.packets;
    let end_ns = complete.then_some(outcome.end.0);
    Flow {
        key,
        index: flow.number,
        kind: FlowKind::Captured,
        flow: flow.text.clone(),
        size_bytes: Some(flow.bytes),
        size_class: Some(SizeClass::of_packets(flow.packets)),
        start_ns: flow.first.0,
        end_ns,
        completion_ns: end_ns.map(|end| end.saturating_sub(flow.first.0)),
        received_bytes: flow.bytes.saturating_sub(dropped_bytes),
        complete,
        packets: Some(flow.packets),
        dropped_packets: Some(dropped[0] + dropped[1]),
        dropped_short_lane: Some(dropped[0]),
        dropped_long_lane: Some(dropped[1]),
        sent_short_lane: Some(sent[0]),
        sent_long_lane: Some(sent[1]),
        reordered_packets: Some(account.reordered_packets.into()),
        marked_packets: Some(account.marked_packets.into()),
        queueing_mean_ns: account.sojourn_sum.0.checked_div(sent[0] + sent[1]),
        queueing_max_ns: (sent[0] + sent[1] > 0).then_some(account.sojourn_max.0),
        fragments: Some(account.fragments.into()),
        demotions: Some(account.demotions.into()),
        ..Flow::default()
    }
}

/// The tables that have a row or a few per discipline.
pub(crate) fn write_totals(
    config: &Config,
    report: &Report,
    trials: &[Trial],
    tables: &mut Tables<'_>,
) {
    if !tables.has_results() {
        return;
    }
    for ((block, trial), scheduler) in (0..).zip(trials).zip(&report.schedulers) {
        let key = key(config, &trial.name, block);
        let row = Block {
            key: key.clone(),
            duration_ns: report.capture.duration_ns,
            offered_load: report.capture.offered_load,
            transfers: report.capture.flows,
            completed: scheduler.flows_complete,
            ..Block::default()
        };
        tables.push(AnyRow::Block(&row));
        let row = link_use(key.clone(), config, scheduler, trial);
        tables.push(AnyRow::LinkUse(&row));
        for row in drops(&key, trial) {
            tables.push(AnyRow::DropCount(&row));
        }
    }
}

fn link_use(key: Key, config: &Config, scheduler: &SchedulerReport, trial: &Trial) -> LinkUse {
    let totals = trial.port.ledger().totals();
    LinkUse {
        key,
        link: link(),
        rate_bps: config.rate.0,
        arrived_packets: totals.arrived.packets,
        arrived_bytes: totals.arrived.bytes,
        sent_packets: totals.sent().packets,
        sent_bytes: totals.sent().bytes,
        dropped_packets: totals.drops.total().packets,
        marked_packets: Some(totals.marked_packets),
        utilisation: scheduler.utilisation,
        backlog_mean_packets: Some(scheduler.backlog_mean_packets),
        backlog_peak_packets: Some(scheduler.backlog_peak_packets),
        flow_entries_mean: Some(scheduler.flow_table_mean),
        flow_entries_peak: Some(scheduler.flow_table_peak),
        flow_entries_p99: scheduler.flow_table_p99,
        flow_entries_beyond_backlog: Some(trial.port.ledger().entries_beyond_backlog()),
        flows_untracked: Some(totals.flows_untracked),
        ..LinkUse::default()
    }
}

fn drops(key: &Key, trial: &Trial) -> Vec<DropCount> {
    let mut rows = Vec::new();
    for (class, tally) in SizeClass::ALL.into_iter().zip(&trial.classes) {
        rows.extend(tally.dropped.iter().map(|(lane, reason, dropped)| DropCount {
            key: key.clone(),
            link: link(),
            lane: Some(lane.0.into()),
            reason: reason.name().into(),
            size_class: Some(class),
            packets: dropped.packets,
            bytes: dropped.bytes,
        }));
    }
    rows
}
