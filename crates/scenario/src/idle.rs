//! What a transfer takes on an idle network: the unit of slowdown.

use std::collections::HashMap;

use sched::Nanos;
use sim::{
    Connection, Context, FlowReport, LinkId, Network, NetworkError, NodeId, Simulation, Source,
    TcpId,
};

use crate::scenario::Scenario;
use crate::traffic::{Arrivals, Kind};

/// Times on an idle network, by traffic, ends and size. Ends whose ways have the same rates and
/// delays share a curve; between its points, time is linear in size.
#[derive(Debug, Default)]
pub(crate) struct IdleTimes {
    curve_of: HashMap<(usize, NodeId, NodeId), usize>,
    curves: Vec<Curve>,
}

#[derive(Debug)]
enum Curve {
    /// Measured with the TCP of the traffic: bytes, ns.
    Measured(Vec<(u64, u64)>),
    /// Packets without a transport: ns at once, and per byte.
    Sent { first_ns: f64, per_byte_ns: f64 },
}

/// With more pairs of ends than this there are no idle times.
const MOST_PAIRS: usize = 20_000;

/// The largest transfer that is measured; what lies beyond goes on as it ends.
const LARGEST: u64 = 4 << 20;

/// What decides a curve: the traffic's kind of flow, and rates and delays of the ways.
type Signature = (usize, Vec<(u64, Nanos)>, Vec<(u64, Nanos)>);

impl IdleTimes {
    /// Measures them, each transfer alone.
    pub(crate) fn measure(scenario: &Scenario, network: &Network, nodes: &[NodeId]) -> Self {
        let mut times = Self::default();
        let mut known: HashMap<Signature, usize> = HashMap::new();
        for (number, traffic) in scenario.traffic.iter().enumerate() {
            let Some(largest) = largest(&traffic.kind) else { continue };
            if traffic.from.len().saturating_mul(traffic.to.len()) > MOST_PAIRS {
                continue;
            }
            for from in traffic.from.iter().map(|node| nodes[*node]) {
                for to in traffic.to.iter().map(|node| nodes[*node]) {
                    let way = |a, b| Some(signature(network, &network.path(a, b).ok()?));
                    let (Some(there), Some(back)) = (way(from, to), way(to, from)) else {
                        continue;
                    };
                    let next = times.curves.len();
                    let curve = *known.entry((number, there.clone(), back)).or_insert(next);
                    if curve == next {
                        let ends = (from, to);
                        times.curves.push(curve_of(&traffic.kind, network, ends, &there, largest));
                    }
                    times.curve_of.insert((number, from, to), curve);
                }
            }
        }
        times
    }

    /// What the transfer would have taken on an idle network.
    pub(crate) fn of(&self, traffic: usize, report: &FlowReport) -> Option<u64> {
        let (from, to) = report.label.ends();
        let curve = &self.curves[*self.curve_of.get(&(traffic, from, to))?];
        Some(match curve {
            Curve::Measured(points) => interpolate(points, report.bytes)?,
            Curve::Sent { first_ns, per_byte_ns } => {
                (first_ns + per_byte_ns * report.bytes as f64) as u64
            }
        })
    }
}

fn signature(network: &Network, path: &[LinkId]) -> Vec<(u64, Nanos)> {
    let link = |link: &LinkId| &network.links()[link.index()];
    path.iter().map(|id| (link(id).rate_bps, link(id).delay)).collect()
}

/// The largest transfer to measure; `None` for what is no transfer.
fn largest(kind: &Kind) -> Option<u64> {
    let largest = match kind {
        Kind::Transfers { arrivals, .. } | Kind::OpenLoop { arrivals, .. } => match arrivals {
            Arrivals::Drawn { sizes, .. } => sizes.quantile(1.0),
            Arrivals::Listed(list) => list.transfers().iter().map(|t| t.size_bytes).max()?,
        },
        Kind::Periodic { size_bytes, .. } => *size_bytes,
        Kind::Web { sizes, .. } => sizes.quantile(1.0),
        _ => return None,
    };
    Some(largest.min(LARGEST))
}

fn curve_of(
    kind: &Kind,
    network: &Network,
    ends: (NodeId, NodeId),
    there: &[(u64, Nanos)],
    largest: u64,
) -> Curve {
    match kind.tcp() {
        Some(tcp) => {
            let asked_with = match kind {
                Kind::Web { request_bytes, .. } => Some(*request_bytes),
                _ => None,
            };
            Curve::Measured(measure(network, ends, tcp, asked_with, largest))
        }
        None => {
            let packet_bytes = crate::record::payload_of(kind) as f64;
            let per_byte = |rate: u64| 8e9 / rate as f64;
            let slowest = there.iter().map(|(rate, _)| per_byte(*rate)).fold(0.0, f64::max);
            let all: f64 = there.iter().map(|(rate, _)| per_byte(*rate)).sum();
            let delay: f64 = there.iter().map(|(_, delay)| delay.0 as f64).sum();
            // The first packet pays every link, all others the slowest.
            Curve::Sent { first_ns: delay + (all - slowest) * packet_bytes, per_byte_ns: slowest }
        }
    }
}

