//! Two FIFO lanes in one buffer.

use crate::interface::{Amount, Backlog, Lane, Packet, shared};
use crate::queues::ring::Ring;

use super::buffer::Limits;

/// The packets of both lanes.
#[derive(Hash)]
pub(crate) struct Queues {
    short: Ring,
    long: Ring,
    /// Packets that ever joined the short lane, modulo 2^32: the next one's sequence number.
    short_joined: u32,
}

impl Queues {
    pub(super) fn new(limit: Amount) -> Self {
        let ring = Ring::with_capacity(shared::ring_capacity(limit));
        Self { short: ring.clone(), long: ring, short_joined: 0 }
    }

    /// The packet that a lane would send next.
    #[inline]
    #[must_use]
    pub(crate) fn head(&self, lane: Lane) -> Option<&Packet> {
        self.lane(lane).head()
    }

    /// Whether a lane holds nothing.
    #[inline]
    #[must_use]
    pub(crate) const fn is_empty(&self, lane: Lane) -> bool {
        self.lane(lane).is_empty()
    }

    /// Both lanes together.
    #[must_use]
    pub(crate) fn total(&self) -> Backlog {
        self.short.backlog() + self.long.backlog()
    }

    /// What a lane holds, in the unit of `limit`.
    #[inline]
    #[must_use]
    pub(crate) const fn used(&self, lane: Lane, limit: Amount) -> u64 {
        self.lane(lane).in_unit_of(limit)
    }

    /// Whether `packet` fits beside what both lanes hold.
    #[inline]
    #[must_use]
    pub(crate) const fn fits(&self, limits: Limits, packet: &Packet) -> bool {
        let limit = limits.whole;
        let used = self.short.in_unit_of(limit) + self.long.in_unit_of(limit);
        used + limit.cost(packet.segments, packet.size) as u64 <= limit.value()
    }

    /// Whether `packet` would fit into `lane` if the other one were empty. An empty short lane
    /// takes any packet that the whole buffer can hold.
    #[inline]
    #[must_use]
    pub(crate) const fn fits_lane(&self, limits: Limits, packet: &Packet, lane: Lane) -> bool {
        let limit = limits.whole;
        let used = self.lane(lane).in_unit_of(limit);
        let most = if lane.0 == Lane::SHORT.0 && used > 0 { limits.short } else { limit.value() };
        used + limit.cost(packet.segments, packet.size) as u64 <= most
    }

    /// A point in the history of the short lane: every packet in it now is before.
    #[inline]
    #[must_use]
    pub(crate) const fn mark(&self) -> Position {
        Position(self.short_joined)
    }

    /// Whether every packet that was in the short lane at `mark` has left it.
    #[must_use]
    pub(crate) const fn has_passed(&self, mark: Position) -> bool {
        let queued = self.short.len() as u32;
        let head = self.short_joined.wrapping_sub(queued);
        let ahead = mark.0.wrapping_sub(head);
        ahead == 0 || ahead > queued
    }

    #[inline]
    pub(super) fn push(&mut self, packet: Packet, lane: Lane, counted: bool) {
        let ring = if lane == Lane::SHORT {
            self.short_joined = self.short_joined.wrapping_add(1);
            &mut self.short
        } else {
            &mut self.long
        };
        ring.push(packet).set_counted(counted);
    }

    #[inline]
    pub(super) fn pop(&mut self, lane: Lane) -> Option<Packet> {
        if lane == Lane::SHORT { self.short.pop() } else { self.long.pop() }
    }

    pub(super) fn pop_long_tail(&mut self) -> Option<Packet> {
        self.long.pop_tail()
    }

    #[inline]
    const fn lane(&self, lane: Lane) -> &Ring {
        if lane.0 == Lane::SHORT.0 { &self.short } else { &self.long }
    }
}

/// See [`Queues::mark`]. Modulo 2^32; a mark that old can only delay a packet, never reorder it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Position(pub(super) u32);
