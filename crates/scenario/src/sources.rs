//! The traffic of a scenario as sources of a simulation.

use std::collections::BTreeSet;

use sched::Nanos;
use sim::sources::{
    Bursts, DatagramStream, FlowPlan, Opener, Pair, RequestStream, Trace, Transfers, Visitors, Web,
    WebConfig,
};
use sim::{NodeId, Simulation, Source, TcpId};
use workload::{Datagram, DatagramList, Random};

use crate::draw;
use crate::scenario::Scenario;
use crate::traffic::{Kind, Traffic};
use crate::watched;

/// What a source is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    /// The traffic that it belongs to.
    pub(crate) traffic: usize,
    /// Its place among the sources of that traffic.
    pub(crate) place: u64,
}

/// With more pairs of ends than this, ways are not settled ahead.
const MOST_PAIRS: usize = 20_000;

/// Adds all traffic of a scenario, and watches the transfers that are to be. The purpose of each
/// source stands at its place.
pub(crate) fn add(
    simulation: &mut Simulation,
    scenario: &Scenario,
    nodes: &[NodeId],
    seed: u64,
    watched: &BTreeSet<watched::Transfer>,
) -> Result<Vec<Purpose>, String> {
    let mut purposes = Vec::new();
    for (number, traffic) in scenario.traffic.iter().enumerate() {
        let tcp = match traffic.kind.tcp() {
            Some(config) => Some(simulation.add_tcp(config.clone()).map_err(|e| e.to_string())?),
            None => None,
        };
        for (place, source) in (0..).zip(sources(traffic, tcp, &Ends::new(traffic, nodes), seed)) {
            let id = simulation.add_source(source);
            purposes.push(Purpose { traffic: number, place });
            if traffic.dscp > 0 {
                simulation.mark(id, traffic.dscp);
            }
            // Transfers of one traffic have one source.
            let of_traffic = watched.range((number, 0)..=(number, u64::MAX));
            of_traffic.for_each(|(_, index)| simulation.watch(id, *index));
        }
    }
    let pairs = |traffic: &Traffic| traffic.from.len().saturating_mul(traffic.to.len());
    // Of all ways or of none.
    if scenario.traffic.iter().map(pairs).fold(0, usize::saturating_add) <= MOST_PAIRS {
        for traffic in &scenario.traffic {
            let ends = Ends::new(traffic, nodes);
            for from in &ends.from {
                for to in &ends.to {
                    simulation.expect(*from, *to).map_err(|error| error.to_string())?;
                }
            }
        }
    }
    Ok(purposes)
}

fn sources(traffic: &Traffic, tcp: Option<TcpId>, ends: &Ends, seed: u64) -> Vec<Box<dyn Source>> {
    let plans = || {
        let ends = ends.clone();
        draw::flows(traffic, seed).map(move |flow| FlowPlan {
            start: flow.start,
            bytes: flow.size_bytes,
            pair: ends.pair(flow.from, flow.to),
        })
    };
    let opener = match traffic.asked_with {
        None => Opener::Sender,
        Some(request_bytes) => Opener::Receiver { request_bytes },
    };
    let span = (traffic.start, traffic.stop);
    match (&traffic.kind, tcp) {
        (Kind::Persistent { flows, stagger, .. }, Some(tcp)) => {
            let places = ends.from.len().max(ends.to.len()).min(*flows as usize);
            let pairs = (0..places).map(|place| ends.pair(place, place)).collect();
            let flows = Transfers::persistent(*flows, traffic.start, *stagger, pairs, tcp);
            vec![Box::new(flows.opened_by(opener))]
        }
        (Kind::Requests { flows, requests, .. }, Some(tcp)) => {
            let one = |flow: u64| {
                let Pair { sender, receiver } = ends.pair(flow as usize, flow as usize);
                let due = draw::due(traffic, *requests, flow, seed).into_iter();
                Box::new(RequestStream::new(*requests, receiver, sender, tcp, due)) as _
            };
            (0..*flows).map(one).collect()
        }
        (Kind::Web { .. }, Some(tcp)) => {
            let random = Random::of(seed, &traffic.name);
            web(&traffic.kind, tcp, ends, span, random).into_iter().collect()
        }
        (Kind::OpenLoop { packet_bytes, .. }, _) => {
            vec![Box::new(Bursts::new(plans(), *packet_bytes))]
        }
        (Kind::Trace(list), _) => {
            vec![Box::new(Trace::new(shifted(list, traffic), ends.pair(0, 0)))]
        }
        (_, Some(tcp)) => {
            vec![Box::new(Transfers::planned(plans(), tcp).opened_by(opener))]
        }
        (Kind::Cbr(stream), None) => {
            let one = |flow: u64| {
                let packets = draw::steady(stream, traffic, flow, seed);
                let pair = ends.pair(flow as usize, flow as usize);
                Box::new(DatagramStream::new(packets, pair, flow)) as _
            };
            (0..stream.flows).map(one).collect()
        }
        (Kind::OnOff { flows, stream }, None) => {
            let one = |flow: u64| {
                let random = Random::of(seed, &format!("{}/{flow}", traffic.name));
                let pair = ends.pair(flow as usize, flow as usize);
                let stream = stream.clone();
                Box::new(DatagramStream::on_off(stream, pair, flow, span, random)) as _
            };
            (0..*flows).map(one).collect()
        }
        (_, None) => Vec::new(),
    }
}

fn web(
    kind: &Kind,
    tcp: TcpId,
    ends: &Ends,
    (from, until): (Nanos, Nanos),
    random: Random,
) -> Option<Box<dyn Source>> {
    let Kind::Web { users, think, objects, gap, sizes, request_bytes, connections, .. } = kind
    else {
        return None;
    };
    let config = WebConfig {
        visitors: Visitors::Users(*users),
        clients: ends.to.clone(),
        servers: ends.from.clone(),
        tcp,
        objects: objects.clone(),
        object_bytes: sizes.clone(),
        request_bytes: *request_bytes,
        between_objects: gap.clone(),
        think: think.clone(),
        connections: *connections,
        persistent: false,
        from,
        until,
    };
    Some(Box::new(Web::new(config, random)))
}

/// The datagrams of a list between the start and the stop of its traffic.
fn shifted(list: &DatagramList, traffic: &Traffic) -> DatagramList {
    let shift = |datagram: &Datagram| Datagram { time: datagram.time + traffic.start, ..*datagram };
    let before_stop = |datagram: &Datagram| datagram.time < traffic.stop;
    DatagramList::new(list.datagrams().iter().map(shift).filter(before_stop).collect())
}

/// The nodes of a traffic's ends.
#[derive(Clone)]
struct Ends {
    from: Vec<NodeId>,
    to: Vec<NodeId>,
}

impl Ends {
    fn new(traffic: &Traffic, nodes: &[NodeId]) -> Self {
        let nodes_of = |places: &[usize]| places.iter().map(|place| nodes[*place]).collect();
        Self { from: nodes_of(&traffic.from), to: nodes_of(&traffic.to) }
    }

    /// Places beyond the last begin anew.
    fn pair(&self, from: usize, to: usize) -> Pair {
        let (sender, receiver) = (self.from[from % self.from.len()], self.to[to % self.to.len()]);
        Pair { sender, receiver }
    }
}
