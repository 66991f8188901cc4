//! Turns the reports of a running simulation into rows and tallies.

mod flow;

use std::collections::BTreeMap;

use account::Drops;
use measure::{
    Advance, DropCount, Flow, FlowKind, Key, PacketEvent, PacketOutcome, Probe, Sample, SizeClass,
    Text,
};
use sched::{DropReason, Lane, Nanos};
use sim::{Exchange, FlowLabel, FlowReport, LinkId, Outcome, PacketRecord, Recorder};

use crate::idle::IdleTimes;
use crate::rows::Row;
use crate::scenario::Scenario;
use crate::sources::Purpose;
use crate::tally::{Tally, TrafficTally};
use crate::traffic::{Kind, Traffic};
use flow::kind_of;

pub(crate) use flow::payload_of;

/// Which rows are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Rows of the tables.
    pub tables: bool,
    /// A row per packet at the first tested direction.
    pub events: bool,
}

/// The recorder of one run.
pub(crate) struct Recording<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) idle: &'a IdleTimes<'a>,
    pub(crate) key: Key,
    pub(crate) wanted: Wanted,
    /// What each source is for.
    pub(crate) purposes: Vec<Purpose>,
    /// Names of the directions under test.
    pub(crate) tested: BTreeMap<LinkId, Text>,
    pub(crate) out: &'a mut dyn FnMut(Row),
    pub(crate) tally: Tally,
    /// Drops of transfers, by direction, lane, reason and class.
    drops: BTreeMap<DropKey, (u64, u64)>,
    names: Vec<Text>,
    /// From when on a transfer has its next row of table `progress`, by traffic and index.
    advance_due: BTreeMap<(usize, u64), u64>,
    /// What flows without end had received when the warm-up ended, by source and its index.
    received_before: BTreeMap<(usize, u64), u64>,
    /// The arrival of the first packet, from which the times of packet events count.
    first_arrival: Option<Nanos>,
    pub(crate) transfers: u64,
    pub(crate) completed: u64,
    pub(crate) transfer_bytes: u64,
}

type DropKey = (LinkId, usize, DropReason, SizeClass);

impl<'a> Recording<'a> {
    pub(crate) fn new(
        scenario: &'a Scenario,
        idle: &'a IdleTimes<'a>,
        key: Key,
        wanted: Wanted,
        out: &'a mut dyn FnMut(Row),
    ) -> Self {
        let traffic = vec![TrafficTally::default(); scenario.traffic.len()];
        Self {
            scenario,
            idle,
            key,
            wanted,
            purposes: Vec::new(),
            tested: BTreeMap::new(),
            out,
            tally: Tally { traffic, ..Tally::default() },
            drops: BTreeMap::new(),
            names: scenario.traffic.iter().map(|traffic| traffic.name.as_str().into()).collect(),
            advance_due: BTreeMap::new(),
            received_before: BTreeMap::new(),
            first_arrival: None,
            transfers: 0,
            completed: 0,
            transfer_bytes: 0,
        }
    }

    /// The warm-up is over: what flows without end have received so far does not count.
    pub(crate) fn warm_up(&mut self, open: impl Iterator<Item = FlowReport>) {
        for report in open {
            let number = self.purposes[report.source.index()].traffic;
            if matches!(self.scenario.traffic[number].kind, Kind::Persistent { .. }) {
                let flow = (report.source.index(), report.index);
                self.received_before.insert(flow, report.received);
            }
        }
    }

    pub(crate) fn put(&mut self, row: impl FnOnce(Key) -> Row) {
        if self.wanted.tables {
            (self.out)(row(self.key.clone()));
        }
    }

    /// A transfer, complete or not.
    fn count_transfer(&mut self, number: usize, index: u64, flow: &Flow, timeouts: u64) {
        let class = flow.size_class.unwrap_or_default();
        self.transfers += 1;
        self.completed += u64::from(flow.complete);
        self.transfer_bytes += flow.size_bytes.unwrap_or(0);
        if class == SizeClass::UpTo20 {
            self.tally.short_timeouts += timeouts;
        }
        if Nanos(flow.start_ns) < self.scenario.warm_up {
            return;
        }
        let traffic = &mut self.tally.traffic[number];
        let tally = &mut traffic.classes[class as usize];
        match flow.completion_ns {
            Some(completion) => {
                tally.completion_ns.add(completion as f64);
                flow.slowdown.into_iter().for_each(|slowdown| tally.slowdown.add(slowdown));
                traffic.times.set(index, class, completion);
            }
            None => tally.incomplete += 1,
        }
    }

