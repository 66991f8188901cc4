//! Completion time by size, each transfer alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sched::Nanos;
use sim::{
    Connection, Context, FlowReport, LinkConfig, LinkId, Network, NetworkError, NodeId, Simulation,
    Source, TcpId,
};

use crate::traffic::{Kind, Traffic};

/// Completion time by size. Between its points, time is linear in size.
#[derive(Debug)]
pub(super) enum Curve {
    /// Measured with the TCP of the traffic: bytes, ns.
    Measured(Vec<(u64, u64)>),
    /// Packets without a transport: ns at once, and per byte.
    Sent { first_ns: f64, per_byte_ns: f64 },
}

impl Curve {
    /// That of a traffic over the ways there and back.
    pub(super) fn of(
        Traffic { kind, asked_with, .. }: &Traffic,
        network: &Network,
        ways: &[Vec<LinkId>; 2],
        largest: u64,
    ) -> Result<Arc<Self>, NetworkError> {
        let Some(tcp) = kind.tcp() else {
            return Ok(Arc::new(sent(kind, network, &ways[0])));
        };
        let line = Line::of(network, ways)?;
        Ok(Lone { line, tcp, asked_with: *asked_with, largest }.curve())
    }

    /// What a transfer of so many bytes takes.
    pub(super) fn time(&self, bytes: u64) -> Option<u64> {
        match self {
            Self::Measured(points) => interpolate(points, bytes),
            Self::Sent { first_ns, per_byte_ns } => {
                Some((first_ns + per_byte_ns * bytes as f64) as u64)
            }
        }
    }
}

/// A number for each link: those with the same are alike in all but name and ends.
pub(super) fn classes(links: &[LinkConfig]) -> Vec<usize> {
    let mut known = HashMap::new();
    let class = |link: &LinkConfig| {
        let LinkConfig { rate, delay, overhead, queue, edge, impairments, .. } = link;
        let next = known.len();
        *known
            .entry(format!("{rate:?} {delay:?} {overhead} {queue:?} {edge:?} {impairments:?}"))
            .or_insert(next)
    };
    links.iter().map(class).collect()
}

/// Packets without a transport: the first pays every link, all others the slowest.
fn sent(kind: &Kind, network: &Network, way: &[LinkId]) -> Curve {
    let packet_bytes = crate::record::payload_of(kind) as f64;
    let links = || way.iter().map(|id| &network.links()[id.index()]);
    let per_byte = |link: &LinkConfig| {
        8e9 / link.rate.0 as f64 * (1.0 + f64::from(link.overhead) / packet_bytes)
    };
    let slowest = links().map(per_byte).fold(0.0, f64::max);
    let all: f64 = links().map(per_byte).sum();
    let delay: f64 = links().map(|link| link.delay.0 as f64).sum();
    Curve::Sent { first_ns: delay + (all - slowest) * packet_bytes, per_byte_ns: slowest }
}

/// The links there and back and nothing else, under names of their own.
struct Line {
    network: Network,
    ends: [NodeId; 2],
}

impl Line {
    fn of(network: &Network, ways: &[Vec<LinkId>; 2]) -> Result<Self, NetworkError> {
        let mut line = Network::new();
        let ends = [line.node("from")?, line.node("to")?];
        for (way, [first, last]) in ways.iter().zip([ends, [ends[1], ends[0]]]) {
            let mut from = first;
            for (at, id) in way.iter().enumerate() {
                let name = format!("{}-{at}", line.node_name(first));
                let to = if at + 1 == way.len() { last } else { line.node(&name)? };
                let link = network.links()[id.index()].clone();
                line.link(LinkConfig { name, from, to, varying: None, ..link })?;
                from = to;
            }
        }
        Ok(Self { network: line, ends })
    }
}

/// Curves that this process has measured, by all that they depend on: thousands of runs of one
/// scenario, one after another, measure once.
static MEASURED: Mutex<Option<HashMap<String, Arc<Curve>>>> = Mutex::new(None);

/// With so many, all are forgotten; each takes up to 2 kB.
const MOST_CURVES: usize = 4096;

/// A transfer alone on its line.
struct Lone<'a> {
    line: Line,
    tcp: &'a tcp::Config,
    /// If the receiver opens the connection, the bytes that it asks with.
    asked_with: Option<u64>,
    largest: u64,
}

