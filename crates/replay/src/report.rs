//! The result of a replay.

use account::{Drops, LaneTotals, Tally, Totals};
use measure::{RunInfo, SCHEMA_VERSION, SizeClass};
use sched::{DropReason, Lane, Nanos, Rate};
use serde::Serialize;
use serde_json::json;

use crate::config::Config;
use crate::facts::CaptureFacts;
use crate::rows::RUN;
use crate::trial::{Delays, Trial};

/// The whole result: the capture as it was found, and what each discipline made of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The capture's own facts.
    pub capture: CaptureFacts,
    /// Whether the replay was interrupted: all below is about the packets up to there.
    pub partial: bool,
    /// What should be known before the figures are believed.
    pub warnings: Vec<String>,
    /// Per discipline, in the order given.
    pub schedulers: Vec<SchedulerReport>,
}

/// What a discipline made of the capture.
#[derive(Clone, Debug, Serialize)]
pub struct SchedulerReport {
    /// The discipline with the parameters that were given.
    pub scheduler: String,
    /// Whether the discipline has lanes.
    pub has_lanes: bool,
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Bytes dropped.
    pub dropped_bytes: u64,
    /// Packets that the discipline never let go.
    pub queued_packets: u64,
    /// Packets marked "congestion experienced".
    pub marked_packets: u64,
    /// Drops by lane and reason.
    pub drops: Vec<DropReport>,
    /// Packets sent by lane.
    pub lanes: Vec<LaneReport>,
    /// Time in the queue, of all packets sent.
    pub delay: DelayReport,
    /// Of the first 20 packets of every flow.
    pub first_20_packets: DelayReport,
    /// By size of the flow.
    pub classes: Vec<ClassReport>,
    /// Flows of which every packet was sent.
    pub flows_complete: u64,
    /// Time-mean of the queue.
    pub backlog_mean_packets: f64,
    /// Longest queue.
    pub backlog_peak_packets: u64,
    /// Time-mean of the entries in the flow table.
    pub flow_table_mean: f64,
    /// Most entries in the flow table.
    pub flow_table_peak: u64,
    /// For 99 % of the time there were no more; `None` over no time.
    pub flow_table_p99: Option<u64>,
    /// How often the flow table was full.
    pub flows_untracked: u64,
    /// Fraction of the time during which the link was sending.
    pub utilisation: Option<f64>,
    /// When the last bit had left.
    pub end_ns: u64,
}

/// Drops for one reason from one lane.
#[derive(Clone, Debug, Serialize)]
pub struct DropReport {
    /// The lane: 0 is the short one, and the only one of disciplines without lanes.
    pub lane: usize,
    /// The reason.
    pub reason: &'static str,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A lane's share of what was sent.
#[derive(Clone, Debug, Serialize)]
pub struct LaneReport {
    /// The lane: 0 is the short one, and the only one of disciplines without lanes.
    pub lane: usize,
    /// Packets sent from it.
    pub sent_packets: u64,
    /// Of all packets sent.
    pub share: f64,
}

/// Times in the queue, from arrival to the start of transmission.
#[derive(Clone, Debug, Serialize)]
pub struct DelayReport {
    /// Packets sent.
    pub packets: u64,
    /// Their mean.
    pub mean_ns: Option<f64>,
    /// Their median, to 0.1 %, as are the other quantiles.
    pub p50_ns: Option<u64>,
    /// 95th percentile.
    pub p95_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
}

/// Flows of one size class; the size is what the capture has of a flow.
#[derive(Clone, Debug, Serialize)]
pub struct ClassReport {
    /// The class, in packets.
    pub size_class: SizeClass,
    /// Flows.
    pub flows: u64,
    /// Their packets.
    pub packets: u64,
    /// Of these, dropped.
    pub dropped_packets: u64,
    /// Time in the queue of the packets sent.
    pub delay: DelayReport,
}

impl Report {
    /// What `run.json` says of the replay, which depends on the capture and the seed alone.
    /// `capture` names the capture, `command` is what was called.
    #[must_use]
    pub fn run_info(&self, config: &Config, capture: &str, command: Vec<String>) -> RunInfo {
        RunInfo {
            run: RUN.into(),
            engine: None,
            schema: SCHEMA_VERSION,
            command,
            version: env!("CARGO_PKG_VERSION").into(),
            started: None,
            machine: None,
            ended_early: self.partial.then(|| "interrupted".into()),
            seed: config.seed,
            scenario: json!({
                "capture": capture,
                "capture_facts": self.capture,
                "partial": self.partial,
                "warnings": self.warnings,
                "schedulers": config.schedulers.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "rate_bps": config.rate.0,
                "limit": config.limit.to_string(),
                "seed": config.seed,
                "idle_ns": config.idle.0,
            }),
        }
    }

