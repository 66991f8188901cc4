//! Flows: a TCP connection with what its two ends have to do, or a stream of datagrams.

use std::fmt;

use sched::Nanos;
use tcp::{Endpoint, Stats};

use crate::flow_names::FlowName;
use crate::ledger::FlowAccount;
use crate::network::{LinkId, NodeId};

/// A TCP configuration of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpId(pub(crate) u16);

/// A source of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub(crate) u32);

impl SourceId {
    /// Its place among the sources, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A connection to be opened: the client sends, the server answers when it has all of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Who opens it.
    pub client: NodeId,
    /// Whom to.
    pub server: NodeId,
    /// The TCP of both ends.
    pub tcp: TcpId,
    /// Bytes that the client sends.
    pub request_bytes: u64,
    /// Bytes that the server answers with; 0 for a transfer from client to server.
    pub response_bytes: u64,
    /// Whether it stays open for further exchanges, until it is closed by its source.
    pub keep_open: bool,
    /// The source's own name for it.
    pub index: u64,
}

/// More bytes than any simulation sends: a flow without end.
pub const ENDLESS: u64 = 1 << 50;

/// What became of a flow: told when both ends are done with it, or at the end of the run.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// The source it belongs to.
    pub source: SourceId,
    /// The source's own name for it.
    pub index: u64,
    /// The direction of its data, as packets of the flow are labelled: that of the answer if there
    /// is one, else that of the request.
    pub label: FlowLabel,
    /// Bytes to be carried in that direction; [`ENDLESS`] if without end.
    pub bytes: u64,
    /// When it was opened.
    pub started: Nanos,
    /// When the connection stood at the client.
    pub connected: Option<Nanos>,
    /// When the last byte of the (first) exchange was received.
    pub completed: Option<Nanos>,
    /// When both ends were closed.
    pub closed: Option<Nanos>,
    /// Bytes received in the direction of the data, in order.
    pub received: u64,
    /// The longest that the receiver of the data waited for a new byte in order: from when the
    /// connection stood until the first, from one to the next, and, if the last never came, from
    /// the latest until TCP gave up or the run ended. `None` if the connection never stood, and for
    /// datagrams. On a connection that stays open the time between exchanges counts as well.
    pub longest_stall: Option<Nanos>,
    /// Why TCP gave up, if it did.
    pub failure: Option<tcp::Failure>,
    /// What TCP counted at the client and at the server; `None` for datagrams.
    pub tcp: Option<[Stats; 2]>,
    /// What happened at the ports on its way, in the direction of its data.
    pub ports: Vec<(LinkId, FlowAccount)>,
}

/// Names a packet's flow for people: its 5-tuple, made up from nodes and the flow's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowLabel(u64);

impl FlowLabel {
    /// For the packets from `from` to `to` of flow `serial`.
    pub(crate) fn new(serial: u64, from: NodeId, to: NodeId, by_server: bool, udp: bool) -> Self {
        let ends = (u64::from(from.0) << 17) | (u64::from(to.0) << 2);
        Self((serial << 32) | ends | (u64::from(by_server) << 1) | u64::from(udp))
    }

    pub(crate) const fn word(self) -> u64 {
        self.0
    }

    /// The nodes that the packets go from and to.
    #[must_use]
    pub const fn ends(self) -> (NodeId, NodeId) {
        (NodeId((self.0 >> 17) as u32 & 0x7fff), NodeId((self.0 >> 2) as u32 & 0x7fff))
    }

    /// The label that a packet's record carries as its tag.
    #[must_use]
    pub const fn from_tag(tag: u64) -> Self {
        Self(tag)
    }
}

/// The first of the ports that clients use, as most systems do.
const FIRST_PORT: u64 = 1024;
const CLIENT_PORTS: u64 = (1 << 16) - FIRST_PORT;
const SERVER_PORT: u64 = 80;

impl fmt::Display for FlowLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (serial, by_server, udp) = (self.0 >> 32, self.0 & 2 != 0, self.0 & 1 != 0);
        let client_port = FIRST_PORT + serial % CLIENT_PORTS;
        let server_port = SERVER_PORT + serial / CLIENT_PORTS % CLIENT_PORTS;
        let (from_port, to_port) =
            if by_server { (server_port, client_port) } else { (client_port, server_port) };
        let host = |node: u64| {
            let number = (node & 0x7fff) + 1;
            format!("10.0.{}.{}", number >> 8, number & 255)
        };
        let protocol = if udp { "udp" } else { "tcp" };
        let (from, to) = (host(self.0 >> 17), host(self.0 >> 2));
        write!(f, "{from}:{from_port} > {to}:{to_port} {protocol}")
    }
}

/// A slot of the flow table.
pub(crate) struct Flow {
    pub(crate) generation: u32,
    pub(crate) source: SourceId,
    pub(crate) index: u64,
    pub(crate) serial: u64,
    pub(crate) started: Nanos,
    pub(crate) client: NodeId,
    pub(crate) server: NodeId,
    pub(crate) completed: Option<Nanos>,
    /// DSCP of the packets of both ends.
    pub(crate) dscp: u8,
    /// The ways of the packets sent by the client, and by the server.
    pub(crate) ways: [Way; 2],
    pub(crate) kind: Kind,
}