impl Lone<'_> {
    fn curve(&self) -> Arc<Curve> {
        let links = self.line.network.links();
        let key = format!("{links:?} {:?} {:?} {}", self.tcp, self.asked_with, self.largest);
        let mut measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
        let curves = measured.get_or_insert_default();
        if curves.len() == MOST_CURVES {
            curves.clear();
        }
        curves.entry(key).or_insert_with(|| Arc::new(Curve::Measured(self.measure()))).clone()
    }

    /// Transfers of growing size, one after another: bytes and times.
    fn measure(&self) -> Vec<(u64, u64)> {
        let mut simulation = Simulation::new(self.line.network.clone(), 0);
        let [from, to] = self.line.ends;
        let Ok(tcp) = simulation.add_tcp(self.tcp.clone()) else { return Vec::new() };
        if simulation.expect(from, to).is_err() {
            return Vec::new();
        }
        let sizes = sizes(u64::from(self.tcp.mss), self.largest);
        let (ends, asked_with) = (self.line.ends, self.asked_with);
        simulation.add_source(Box::new(OneByOne { ends, asked_with, tcp, sizes, next: 0 }));
        let mut reports: Vec<FlowReport> = Vec::new();
        // A transfer that hangs leaves the curve shorter.
        const LONGEST: Nanos = Nanos::from_secs(1_000_000);
        if simulation.run_until(LONGEST, &mut reports).is_err() {
            return Vec::new();
        }
        let took = |r: &FlowReport| Some((r.bytes, r.completed?.since(r.started).0));
        reports.iter().filter_map(took).collect()
    }
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
    ends: [NodeId; 2],
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
        let [from, to] = self.ends;
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

    /// Links of these rates and 7 ms from node to node, and the same back.
    fn ways(network: &mut Network, nodes: &[&str], rates: &[u64]) -> [Vec<LinkId>; 2] {
        let nodes: Vec<NodeId> = nodes.iter().map(|name| network.node(name).unwrap()).collect();
        let mut ways = [Vec::new(), Vec::new()];
        for (ends, rate) in nodes.windows(2).zip(rates) {
            for (way, [from, to]) in ways.iter_mut().zip([[0, 1], [1, 0]]) {
                let (from, to) = (ends[from], ends[to]);
                let config = LinkConfig {
                    name: format!("{}-{}", network.node_name(from), network.node_name(to)),
                    from,
                    to,
                    rate: sched::Rate(*rate),
                    varying: None,
                    delay: Nanos::from_millis(7),
                    overhead: 0,
                    queue: sim::Queue::Fifo { limit: sched::Amount::Packets(1000) },
                    edge: None,
                    impairments: sim::Impairments::default(),
                };
                way.push(network.link(config).unwrap());
            }
        }
        ways[1].reverse();
        ways
    }

    fn curve(tcp: &tcp::Config, asked_with: Option<u64>, rates: &[u64]) -> Arc<Curve> {
        let mut network = Network::new();
        let nodes = &["a", "b", "c", "d"][..=rates.len()];
        let ways = ways(&mut network, nodes, rates);
        let line = Line::of(&network, &ways).unwrap();
        Lone { line, tcp, asked_with, largest: 960_000 }.curve()
    }

    #[test]
    fn a_transfer_alone_takes_round_trips_and_its_bits() {
        let tcp = tcp::Config { mss: 960, ..tcp::Config::ns2() };
        let curve = curve(&tcp, None, &[100_000_000, 8_000_000]);
        // Two links of 7 ms; 40 bytes take 3.2 and 40 us, 1000 bytes 80 and 1000 us. The data leave
        // right after the acknowledgment of the handshake.
        let handshake = 2 * (14_000_000 + 43_200);
        assert_eq!(curve.time(960), Some(handshake + 14_000_000 + 3_200 + 1_080_000));
        // In the end every packet takes its bits.
        let (half, all) = (curve.time(480_000).unwrap(), curve.time(960_000).unwrap());
        assert!((all - half).abs_diff(500 * 1_000_000) < 2_000_000, "{half}, {all}");
    }

    #[test]
    fn a_curve_is_measured_once_for_all_that_it_depends_on() {
        let tcp = tcp::Config::ns2();
        let rates = [10_000_000, 2_000_000];
        let one = curve(&tcp, None, &rates);
        assert!(Arc::ptr_eq(&one, &curve(&tcp, None, &rates)));
        for other in [
            curve(&tcp, Some(300), &rates),
            curve(&tcp, None, &[10_000_000, 2_000_001]),
            curve(&tcp, None, &[10_000_000, 2_000_000, 10_000_000]),
            curve(&tcp::Config::linux(), None, &rates),
        ] {
            assert!(!Arc::ptr_eq(&one, &other));
            assert_ne!(one.time(960_000), other.time(960_000));
        }
    }

    #[test]
    fn links_are_alike_but_for_name_and_ends() {
        let mut network = Network::new();
        ways(&mut network, &["a", "b", "c", "d"], &[1_000_000, 2_000_000, 1_000_000]);
        assert_eq!(classes(network.links()), [0, 0, 1, 1, 0, 0]);
    }
}
