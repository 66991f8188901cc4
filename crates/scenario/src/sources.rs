//! The traffic of a scenario as sources of a simulation.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::sync::mpsc;

use sched::Nanos;
use sim::{
    Connection, Context, ENDLESS, FlowName, NetworkError, NodeId, Simulation, Source, SourceId,
    TcpId,
};
use workload::Random;

use crate::draw::{self, Flows, Packets};
use crate::scenario::Scenario;
use crate::traffic::{Kind, Traffic};

/// A request: reported by its source when it is due and again when it is answered, since the
/// simulator reports connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// The traffic it belongs to.
    pub(crate) traffic: usize,
    /// Its place in the traffic.
    pub(crate) index: u64,
    /// When it was to be sent.
    pub(crate) due: Nanos,
    /// When the response was complete; `None` while it is not.
    pub(crate) end: Option<Nanos>,
}

/// What was added to a simulation.
pub(crate) struct Added {
    /// The traffic of each source, by the place of the source.
    pub(crate) traffic: Vec<usize>,
    /// Where requests are told.
    pub(crate) requests: mpsc::Receiver<Request>,
}

/// Adds all traffic of a scenario.
pub(crate) fn add(
    simulation: &mut Simulation,
    scenario: &Scenario,
    nodes: &[NodeId],
    seed: u64,
) -> Result<Added, String> {
    let (told, requests) = mpsc::channel();
    let mut added = Added { traffic: Vec::new(), requests };
    for (number, traffic) in scenario.traffic.iter().enumerate() {
        let tcp = match traffic.kind.tcp() {
            Some(config) => Some(simulation.add_tcp(config.clone()).map_err(|e| e.to_string())?),
            None => None,
        };
        let ends = Ends::new(traffic, nodes);
        for source in sources(number, traffic, tcp, &ends, seed, &told) {
            let id: SourceId = simulation.add_source(source);
            debug_assert_eq!(id.index(), added.traffic.len());
            added.traffic.push(number);
        }
    }
    Ok(added)
}

fn sources(
    number: usize,
    traffic: &Traffic,
    tcp: Option<TcpId>,
    ends: &Ends,
    seed: u64,
    told: &mpsc::Sender<Request>,
) -> Vec<Box<dyn Source>> {
    let ends_of = |flow: u64| (ends.from(flow as usize), ends.to(flow as usize));
    let flows = || draw::flows(traffic, seed).peekable();
    match (&traffic.kind, tcp) {
        (Kind::Persistent { flows, stagger_ns, .. }, Some(tcp)) => {
            let start = |flow| Nanos(traffic.start_ns.saturating_add(flow * stagger_ns));
            let one = |flow| {
                Box::new(Endless { ends: ends_of(flow), tcp, start: start(flow), flow }) as _
            };
            (0..*flows).map(one).collect()
        }
        (Kind::Requests { flows, every_ns, request_bytes, size_bytes, .. }, Some(tcp)) => {
            let one = |flow: u64| {
                let random = Random::of(seed, &format!("{}/{flow}", traffic.name));
                Box::new(Client {
                    number,
                    ends: ends_of(flow),
                    tcp,
                    sizes: (*request_bytes, *size_bytes),
                    every_ns: *every_ns,
                    stop_ns: traffic.stop_ns,
                    random,
                    slot_ns: traffic.start_ns,
                    index: flow,
                    step: *flows,
                    due: VecDeque::new(),
                    next: None,
                    connection: None,
                    told: told.clone(),
                }) as _
            };
            (0..*flows).map(one).collect()
        }
        (Kind::OpenLoop { packet_bytes, .. }, _) => vec![Box::new(Bursts {
            flows: flows(),
            ends: ends.clone(),
            packet_bytes: *packet_bytes,
            index: 0,
        })],
        (_, Some(tcp)) => {
            vec![Box::new(Transfers { flows: flows(), ends: ends.clone(), tcp, index: 0 })]
        }
        (_, None) => {
            let one = |flow| {
                let packets = draw::packets(traffic, flow, seed).peekable();
                Box::new(Datagrams { packets, ends: ends_of(flow), index: flow, flow: None }) as _
            };
            (0..traffic.kind.streams()).map(one).collect()
        }
    }
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

    /// In turn.
    fn from(&self, place: usize) -> NodeId {
        self.from[place % self.from.len()]
    }

    fn to(&self, place: usize) -> NodeId {
        self.to[place % self.to.len()]
    }
}

/// Opens a connection for each flow of a workload.
struct Transfers {
    flows: Peekable<Flows>,
    ends: Ends,
    tcp: TcpId,
    index: u64,
}

impl Source for Transfers {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        self.flows.peek().into_iter().for_each(|next| context.wake_at(Nanos(next.start_ns)));
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let now = context.now().0;
        while let Some(flow) = self.flows.next_if(|flow| flow.start_ns <= now) {
            context.connect(&Connection {
                client: self.ends.from(flow.from),
                server: self.ends.to(flow.to),
                tcp: self.tcp,
                request_bytes: flow.size_bytes,
                response_bytes: 0,
                keep_open: false,
                index: self.index,
            })?;
            self.index += 1;
        }
        self.start(context)
    }
}

