//! What the runs say, in the numbers that people compare. Means are means of seeds, and so are
//! their intervals: flows of one run met in one queue and are not independent.

use measure::stats::{self, Estimate};
use measure::{LinkUse, SizeClass};
use serde::Serialize;

use crate::scenario::Scenario;
use crate::tally::{LinkTally, Tally, TrafficTally};
use crate::traffic::Kind;
use crate::work::Finished;

/// The result of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Seeds that every scheduler completed; the others are left out.
    pub seeds: u64,
    /// The scheduler that ratios are taken to.
    pub reference: String,
    /// Whether any of the traffic is TCP.
    pub has_tcp: bool,
    /// One entry per scheduler, in the order they were named.
    pub schedulers: Vec<SchedulerSummary>,
}

/// What one scheduler did.
#[derive(Clone, Debug, Serialize)]
pub struct SchedulerSummary {
    /// Its name with the parameters given.
    pub scheduler: String,
    /// By traffic, in the order of the scenario.
    pub traffic: Vec<TrafficSummary>,
    /// By direction under test.
    pub links: Vec<LinkSummary>,
    /// Segments that TCP sent again, in a run.
    pub retransmissions: Option<Estimate>,
    /// Retransmission timeouts in a run, those of the handshake among them.
    pub timeouts: Option<Estimate>,
    /// Of these, timeouts of transfers of at most 20 packets.
    pub short_timeouts: Option<Estimate>,
}

/// One traffic under one scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct TrafficSummary {
    /// The traffic.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: TrafficKind,
}

/// What is said of a kind of traffic.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TrafficKind {
    /// Transfers that end.
    Transfers {
        /// By size.
        classes: Vec<ClassSummary>,
        /// Pages that these are the objects of, where they are.
        #[serde(skip_serializing_if = "Option::is_none")]
        pages: Option<PagesSummary>,
    },
    /// Flows without end.
    Persistent {
        /// Received by all of them together, in Mbit/s of payload.
        mbit: Option<Estimate>,
        /// The same over the reference's, paired by seed.
        vs_reference: Option<Estimate>,
    },
    /// Requests.
    Requests {
        /// Response time.
        times_ms: TimesSummary,
        /// Requests answered.
        answered: u64,
        /// Requests without an answer by the end of their run.
        unanswered: u64,
    },
    /// UDP streams.
    Stream {
        /// Packets sent, without those on their way at the end of their run.
        sent: u64,
        /// Loss in per cent.
        loss_percent: Option<Estimate>,
        /// One-way delay.
        delay_ms: TimesSummary,
    },
}

/// Web pages, from the begin to the last byte of the last object.
#[derive(Clone, Debug, Serialize)]
pub struct PagesSummary {
    /// How long they took.
    pub times_ms: TimesSummary,
    /// Complete pages.
    pub complete: u64,
    /// Pages not complete by the end of their run.
    pub incomplete: u64,
}

/// Transfers of one size class.
#[derive(Clone, Debug, Serialize)]
pub struct ClassSummary {
    /// The class, in packets.
    pub packets: SizeClass,
    /// Completion time in ms, of the complete ones.
    pub completion_ms: Option<Estimate>,
    /// Completion time over that on an idle network.
    pub slowdown: Option<Estimate>,
    /// Complete transfers.
    pub complete: u64,
    /// Transfers not complete by the end of their run.
    pub incomplete: u64,
    /// Mean completion time over the reference's, of transfers complete under both.
    pub vs_reference: Option<Estimate>,
}

/// Times in ms. Each is the mean over seeds of what it says of one.
#[derive(Clone, Debug, Serialize)]
pub struct TimesSummary {
    /// The mean.
    pub mean: Option<Estimate>,
    /// The 95th percentile.
    pub p95: Option<Estimate>,
    /// The longest of all.
    pub max: Option<f64>,
}

