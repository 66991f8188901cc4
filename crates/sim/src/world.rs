//! The running state of a simulation: packets move, ends react.

use std::collections::HashMap;

use sched::{Ecn, HostId, Nanos, Packet};
use tcp::{Config, Endpoint, Segment, State};

use crate::events::EventQueue;
use crate::flow::{
    CLIENT, Connection, Datagrams, Flow, FlowLabel, FlowReport, Kind, SERVER, SourceId, Tcp, TcpId,
    Way,
};
use crate::flow_names::{FlowName, FlowNames};
use crate::link::{Link, slot_of};
use crate::network::{LinkId, Network, NetworkError, NodeId};
use crate::recorder::{Exchange, Probe};
use crate::transit::{Payload, Transit, Transits};

/// Something that is to happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A packet reaches the end of a link.
    Arrive(u32),
    /// A port may be due for service.
    Service(u32),
    /// A TCP end may have a timer due: twice the flow's slot, plus the end.
    Timer(u32),
    /// A source asked to be woken.
    Wake(u32),
    /// Ports are to be looked at.
    Sample,
}

/// Something that a source or the recorder is to hear.
pub(crate) enum Notice {
    Exchanged { source: SourceId, flow: FlowName, index: u64 },
    Done(Box<FlowReport>),
    Probe(Probe),
    Exchange(Exchange),
}

/// Ends a way in the hop table.
const END: LinkId = LinkId(u32::MAX);

/// Where the packets of a link come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feeder {
    Nobody,
    /// One other link, and nobody else.
    Link(LinkId),
    /// Hosts, or several links.
    Several,
}

pub(crate) struct World {
    now: Nanos,
    pub(crate) events: EventQueue<Event>,
    pub(crate) links: Vec<Link>,
    network: Network,
    /// The links of all ways, each way followed by `END`.
    hops: Vec<LinkId>,
    /// By link: what leads packets to it.
    feeders: Vec<Feeder>,
    ways: HashMap<(NodeId, NodeId), Way>,
    pub(crate) transits: Transits,
    flows: Vec<Flow>,
    free_flows: Vec<u32>,
    names: FlowNames,
    serial: u64,
    pub(crate) tcps: Vec<Config>,
    pub(crate) notices: Vec<Notice>,
    /// Packets that reached the end of a link.
    pub(crate) packet_hops: u64,
}

impl World {
    pub(crate) fn new(network: Network, seed: u64) -> Self {
        let names = FlowNames::new(seed);
        let links = network.links().iter().map(|link| Link::new(link, seed, names)).collect();
        let feeders = vec![Feeder::Nobody; network.links().len()];
        Self {
            now: Nanos::ZERO,
            events: EventQueue::new(),
            links,
            network,
            hops: Vec::new(),
            feeders,
            ways: HashMap::new(),
            transits: Transits::default(),
            flows: Vec::new(),
            free_flows: Vec::new(),
            names,
            serial: 0,
            tcps: Vec::new(),
            notices: Vec::new(),
            packet_hops: 0,
        }
    }

    pub(crate) const fn now(&self) -> Nanos {
        self.now
    }

    pub(crate) fn set_now(&mut self, now: Nanos) {
        self.now = now;
    }

    pub(crate) const fn network(&self) -> &Network {
        &self.network
    }

    /// Flows that are open.
    pub(crate) fn open_flows(&self) -> usize {
        self.flows.len() - self.free_flows.len()
    }

