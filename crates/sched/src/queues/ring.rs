//! A FIFO of packets that knows its backlog: the queue inside most disciplines.
//!
//! A ring whose head only `pop` moves and whose tail only `push` moves, with running totals of
//! what has joined and what has left instead of a backlog that both would change: enqueue and
//! dequeue of one queue then do not wait for each other's stores.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use crate::interface::{Amount, Backlog, FlowId, Packet};

/// A growing ring of packets.
#[derive(Clone, Debug)]
pub struct Ring {
    /// A power of two; what is not between head and tail is stale.
    slots: Vec<Packet>,
    head: usize,
    tail: usize,
    joined: Volume,
    left: Volume,
}

/// Running totals; only differences mean something.
#[derive(Clone, Copy, Debug, Default)]
struct Volume {
    segments: u64,
    bytes: u64,
}

impl Volume {
    #[inline(always)]
    const fn add(&mut self, packet: &Packet) {
        self.segments = self.segments.wrapping_add(packet.segments as u64);
        self.bytes = self.bytes.wrapping_add(packet.size as u64);
    }

    #[inline(always)]
    const fn sub(&mut self, packet: &Packet) {
        self.segments = self.segments.wrapping_sub(packet.segments as u64);
        self.bytes = self.bytes.wrapping_sub(packet.size as u64);
    }
}

/// What is between head and tail; not where in the ring that is.
impl Hash for Ring {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mask = self.slots.len() - 1;
        self.len().hash(state);
        (0..self.len()).for_each(|at| self.slots[self.head.wrapping_add(at) & mask].hash(state));
    }
}

const STALE: Packet = Packet::new(FlowId::new(0), 0);

impl Ring {
    /// An empty ring with room for at least `packets` before it grows.
    #[must_use]
    pub fn with_capacity(packets: usize) -> Self {
        let slots = packets.max(2).next_power_of_two();
        Self {
            slots: alloc::vec![STALE; slots],
            head: 0,
            tail: 0,
            joined: Volume::default(),
            left: Volume::default(),
        }
    }

    /// Packets in it.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    /// Whether it holds nothing.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    /// What it holds.
    #[inline]
    #[must_use]
    pub const fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.len() as u64,
            segments: self.joined.segments.wrapping_sub(self.left.segments),
            bytes: self.joined.bytes.wrapping_sub(self.left.bytes),
        }
    }

    /// What it holds, in the unit of `limit`.
    #[inline]
    #[must_use]
    pub const fn in_unit_of(&self, limit: Amount) -> u64 {
        match limit {
            Amount::Packets(_) => self.joined.segments.wrapping_sub(self.left.segments),
            Amount::Bytes(_) => self.joined.bytes.wrapping_sub(self.left.bytes),
        }
    }

    /// The packet at the head.
    #[inline]
    #[must_use]
    pub fn head(&self) -> Option<&Packet> {
        if self.is_empty() {
            return None;
        }
        let slots = &self.slots[..];
        Some(&slots[self.head & (slots.len() - 1)])
    }

    /// Appends a packet, and returns it in its place. (To change it there is cheaper than before:
    /// a packet changed a moment ago cannot be copied in one go.)
    #[inline]
    pub fn push(&mut self, packet: Packet) -> &mut Packet {
        if self.len() == self.slots.len() {
            self.grow();
        }
        self.joined.add(&packet);
        let slots = &mut self.slots[..];
        let mask = slots.len() - 1;
        let slot = &mut slots[self.tail & mask];
        self.tail = self.tail.wrapping_add(1);
        *slot = packet;
        slot
    }

    /// Takes the packet at the head.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = *self.head()?;
        self.head = self.head.wrapping_add(1);
        self.left.add(&packet);
        Some(packet)
    }

    /// Takes the packet at the tail.
    pub fn pop_tail(&mut self) -> Option<Packet> {
        if self.is_empty() {
            return None;
        }
        self.tail = self.tail.wrapping_sub(1);
        let packet = self.slots[self.tail & (self.slots.len() - 1)];
        self.joined.sub(&packet);
        Some(packet)
    }

    #[cold]
    fn grow(&mut self) {
        let mask = self.slots.len() - 1;
        let mut slots = Vec::with_capacity(2 * self.slots.len());
        slots.extend((0..self.len()).map(|i| self.slots[self.head.wrapping_add(i) & mask]));
        (self.head, self.tail) = (0, slots.len());
        slots.resize(2 * self.slots.len(), STALE);
        self.slots = slots;
    }
}

/// Any few operations on a ring that begins at any place, as `cargo kani -p shortlane-sched` proves them.
#[cfg(kani)]
mod harnesses {
    use super::*;

    #[kani::proof]
    #[kani::unwind(6)]
    fn packets_leave_as_they_came() {
        let mut ring = Ring::with_capacity(2);
        let begin: usize = kani::any();
        (ring.head, ring.tail) = (begin, begin);
        let (mut first, mut next) = (0, 0);
        for _ in 0..5 {
            match kani::any::<u8>() % 3 {
                0 => {
                    ring.push(Packet::new(FlowId::new(1), kani::any()).with_id(next));
                    next += 1;
                }
                1 => {
                    let expected = (first < next).then_some(first);
                    assert!(ring.pop().map(|packet| packet.id) == expected);
                    first += u64::from(expected.is_some());
                }
                _ => {
                    let expected = (first < next).then(|| next - 1);
                    assert!(ring.pop_tail().map(|packet| packet.id) == expected);
                    next -= u64::from(expected.is_some());
                }
            }
            assert!(ring.len() as u64 == next - first);
            assert!(ring.backlog().segments == next - first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;

    #[test]
    fn behaves_as_a_double_ended_queue() {
        let (mut ring, mut model) = (Ring::with_capacity(2), VecDeque::new());
        let mut state = 1u64;
        for id in 0..5_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            match state >> 61 {
                0..=3 => {
                    let size = (state >> 20) as u32 % 9000;
                    let packet = Packet::new(FlowId::new(1), size).with_id(id).with_segments(3);
                    ring.push(packet);
                    model.push_back(packet);
                }
                4 | 5 => assert_eq!(ring.pop(), model.pop_front()),
                6 => assert_eq!(ring.pop_tail(), model.pop_back()),
                _ => assert_eq!(ring.head(), model.front()),
            }
            assert_eq!(ring.len(), model.len());
            assert_eq!(ring.is_empty(), model.is_empty());
            let bytes = model.iter().map(|p| u64::from(p.size)).sum();
            let packets = model.len() as u64;
            assert_eq!(ring.backlog(), Backlog { packets, segments: 3 * packets, bytes });
        }
    }
}
