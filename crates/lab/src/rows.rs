//! Rows of the results schema, from the measurements of a block.

mod flows;

use std::collections::HashMap;

use engine::report::{self, DirectionReport, FlowRecord};
use measure::{Block, DropCount, Flow, FlowKind, Key, LinkUse, Probe, Sample, SizeClass};
use sched::{Nanos, Rate};

use crate::block::{Outcome, Seen, Through};
use crate::config::{Bottleneck, Labels, Round};
use crate::idle::IdleTimes;
use crate::kernel::Counted;
use crate::traffic::{Plan, cbr_packets};
use flows::{class_of, transfers_of};

/// All rows of one block.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The block itself.
    pub block: Block,
    /// Its two links, `down` and `up`.
    pub links: Vec<LinkUse>,
    /// Transfers, long flows, requests.
    pub flows: Vec<Flow>,
    /// Voice, video, pings.
    pub probes: Vec<Probe>,
    /// Queue and flow table over time.
    pub samples: Vec<Sample>,
    /// Drops by link, lane, reason and size class.
    pub drops: Vec<DropCount>,
}

/// What the rows of a block are made from.
pub(crate) struct Source<'a> {
    pub(crate) key: Key,
    pub(crate) sent: &'a Round,
    pub(crate) outcome: &'a Outcome,
    pub(crate) idle: &'a IdleTimes,
    pub(crate) link: &'a Bottleneck,
    pub(crate) labels: &'a Labels,
    pub(crate) warm_up: Nanos,
}

