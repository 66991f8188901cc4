//! The start and the end of flows.

use sched::Nanos;
use tcp::Endpoint;

use super::ends::tcp_of;
use super::{END, Notice, World, queue_name};
use crate::flow::{
    CLIENT, Connection, Datagrams, Flow, FlowLabel, FlowReport, Kind, SERVER, SourceId, Tcp, Way,
};
use crate::flow_names::FlowName;
use crate::ledger::FlowAccount;
use crate::network::{LinkId, NetworkError, NodeId};
use crate::transit::Transit;

impl World {
    pub(crate) fn connect(
        &mut self,
        source: SourceId,
        connection: &Connection,
    ) -> Result<FlowName, NetworkError> {
        let config = &self.tcps[usize::from(connection.tcp.0)];
        let ends = [Endpoint::client(config), Endpoint::server(config)];
        let kind = Kind::Tcp(Tcp {
            ends,
            timer_at: [Nanos::MAX; 2],
            tcp: connection.tcp,
            keep_open: connection.keep_open,
            busy: false,
            answered: false,
            connected: None,
            advanced: Nanos::ZERO,
            longest_stall: Nanos::ZERO,
            watched: self.watched.contains(&(source, connection.index)),
            response_bytes: 0,
            request_goal: 0,
            response_goal: 0,
            bytes: [connection.request_bytes, connection.response_bytes],
        });
        let (client, server) = (connection.client, connection.server);
        let slot = self.open(source, connection.index, client, server, kind)?;
        let now = self.now;
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
        let mut transit = Transit::datagram(name, bytes.max(1), seq, self.now);
        transit.hop = flow.ways[CLIENT].0;
        transit.dscp = flow.dscp;
        let packet = self.transits.add(transit);
        self.forward(packet);
    }

    /// Labels what the server of a connection sends.
    pub(crate) fn label_of_answers(&self, flow: FlowName) -> Option<FlowLabel> {
        self.live(flow).map(|slot| self.flows[slot as usize].label(SERVER))
    }

    pub(super) fn open(
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
        let dscp = self.marks.get(&source).copied().unwrap_or(0);
        let flow = |generation| Flow {
            generation,
            source,
            index,
            serial,
            started,
            client,
            server,
            completed: None,
            dscp,
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

    #[inline]
    pub(super) fn live(&self, name: FlowName) -> Option<u32> {
        let flow = self.flows.get(name.slot as usize)?;
        let live = flow.generation == name.generation && !matches!(flow.kind, Kind::Vacant);
        live.then_some(name.slot)
    }

    #[inline]
    pub(super) fn finish_if_over(&mut self, slot: u32) {
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

    pub(super) fn report(&self, slot: u32, closed: Option<Nanos>) -> FlowReport {
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
            longest_stall: None,
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
                report.longest_stall = tcp.stall(flow.completed.is_some(), self.now);
                report.failure = tcp.ends.iter().find_map(Endpoint::failed);
                report.tcp = Some([CLIENT, SERVER].map(|end| tcp.ends[end].stats()));
            }
            Kind::Datagrams(stream) => {
                report.bytes = stream.sent_bytes;
                report.received = stream.received_bytes;
                report.completed = closed.filter(|_| stream.lost == 0);
            }
        }
        report.ports = self.ports(slot, sender).collect();
        report
    }

    /// What happened to the packets of one end at the ports on their way.
    pub(super) fn ports(
        &self,
        slot: u32,
        sender: usize,
    ) -> impl Iterator<Item = (LinkId, FlowAccount)> + '_ {
        let flow = &self.flows[slot as usize];
        let name = queue_name(slot, sender, flow.name(slot));
        let way = &self.hops[flow.ways[sender].0 as usize..];
        let ports = way.iter().take_while(|link| **link != END);
        ports.filter_map(move |id| Some((*id, self.links[id.index()].port()?.flow(name))))
    }
}