/// Where a way starts in the hop table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way(pub(crate) u32);

#[allow(clippy::large_enum_variant, reason = "nearly all are TCP; a pointer more costs a miss")]
pub(crate) enum Kind {
    Vacant,
    Tcp(Tcp),
    Datagrams(Datagrams),
}

/// The two ends of a connection.
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

pub(crate) struct Tcp {
    pub(crate) ends: [Endpoint; 2],
    /// When the timer event of an end is scheduled; `u64::MAX` for none.
    pub(crate) timer_at: [Nanos; 2],
    pub(crate) tcp: TcpId,
    pub(crate) keep_open: bool,
    /// Whether an exchange is under way.
    pub(crate) busy: bool,
    /// Whether the server has begun to answer it.
    pub(crate) answered: bool,
    pub(crate) connected: Option<Nanos>,
    /// When the receiver of the data last got a new byte in order; at first, when the connection
    /// stood. And the longest that it has waited for one.
    pub(crate) advanced: Nanos,
    pub(crate) longest_stall: Nanos,
    /// Whether the recorder is told of every new byte.
    pub(crate) watched: bool,
    /// The answer to the exchange under way.
    pub(crate) response_bytes: u64,
    /// What server and client have received when the exchange is over.
    pub(crate) request_goal: u64,
    pub(crate) response_goal: u64,
    /// Bytes of the first exchange.
    pub(crate) bytes: [u64; 2],
}

impl Tcp {
    /// The end whose bytes the other waits for: the server, if it is to answer.
    pub(crate) const fn data_sender(&self) -> usize {
        if self.bytes[SERVER] > 0 { SERVER } else { CLIENT }
    }

    /// The receiver of the data got a new byte in order.
    #[inline]
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.longest_stall = self.longest_stall.max(now.since(self.advanced));
        self.advanced = now;
    }

    /// The longest wait for a new byte, the one under way among them unless all is there.
    pub(crate) fn stall(&self, is_complete: bool, now: Nanos) -> Option<Nanos> {
        let open = if is_complete { Nanos::ZERO } else { now.since(self.advanced) };
        self.connected.map(|_| self.longest_stall.max(open))
    }
}

/// Datagrams from the client node to the server node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Datagrams {
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
    pub(crate) lost: u64,
    /// Size of the whole flow; 0 if unknown.
    pub(crate) flow_bytes: u64,
    /// Nothing more will be sent.
    pub(crate) closed: bool,
    /// Whether each datagram's fate is told.
    pub(crate) probed: bool,
}

impl Flow {
    /// Reads something of each part of it that a packet from `sender` needs on arrival.
    #[inline]
    pub(crate) fn first_read(&self, sender: usize) -> u64 {
        let Kind::Tcp(tcp) = &self.kind else { return 0 };
        let end = &tcp.ends[1 - sender];
        let timer = end.next_timer().map_or(0, |due| due.0);
        let way = u64::from(self.ways[1 - sender].0);
        end.received() ^ end.acked() ^ timer ^ end.stats().segments_sent ^ tcp.timer_at[0].0 ^ way
    }

    pub(crate) fn name(&self, slot: u32) -> FlowName {
        FlowName { slot, generation: self.generation }
    }

    /// From where to where the packets go that this end sends.
    #[inline]
    pub(crate) const fn nodes(&self, sender: usize) -> (NodeId, NodeId) {
        if sender == SERVER { (self.server, self.client) } else { (self.client, self.server) }
    }

    /// Bytes that this end sends in all, where that is known.
    #[inline]
    pub(crate) const fn bytes(&self, sender: usize) -> Option<u64> {
        match &self.kind {
            Kind::Tcp(tcp) => Some(tcp.bytes[sender]),
            Kind::Datagrams(stream) if stream.flow_bytes > 0 => Some(stream.flow_bytes),
            _ => None,
        }
    }

    /// Labels the packets that this end sends.
    #[inline]
    pub(crate) fn label(&self, sender: usize) -> FlowLabel {
        let (from, to) = self.nodes(sender);
        let udp = matches!(self.kind, Kind::Datagrams(_));
        FlowLabel::new(self.serial, from, to, sender == SERVER, udp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_reads_as_a_five_tuple_and_its_reverse() {
        let (a, b) = (NodeId(0), NodeId(300));
        let there = FlowLabel::new(5, a, b, false, false);
        assert_eq!(there.to_string(), "10.0.0.1:1029 > 10.0.1.45:80 tcp");
        let back = FlowLabel::new(5, b, a, true, false);
        assert_eq!(back.to_string(), "10.0.1.45:80 > 10.0.0.1:1029 tcp");
        let many = FlowLabel::new(64_512 + 5, a, b, false, true);
        assert_eq!(many.to_string(), "10.0.0.1:1029 > 10.0.1.45:81 udp");
    }
}
