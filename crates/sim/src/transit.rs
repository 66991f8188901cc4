//! Packets on their way.

use sched::Packet;
use tcp::Segment;

use crate::flow::FlowLabel;
use crate::flow_names::FlowName;

/// A packet somewhere between its sender and its receiver. What every hop looks at shares the
/// first cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Transit {
    pub(crate) packet: Packet,
    /// The hops still to come: a range of the hop table.
    pub(crate) hop: u32,
    pub(crate) last_hop: u32,
    pub(crate) flow: FlowName,
    pub(crate) label: FlowLabel,
    /// Which end sent it.
    pub(crate) sender: u8,
    /// Congestion was experienced.
    pub(crate) ce: bool,
    pub(crate) payload: Payload,
}

#[derive(Clone, Copy)]
pub(crate) enum Payload {
    Segment(Segment),
    Datagram { seq: u64, sent: u64 },
}

/// All packets on their way, by packet id. Slots used last are used first: they are still in
/// the processor's cache.
#[derive(Default)]
pub(crate) struct Transits {
    slots: Vec<Transit>,
    free: Vec<u32>,
}

impl Transits {
    /// The packet's id, which is set in it.
    #[inline]
    pub(crate) fn add(&mut self, mut transit: Transit) -> u32 {
        if let Some(slot) = self.free.pop() {
            transit.packet.id = u64::from(slot);
            self.slots[slot as usize] = transit;
            return slot;
        }
        let slot = self.slots.len() as u32;
        transit.packet.id = u64::from(slot);
        self.slots.push(transit);
        slot
    }

    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        self.free.push(slot);
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
}
