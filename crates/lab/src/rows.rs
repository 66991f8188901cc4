//! Rows of the results schema, from the measurements of a block.

use std::collections::HashMap;

use engine::report::{self, DirectionReport, FlowRecord};
use measure::{Block, DropCount, Flow, FlowKind, Key, LinkUse, Probe, Sample, SizeClass};
use sched::Lane;

use crate::block::{Outcome, Through};
use crate::config::{Bottleneck, Labels, PAYLOAD_BYTES};
use crate::idle::IdleTimes;
use crate::kernel::Counted;
use crate::traffic::{
    ConnectionKind, ConnectionRow, Link, Plan, TcpInfo, Transfer, TransferRow, cbr_packets,
};

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
    pub(crate) plan: &'a Plan,
    pub(crate) outcome: &'a Outcome,
    pub(crate) idle: &'a IdleTimes,
    pub(crate) link: &'a Bottleneck,
    pub(crate) labels: &'a Labels,
    pub(crate) warm_up_ns: u64,
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
            duration_ns: self.plan.arrivals_end_ns,
            transfers: self.plan.transfers.len() as u64,
            completed: transfers.filter(|flow| flow.complete).count() as u64,
            offered_load: Some(self.offered_load()),
            ..Block::default()
        };
        rows
    }

    /// Application bytes over what the link carries during the arrivals.
    fn offered_load(&self) -> f64 {
        let bytes: u64 = self.plan.transfers.iter().map(|t| t.size_bytes).sum();
        let seconds = (self.plan.arrivals_end_ns - self.warm_up_ns) as f64 / 1e9;
        bytes as f64 * 8.0 / (self.link.rate_bps as f64 * seconds)
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
        let rates_bps = [self.link.rate_bps, self.link.up_rate_bps];
        for (at, (name, rate_bps)) in ["down", "up"].into_iter().zip(rates_bps).enumerate() {
            let direction = match &self.outcome.bottleneck {
                Through::Engine(report) => &report.directions[1 - at],
                Through::Kernel(passed) => {
                    self.add_queue(rows, name, rate_bps, &passed.queues[1 - at]);
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
            rows.links.push(self.link_use(name, direction, rate_bps));
            let flows = observed.map_or(&[][..], |o| &o.flows);
            rows.drops.extend(self.drop_counts(name, flows, &classes));
        }
    }

    /// What a qdisc counted.
    fn add_queue(&self, rows: &mut Rows, name: &str, rate_bps: u64, counted: &Counted) {
        let (key, end_ns) = (&self.key, self.plan.drain_end_ns);
        rows.samples.extend(counted.samples.iter().map(|sample| Sample {
            key: key.clone(),
            link: name.into(),
            t_ns: sample.t_ns,
            backlog_packets: sample.packets,
            backlog_bytes: sample.bytes,
            short_lane_packets: None,
            flow_entries: None,
        }));
        rows.links.push(counted.link_use(key, name, rate_bps, self.warm_up_ns, end_ns));
        rows.drops.extend(counted.drop_count(key, name));
    }

    fn link_use(&self, name: &str, direction: &DirectionReport, rate_bps: u64) -> LinkUse {
        let samples = direction.observed.as_ref().map_or(&[][..], |o| &o.samples);
        let during: Vec<_> = samples.iter().filter(|s| s.t_ns >= self.warm_up_ns).collect();
        let mean = |value: fn(&report::Sample) -> u64| {
            let sum: u64 = during.iter().map(|s| value(s)).sum();
            (!during.is_empty()).then(|| sum as f64 / during.len() as f64)
        };
        let punctuality = &direction.punctuality;
        // What still waited at the end of the plan was sent after it.
        let end_ns = self.plan.drain_end_ns;
        let waited = samples.iter().rfind(|s| s.t_ns <= end_ns).map_or(0, |s| s.bytes);
        let sent_later = waited.saturating_sub(direction.queued.bytes);
        let sent = direction.sent.bytes.saturating_sub(sent_later);
        let busy_ns = sent as f64 * 8e9 / rate_bps as f64;
        LinkUse {
            key: self.key.clone(),
            link: name.into(),
            rate_bps,
            arrived_packets: direction.received.packets,
            arrived_bytes: direction.received.bytes,
            sent_packets: direction.sent.packets,
            sent_bytes: direction.sent.bytes,
            dropped_packets: direction.dropped().packets,
            lost_in_kernel: Some(direction.lost_in_kernel),
            marked_packets: Some(direction.marked),
            utilisation: Some(busy_ns / end_ns as f64),
            backlog_mean_packets: mean(|s| s.packets),
            backlog_peak_packets: during.iter().map(|s| s.packets).max(),
            flow_entries_mean: mean(|s| s.flows),
            flow_entries_peak: Some(direction.peak_flows),
            flow_entries_p99: None,
            flow_entries_beyond_backlog: None,
            flows_untracked: None,
            late_max_ns: Some(punctuality.max_late_ns),
            late_beyond_burst: Some(punctuality.late_beyond_burst),
            late_lost_ns: Some(punctuality.lost_ns),
            burst_max_packets: Some(punctuality.largest_burst_packets),
            burst_max_bytes: Some(punctuality.largest_burst_bytes),
        }
    }

    /// The size class of each transfer's flow.
    fn size_classes(&self) -> HashMap<&str, SizeClass> {
        let transfers = self.plan.transfers.iter().zip(&self.outcome.client.transfers);
        transfers
            .filter_map(|(planned, seen)| Some((seen.link.flow.as_deref()?, class_of(planned))))
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

    fn add_transfers(&self, rows: &mut Rows) {
        let ledger = by_flow(self.down());
        let server = by_connection(&self.outcome.server.connections, ConnectionKind::Transfer);
        for (planned, seen) in self.plan.transfers.iter().zip(&self.outcome.client.transfers) {
            let record = seen.link.flow.as_deref().and_then(|flow| ledger.get(flow).copied());
            let info = server.get(&planned.id).and_then(|row| row.info.as_ref());
            rows.flows.push(self.transfer(planned, seen, record, info));
        }
    }

    fn transfer(
        &self,
        planned: &Transfer,
        seen: &TransferRow,
        record: Option<&FlowRecord>,
        info: Option<&TcpInfo>,
    ) -> Flow {
        let completion = seen.completion_ns();
        let idle = self.idle.of(planned.size_bytes);
        Flow {
            index: u64::from(planned.id),
            kind: FlowKind::Transfer,
            traffic: self.labels.transfer(planned.id),
            tcp: Some(planned.tcp.name().into()),
            size_bytes: Some(planned.size_bytes),
            size_class: Some(class_of(planned)),
            planned_ns: Some(planned.start_ns),
            end_ns: seen.end_ns,
            completion_ns: completion,
            idle_ns: idle,
            slowdown: completion.zip(idle).map(|(took, idle)| took as f64 / idle.max(1) as f64),
            received_bytes: seen.bytes,
            complete: seen.end_ns.is_some(),
            failure: seen.failure.map(|cause| cause.to_string().as_str().into()),
            ..self.flow(&seen.link, record, info)
        }
    }

    /// The columns that every TCP flow shares.
    fn flow(&self, link: &Link, record: Option<&FlowRecord>, info: Option<&TcpInfo>) -> Flow {
        // A discipline with more than two lanes has several long ones.
        let in_lanes = |is_short: bool| {
            let is_one =
                |lane: Option<u8>| lane.is_some_and(|lane| (lane == Lane::SHORT.0) == is_short);
            let of_lanes = |r: &FlowRecord| {
                r.drops.iter().filter(|d| is_one(d.lane)).map(|d| d.count.packets).sum()
            };
            record.map(of_lanes)
        };
        Flow {
            key: self.key.clone(),
            flow: link.flow.as_deref().map(Into::into),
            start_ns: link.start_ns,
            connect_ns: link.connected_ns,
            packets: record.map(|r| r.arrived.packets),
            dropped_packets: record.map(|r| r.drops.iter().map(|d| d.count.packets).sum()),
            dropped_short_lane: in_lanes(true),
            dropped_long_lane: in_lanes(false),
            fragments: record.map(|r| r.fragments),
            retransmissions: info.and_then(|i| i.retransmissions).map(u64::from),
            timeouts: info.and_then(|i| i.timeouts).map(u64::from),
            ..Flow::default()
        }
    }

    fn add_long_flows(&self, rows: &mut Rows) {
        let (down, up) = (by_flow(self.down()), by_flow(self.up()));
        let server = by_connection(&self.outcome.server.connections, ConnectionKind::Download);
        let window = |series: &crate::traffic::Series| {
            series.between(self.warm_up_ns, self.plan.arrivals_end_ns)
        };
        for (planned, seen) in self.plan.downloads.iter().zip(&self.outcome.client.downloads) {
            let record = seen.link.flow.as_deref().and_then(|flow| down.get(flow).copied());
            let info = server.get(&planned.id).and_then(|row| row.info.as_ref());
            rows.flows.push(Flow {
                index: u64::from(planned.id),
                kind: FlowKind::Download,
                traffic: self.labels.persistent(planned.id),
                tcp: Some(planned.tcp.name().into()),
                planned_ns: Some(planned.start_ns),
                received_bytes: window(&seen.received),
                failure: seen.failure.map(|cause| cause.to_string().as_str().into()),
                ..self.flow(&seen.link, record, info)
            });
        }
        for (planned, seen) in self.plan.uploads.iter().zip(&self.outcome.client.uploads) {
            let record = seen.link.flow.as_deref().and_then(|flow| up.get(flow).copied());
            let at_server = self.outcome.server.uploads.iter().find(|u| u.id == planned.id);
            rows.flows.push(Flow {
                index: u64::from(planned.id),
                kind: FlowKind::Upload,
                traffic: self.labels.persistent(planned.id),
                tcp: Some(planned.tcp.name().into()),
                planned_ns: Some(planned.start_ns),
                received_bytes: at_server.map_or(0, |u| window(&u.received)),
                failure: seen.failure.map(|cause| cause.to_string().as_str().into()),
                ..self.flow(&seen.link, record, seen.info.as_ref())
            });
        }
    }

    fn add_requests(&self, rows: &mut Rows) {
        for (planned, seen) in self.plan.sessions.iter().zip(&self.outcome.client.sessions) {
            for (index, answer) in (0..).zip(&seen.answers) {
                // A request that waited for earlier ones waited because of the link as well.
                let completion_ns = answer.end_ns.map(|end| end.saturating_sub(answer.due_ns));
                rows.flows.push(Flow {
                    key: self.key.clone(),
                    index,
                    kind: FlowKind::Request,
                    flow: seen.link.flow.as_deref().map(Into::into),
                    tcp: Some(planned.tcp.name().into()),
                    size_bytes: Some(planned.size_bytes),
                    planned_ns: Some(answer.due_ns),
                    start_ns: answer.due_ns,
                    connect_ns: seen.link.connected_ns,
                    end_ns: answer.end_ns,
                    completion_ns,
                    complete: completion_ns.is_some(),
                    received_bytes: if completion_ns.is_some() { planned.size_bytes } else { 0 },
                    ..Flow::default()
                });
            }
        }
    }

    fn add_probes(&self, rows: &mut Rows) {
        let streams = self.outcome.server.cbr.iter().zip(&self.outcome.client.cbr);
        for (sent, received) in streams {
            rows.probes.extend(cbr_packets(sent, received).iter().map(|packet| Probe {
                key: self.key.clone(),
                stream: sent.name.as_str().into(),
                seq: u64::from(packet.seq),
                sent_ns: packet.sent_ns,
                delay_ns: packet.delay_ns(),
            }));
        }
        for pings in &self.outcome.client.pings {
            rows.probes.extend((0..).zip(&pings.rows).map(|(seq, ping)| Probe {
                key: self.key.clone(),
                stream: "ping".into(),
                seq,
                sent_ns: ping.sent_ns,
                delay_ns: ping.received_ns.map(|at| at.saturating_sub(ping.sent_ns)),
            }));
        }
    }
}

fn class_of(transfer: &Transfer) -> SizeClass {
    SizeClass::of_bytes(transfer.size_bytes, PAYLOAD_BYTES)
}

fn by_flow(direction: Option<&DirectionReport>) -> HashMap<&str, &FlowRecord> {
    let observed = direction.and_then(|direction| direction.observed.as_ref());
    let flows = observed.map_or(&[][..], |o| &o.flows);
    flows.iter().map(|record| (record.flow.as_str(), record)).collect()
}

fn by_connection(rows: &[ConnectionRow], kind: ConnectionKind) -> HashMap<u32, &ConnectionRow> {
    rows.iter().filter(|row| row.kind == kind).map(|row| (row.id, row)).collect()
}
