//! What a test does to a queue: arrivals, departures, time, parameter changes.

use std::collections::HashMap;

use sched::{Ecn, FlowId, HostId, Nanos, Packet};

/// One call, or the passing of time between calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A packet arrives.
    Enqueue(Arrival),
    /// The link is free and asks for a packet.
    Dequeue,
    /// Time passes.
    Advance(Nanos),
    /// The operator sets a parameter, by name and value, while the discipline runs.
    Change(&'static str, String),
}

/// A packet as a test describes it; ids, offsets and flow sizes follow from the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// A flow, by number. Few of them, so that they meet.
    pub flow: u8,
    /// Bytes.
    pub size: u32,
    /// Segments; more than one for a GSO packet.
    pub segments: u16,
    /// ECN bits.
    pub ecn: Ecn,
    /// Where in its flow the packet lies.
    pub offset: Offset,
    /// Whether an edge has tagged it as short ([`SHORT_DSCP`]).
    pub tagged: bool,
}

impl Arrival {
    /// The packet, without what it takes a sequence to know.
    #[must_use]
    pub fn packet(&self, id: u64) -> Packet {
        let code = CODES[usize::from(self.flow) % CODES.len()];
        Packet::new(flow_id(self.flow), self.size)
            .with_id(id)
            .with_segments(self.segments)
            .with_ecn(self.ecn)
            .with_dscp(if self.tagged { SHORT_DSCP } else { code })
            .with_hosts(source(self.flow), destination(self.flow))
    }
}

/// The DSCP of tagged packets: what disciplines take for the tag of short ones by default.
pub const SHORT_DSCP: u8 = 10;

/// Byte offset of a packet in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// Behind everything sent before.
    Next,
    /// At the beginning again: a retransmission of the first packet.
    First,
    /// The edge does not know.
    Unknown,
}

impl Operation {
    /// The arrival of an ordinary packet: one segment, not ECN-capable, not tagged.
    #[must_use]
    pub const fn arrival(flow: u8, size: u32) -> Self {
        let (ecn, offset) = (Ecn::NotEct, Offset::Next);
        Self::Enqueue(Arrival { flow, size, segments: 1, ecn, offset, tagged: false })
    }
}

/// The fingerprint of a flow by number.
///
/// Scattered as a keyed hash would be, except that flows come in pairs with the same low bits:
/// those collide in a hash table's slots.
#[must_use]
pub fn flow_id(flow: u8) -> FlowId {
    let scattered = u64::from(flow / 2 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    FlowId::new(scattered ^ (u64::from(flow % 2) << 62))
}

/// The DSCP of a flow's packets that are not tagged: none, EF, and others that classes may be made of.
const CODES: [u8; 5] = [0, 0, 46, 8, 34];

/// The host that a flow comes from: of three.
fn source(flow: u8) -> HostId {
    HostId(u32::from(flow % 3))
}

/// The host that a flow goes to: of two.
fn destination(flow: u8) -> HostId {
    HostId(9 + u32::from(flow / 3 % 2))
}

/// The packets of a sequence, one for each arrival in it, with ids counted from 0.
///
/// Every packet knows the size of its whole flow, as clairvoyant disciplines need it: the bytes
/// that the sequence offers for that flow.
#[must_use]
pub fn packets(operations: &[Operation]) -> Vec<Packet> {
    let arrivals = || {
        operations.iter().filter_map(|operation| match operation {
            Operation::Enqueue(arrival) => Some(arrival),
            _ => None,
        })
    };
    let mut total: HashMap<u8, u64> = HashMap::new();
    for arrival in arrivals() {
        *total.entry(arrival.flow).or_default() += u64::from(arrival.size);
    }
    let mut sent: HashMap<u8, u64> = HashMap::new();
    let packet = |(id, arrival): (usize, &Arrival)| {
        let next = sent.entry(arrival.flow).or_default();
        let packet = arrival.packet(id as u64).with_flow_size(total[&arrival.flow]);
        let packet = match arrival.offset {
            Offset::Next => packet.with_offset(*next),
            Offset::First => packet.with_offset(0),
            Offset::Unknown => packet,
        };
        *next += u64::from(arrival.size);
        packet
    };
    arrivals().enumerate().map(packet).collect()
}