    /// Lets happen what was scheduled for now.
    #[inline]
    pub(crate) fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(slot) => self.arrive(slot),
            Event::Service(link) => self.service(LinkId(link)),
            Event::Timer(end) => self.timer(end / 2, (end % 2) as usize),
            // The simulation's own business.
            Event::Wake(_) | Event::Sample => {}
        }
    }

    // ---- what sources do ----

    pub(crate) fn wake_at(&mut self, source: SourceId, time: Nanos) {
        self.events.push(time.max(self.now).0, Event::Wake(source.0));
    }

    pub(crate) fn connect(
        &mut self,
        source: SourceId,
        connection: &Connection,
    ) -> Result<FlowName, NetworkError> {
        let config = &self.tcps[usize::from(connection.tcp.0)];
        let ends = [Endpoint::client(config), Endpoint::server(config)];
        let kind = Kind::Tcp(Tcp {
            ends,
            timer_at: [u64::MAX; 2],
            tcp: connection.tcp,
            keep_open: connection.keep_open,
            busy: false,
            answered: false,
            connected: None,
            response_bytes: 0,
            request_goal: 0,
            response_goal: 0,
            bytes: [connection.request_bytes, connection.response_bytes],
        });
        let (client, server) = (connection.client, connection.server);
        let slot = self.open(source, connection.index, client, server, kind)?;
        let now = self.now.0;
        if let Some((tcp, config)) = tcp_of(&mut self.flows, &self.tcps, slot) {
            tcp.ends[CLIENT].connect(config, now);
        }
        self.start_exchange(slot, connection.request_bytes, connection.response_bytes);
        self.transmit(slot, CLIENT);
        Ok(self.flows[slot as usize].name(slot))
    }

    pub(crate) fn exchange(&mut self, flow: FlowName, request_bytes: u64, response_bytes: u64) {
        let Some(slot) = self.live(flow) else { return };
        let Kind::Tcp(tcp) = &self.flows[slot as usize].kind else { return };
        if !tcp.busy {
            self.start_exchange(slot, request_bytes, response_bytes);
            self.transmit(slot, CLIENT);
        }
    }

    pub(crate) fn close(&mut self, flow: FlowName) {
        let Some(slot) = self.live(flow) else { return };
        match &mut self.flows[slot as usize].kind {
            Kind::Vacant => {}
            Kind::Tcp(tcp) => {
                tcp.keep_open = false;
                tcp.ends.iter_mut().for_each(Endpoint::close);
                self.transmit(slot, CLIENT);
                self.transmit(slot, SERVER);
            }
            Kind::Datagrams(stream) => {
                stream.closed = true;
                self.finish_if_over(slot);
            }
        }
    }

    pub(crate) fn open_datagrams(
        &mut self,
        source: SourceId,
        from: NodeId,
        to: NodeId,
        index: u64,
        probed: bool,
    ) -> Result<FlowName, NetworkError> {
        let kind = Kind::Datagrams(Datagrams { probed, ..Datagrams::default() });
        let slot = self.open(source, index, from, to, kind)?;
        Ok(self.flows[slot as usize].name(slot))
    }

    pub(crate) fn datagram(&mut self, name: FlowName, bytes: u32, flow_bytes: Option<u64>) {
        let Some(slot) = self.live(name) else { return };
        let flow = &mut self.flows[slot as usize];
        let Kind::Datagrams(stream) = &mut flow.kind else { return };
        let seq = stream.sent;
        stream.sent += 1;
        stream.sent_bytes += u64::from(bytes);
        if let Some(bytes) = flow_bytes {
            stream.flow_bytes = bytes;
        }
        let mut transit = Transit::datagram(name, bytes.max(1), seq, self.now.0);
        transit.hop = flow.ways[CLIENT].0;
        let packet = self.transits.add(transit);
        self.forward(packet);
    }

    /// Labels what the server of a connection sends.
    pub(crate) fn label_of_answers(&self, flow: FlowName) -> Option<FlowLabel> {
        self.live(flow).map(|slot| self.flows[slot as usize].label(SERVER))
    }

    // ---- packets move ----

    /// A packet enters the queue of its next link.
    #[inline]
    fn forward(&mut self, slot: u32) {
        let transit = self.transits.get(slot);
        let id = self.hops[transit.hop as usize];
        let link = &mut self.links[id.index()];
        if link.port_link().is_some() {
            self.enqueue(id, slot);
            return;
        }
        match link.fifo.accept(transit.size, self.now) {
            Some(end) => self.carry(id, slot, end),
            None => self.lose(slot),
        }
    }

    fn enqueue(&mut self, id: LinkId, slot: u32) {
        // A transmission that ends now frees the link first, whatever the order of events.
        self.service(id);
        let (packet, label) = self.packet(slot);
        let Some(link) = self.links[id.index()].port_link() else { return };
        link.port.arrive(packet, label.word(), self.now);
        if link.service_at == Nanos::MAX {
            link.service_at = self.now;
        }
        self.service(id);
        self.lose_dropped(id);
    }

    /// The packet as a discipline sees it, and what its records say of its flow.
    fn packet(&self, slot: u32) -> (Packet, FlowLabel) {
        let transit = self.transits.get(slot);
        let (name, sender) = (transit.flow(), transit.sender());
        let flow = &self.flows[name.slot as usize];
        let (from, to) = flow.nodes(sender);
        // To a queue, the directions of a connection are two flows.
        let id = self.names.id(queue_name(name.slot, sender, name));
        let mut packet = Packet::new(id, transit.size)
            .with_id(u64::from(slot))
            .with_hosts(HostId(from.0 + 1), HostId(to.0 + 1))
            .with_ecn(match (transit.is_ect(), transit.ce()) {
                (_, true) => Ecn::Ce,
                (true, false) => Ecn::Ect0,
                (false, false) => Ecn::NotEct,
            });
        if let Some(offset) = transit.offset() {
            packet = packet.with_offset(offset);
        }
        if let Some(bytes) = flow.bytes(sender) {
            packet = packet.with_flow_size(bytes);
        }
        (packet, flow.label(sender))
    }

    /// Starts what may start now at a port, and schedules the next service.
    fn service(&mut self, id: LinkId) {
        let Some(link) = self.links[id.index()].port_link() else { return };
        if link.service_at > self.now {
            return;
        }
        let sent = link.port.serve(self.now);
        let next = link.port.next_service();
        link.service_at = next.unwrap_or(Nanos::MAX);
        if let Some(next) = next {
            self.events.push(next.0, Event::Service(id.0));
        }
        if let Some(sent) = sent {
            let slot = slot_of(&sent.packet);
            if sent.mark {
                self.transits.get_mut(slot).mark_ce();
            }
            self.carry(id, slot, sent.end);
        }
        self.lose_dropped(id);
    }

    fn lose_dropped(&mut self, id: LinkId) {
        loop {
            let Some(link) = self.links[id.index()].port_link() else { return };
            let Some(packet) = link.port.pop_lost() else { return };
            self.lose(slot_of(&packet));
        }
    }

    /// Links carry a packet whose last bit leaves the first at `end`.
    ///
    /// A plain link that is fed by this one alone gets its packets in the order in which they
    /// leave here, so its part is settled at once: one event for both links.
    fn carry(&mut self, mut id: LinkId, slot: u32, mut end: Nanos) {
        loop {
            let Some(arrival) = self.links[id.index()].arrival(end) else {
                return self.lose(slot);
            };
            let transit = self.transits.get_mut(slot);
            let next = self.hops[transit.hop as usize + 1];
            if next == END || self.feeders[next.index()] != Feeder::Link(id) {
                self.events.push(arrival.0, Event::Arrive(slot));
                return;
            }
            transit.hop += 1;
            self.packet_hops += 1;
            let Some(next_end) = self.links[next.index()].fifo.accept(transit.size, arrival) else {
                return self.lose(slot);
            };
            (id, end) = (next, next_end);
        }
    }

    #[inline]
    fn arrive(&mut self, slot: u32) {
        self.packet_hops += 1;
        let transit = self.transits.get_mut(slot);
        transit.hop += 1;
        if self.hops[transit.hop as usize] == END {
            self.deliver(slot);
        } else {
            self.forward(slot);
        }
    }

    #[inline]
    fn deliver(&mut self, slot: u32) {
        let (transit, payload) = self.transits.remove(slot);
        let Some(flow) = self.live(transit.flow()) else { return };
        match payload {
            Payload::Segment(segment) => {
                self.segment(flow, 1 - transit.sender(), &segment, transit.ce());
            }
            Payload::Datagram { seq, sent } => {
                self.datagram_over(flow, seq, sent, Some(transit.size));
            }
        }
    }

    fn lose(&mut self, slot: u32) {
        let (transit, payload) = self.transits.remove(slot);
        let Some(flow) = self.live(transit.flow()) else { return };
        if let Payload::Datagram { seq, sent } = payload {
            self.datagram_over(flow, seq, sent, None);
        }
    }

    /// A datagram has arrived with so many bytes, or is lost.
    fn datagram_over(&mut self, slot: u32, seq: u64, sent: u64, arrived: Option<u32>) {
        let flow = &mut self.flows[slot as usize];
        let Kind::Datagrams(stream) = &mut flow.kind else { return };
        match arrived {
            Some(bytes) => {
                stream.received += 1;
                stream.received_bytes += u64::from(bytes);
            }
            None => stream.lost += 1,
        }
        if stream.probed {
            self.notices.push(Notice::Probe(Probe {
                source: flow.source,
                index: flow.index,
                seq,
                sent: Nanos(sent),
                arrived: arrived.map(|_| self.now),
            }));
        }
        if stream.closed {
            self.finish_if_over(slot);
        }
    }

    // ---- ends of connections ----

    fn segment(&mut self, slot: u32, end: usize, segment: &Segment, ce: bool) {
        let now = self.now.0;
        let Some((tcp, config)) = tcp_of(&mut self.flows, &self.tcps, slot) else { return };
        let before = tcp.ends[end].received();
        tcp.ends[end].on_segment(config, segment, ce, now);
        let progress = tcp.ends[end].received() != before;
        if tcp.connected.is_none() && end == CLIENT && tcp.ends[CLIENT].state() != State::SynSent {
            tcp.connected = Some(self.now);
        }
        if progress {
            self.progress(slot);
        }
        self.transmit(slot, end);
        self.finish_if_over(slot);
    }

    fn timer(&mut self, slot: u32, end: usize) {
        let now = self.now.0;
        let Some((tcp, config)) = tcp_of(&mut self.flows, &self.tcps, slot) else { return };
        if tcp.timer_at[end] != now {
            return; // an earlier event took its place
        }
        tcp.timer_at[end] = u64::MAX;
        if tcp.ends[end].next_timer().is_some_and(|due| due <= now) {
            tcp.ends[end].on_timer(config, now);
        }
        self.transmit(slot, end);
        self.finish_if_over(slot);
    }

    /// Sends what an end has to send, and schedules its next timer.
    fn transmit(&mut self, slot: u32, end: usize) {
        let now = self.now.0;
        loop {
            let Some((tcp, config)) = tcp_of(&mut self.flows, &self.tcps, slot) else { return };
            let Some(segment) = tcp.ends[end].poll_transmit(config, now) else { break };
            let header_bytes = config.header_bytes;
            let flow = &self.flows[slot as usize];
            let hop = flow.ways[end].0;
            let packet =
                self.transits.add_segment(&segment, header_bytes, flow.name(slot), end, hop);
            self.forward(packet);
        }
        let Some((tcp, _)) = tcp_of(&mut self.flows, &self.tcps, slot) else { return };
        // One event an end: timers mostly move back, and an event that comes too early is
        // scheduled again, instead of being cancelled with every acknowledgment.
        if let Some(due) = tcp.ends[end].next_timer().filter(|due| *due < tcp.timer_at[end]) {
            let due = due.max(now);
            tcp.timer_at[end] = due;
            self.events.push(due, Event::Timer(2 * slot + end as u32));
        }
    }

    fn start_exchange(&mut self, slot: u32, request_bytes: u64, response_bytes: u64) {
        let Kind::Tcp(tcp) = &mut self.flows[slot as usize].kind else { return };
        tcp.busy = true;
        tcp.answered = false;
        tcp.response_bytes = response_bytes;
        tcp.request_goal += request_bytes;
        tcp.response_goal += response_bytes;
        tcp.ends[CLIENT].write(request_bytes);
        if !tcp.keep_open && response_bytes == 0 {
            tcp.ends[CLIENT].close();
        }
    }

    /// Bytes were received: the server may have to answer, or the exchange may be over.
    fn progress(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let Kind::Tcp(tcp) = &mut flow.kind else { return };
        if !tcp.busy || tcp.ends[SERVER].received() < tcp.request_goal {
            return;
        }
        if !tcp.answered {
            tcp.answered = true;
            tcp.ends[SERVER].write(tcp.response_bytes);
            if !tcp.keep_open {
                tcp.ends[SERVER].close();
            }
            if tcp.response_bytes > 0 {
                self.transmit(slot, SERVER);
                return;
            }
        }
        if tcp.ends[CLIENT].received() < tcp.response_goal {
            return;
        }
        tcp.busy = false;
        flow.completed.get_or_insert(self.now);
        let (source, index) = (flow.source, flow.index);
        let stays_open = tcp.keep_open;
        if !stays_open {
            tcp.ends[CLIENT].close();
        }
        self.notices.push(Notice::Exchanged { source, flow: flow.name(slot), index });
        if !stays_open {
            self.transmit(slot, CLIENT);
        }
    }

    // ---- flows come and go ----

    fn open(
        &mut self,
        source: SourceId,
        index: u64,
        client: NodeId,
        server: NodeId,
        kind: Kind,
    ) -> Result<u32, NetworkError> {
        let there = self.way(client, server)?;
        // Datagrams need no way back.
        let back = match kind {
            Kind::Tcp(_) => self.way(server, client)?,
            _ => Way::default(),
        };
        let serial = self.serial;
        self.serial += 1;
        let started = self.now;
        let flow = |generation| Flow {
            generation,
            source,
            index,
            serial,
            started,
            client,
            server,
            completed: None,
            ways: [there, back],
            kind,
        };
        if let Some(slot) = self.free_flows.pop() {
            let entry = &mut self.flows[slot as usize];
            *entry = flow(entry.generation.wrapping_add(1));
            return Ok(slot);
        }
        self.flows.push(flow(0));
        Ok(self.flows.len() as u32 - 1)
    }

    /// Packets will go this way and back.
    pub(crate) fn expect(&mut self, from: NodeId, to: NodeId) -> Result<(), NetworkError> {
        self.expect_way(from, to)?;
        self.expect_way(to, from)
    }

    fn expect_way(&mut self, from: NodeId, to: NodeId) -> Result<(), NetworkError> {
        if !self.ways.contains_key(&(from, to)) {
            let way = self.add_way(from, to)?;
            self.note_feeders(way, true);
        }
        Ok(())
    }

    /// The way from one node to another.
    fn way(&mut self, from: NodeId, to: NodeId) -> Result<Way, NetworkError> {
        if let Some(way) = self.ways.get(&(from, to)) {
            return Ok(*way);
        }
        let way = self.add_way(from, to)?;
        self.note_feeders(way, false);
        Ok(way)
    }

    fn add_way(&mut self, from: NodeId, to: NodeId) -> Result<Way, NetworkError> {
        let links = self.network.path(from, to)?;
        let way = Way(self.hops.len() as u32);
        self.hops.extend(links);
        self.hops.push(END);
        self.ways.insert((from, to), way);
        Ok(way)
    }

    /// Notes what feeds the links of a way. Only of expected ways it is known that nobody else
    /// does, or that the others are known too.
    fn note_feeders(&mut self, way: Way, expected: bool) {
        let mut before = Feeder::Several;
        for at in way.0 as usize.. {
            let link = self.hops[at];
            if link == END {
                break;
            }
            let entry = &self.links[link.index()];
            // A discipline decides when it is asked, not before.
            let feeder = if entry.port().is_some() { Feeder::Several } else { before };
            let known = &mut self.feeders[link.index()];
            *known = match *known {
                Feeder::Nobody if expected => feeder,
                same if same == feeder => same,
                _ => Feeder::Several,
            };
            before = if entry.keeps_order() { Feeder::Link(link) } else { Feeder::Several };
        }
    }

    #[inline]
    fn live(&self, name: FlowName) -> Option<u32> {
        let flow = self.flows.get(name.slot as usize)?;
        let live = flow.generation == name.generation && !matches!(flow.kind, Kind::Vacant);
        live.then_some(name.slot)
    }

    #[inline]
    fn finish_if_over(&mut self, slot: u32) {
        let over = match &self.flows[slot as usize].kind {
            Kind::Vacant => false,
            Kind::Tcp(tcp) => {
                tcp.ends.iter().all(Endpoint::is_finished)
                    || tcp.ends.iter().any(|end| end.failed().is_some())
            }
            Kind::Datagrams(s) => s.closed && s.received + s.lost == s.sent,
        };
        if over {
            let report = self.report(slot, Some(self.now));
            self.notices.push(Notice::Done(Box::new(report)));
            self.flows[slot as usize].kind = Kind::Vacant;
            self.free_flows.push(slot);
        }
    }

    /// Reports on all flows that are open still.
    pub(crate) fn report_open_flows(&self) -> impl Iterator<Item = FlowReport> + '_ {
        let open = |slot: &u32| !matches!(self.flows[*slot as usize].kind, Kind::Vacant);
        (0..self.flows.len() as u32).filter(open).map(|slot| self.report(slot, None))
    }

    fn report(&self, slot: u32, closed: Option<Nanos>) -> FlowReport {
        let flow = &self.flows[slot as usize];
        let mut report = FlowReport {
            source: flow.source,
            index: flow.index,
            label: flow.label(CLIENT),
            bytes: 0,
            started: flow.started,
            connected: None,
            completed: flow.completed,
            closed,
            received: 0,
            failure: None,
            tcp: None,
            ports: Vec::new(),
        };
        let mut sender = CLIENT;
        match &flow.kind {
            Kind::Vacant => {}
            Kind::Tcp(tcp) => {
                sender = tcp.data_sender();
                report.label = flow.label(sender);
                report.bytes = tcp.bytes[sender];
                report.connected = tcp.connected;
                report.received = tcp.ends[1 - sender].received();
                report.failure = tcp.ends.iter().find_map(Endpoint::failed);
                report.tcp = Some([CLIENT, SERVER].map(|end| tcp.ends[end].stats()));
            }
            Kind::Datagrams(stream) => {
                report.bytes = stream.sent_bytes;
                report.received = stream.received_bytes;
                report.completed = closed.filter(|_| stream.lost == 0);
            }
        }
        let name = queue_name(slot, sender, flow.name(slot));
        let way = &self.hops[flow.ways[sender].0 as usize..];
        for id in way.iter().take_while(|link| **link != END) {
            if let Some(port) = self.links[id.index()].port() {
                report.ports.push((*id, port.flow(name)));
            }
        }
        report
    }
}

/// The name of what one end sends: to a queue, the directions of a connection are two flows.
#[inline]
const fn queue_name(slot: u32, end: usize, flow: FlowName) -> FlowName {
    FlowName { slot: 2 * slot + end as u32, generation: flow.generation }
}

/// A connection and its configuration.
#[inline]
fn tcp_of<'a>(
    flows: &'a mut [Flow],
    configs: &'a [Config],
    slot: u32,
) -> Option<(&'a mut Tcp, &'a Config)> {
    let Kind::Tcp(tcp) = &mut flows.get_mut(slot as usize)?.kind else { return None };
    let TcpId(id) = tcp.tcp;
    Some((tcp, &configs[usize::from(id)]))
}
