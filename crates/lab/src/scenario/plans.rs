//! What the rounds of a scenario send, a plan for each pair of hosts.

use scenario::{Kind, Scenario, Traffic as Sent, draw};
use units::Nanos;

use super::way::Way;
use super::{is_persistent, is_requests, is_transfers, tcp_of};
use crate::config::{Ends, Round};
use crate::traffic::{Cbr, Plan, Session, Stream, Tcp, Transfer, VisitedPage, Visitor};

/// Each pair of hosts with traffic has two processes, and ports of its own.
pub(super) const MOST_PAIRS: usize = 16;
const PORTS: u16 = 1600;
/// Ids of objects of pages, beyond those of all other transfers.
const OBJECTS: u32 = 1 << 31;

impl Way<'_> {
    /// What a round sends. Ids are those of the simulator: traffics of one kind take turns.
    pub(super) fn round(&self, scenario: &Scenario, seed: u64) -> Round {
        let duration = scenario.duration;
        let mut pairs = Pairs { way: self, ends: self.ends(), duration, plans: Vec::new() };
        for (number, traffic) in scenario.traffic.iter().enumerate() {
            let turn = |of: fn(&Kind) -> bool| {
                let own =
                    |traffics: &[Sent]| traffics.iter().filter(|t| of(&t.kind)).count() as u32;
                Turn { of: own(&scenario.traffic), before: own(&scenario.traffic[..number]) }
            };
            pairs.add(traffic, seed, turn);
        }
        if pairs.plans.is_empty() {
            pairs.of(self.servers[0].0, self.clients[0]);
        }
        let link = self.bottleneck;
        let varying = [self.down, 1 - self.down].map(|way| {
            link.varying[way].as_ref().map(|rates| rates.of(seed, &link.direction_name(way)))
        });
        Round { seed, plans: pairs.plans.into_iter().map(|(_, plan)| plan).collect(), varying }
    }
}

/// Traffics of one kind take turns in ids.
#[derive(Clone, Copy)]
struct Turn {
    of: u32,
    before: u32,
}

impl Turn {
    fn id(self, index: u32) -> u32 {
        index * self.of + self.before
    }
}

/// A plan for every pair of nodes with traffic, server and client.
struct Pairs<'a> {
    way: &'a Way<'a>,
    ends: Ends,
    duration: Nanos,
    plans: Vec<((usize, usize), Plan)>,
}

impl Pairs<'_> {
    fn of(&mut self, server: usize, client: usize) -> &mut Plan {
        let found = self.plans.iter().position(|(pair, _)| *pair == (server, client));
        let at = found.unwrap_or_else(|| {
            let number = |place: Option<usize>| place.unwrap_or_default() as u8;
            let mut plan = self.ends.plan(
                number(self.way.servers.iter().position(|(node, _)| *node == server)),
                number(self.way.clients.iter().position(|node| *node == client)),
            );
            // Too many are refused later.
            plan.port += PORTS * (self.plans.len() % MOST_PAIRS) as u16;
            (plan.arrivals_end, plan.drain_end) = (self.duration, self.duration);
            self.plans.push(((server, client), plan));
            self.plans.len() - 1
        });
        &mut self.plans[at].1
    }

    /// The plan between the ends of a flow that has this number.
    fn of_flow(&mut self, traffic: &Sent, flow: u64) -> &mut Plan {
        let (from, to) = draw::ends_of(traffic, flow);
        let (from, to) = (traffic.from[from], traffic.to[to]);
        if self.way.is_up(traffic) { self.of(to, from) } else { self.of(from, to) }
    }

    fn add(&mut self, traffic: &Sent, seed: u64, turn: impl Fn(fn(&Kind) -> bool) -> Turn) {
        let tcp = traffic.kind.tcp().map_or(Tcp::Cubic, tcp_of);
        let (start, stop) = (traffic.start, traffic.stop);
        match &traffic.kind {
            Kind::Transfers { .. } | Kind::Periodic { .. } => {
                for (index, flow) in (0..).zip(draw::flows(traffic, seed)) {
                    let plan = self.of(traffic.from[flow.from], traffic.to[flow.to]);
                    plan.transfers.push(Transfer {
                        id: turn(is_transfers).id(index),
                        start: flow.start,
                        size_bytes: flow.size_bytes,
                        tcp,
                    });
                }
            }
            Kind::Web { connections, .. } => {
                let turn = turn(is_transfers);
                let mut id = OBJECTS + turn.before * (OBJECTS / turn.of);
                for visitor in draw::visitors(traffic, seed) {
                    let mut page = |page: workload::Page| VisitedPage {
                        objects: (page.objects.iter().zip(id..))
                            .map(|(object, own)| {
                                id = own + 1;
                                let (start, size_bytes) = (object.known, object.size_bytes);
                                Transfer { id: own, start, size_bytes, tcp }
                            })
                            .collect(),
                        think: page.think,
                    };
                    let visitor = (
                        visitor.to,
                        Visitor {
                            number: visitor.index * u64::from(turn.of) + u64::from(turn.before),
                            tcp,
                            start: visitor.start,
                            stop,
                            connections: *connections,
                            pages: visitor.pages.into_iter().map(&mut page).collect(),
                        },
                    );
                    if visitor.1.start < stop {
                        let plan = self.of(traffic.from[0], traffic.to[visitor.0]);
                        plan.visitors.push(visitor.1);
                    }
                }
            }
            Kind::Requests { flows, requests, .. } => {
                for flow in 0..*flows {
                    let id = turn(is_requests).id(flow as u32);
                    let due = draw::due(traffic, *requests, flow, seed);
                    let size_bytes = requests.response_bytes.into();
                    if !due.is_empty() {
                        let session = Session { id, tcp, due, size_bytes };
                        self.of_flow(traffic, flow).sessions.push(session);
                    }
                }
            }
            Kind::Persistent { flows, stagger, .. } => {
                let is_up = self.way.is_up(traffic);
                for flow in 0..*flows {
                    let start = start + *stagger * flow;
                    let id = turn(is_persistent).id(flow as u32);
                    if start < stop {
                        let plan = self.of_flow(traffic, flow);
                        let streams = if is_up { &mut plan.uploads } else { &mut plan.downloads };
                        streams.push(Stream { id, tcp, start, stop });
                    }
                }
            }
            Kind::Cbr(stream) => {
                for flow in 0..stream.flows {
                    let start = draw::first(stream, traffic, flow, seed);
                    if start < stop {
                        let name = match stream.flows {
                            1 => traffic.name.clone(),
                            _ => format!("{}/{flow}", traffic.name),
                        };
                        let (rate, packet_bytes) = (stream.rate, stream.packet_bytes as u16);
                        let cbr = Cbr { name, rate, packet_bytes, start, stop };
                        self.of_flow(traffic, flow).cbr.push(cbr);
                    }
                }
            }
            _ => {}
        }
    }
}