    fn count_drops(&mut self, report: &FlowReport, class: SizeClass) {
        for (link, account) in
            report.ports.iter().filter(|(link, _)| self.tested.contains_key(link))
        {
            for lane in [0, 1] {
                for reason in DropReason::ALL {
                    let packets = u64::from(account.dropped[lane][reason as usize]);
                    if packets > 0 {
                        let sum = self.drops.entry((*link, lane, reason, class)).or_default();
                        sum.0 += packets;
                        sum.1 += account.dropped_bytes[lane][reason as usize];
                    }
                }
            }
        }
    }

    /// Rows of table `drops`: those of transfers by class, and all others of a direction's totals.
    pub(crate) fn put_drops(&mut self, link: LinkId, drops: &Drops) {
        let Some(name) = self.tested.get(&link).cloned() else { return };
        let mut rows = Vec::new();
        let lanes = drops.iter().last().map_or(0, |(lane, ..)| lane.0 + 1);
        for lane in (0..lanes).map(Lane) {
            for reason in DropReason::ALL {
                let account::Tally { mut packets, mut bytes } = drops.of(lane, reason);
                // Flows know "short" and "other" lanes only.
                let mut row = |size_class, (packets, bytes)| {
                    let lane = Some(lane.0.into());
                    let (key, link) = (self.key.clone(), name.clone());
                    rows.push(DropCount {
                        key,
                        link,
                        lane,
                        reason: reason.name().into(),
                        size_class,
                        packets,
                        bytes,
                    });
                };
                for class in SizeClass::ALL {
                    if let Some(&sum) = self.drops.get(&(link, lane.0.into(), reason, class)) {
                        row(Some(class), sum);
                        packets = packets.saturating_sub(sum.0);
                        bytes = bytes.saturating_sub(sum.1);
                    }
                }
                if packets > 0 {
                    row(None, (packets, bytes));
                }
            }
        }
        if self.wanted.tables {
            rows.into_iter().for_each(|row| (self.out)(Row::Drop(row)));
        }
    }

    /// The place of a flow among all of its kind: traffics of one kind take turns.
    fn index(&self, number: usize, index: u64) -> u64 {
        let kind = |number: usize| kind_of(&self.scenario.traffic[number].kind);
        let same = |other: &usize| kind(*other) == kind(number);
        let all = (0..self.scenario.traffic.len()).filter(same).count() as u64;
        let before = (0..number).filter(same).count() as u64;
        index * all + before
    }
}

