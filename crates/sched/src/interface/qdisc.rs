//! The queue discipline interface: enqueue, dequeue, and the events that a caller receives.

use alloc::vec::Vec;
use core::hash::Hasher;

use crate::interface::{FlowId, Nanos, Packet, ParamError, Params};

/// What can be asked of a queue, and changed, whatever it tells its decisions to.
pub trait Queue: Send {
    /// What is queued. The packet on the wire is not.
    fn backlog(&self) -> Backlog;

    /// Entries in the flow table; 0 for a discipline without one.
    fn flows(&self) -> usize {
        0
    }

    /// Why a flow stands where it does, for people who look; `None` if it is not known, or if
    /// flows do not age here.
    fn standing(&self, _flow: FlowId, _now: Nanos) -> Option<Standing> {
        None
    }

    /// Hashes all that decides what it will do but its parameters, for a search that looks at no state
    /// twice; false if it cannot.
    fn digest(&self, _into: &mut dyn Hasher) -> bool {
        false
    }

    /// Takes over parameters while packets are queued. No packet is lost by it: above a lowered
    /// limit, arrivals are refused until the backlog has drained below.
    ///
    /// # Errors
    /// Names the parameter that cannot change while the discipline runs; nothing has changed then.
    fn change(&mut self, params: &Params) -> Result<(), ParamError>;
}

/// Where a flow stands among others, by its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The lane that its next packet joins.
    pub lane: Lane,
    /// Its tier, from 1; 0 if it is new.
    pub tier: u8,
    /// Its age: bytes that it was served in excess of its fair share.
    pub excess_bytes: u64,
}

/// A queue discipline, compiled for one kind of [`Sink`].
///
/// Calls come with non-decreasing `now`. No call allocates once the queue has been as full, and
/// its flow table as large, as they get.
pub trait Qdisc<S: Sink = Vec<(Packet, Drop)>>: Queue {
    /// Takes a packet in. Packets lost by it (this one, or others that make room) go to `sink`.
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S);

    /// Hands out the packet whose transmission starts now, if there is one. CoDel and its kin
    /// also drop here.
    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue;
}

/// The answer of [`Qdisc::dequeue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// Transmission of this packet starts now.
    Packet {
        /// The packet.
        packet: Packet,
        /// Set "congestion experienced" in its IP header.
        mark: bool,
    },
    /// Packets are queued, and none may leave before this time.
    Wait(Nanos),
    /// Nothing is queued.
    Empty,
}

impl Dequeue {
    /// A packet that leaves as it came.
    #[inline]
    #[must_use]
    pub const fn unmarked(packet: Packet) -> Self {
        Self::Packet { packet, mark: false }
    }

    /// The packet, if there is one.
    #[must_use]
    pub const fn packet(self) -> Option<Packet> {
        match self {
            Self::Packet { packet, .. } => Some(packet),
            _ => None,
        }
    }
}

/// What is queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Backlog {
    /// Packets; a super-packet is one.
    pub packets: u64,
    /// Segments: what packet limits count.
    pub segments: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Backlog {
    /// Counts a packet in.
    #[inline]
    pub fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.segments += u64::from(packet.segments);
        self.bytes += u64::from(packet.size);
    }

    /// Counts a packet out.
    #[inline]
    pub fn remove(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.segments -= u64::from(packet.segments);
        self.bytes -= u64::from(packet.size);
    }

    /// The backlog in the unit of `limit`.
    #[inline]
    #[must_use]
    pub const fn in_unit_of(&self, limit: crate::interface::Amount) -> u64 {
        match limit {
            crate::interface::Amount::Packets(_) => self.segments,
            crate::interface::Amount::Bytes(_) => self.bytes,
        }
    }

    /// Whether `packet` fits beside the backlog under `limit`.
    #[inline]
    #[must_use]
    pub const fn has_room(&self, limit: crate::interface::Amount, packet: &Packet) -> bool {
        self.in_unit_of(limit).saturating_add(limit.cost(packet.segments, packet.size) as u64)
            <= limit.value()
    }

    /// Whether `packet` is refused however willing others are to make room: the limit has been
    /// lowered below the backlog, or the packet alone exceeds it.
    #[inline]
    #[must_use]
    pub const fn must_refuse(&self, limit: crate::interface::Amount, packet: &Packet) -> bool {
        self.in_unit_of(limit) > limit.value()
            || limit.cost(packet.segments, packet.size) as u64 > limit.value()
    }
}