/// Transfers of growing size, one after another.
fn measure(
    network: &Network,
    ends: (NodeId, NodeId),
    tcp: &tcp::Config,
    asked_with: Option<u64>,
    largest: u64,
) -> Vec<(u64, u64)> {
    let mut simulation = Simulation::new(network.clone(), 0);
    let Ok(tcp_id) = simulation.add_tcp(tcp.clone()) else { return Vec::new() };
    let sizes = sizes(u64::from(tcp.mss), largest);
    simulation.add_source(Box::new(OneByOne { ends, asked_with, tcp: tcp_id, sizes, next: 0 }));
    let mut reports: Vec<FlowReport> = Vec::new();
    // A transfer that hangs leaves the curve shorter.
    const LONGEST: Nanos = Nanos::from_secs(1_000_000);
    if simulation.run_until(LONGEST, &mut reports).is_err() {
        return Vec::new();
    }
    let took =
        |report: &FlowReport| Some((report.bytes, report.completed?.since(report.started).0));
    reports.iter().filter_map(took).collect()
}

/// Every number of packets up to 16, then eight for each doubling.
fn sizes(mss: u64, largest: u64) -> Vec<u64> {
    let most = largest.div_ceil(mss).max(1);
    let mut packets: Vec<u64> = vec![1];
    while let Some(&last) = packets.last().filter(|last| **last < most) {
        packets.push((last + (last / 8).max(1)).min(most));
    }
    std::iter::once(1).chain(packets.into_iter().map(|n| n * mss)).collect()
}

fn interpolate(points: &[(u64, u64)], bytes: u64) -> Option<u64> {
    let after = points.partition_point(|(size, _)| *size < bytes);
    if let Some((_, time)) = points.get(after).filter(|(size, _)| *size == bytes) {
        return Some(*time);
    }
    let after = after.clamp(1, points.len().checked_sub(1)?.max(1));
    let ((x0, y0), (x1, y1)) = (points.get(after - 1)?, points.get(after)?);
    let slope = (*y1 as f64 - *y0 as f64) / (*x1 - *x0) as f64;
    Some((*y0 as f64 + slope * (bytes as f64 - *x0 as f64)).max(1.0) as u64)
}

struct OneByOne {
    /// Where the data come from and go to.
    ends: (NodeId, NodeId),
    /// If the receiver opens the connection, the bytes that it asks with.
    asked_with: Option<u64>,
    tcp: TcpId,
    sizes: Vec<u64>,
    next: usize,
}

impl Source for OneByOne {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        self.wake(context)
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let Some(&size) = self.sizes.get(self.next) else { return Ok(()) };
        let (from, to) = self.ends;
        let (client, server, request_bytes, response_bytes) = match self.asked_with {
            None => (from, to, size, 0),
            Some(request_bytes) => (to, from, request_bytes, size),
        };
        let (tcp, keep_open, index) = (self.tcp, false, self.next as u64);
        self.next += 1;
        let connection =
            Connection { client, server, tcp, request_bytes, response_bytes, keep_open, index };
        context.connect(&connection).map(drop)
    }

    fn done(&mut self, _: &FlowReport, context: &mut Context<'_>) -> Result<(), NetworkError> {
        self.wake(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_points_time_is_linear_and_beyond_it_goes_on() {
        let points = [(1, 10), (100, 109), (200, 309)];
        for (bytes, time) in [(1, 10), (50, 59), (100, 109), (150, 209), (200, 309), (300, 509)] {
            assert_eq!(interpolate(&points, bytes), Some(time), "{bytes}");
        }
        assert_eq!(interpolate(&points[..1], 1), Some(10));
        assert_eq!(interpolate(&points[..1], 2), None);
        assert_eq!(interpolate(&[], 2), None);
    }

    #[test]
    fn sizes_rise_from_a_byte_to_the_largest() {
        assert_eq!(sizes(1000, 1000), [1, 1000]);
        let sizes = sizes(1460, 1_460_000);
        assert!(sizes.is_sorted_by(|a, b| a < b));
        assert_eq!(sizes.last(), Some(&1_460_000));
        assert!(sizes.contains(&(16 * 1460)) && sizes.len() < 70, "{}", sizes.len());
    }
}
