//! The running state of a simulation: packets move, ends react.

use std::collections::HashMap;

use sched::{Ecn, HostId, Nanos, Packet};
use tcp::{Config, Endpoint, Segment, State};

use crate::events::EventQueue;
use crate::flow::{
    CLIENT, Connection, Datagrams, Flow, FlowReport, Kind, SERVER, SourceId, Tcp, TcpId, Way,
};
use crate::flow_names::{FlowName, FlowNames};
use crate::link::{Link, LinkQueue, slot_of};
use crate::network::{LinkId, Network, NetworkError, NodeId};
use crate::recorder::Probe;
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
}

pub(crate) struct World {
    now: Nanos,
    pub(crate) events: EventQueue<Event>,
    pub(crate) links: Vec<Link>,
    network: Network,
    hops: Vec<LinkId>,
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
        Self {
            now: Nanos::ZERO,
            events: EventQueue::new(),
            links,
            network,
            hops: Vec::new(),
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
        let (seq, offset) = (stream.sent, stream.sent_bytes);
        stream.sent += 1;
        stream.sent_bytes += u64::from(bytes);
        let mut packet = Packet::new(self.names.id(queue_name(slot, CLIENT, name)), bytes.max(1))
            .with_hosts(HostId(flow.client.0 + 1), HostId(flow.server.0 + 1))
            .with_offset(offset);
        if let Some(total) = flow_bytes {
            packet = packet.with_flow_size(total);
        }
        let (way, label) = (flow.ways[CLIENT], flow.label(CLIENT));
        self.send(Transit {
            packet,
            label,
            hop: way.first,
            last_hop: way.end - 1,
            flow: name,
            sender: CLIENT as u8,
            ce: false,
            payload: Payload::Datagram { seq, sent: self.now.0 },
        });
    }

    // ---- packets move ----

    fn send(&mut self, transit: Transit) {
        let slot = self.transits.add(transit);
        self.forward(slot);
    }

    /// A packet enters the queue of its next link.
    #[inline]
    fn forward(&mut self, slot: u32) {
        let transit = self.transits.get(slot);
        let id = self.hops[transit.hop as usize];
        match &mut self.links[id.index()].queue {
            LinkQueue::Fifo(fifo) => match fifo.accept(transit.packet.size, self.now) {
                Some(end) => self.carry(id, slot, end),
                None => self.lose(slot),
            },
            LinkQueue::Port(_) => self.enqueue(id, slot),
        }
    }

    fn enqueue(&mut self, id: LinkId, slot: u32) {
        // A transmission that ends now frees the link first, whatever the order of events.
        self.service(id);
        let LinkQueue::Port(link) = &mut self.links[id.index()].queue else { return };
        let transit = self.transits.get(slot);
        link.port.arrive(transit.packet, transit.label.word(), self.now);
        if link.service_at == Nanos::MAX {
            link.service_at = self.now;
        }
        self.service(id);
        self.lose_dropped(id);
    }

    /// Starts what may start now at a port, and schedules the next service.
    fn service(&mut self, id: LinkId) {
        let LinkQueue::Port(link) = &mut self.links[id.index()].queue else { return };
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
                self.transits.get_mut(slot).ce = true;
            }
            self.carry(id, slot, sent.end);
        }
        self.lose_dropped(id);
    }

    fn lose_dropped(&mut self, id: LinkId) {
        loop {
            let LinkQueue::Port(link) = &mut self.links[id.index()].queue else { return };
            let Some(packet) = link.port.pop_lost() else { return };
            self.lose(slot_of(&packet));
        }
    }

    /// The link carries a packet whose last bit leaves at `end`.
    #[inline]
    fn carry(&mut self, id: LinkId, slot: u32, end: Nanos) {
        match self.links[id.index()].arrival(end) {
            Some(arrival) => self.events.push(arrival.0, Event::Arrive(slot)),
            None => self.lose(slot),
        }
    }

    #[inline]
    fn arrive(&mut self, slot: u32) {
        self.packet_hops += 1;
        let transit = self.transits.get_mut(slot);
        if transit.hop == transit.last_hop {
            self.deliver(slot);
        } else {
            transit.hop += 1;
            self.forward(slot);
        }
    }

    fn deliver(&mut self, slot: u32) {
        let transit = *self.transits.get(slot);
        self.transits.remove(slot);
        let Some(flow) = self.live(transit.flow) else { return };
        match transit.payload {
            Payload::Segment(segment) => {
                let ce = transit.ce;
                self.segment(flow, 1 - usize::from(transit.sender), &segment, ce);
            }
            Payload::Datagram { seq, sent } => {
                self.datagram_over(flow, seq, sent, Some(transit.packet.size));
            }
        }
    }

    fn lose(&mut self, slot: u32) {
        let transit = *self.transits.get(slot);
        self.transits.remove(slot);
        let Some(flow) = self.live(transit.flow) else { return };
        if let Payload::Datagram { seq, sent } = transit.payload {
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
            let (header_bytes, flow_bytes) = (config.header_bytes, tcp.bytes[end]);
            let flow = &self.flows[slot as usize];
            let name = flow.name(slot);
            let hosts =
                if end == CLIENT { (flow.client, flow.server) } else { (flow.server, flow.client) };
            let id = self.names.id(queue_name(slot, end, name));
            let packet = Packet::new(id, header_bytes + segment.len)
                .with_hosts(HostId(hosts.0.0 + 1), HostId(hosts.1.0 + 1))
                .with_ecn(if segment.is_ect() { Ecn::Ect0 } else { Ecn::NotEct })
                .with_offset(segment.seq.saturating_sub(1))
                .with_flow_size(flow_bytes);
            let (way, label) = (flow.ways[end], flow.label(end));
            self.send(Transit {
                packet,
                label,
                hop: way.first,
                last_hop: way.end - 1,
                flow: name,
                sender: end as u8,
                ce: false,
                payload: Payload::Segment(segment),
            });
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
        if tcp.keep_open {
            let (source, index) = (flow.source, flow.index);
            let name = flow.name(slot);
            self.notices.push(Notice::Exchanged { source, flow: name, index });
        } else {
            tcp.ends[CLIENT].close();
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

    fn way(&mut self, from: NodeId, to: NodeId) -> Result<Way, NetworkError> {
        if let Some(way) = self.ways.get(&(from, to)) {
            return Ok(*way);
        }
        let links = self.network.path(from, to)?;
        let first = self.hops.len() as u32;
        self.hops.extend(links);
        let way = Way { first, end: self.hops.len() as u32 };
        self.ways.insert((from, to), way);
        Ok(way)
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
        let way = flow.ways[sender];
        let name = queue_name(slot, sender, flow.name(slot));
        for id in &self.hops[way.first as usize..way.end as usize] {
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