impl Recorder for Recording<'_> {
    fn flow(&mut self, report: &FlowReport) {
        let number = self.purposes[report.source.index()].traffic;
        let traffic: &Traffic = &self.scenario.traffic[number];
        let row = self.row_of(number, report);
        let stats = report.tcp.unwrap_or_default();
        let timeouts = stats.iter().map(|s| u64::from(s.timeouts + s.syn_timeouts)).sum();
        self.tally.timeouts += timeouts;
        self.tally.retransmissions +=
            stats.iter().map(|s| u64::from(s.retransmissions)).sum::<u64>();
        self.tally.traffic[number].received_bytes += row.received_bytes;
        if let Some(class) = row.size_class {
            self.count_transfer(number, report.index, &row, timeouts);
            self.count_drops(report, class);
        }
        // Requests have rows of their own.
        if traffic.rows && !matches!(traffic.kind, Kind::Requests { .. }) {
            self.put(|_| Row::Flow(Box::new(row)));
        }
    }

    fn exchange(&mut self, exchange: &Exchange) {
        let Purpose { traffic: number, place } = self.purposes[exchange.source.index()];
        let Exchange { due, completed, bytes, .. } = *exchange;
        let completion_ns = completed.map(|end| end.since(due).0);
        if due >= self.scenario.warm_up {
            let tally = &mut self.tally.traffic[number];
            match completion_ns {
                Some(completion) => tally.times_ns.add(completion),
                None => tally.unanswered += 1,
            }
        }
        // The objects of a page have rows of their own.
        let Kind::Requests { flows, .. } = self.scenario.traffic[number].kind else { return };
        if !self.scenario.traffic[number].rows {
            return;
        }
        let name = self.names[number].clone();
        let index = self.index(number, exchange.index * flows + place);
        let flow = exchange.label.map(|label| label.to_string().into());
        let sent = exchange.sent.unwrap_or(due);
        self.put(|key| {
            Row::Flow(Box::new(Flow {
                key,
                index,
                kind: FlowKind::Request,
                traffic: Some(name),
                flow,
                size_bytes: Some(bytes),
                planned_ns: Some(due.0),
                start_ns: sent.0,
                end_ns: completed.map(|end| end.0),
                // A request that waited for earlier ones waited because of the link as well.
                completion_ns,
                received_bytes: if completed.is_some() { bytes } else { 0 },
                complete: completed.is_some(),
                ..Flow::default()
            }))
        });
    }

    fn probe(&mut self, probe: &sim::Probe) {
        let number = self.purposes[probe.source.index()].traffic;
        let delay_ns = probe.arrived.map(|at| at.since(probe.sent).0);
        if probe.sent >= self.scenario.warm_up {
            let tally = &mut self.tally.traffic[number];
            tally.packets_sent += 1;
            match delay_ns {
                Some(delay) => tally.times_ns.add(delay),
                None => tally.packets_lost += 1,
            }
        }
        if self.scenario.record.probes {
            let streams = self.scenario.traffic[number].kind.streams();
            let name = &self.names[number];
            let stream: Text =
                if streams == 1 { name.clone() } else { format!("{name}/{}", probe.index).into() };
            let (seq, sent_ns) = (probe.seq, probe.sent.0);
            self.put(|key| Row::Probe(Probe { key, stream, seq, sent_ns, delay_ns }));
        }
    }

    fn advance(&mut self, advance: &sim::Advance) {
        let number = self.purposes[advance.source.index()].traffic;
        let index = self.index(number, advance.index);
        let (t_ns, every_ns) = (advance.at.0, self.scenario.record.progress_every.0);
        let due = self.advance_due.entry((number, index)).or_default();
        if t_ns < *due {
            return;
        }
        *due = t_ns.checked_div(every_ns).map_or(0, |passed| (passed + 1) * every_ns);
        let traffic = Some(self.names[number].clone());
        let sim::Advance { received: received_bytes, packets, dropped, .. } = *advance;
        let (packets, dropped_packets) = (Some(packets), Some(dropped));
        self.put(|key| {
            Row::Advance(Advance {
                key,
                traffic,
                index,
                t_ns,
                received_bytes,
                packets,
                dropped_packets,
            })
        });
    }

    fn sample(&mut self, sample: &sim::Sample) {
        let Some(link) = self.tested.get(&sample.link).cloned() else { return };
        self.put(|key| {
            Row::Sample(Sample {
                key,
                link,
                t_ns: sample.at.0,
                backlog_packets: sample.backlog.packets,
                backlog_bytes: sample.backlog.bytes,
                short_lane_packets: Some(sample.short_lane),
                flow_entries: Some(sample.flows),
            })
        });
    }

    fn packet(&mut self, _: LinkId, record: &PacketRecord) {
        if !self.wanted.events {
            return;
        }
        let (outcome, reason, departure) = match record.outcome {
            Outcome::Departed(at) => (PacketOutcome::Departed, None, Some(at)),
            Outcome::Dropped(reason) => (PacketOutcome::Dropped, Some(reason.name().into()), None),
            Outcome::Queued => (PacketOutcome::Queued, None, None),
        };
        // Records come in the order of arrivals.
        let start = *self.first_arrival.get_or_insert(record.arrival);
        let event = PacketEvent {
            scheduler: self.key.scheduler.clone(),
            index: record.index,
            arrival_ns: record.arrival.since(start).0,
            size_bytes: u64::from(record.size),
            flow: FlowLabel::from_tag(record.tag).to_string().into(),
            lane: Some(u64::from(record.lane.0)),
            outcome,
            reason,
            departure_ns: departure.map(|at: Nanos| at.since(start).0),
        };
        (self.out)(Row::Event(Box::new(event)));
    }
}