impl core::ops::Add for Backlog {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            segments: self.segments + other.segments,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// One of the queues that a discipline with lanes puts its packets in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u8);

impl Lane {
    /// The short lane, Q1 of the papers.
    pub const SHORT: Self = Self(0);
    /// The long lane, Q2 of the papers.
    pub const LONG: Self = Self(1);
    /// That of a discipline without lanes, whose packets count as short in tables and files.
    pub const ONLY: Self = Self::SHORT;
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// It arrived at a full queue.
    Full,
    /// It was queued, and had to leave for another (push-out, knockout, longest-queue drop).
    PushedOut,
    /// An AQM dropped it to signal congestion.
    Congested,
}

impl DropReason {
    /// Every reason, in a fixed order for counters.
    pub const ALL: [Self; 3] = [Self::Full, Self::PushedOut, Self::Congested];

    /// Its name in tables, files and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::PushedOut => "pushed-out",
            Self::Congested => "congested",
        }
    }
}

/// The circumstances of a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drop {
    /// Why.
    pub reason: DropReason,
    /// The lane it was in, or would have joined.
    pub lane: Lane,
}

/// What a discipline decided, in a form that can be kept. Drops are told through
/// [`Sink::dropped`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A packet joined a lane.
    Enqueued {
        /// The packet's id.
        packet: u64,
        /// Its flow.
        flow: FlowId,
        /// The lane it joined.
        lane: Lane,
    },
    /// A packet left a lane for transmission.
    Dequeued {
        /// The packet's id.
        packet: u64,
        /// Its flow.
        flow: FlowId,
        /// The lane it left.
        lane: Lane,
    },
    /// A packet is to carry "congestion experienced".
    Marked {
        /// The packet's id.
        packet: u64,
        /// Its flow.
        flow: FlowId,
    },
    /// The flow counts as long from here on.
    Demoted {
        /// The flow.
        flow: FlowId,
    },
    /// A long flow counts as short again while its entry lives.
    Promoted {
        /// The flow.
        flow: FlowId,
    },
    /// The flow table took up a flow.
    FlowCreated {
        /// The flow.
        flow: FlowId,
    },
    /// The flow table forgot a flow.
    FlowRemoved {
        /// The flow.
        flow: FlowId,
    },
    /// The flow table was at its bound and could not take up a flow.
    FlowUntracked {
        /// The flow.
        flow: FlowId,
    },
}

/// Receives what a discipline drops and decides.
///
/// What happens to a packet is told with the packet and the time of the call. A sink that only
/// writes down what it hears takes [`Sink::event`], which gets all of it but the drops.
pub trait Sink {
    /// A packet is lost; the caller gets it back.
    fn dropped(&mut self, packet: Packet, drop: Drop, now: Nanos);

    /// Something was decided. Ignored, and free, unless implemented.
    #[inline(always)]
    fn event(&mut self, _event: Event) {}

    /// `packet` has joined `lane`.
    #[inline(always)]
    fn enqueued(&mut self, packet: &Packet, lane: Lane, _now: Nanos) {
        self.event(Event::Enqueued { packet: packet.id, flow: packet.flow, lane });
    }

    /// `packet` has left `lane` for transmission.
    #[inline(always)]
    fn dequeued(&mut self, packet: &Packet, lane: Lane, _now: Nanos) {
        self.event(Event::Dequeued { packet: packet.id, flow: packet.flow, lane });
    }

    /// `packet` is to carry "congestion experienced".
    #[inline(always)]
    fn marked(&mut self, packet: &Packet, _now: Nanos) {
        self.event(Event::Marked { packet: packet.id, flow: packet.flow });
    }

    /// Drops an arrival that would have joined `lane`, for want of room.
    #[inline(always)]
    fn refused(&mut self, packet: Packet, lane: Lane, now: Nanos) {
        self.dropped(packet, Drop { reason: DropReason::Full, lane }, now);
    }
}

/// Collects drops and ignores events.
impl Sink for Vec<(Packet, Drop)> {
    fn dropped(&mut self, packet: Packet, drop: Drop, _now: Nanos) {
        self.push((packet, drop));
    }
}