/// A transfer without end.
struct Endless {
    ends: (NodeId, NodeId),
    tcp: TcpId,
    start: Nanos,
    flow: u64,
}

impl Source for Endless {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        context.wake_at(self.start);
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let (client, server) = self.ends;
        context
            .connect(&Connection {
                client,
                server,
                tcp: self.tcp,
                request_bytes: ENDLESS,
                response_bytes: 0,
                keep_open: false,
                index: self.flow,
            })
            .map(drop)
    }
}

/// Sends the packets of one UDP stream.
struct Datagrams {
    packets: Peekable<Packets>,
    ends: (NodeId, NodeId),
    index: u64,
    flow: Option<FlowName>,
}

impl Source for Datagrams {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        self.packets.peek().into_iter().for_each(|next| context.wake_at(Nanos(next.start_ns)));
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let now = context.now().0;
        let flow = match self.flow {
            Some(flow) => flow,
            None => context.open_datagrams(self.ends.0, self.ends.1, self.index, true)?,
        };
        self.flow = Some(flow);
        while let Some(packet) = self.packets.next_if(|packet| packet.start_ns <= now) {
            context.datagram(flow, packet.size_bytes as u32, None);
        }
        match self.packets.peek() {
            Some(next) => context.wake_at(Nanos(next.start_ns)),
            None => context.close(flow),
        }
        Ok(())
    }
}

/// Sends all packets of a flow at once.
struct Bursts {
    flows: Peekable<Flows>,
    ends: Ends,
    packet_bytes: u32,
    index: u64,
}

impl Source for Bursts {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        self.flows.peek().into_iter().for_each(|next| context.wake_at(Nanos(next.start_ns)));
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let now = context.now().0;
        while let Some(flow) = self.flows.next_if(|flow| flow.start_ns <= now) {
            let (from, to) = (self.ends.from(flow.from), self.ends.to(flow.to));
            let burst = context.open_datagrams(from, to, self.index, false)?;
            self.index += 1;
            let mut left = flow.size_bytes;
            while left > 0 {
                let size = left.min(u64::from(self.packet_bytes));
                context.datagram(burst, size as u32, Some(flow.size_bytes));
                left -= size;
            }
            context.close(burst);
        }
        self.start(context)
    }
}

/// Asks and is answered on one connection, one request at a time.
struct Client {
    number: usize,
    /// Server and client: data come from the server.
    ends: (NodeId, NodeId),
    tcp: TcpId,
    sizes: (u64, u64),
    every_ns: u64,
    stop_ns: u64,
    random: Random,
    /// Start of the next interval.
    slot_ns: u64,
    /// Of the next request; requests of several connections are numbered in turn.
    index: u64,
    step: u64,
    /// Requests that are due, or under way: place and time.
    due: VecDeque<(u64, Nanos)>,
    /// The next one.
    next: Option<Nanos>,
    connection: Option<FlowName>,
    told: mpsc::Sender<Request>,
}

impl Client {
    fn plan(&mut self, context: &mut Context<'_>) {
        let at = self.slot_ns.saturating_add(self.random.below(self.every_ns));
        self.slot_ns = self.slot_ns.saturating_add(self.every_ns);
        self.next = (at < self.stop_ns).then_some(Nanos(at));
        self.next.into_iter().for_each(|next| context.wake_at(next));
    }

    fn tell(&self, index: u64, due: Nanos, end: Option<Nanos>) {
        // Nobody listens any more when the run is over.
        let _ = self.told.send(Request { traffic: self.number, index, due, end });
    }

    fn ask(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let (request_bytes, response_bytes) = self.sizes;
        match self.connection {
            Some(connection) => context.exchange(connection, request_bytes, response_bytes),
            None => {
                let (server, client) = self.ends;
                self.connection = Some(context.connect(&Connection {
                    client,
                    server,
                    tcp: self.tcp,
                    request_bytes,
                    response_bytes,
                    keep_open: true,
                    index: self.index,
                })?);
            }
        }
        Ok(())
    }
}

impl Source for Client {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        self.plan(context);
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let Some(due) = self.next else { return Ok(()) };
        self.tell(self.index, due, None);
        self.due.push_back((self.index, due));
        self.index += self.step;
        self.plan(context);
        if self.due.len() == 1 { self.ask(context) } else { Ok(()) }
    }

    fn exchanged(
        &mut self,
        _: FlowName,
        _: u64,
        context: &mut Context<'_>,
    ) -> Result<(), NetworkError> {
        if let Some((index, due)) = self.due.pop_front() {
            self.tell(index, due, Some(context.now()));
        }
        if self.due.is_empty() { Ok(()) } else { self.ask(context) }
    }
}