    pub(crate) fn new(
        config: &Config,
        capture: CaptureFacts,
        trials: &[Trial],
        partial: bool,
    ) -> Self {
        let warnings = capture.warnings();
        let scheduler =
            |trial| SchedulerReport::new(trial, config.rate, Nanos(capture.duration_ns));
        let schedulers = trials.iter().map(scheduler).collect();
        Self { capture, partial, warnings, schedulers }
    }
}

impl SchedulerReport {
    /// Flows of this size, if there were any.
    #[must_use]
    pub fn class(&self, size_class: SizeClass) -> Option<&ClassReport> {
        self.classes.iter().find(|class| class.size_class == size_class)
    }

    fn new(trial: &Trial, rate: Rate, duration: Nanos) -> Self {
        let ledger = trial.port.ledger();
        let totals = ledger.totals();
        let end = trial.end.max(duration);
        let busy_ns = totals.sent().bytes as f64 * 8e9 / rate.0 as f64;
        let mut all = Delays::default();
        trial.classes.iter().for_each(|class| all.merge(&class.delays));
        let classes = SizeClass::ALL.into_iter().zip(&trial.classes);
        let classes = classes.filter(|(_, tally)| tally.flows > 0);
        Self {
            scheduler: trial.name.to_string(),
            has_lanes: trial.has_lanes,
            arrived_packets: totals.arrived.packets,
            sent_packets: totals.sent().packets,
            sent_bytes: totals.sent().bytes,
            dropped_packets: totals.drops.total().packets,
            dropped_bytes: totals.drops.total().bytes,
            queued_packets: trial.port.backlog().packets,
            marked_packets: totals.marked_packets,
            drops: drops(&totals.drops),
            lanes: lanes(totals),
            delay: DelayReport::new(&all),
            first_20_packets: DelayReport::new(&trial.first_packets),
            classes: classes
                .map(|(size_class, tally)| ClassReport {
                    size_class,
                    flows: tally.flows,
                    packets: tally.packets,
                    dropped_packets: tally.dropped.total().packets,
                    delay: DelayReport::new(&tally.delays),
                })
                .collect(),
            flows_complete: trial.classes.iter().map(|class| class.complete).sum(),
            backlog_mean_packets: ledger.backlog().mean(end),
            backlog_peak_packets: ledger.backlog().peak(),
            flow_table_mean: ledger.table().mean(end),
            flow_table_peak: ledger.table().peak(),
            flow_table_p99: ledger.table().quantile(0.99, end),
            flows_untracked: totals.flows_untracked,
            utilisation: (end > Nanos::ZERO).then(|| busy_ns / end.0 as f64),
            end_ns: end.0,
        }
    }
}

fn drops(drops: &Drops) -> Vec<DropReport> {
    let report = |(lane, reason, dropped): (Lane, DropReason, Tally)| DropReport {
        lane: lane.0.into(),
        reason: reason.name(),
        packets: dropped.packets,
        bytes: dropped.bytes,
    };
    drops.iter().map(report).collect()
}

fn lanes(totals: &Totals) -> Vec<LaneReport> {
    let all = totals.sent().packets;
    let lane = |(lane, totals): (usize, &LaneTotals)| LaneReport {
        lane,
        sent_packets: totals.sent.packets,
        share: totals.sent.packets as f64 / all.max(1) as f64,
    };
    totals.lanes.iter().enumerate().map(lane).collect()
}

impl DelayReport {
    fn new(delays: &Delays) -> Self {
        Self {
            packets: delays.count(),
            mean_ns: delays.mean(),
            p50_ns: delays.quantile(0.5),
            p95_ns: delays.quantile(0.95),
            p99_ns: delays.quantile(0.99),
            max_ns: delays.max(),
        }
    }
}