/// One direction under test. Everything is after the warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct LinkSummary {
    /// Its name.
    pub link: String,
    /// Part of the time that it was sending.
    pub utilisation: Option<Estimate>,
    /// Time-mean of the queue in packets.
    pub backlog_mean: Option<Estimate>,
    /// Longest queue in packets.
    pub backlog_peak: u64,
    /// Dropped, of all packets that arrived, in per cent.
    pub drop_percent: Option<Estimate>,
    /// Packets dropped in or before the short lane, in a run.
    pub dropped_short_lane: Option<Estimate>,
    /// Packets dropped in or before any other lane, in a run.
    pub dropped_long_lane: Option<Estimate>,
    /// Packets marked, of all that arrived, in per cent.
    pub marked_percent: Option<Estimate>,
    /// Time-mean of the entries in the flow table.
    pub entries_mean: Option<Estimate>,
    /// 99th percentile of the samples of the flow table.
    pub entries_p99: Option<Estimate>,
    /// Most entries in the flow table.
    pub entries_peak: u64,
}

impl Summary {
    /// Summarises the seeds that every scheduler completed.
    #[must_use]
    pub fn of(scenario: &Scenario, finished: &Finished) -> Self {
        let schedulers = scenario.schedulers.len();
        let whole = |round: &usize| {
            finished.runs.iter().filter(|run| run.round == *round).count() == schedulers
        };
        let rounds: Vec<usize> = (0..scenario.seeds.len()).filter(whole).collect();
        // In the order of seeds, as `finished.runs` is.
        let of_scheduler = |scheduler: usize| -> Vec<&Tally> {
            let own = finished.runs.iter().filter(|run| run.scheduler == scheduler);
            own.filter(|run| rounds.contains(&run.round)).map(|run| &run.tally).collect()
        };
        let reference = scenario.reference();
        let theirs = of_scheduler(reference);
        Self {
            seeds: rounds.len() as u64,
            reference: scenario.schedulers[reference].to_string(),
            has_tcp: scenario.traffic.iter().any(|traffic| traffic.kind.tcp().is_some()),
            schedulers: (0..schedulers)
                .map(|scheduler| {
                    let own = of_scheduler(scheduler);
                    of_runs(scenario, scheduler, &own, &theirs)
                })
                .collect(),
        }
    }
}

fn of_runs(
    scenario: &Scenario,
    scheduler: usize,
    own: &[&Tally],
    theirs: &[&Tally],
) -> SchedulerSummary {
    let number = |value: fn(&Tally) -> u64| mean(own.iter().map(|run| Some(value(run) as f64)));
    let directions = scenario.topology.tested();
    SchedulerSummary {
        scheduler: scenario.schedulers[scheduler].to_string(),
        traffic: (0..scenario.traffic.len())
            .map(|number| traffic(scenario, number, own, theirs))
            .collect(),
        links: directions
            .enumerate()
            .map(|(at, (link, way))| {
                let name = scenario.topology.links[link].direction_name(way);
                let tallies: Vec<&LinkTally> =
                    own.iter().filter_map(|run| run.links.get(at)).collect();
                link_summary(name, &tallies)
            })
            .collect(),
        retransmissions: number(|run| run.retransmissions),
        timeouts: number(|run| run.timeouts),
        short_timeouts: number(|run| run.short_timeouts),
    }
}

fn traffic(
    scenario: &Scenario,
    number: usize,
    own: &[&Tally],
    theirs: &[&Tally],
) -> TrafficSummary {
    let traffic = &scenario.traffic[number];
    let of = |runs: &[&'_ Tally]| -> Vec<TrafficTally> {
        runs.iter().map(|run| run.traffic[number].clone()).collect()
    };
    let (own, theirs) = (of(own), of(theirs));
    let kind = match &traffic.kind {
        Kind::Persistent { .. } => {
            let counted = scenario.duration - traffic.start.max(scenario.warm_up);
            let seconds = counted.0 as f64 / 1e9;
            let mbit = |run: &TrafficTally| run.received_bytes as f64 * 8.0 / 1e6 / seconds;
            let pairs: Vec<(f64, f64)> =
                own.iter().zip(&theirs).map(|(own, their)| (mbit(own), mbit(their))).collect();
            TrafficKind::Persistent {
                mbit: mean(own.iter().map(|run| Some(mbit(run)))),
                vs_reference: stats::ratio_of_sums(&pairs),
            }
        }
        Kind::Requests { .. } => TrafficKind::Requests {
            times_ms: times(&own),
            answered: own.iter().map(|run| run.times_ns.count()).sum(),
            unanswered: own.iter().map(|run| run.unanswered).sum(),
        },
        Kind::Cbr(_) | Kind::OnOff { .. } | Kind::Trace(_) => {
            let loss = |run: &TrafficTally| {
                (run.packets_sent > 0)
                    .then(|| 100.0 * run.packets_lost as f64 / run.packets_sent as f64)
            };
            TrafficKind::Stream {
                sent: own.iter().map(|run| run.packets_sent).sum(),
                loss_percent: mean(own.iter().map(loss)),
                delay_ms: times(&own),
            }
        }
        kind => {
            let pages = PagesSummary {
                times_ms: times(&own),
                complete: own.iter().map(|run| run.times_ns.count()).sum(),
                incomplete: own.iter().map(|run| run.unanswered).sum(),
            };
            TrafficKind::Transfers {
                classes: classes(&own),
                pages: matches!(kind, Kind::Web { .. }).then_some(pages),
            }
        }
    };
    TrafficSummary { name: traffic.name.clone(), kind }
}

