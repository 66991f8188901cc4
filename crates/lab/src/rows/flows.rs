//! Rows of TCP flows: transfers, long flows, requests.

use std::collections::HashMap;

use engine::report::{DirectionReport, FlowRecord};
use measure::{Flow, FlowKind, SizeClass};
use sched::{Lane, Nanos};

use super::{Rows, Source};
use crate::block::Seen;
use crate::config::PAYLOAD_BYTES;
use crate::hosts::is_far;
use crate::traffic::{ConnectionKind, ConnectionRow, Link, Plan, TcpInfo, Transfer, TransferRow};

impl Source<'_> {
    pub(super) fn add_transfers(&self, rows: &mut Rows) {
        let ledger = by_flow(self.down());
        for (plan, hosts) in self.pairs() {
            let server = by_connection(&hosts.server.connections, ConnectionKind::Transfer);
            // Known of the nearest only.
            let idle = (!is_far(plan.server)).then_some(self.idle);
            for (number, planned, seen) in transfers_of(plan, hosts) {
                let index = match number {
                    None => u64::from(planned.id),
                    Some((first, at)) => first + at * self.labels.transfers.len() as u64,
                };
                let record = seen.link.flow.as_deref().and_then(|flow| ledger.get(flow).copied());
                let info = server.get(&planned.id).and_then(|row| row.info.as_ref());
                let idle = idle.and_then(|idle| idle.of(planned.size_bytes));
                rows.flows.push(self.transfer(index, planned, seen, idle, record, info));
            }
        }
    }

    fn transfer(
        &self,
        index: u64,
        planned: &Transfer,
        seen: &TransferRow,
        idle: Option<Nanos>,
        record: Option<&FlowRecord>,
        info: Option<&TcpInfo>,
    ) -> Flow {
        let completion = seen.completion().map(|took| took.0);
        let idle = idle.map(|idle| idle.0);
        Flow {
            index,
            kind: FlowKind::Transfer,
            traffic: self.labels.transfer(index),
            tcp: Some(planned.tcp.name().into()),
            size_bytes: Some(planned.size_bytes),
            size_class: Some(class_of(planned)),
            planned_ns: Some(seen.link.due.0),
            end_ns: seen.end.map(|at| at.0),
            completion_ns: completion,
            idle_ns: idle,
            slowdown: completion.zip(idle).map(|(took, idle)| took as f64 / idle.max(1) as f64),
            received_bytes: seen.bytes,
            complete: seen.end.is_some(),
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
            start_ns: link.start.0,
            connect_ns: link.connected.map(|at| at.0),
            packets: record.map(|r| r.arrived.packets),
            dropped_packets: record.map(|r| r.drops.iter().map(|d| d.count.packets).sum()),
            dropped_short_lane: in_lanes(true),
            dropped_long_lane: in_lanes(false),
            fragments: record.map(|r| r.fragments),
            retransmissions: info.and_then(|i| i.retransmissions).map(u64::from),
            duplicates: info.and_then(|i| i.duplicates).map(u64::from),
            timeouts: info.and_then(|i| i.timeouts).map(u64::from),
            ..Flow::default()
        }
    }

    pub(super) fn add_long_flows(&self, rows: &mut Rows) {
        let (down, up) = (by_flow(self.down()), by_flow(self.up()));
        for (plan, hosts) in self.pairs() {
            self.add_long_flows_of(rows, plan, hosts, [&down, &up]);
        }
    }

    fn add_long_flows_of(
        &self,
        rows: &mut Rows,
        plan: &Plan,
        hosts: &Seen,
        [down, up]: [&HashMap<&str, &FlowRecord>; 2],
    ) {
        let server = by_connection(&hosts.server.connections, ConnectionKind::Download);
        let window =
            |series: &crate::traffic::Series| series.between(self.warm_up, plan.arrivals_end);
        for (planned, seen) in plan.downloads.iter().zip(&hosts.client.downloads) {
            let record = seen.link.flow.as_deref().and_then(|flow| down.get(flow).copied());
            let info = server.get(&planned.id).and_then(|row| row.info.as_ref());
            rows.flows.push(Flow {
                index: u64::from(planned.id),
                kind: FlowKind::Download,
                traffic: self.labels.persistent(planned.id.into()),
                tcp: Some(planned.tcp.name().into()),
                planned_ns: Some(planned.start.0),
                received_bytes: window(&seen.received),
                failure: seen.failure.map(|cause| cause.to_string().as_str().into()),
                ..self.flow(&seen.link, record, info)
            });
        }
        for (planned, seen) in plan.uploads.iter().zip(&hosts.client.uploads) {
            let record = seen.link.flow.as_deref().and_then(|flow| up.get(flow).copied());
            let at_server = hosts.server.uploads.iter().find(|u| u.id == planned.id);
            rows.flows.push(Flow {
                index: u64::from(planned.id),
                kind: FlowKind::Upload,
                traffic: self.labels.persistent(planned.id.into()),
                tcp: Some(planned.tcp.name().into()),
                planned_ns: Some(planned.start.0),
                received_bytes: at_server.map_or(0, |u| window(&u.received)),
                failure: seen.failure.map(|cause| cause.to_string().as_str().into()),
                ..self.flow(&seen.link, record, seen.info.as_ref())
            });
        }
    }

    pub(super) fn add_requests(&self, rows: &mut Rows) {
        let sessions =
            self.pairs().flat_map(|(plan, seen)| plan.sessions.iter().zip(&seen.client.sessions));
        for (planned, seen) in sessions {
            let (traffic, step) = self.labels.requests(planned.id.into());
            for (number, answer) in (0..).zip(&seen.answers) {
                // A request that waited for earlier ones waited because of the link as well.
                let completion_ns = answer.end.map(|end| (end - answer.due).0);
                rows.flows.push(Flow {
                    key: self.key.clone(),
                    index: u64::from(planned.id) + number * step,
                    kind: FlowKind::Request,
                    traffic: traffic.clone(),
                    flow: seen.link.flow.as_deref().map(Into::into),
                    tcp: Some(planned.tcp.name().into()),
                    size_bytes: Some(planned.size_bytes),
                    planned_ns: Some(answer.due.0),
                    start_ns: answer.due.0,
                    connect_ns: seen.link.connected.map(|at| at.0),
                    end_ns: answer.end.map(|at| at.0),
                    completion_ns,
                    complete: completion_ns.is_some(),
                    received_bytes: if completion_ns.is_some() { planned.size_bytes } else { 0 },
                    ..Flow::default()
                });
            }
        }
    }
}

/// The number that those of an object count from, and its own; other transfers have theirs.
type ObjectNumber = Option<(u64, u64)>;

/// Transfers, and the objects that were asked for.
pub(super) fn transfers_of<'a>(
    plan: &'a Plan,
    seen: &'a Seen,
) -> impl Iterator<Item = (ObjectNumber, &'a Transfer, &'a TransferRow)> {
    let transfers =
        plan.transfers.iter().zip(&seen.client.transfers).map(|(t, row)| (None, t, row));
    let rows: HashMap<u32, &TransferRow> =
        seen.client.objects.iter().map(|row| (row.id, row)).collect();
    let objects = plan.visitors.iter().flat_map(|visitor| {
        let pages = (0..).zip(&visitor.pages);
        pages.flat_map(move |(page, visited)| {
            let number =
                move |object| Some((visitor.number, scenario::draw::object_index(page, object)));
            (0..).zip(&visited.objects).map(move |(object, planned)| (number(object), planned))
        })
    });
    transfers.chain(objects.filter_map(move |(number, t)| Some((number, t, *rows.get(&t.id)?))))
}

pub(super) fn class_of(transfer: &Transfer) -> SizeClass {
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
