//! Packets on their way.

use sched::Nanos;
use tcp::{Flags, SackBlocks, Segment};

use crate::flow_names::FlowName;

/// A packet somewhere between its sender and its receiver, in one cache line: with thousands of
/// flows, most of a simulation's memory traffic is this.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Transit {
    /// Of a segment; of a datagram, its place in the stream.
    seq: u64,
    ack: u64,
    /// Of a segment; of a datagram, when it was sent.
    timestamp: Nanos,
    echo: Nanos,
    window: u32,
    /// Bytes on the wire.
    pub(crate) size: u32,
    /// Its place in the hop table.
    pub(crate) hop: u32,
    flow_slot: u32,
    flow_generation: u32,
    /// Its place in the table of SACK blocks.
    sack: u32,
    header_bytes: u16,
    flags: u16,
    kind: u8,
    /// What an edge has written into it.
    pub(crate) dscp: u8,
}

const NO_SACK: u32 = u32::MAX;
const BY_SERVER: u8 = 1;
const CE: u8 = 2;
const DATAGRAM: u8 = 4;

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload {
    Segment(Segment),
    Datagram { seq: u64, sent: Nanos },
}

impl Transit {
    pub(crate) fn datagram(flow: FlowName, size: u32, seq: u64, sent: Nanos) -> Self {
        Self {
            seq,
            timestamp: sent,
            size,
            flow_slot: flow.slot,
            flow_generation: flow.generation,
            sack: NO_SACK,
            kind: DATAGRAM,
            ..Self::default()
        }
    }

    /// The flow that it belongs to.
    #[inline]
    pub(crate) const fn flow(&self) -> FlowName {
        FlowName { slot: self.flow_slot, generation: self.flow_generation }
    }

    /// Which end sent it: 0 is the client.
    #[inline]
    pub(crate) const fn sender(&self) -> usize {
        (self.kind & BY_SERVER) as usize
    }

    /// Whether congestion was experienced.
    #[inline]
    pub(crate) const fn ce(&self) -> bool {
        self.kind & CE != 0
    }

    #[inline]
    pub(crate) const fn mark_ce(&mut self) {
        self.kind |= CE;
    }

    /// Whether the packet is ECN-capable.
    pub(crate) const fn is_ect(&self) -> bool {
        self.flags & Flags::ECT.0 != 0
    }

    /// Byte offset of what it carries in its flow; of a datagram, unknown.
    pub(crate) const fn offset(&self) -> Option<u64> {
        if self.kind & DATAGRAM != 0 { None } else { Some(self.seq.saturating_sub(1)) }
    }
}

/// All packets on their way, by packet id. Slots used last are used first: they are still in
/// the processor's cache.
#[derive(Default)]
pub(crate) struct Transits {
    slots: Vec<Transit>,
    free: Vec<u32>,
    /// Few segments carry SACK blocks.
    sacks: Vec<SackBlocks>,
    free_sacks: Vec<u32>,
}

impl Transits {
    /// Adds a packet; its id.
    #[inline]
    pub(crate) fn add(&mut self, transit: Transit) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = transit;
            return slot;
        }
        self.slots.push(transit);
        self.slots.len() as u32 - 1
    }

    /// Adds a packet with a segment; its id.
    #[inline]
    pub(crate) fn add_segment(
        &mut self,
        segment: &Segment,
        header_bytes: u32,
        flow: FlowName,
        sender: usize,
        hop: u32,
    ) -> u32 {
        let sack = if segment.sack.is_empty() { NO_SACK } else { self.add_sack(segment.sack) };
        self.add(Transit {
            seq: segment.seq,
            ack: segment.ack,
            timestamp: segment.timestamp,
            echo: segment.echo,
            window: segment.window,
            size: header_bytes + segment.len,
            hop,
            flow_slot: flow.slot,
            flow_generation: flow.generation,
            sack,
            header_bytes: header_bytes as u16,
            flags: segment.flags.0,
            kind: sender as u8,
            dscp: 0,
        })
    }

    /// Takes the packet out.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) -> (Transit, Payload) {
        let transit = self.slots[slot as usize];
        self.free.push(slot);
        if transit.kind & DATAGRAM != 0 {
            return (transit, Payload::Datagram { seq: transit.seq, sent: transit.timestamp });
        }
        let sack = match transit.sack {
            NO_SACK => SackBlocks::default(),
            sack => {
                self.free_sacks.push(sack);
                self.sacks[sack as usize]
            }
        };
        let payload = Payload::Segment(Segment {
            seq: transit.seq,
            ack: transit.ack,
            timestamp: transit.timestamp,
            echo: transit.echo,
            len: transit.size - u32::from(transit.header_bytes),
            window: transit.window,
            sack,
            flags: Flags(transit.flags),
        });
        (transit, payload)
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Transit {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Transit {
        &mut self.slots[slot as usize]
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn add_sack(&mut self, sack: SackBlocks) -> u32 {
        if let Some(slot) = self.free_sacks.pop() {
            self.sacks[slot as usize] = sack;
            return slot;
        }
        self.sacks.push(sack);
        self.sacks.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_one_cache_line() {
        assert_eq!(size_of::<Transit>(), 64);
    }

    #[test]
    fn a_segment_comes_out_as_it_went_in() {
        let segment = Segment {
            seq: 1 << 40,
            ack: 77,
            timestamp: Nanos(5),
            echo: Nanos(6),
            len: 1448,
            window: 1 << 30,
            sack: [(10, 20), (30, 40)].into_iter().collect(),
            flags: Flags::ACK.with(Flags::ECT).with(Flags::RETRANSMISSION),
        };
        let flow = FlowName { slot: 9, generation: 3 };
        let mut transits = Transits::default();
        let first = transits.add_segment(&segment, 52, flow, 1, 4);
        let plain = Segment { sack: SackBlocks::default(), ..segment };
        let second = transits.add_segment(&plain, 52, flow, 0, 4);
        for (slot, sender, expected) in [(second, 0, plain), (first, 1, segment)] {
            let (transit, payload) = transits.remove(slot);
            assert!(matches!(payload, Payload::Segment(found) if found == expected));
            assert_eq!((transit.flow(), transit.sender(), transit.size), (flow, sender, 1500));
            assert!(transit.is_ect() && !transit.ce());
        }
        assert_eq!((transits.len(), transits.free_sacks.len()), (0, 1));
    }
}