fn classes(own: &[TrafficTally]) -> Vec<ClassSummary> {
    let one = |(at, &packets): (usize, &SizeClass)| {
        let runs = || own.iter().map(|run| &run.classes[at]);
        let pairs: Vec<(f64, f64)> =
            own.iter().map(|run| run.against[at]).filter(|sum| sum.1 > 0.0).collect();
        ClassSummary {
            packets,
            completion_ms: mean(runs().map(|c| c.completion_ns.value().map(|ns| ns / 1e6))),
            slowdown: mean(runs().map(|c| c.slowdown.value())),
            complete: runs().map(|c| c.completion_ns.n()).sum(),
            incomplete: runs().map(|c| c.incomplete).sum(),
            vs_reference: stats::ratio_of_sums(&pairs),
        }
    };
    let all = SizeClass::ALL.iter().enumerate().map(one);
    all.filter(|class| class.complete + class.incomplete > 0).collect()
}

fn times(own: &[TrafficTally]) -> TimesSummary {
    let ms = |ns: f64| ns / 1e6;
    TimesSummary {
        mean: mean(own.iter().map(|run| run.times_ns.mean().map(ms))),
        p95: mean(own.iter().map(|run| run.times_ns.quantile_above(0.95).map(|ns| ms(ns as f64)))),
        max: own
            .iter()
            .filter_map(|run| run.times_ns.max())
            .max()
            .filter(|max| *max > 0)
            .map(|ns| ms(ns as f64)),
    }
}

fn link_summary(link: String, own: &[&LinkTally]) -> LinkSummary {
    let of_rows = |value: fn(&LinkUse) -> Option<f64>| mean(own.iter().map(|run| value(&run.row)));
    let peak = |value: fn(&LinkUse) -> Option<u64>| {
        own.iter().filter_map(|run| value(&run.row)).max().unwrap_or(0)
    };
    let number = |value: &dyn Fn(&LinkTally) -> f64| mean(own.iter().map(|run| Some(value(run))));
    let percent = |part: u64, of: u64| if of == 0 { 0.0 } else { 100.0 * part as f64 / of as f64 };
    LinkSummary {
        link,
        utilisation: of_rows(|row| row.utilisation),
        backlog_mean: of_rows(|row| row.backlog_mean_packets),
        backlog_peak: peak(|row| row.backlog_peak_packets),
        drop_percent: number(&|run| percent(run.dropped.iter().sum(), run.arrived)),
        dropped_short_lane: number(&|run| run.dropped[0] as f64),
        dropped_long_lane: number(&|run| run.dropped[1] as f64),
        marked_percent: number(&|run| percent(run.marked, run.arrived)),
        entries_mean: of_rows(|row| row.flow_entries_mean),
        entries_p99: of_rows(|row| row.flow_entries_p99.map(|n| n as f64)),
        entries_peak: peak(|row| row.flow_entries_peak),
    }
}

/// The mean over seeds, of those that have a value.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<Estimate> {
    stats::mean(&values.flatten().collect::<Vec<f64>>())
}