impl Source<'_> {
    /// All rows; `block.void` and its times are the caller's to fill.
    pub(crate) fn rows(&self) -> Rows {
        let mut rows = Rows::default();
        self.add_links(&mut rows);
        self.add_transfers(&mut rows);
        self.add_long_flows(&mut rows);
        self.add_requests(&mut rows);
        self.add_probes(&mut rows);
        let transfers = rows.flows.iter().filter(|flow| flow.kind == FlowKind::Transfer);
        rows.block = Block {
            key: self.key.clone(),
            duration_ns: self.first().arrivals_end.0,
            transfers: rows.flows.iter().filter(|flow| flow.kind == FlowKind::Transfer).count()
                as u64,
            completed: transfers.filter(|flow| flow.complete).count() as u64,
            offered_load: Some(self.offered_load()),
            ..Block::default()
        };
        rows
    }

    /// A plan; the times of all are the same.
    fn first(&self) -> &Plan {
        &self.sent.plans[0]
    }

    /// What was planned and what was seen of it, by pair of hosts.
    fn pairs(&self) -> impl Iterator<Item = (&Plan, &Seen)> {
        self.sent.plans.iter().zip(&self.outcome.seen)
    }

    /// What a direction sends: its mean rate, if it varies; 0 is that towards the client.
    fn mean_rate(&self, at: usize) -> Rate {
        let fixed = [self.link.rate, self.link.up_rate][at];
        let (from, to) = (self.warm_up, self.first().arrivals_end);
        self.sent.varying[at].as_ref().map_or(fixed, |rates| {
            let bits = u128::from(rates.bits(from, to)) * 1_000_000_000;
            Rate((bits / u128::from(to.since(from).0.max(1))) as u64)
        })
    }

    /// The bits that a direction can send from one time to another.
    fn capacity(&self, at: usize, from: Nanos, to: Nanos) -> f64 {
        let fixed = [self.link.rate, self.link.up_rate][at];
        match &self.sent.varying[at] {
            Some(rates) => rates.bits(from, to) as f64,
            None => fixed.0 as f64 * to.since(from).0 as f64 / 1e9,
        }
    }

    /// What share of its capacity a direction used, from the end of the warm-up to that of the plan.
    fn utilisation(&self, at: usize, samples: &[report::Sample]) -> Option<f64> {
        let (from, to) = (self.warm_up.0, self.first().drain_end.0);
        let first = samples.iter().find(|sample| sample.t_ns >= from)?;
        let last = samples.iter().rfind(|sample| sample.t_ns <= to)?;
        let capacity = self.capacity(at, Nanos(first.t_ns), Nanos(last.t_ns));
        let sent = last.sent_bytes.checked_sub(first.sent_bytes)?;
        (capacity > 0.0).then(|| sent as f64 * 8.0 / capacity)
    }

    /// Application bytes over what the link carries during the arrivals.
    fn offered_load(&self) -> f64 {
        let transfers = self.sent.plans.iter().flat_map(|plan| &plan.transfers);
        let bytes: u64 = transfers.map(|t| t.size_bytes).sum();
        let seconds = (self.first().arrivals_end - self.warm_up).0 as f64 / 1e9;
        bytes as f64 * 8.0 / (self.link.rate.0 as f64 * seconds)
    }

    fn down(&self) -> Option<&DirectionReport> {
        self.direction(1)
    }

    fn up(&self) -> Option<&DirectionReport> {
        self.direction(0)
    }

    /// Of the userspace engine, which keeps a ledger of flows.
    fn direction(&self, at: usize) -> Option<&DirectionReport> {
        match &self.outcome.bottleneck {
            Through::Engine(report) => report.directions.get(at),
            Through::Kernel(_) => None,
        }
    }

    fn add_links(&self, rows: &mut Rows) {
        let classes = self.size_classes();
        let rates = [self.mean_rate(0), self.mean_rate(1)];
        for (at, (name, rate)) in ["down", "up"].into_iter().zip(rates).enumerate() {
            let direction = match &self.outcome.bottleneck {
                Through::Engine(report) => &report.directions[1 - at],
                Through::Kernel(passed) => {
                    self.add_queue(rows, name, at, rate, &passed.queues[1 - at]);
                    continue;
                }
            };
            let observed = direction.observed.as_ref();
            let samples = observed.map_or(&[][..], |o| &o.samples);
            rows.samples.extend(samples.iter().map(|sample| Sample {
                key: self.key.clone(),
                link: name.into(),
                t_ns: sample.t_ns,
                backlog_packets: sample.packets,
                backlog_bytes: sample.bytes,
                short_lane_packets: Some(sample.short_lane_packets),
                flow_entries: Some(sample.flows),
            }));
            rows.links.push(self.link_use(name, direction, rate, self.utilisation(at, samples)));
            let flows = observed.map_or(&[][..], |o| &o.flows);
            rows.drops.extend(self.drop_counts(name, flows, &classes));
        }
    }

    /// What a qdisc counted.
    fn add_queue(&self, rows: &mut Rows, name: &str, at: usize, rate: Rate, counted: &Counted) {
        let key = &self.key;
        rows.samples.extend(counted.samples.iter().map(|sample| Sample {
            key: key.clone(),
            link: name.into(),
            t_ns: sample.t_ns,
            backlog_packets: sample.packets,
            backlog_bytes: sample.bytes,
            short_lane_packets: None,
            flow_entries: None,
        }));
        let utilisation = self.utilisation(at, &counted.samples);
        rows.links.push(counted.link_use(key, name, rate, self.warm_up, utilisation));
        rows.drops.extend(counted.drop_count(key, name));
    }

    fn link_use(
        &self,
        name: &str,
        direction: &DirectionReport,
        rate: Rate,
        utilisation: Option<f64>,
    ) -> LinkUse {
        let samples = direction.observed.as_ref().map_or(&[][..], |o| &o.samples);
        let during: Vec<_> = samples.iter().filter(|s| s.t_ns >= self.warm_up.0).collect();
        let mean = |value: fn(&report::Sample) -> u64| {
            let sum: u64 = during.iter().map(|s| value(s)).sum();
            (!during.is_empty()).then(|| sum as f64 / during.len() as f64)
        };
        let punctuality = &direction.punctuality;
        LinkUse {
            key: self.key.clone(),
            link: name.into(),
            rate_bps: rate.0,
            arrived_packets: direction.received.packets,
            arrived_bytes: direction.received.bytes,
            sent_packets: direction.sent.packets,
            sent_bytes: direction.sent.bytes,
            dropped_packets: direction.dropped().packets,
            lost_in_kernel: Some(direction.lost_in_kernel),
            marked_packets: Some(direction.marked),
            utilisation,
            backlog_mean_packets: mean(|s| s.packets),
            backlog_peak_packets: during.iter().map(|s| s.packets).max(),
            flow_entries_mean: mean(|s| s.flows),
            flow_entries_peak: Some(direction.peak_flows),
            flow_entries_p99: None,
            flow_entries_beyond_backlog: None,
            flows_untracked: None,
            late_max_ns: Some(punctuality.max_late.0),
            late_beyond_burst: Some(punctuality.late_beyond_burst),
            late_lost_ns: Some(punctuality.lost.0),
            burst_max_packets: Some(punctuality.largest_burst_packets),
            burst_max_bytes: Some(punctuality.largest_burst_bytes),
        }
    }

    /// The size class of each transfer's flow.
    fn size_classes(&self) -> HashMap<&str, SizeClass> {
        let fetched = self.pairs().flat_map(|(plan, seen)| transfers_of(plan, seen));
        fetched
            .filter_map(|(_, planned, seen)| Some((seen.link.flow.as_deref()?, class_of(planned))))
            .collect()
    }

    fn drop_counts(
        &self,
        link: &str,
        flows: &[FlowRecord],
        classes: &HashMap<&str, SizeClass>,
    ) -> Vec<DropCount> {
        let mut counts: Vec<DropCount> = Vec::new();
        for flow in flows {
            let class = classes.get(flow.flow.as_str()).copied();
            for drop in &flow.drops {
                let lane = drop.lane.map(u64::from);
                let same = |c: &&mut DropCount| {
                    c.lane == lane && *c.reason == drop.reason && c.size_class == class
                };
                if let Some(count) = counts.iter_mut().find(same) {
                    count.packets += drop.count.packets;
                    count.bytes += drop.count.bytes;
                    continue;
                }
                counts.push(DropCount {
                    key: self.key.clone(),
                    link: link.into(),
                    lane,
                    reason: drop.reason.as_str().into(),
                    size_class: class,
                    packets: drop.count.packets,
                    bytes: drop.count.bytes,
                });
            }
        }
        counts
    }

    fn add_probes(&self, rows: &mut Rows) {
        let seen = || self.outcome.seen.iter();
        let streams = seen().flat_map(|s| s.server.cbr.iter().zip(&s.client.cbr));
        for (sent, received) in streams {
            rows.probes.extend(cbr_packets(sent, received).iter().map(|packet| Probe {
                key: self.key.clone(),
                stream: sent.name.as_str().into(),
                seq: u64::from(packet.seq),
                sent_ns: packet.sent.0,
                delay_ns: packet.delay().map(|delay| delay.0),
            }));
        }
        for pings in seen().flat_map(|s| &s.client.pings) {
            rows.probes.extend((0..).zip(&pings.rows).map(|(seq, ping)| Probe {
                key: self.key.clone(),
                stream: "ping".into(),
                seq,
                sent_ns: ping.sent.0,
                delay_ns: ping.received.map(|at| (at - ping.sent).0),
            }));
        }
    }
}
