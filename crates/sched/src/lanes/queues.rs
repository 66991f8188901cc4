//! Two FIFO lanes in one buffer.

use alloc::collections::VecDeque;

use crate::packet::Packet;
use crate::qdisc::{Backlog, Lane};
use crate::registry::shared;
use crate::units::Amount;

/// The packets of both lanes.
pub struct Queues {
    high: Fifo,
    low: Fifo,
    /// Packets that ever joined the high lane, modulo 2^32: the next one's sequence number.
    high_joined: u32,
}

struct Fifo {
    packets: VecDeque<Packet>,
    backlog: Backlog,
}

impl Fifo {
    fn new(limit: Amount) -> Self {
        let packets = VecDeque::with_capacity(shared::ring_capacity(limit));
        Self { packets, backlog: Backlog::default() }
    }

    #[inline]
    fn push(&mut self, packet: Packet) {
        self.backlog.add(&packet);
        self.packets.push_back(packet);
    }

    #[inline]
    fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.backlog.remove(&packet);
        Some(packet)
    }

    fn pop_tail(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_back()?;
        self.backlog.remove(&packet);
        Some(packet)
    }
}

impl Queues {
    pub(super) fn new(limit: Amount) -> Self {
        Self { high: Fifo::new(limit), low: Fifo::new(limit), high_joined: 0 }
    }

    /// The backlog of the high lane.
    #[inline]
    #[must_use]
    pub const fn high(&self) -> &Backlog {
        &self.high.backlog
    }

    /// The packet that a lane would send next.
    #[inline]
    #[must_use]
    pub fn head(&self, lane: Lane) -> Option<&Packet> {
        self.lane(lane).packets.front()
    }

    /// Whether a lane holds nothing.
    #[inline]
    #[must_use]
    pub fn is_empty(&self, lane: Lane) -> bool {
        self.lane(lane).packets.is_empty()
    }

    /// Both lanes together.
    #[must_use]
    pub fn total(&self) -> Backlog {
        self.high.backlog + self.low.backlog
    }

    /// Whether `packet` fits beside what both lanes hold.
    #[inline]
    #[must_use]
    pub fn fits(&self, limit: Amount, packet: &Packet) -> bool {
        let used = self.high.backlog.in_unit_of(limit) + self.low.backlog.in_unit_of(limit);
        used + u64::from(limit.cost(packet.segments, packet.size)) <= limit.value()
    }

    /// A point in the history of the high lane: every packet in it now is before.
    #[inline]
    #[must_use]
    pub const fn mark(&self) -> HighMark {
        HighMark(self.high_joined)
    }

    /// Whether every packet that was in the high lane at `mark` has left it.
    #[must_use]
    pub fn has_passed(&self, mark: HighMark) -> bool {
        let queued = self.high.packets.len() as u32;
        let head = self.high_joined.wrapping_sub(queued);
        let ahead = mark.0.wrapping_sub(head);
        ahead == 0 || ahead > queued
    }

    #[inline]
    pub(super) fn push(&mut self, packet: Packet, lane: Lane) {
        if lane == Lane::HIGH {
            self.high_joined = self.high_joined.wrapping_add(1);
            self.high.push(packet);
        } else {
            self.low.push(packet);
        }
    }

    #[inline]
    pub(super) fn pop(&mut self, lane: Lane) -> Option<Packet> {
        if lane == Lane::HIGH { self.high.pop() } else { self.low.pop() }
    }

    pub(super) fn pop_low_tail(&mut self) -> Option<Packet> {
        self.low.pop_tail()
    }

    #[inline]
    fn lane(&self, lane: Lane) -> &Fifo {
        if lane == Lane::HIGH { &self.high } else { &self.low }
    }
}

/// See [`Queues::mark`]. Modulo 2^32; a mark that old can only delay a packet, never reorder it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HighMark(pub(super) u32);
