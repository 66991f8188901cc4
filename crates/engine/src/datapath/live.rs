//! The observer of an attached engine: what `show`, `top` and `metrics` tell.
//!
//! It counts by lane and by reason, keeps histograms of the time in the queue with the buckets
//! of the kernel's, and a bounded table of flows. Nothing is allocated per packet once
//! the queue has been as full as it gets; nothing is locked, as the direction's own thread
//! counts, and answers from in between two steps.

mod flows;

use frame::{Endpoints, FlowKey, Selector};
use sched::{Drop, DropReason, Event, Lane, Nanos, Packet, Sink};

use self::flows::{FlowTable, Place};
use crate::observe::{Drops, Observer};
use crate::status::{DropCounter, Flow, LaneCounters};

/// Counts what passes a direction.
pub struct Live {
    drops: Drops,
    now: Nanos,
    /// By buffer: the packet in it.
    held: Vec<Held>,
    lanes: Vec<Counted>,
    flows: FlowTable,
    queued: u64,
    counters: Counters,
    /// Whether what leaves the queue joins another one.
    moving: bool,
}

/// A packet that has arrived, and where it is.
#[derive(Clone, Copy)]
struct Held {
    arrived: Nanos,
    size: u32,
    segments: u16,
    lane: Lane,
    /// Whether it counts in its lane's backlog.
    queued: bool,
    flow: Place,
}

const NOTHING: Held = Held {
    arrived: Nanos::ZERO,
    size: 0,
    segments: 0,
    lane: Lane::SHORT,
    queued: false,
    flow: Place::NONE,
};

/// What a lane has counted, with its drops by reason.
#[derive(Clone, Default)]
struct Counted {
    counters: LaneCounters,
    drops: [u64; DropReason::ALL.len()],
}

/// What a direction has counted, for its [`Status`](crate::status::Status).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) most_packets: u64,
    pub(crate) marked: u64,
    pub(crate) created: u64,
    pub(crate) removed: u64,
    pub(crate) demoted: u64,
    pub(crate) promoted: u64,
    pub(crate) untracked: u64,
    pub(crate) fragments: u64,
    pub(crate) not_ip: u64,
    pub(crate) super_packets: u64,
}

/// All that was counted up to one moment.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub(crate) lanes: Vec<LaneCounters>,
    pub(crate) drops: Vec<DropCounter>,
    pub(crate) counters: Counters,
    pub(crate) biggest: Vec<flows::Entry>,
    pub(crate) newest: Vec<flows::Entry>,
    pub(crate) at: Nanos,
}

impl Seen {
    /// The biggest flows of those that were seen lately, in words.
    pub(crate) fn biggest_flows(&self) -> Vec<Flow> {
        self.biggest.iter().map(|entry| entry.describe(self.at)).collect()
    }

    /// The newest flows, in words.
    pub(crate) fn newest_flows(&self) -> Vec<Flow> {
        self.newest.iter().map(|entry| entry.describe(self.at)).collect()
    }
}

impl Live {
    /// For a discipline with so many lanes, as far as that is known before packets come.
    #[must_use]
    pub fn new(lanes: usize) -> Self {
        Self {
            drops: Drops::default(),
            now: Nanos::ZERO,
            held: Vec::new(),
            lanes: vec![Counted::default(); lanes],
            flows: FlowTable::new(),
            queued: 0,
            counters: Counters::default(),
            moving: false,
        }
    }

    #[inline]
    fn lane(&mut self, lane: Lane) -> &mut Counted {
        let lane = usize::from(lane.0);
        if lane >= self.lanes.len() {
            self.lanes.resize(lane + 1, Counted::default());
        }
        &mut self.lanes[lane]
    }

    #[inline]
    fn enqueued(&mut self, buffer: usize, lane: Lane) {
        let held = &mut self.held[buffer];
        (held.lane, held.queued) = (lane, true);
        let (held, moving) = (*held, self.moving);
        let counters = &mut self.lane(lane).counters;
        counters.enqueued_packets += u64::from(!moving);
        counters.backlog_packets += 1;
        counters.backlog_segments += u64::from(held.segments);
        counters.backlog_bytes += u64::from(held.size);
        self.queued += 1;
        self.counters.most_packets = self.counters.most_packets.max(self.queued);
        if let Some(flow) = self.flows.at(held.flow) {
            flow.lane = Some(lane.0);
        }
    }

    /// Takes a packet out of its lane's backlog.
    #[inline]
    fn leaves(&mut self, buffer: usize) -> Held {
        let held = std::mem::replace(&mut self.held[buffer].queued, false);
        let was = self.held[buffer];
        if held {
            let counters = &mut self.lane(was.lane).counters;
            counters.backlog_packets -= 1;
            counters.backlog_segments -= u64::from(was.segments);
            counters.backlog_bytes -= u64::from(was.size);
            self.queued -= 1;
        }
        was
    }

    #[inline]
    fn dequeued(&mut self, buffer: usize, lane: Lane) {
        let held = self.leaves(buffer);
        if self.moving {
            return;
        }
        let sojourn = self.now.since(held.arrived);
        let counters = &mut self.lane(lane).counters;
        counters.sent_packets += 1;
        counters.sent_bytes += u64::from(held.size);
        counters.sojourn.count(sojourn.0);
        if let Some(flow) = self.flows.at(held.flow) {
            flow.sent.count(held.size);
        }
    }
}

impl Sink for Live {
    #[inline]
    fn dropped(&mut self, packet: Packet, drop: Drop, _now: Nanos) {
        self.drops.note(&packet, drop);
        let held = self.leaves(packet.id as usize);
        self.lane(drop.lane).drops[drop.reason as usize] += 1;
        if let Some(flow) = self.flows.at(held.flow) {
            flow.dropped += 1;
        }
    }

    #[inline]
    fn event(&mut self, event: Event) {
        match event {
            Event::Enqueued { packet, lane, .. } => self.enqueued(packet as usize, lane),
            Event::Dequeued { packet, lane, .. } => self.dequeued(packet as usize, lane),
            Event::Marked { packet, .. } => {
                self.counters.marked += 1;
                if let Some(flow) = self.flows.at(self.held[packet as usize].flow) {
                    flow.marked += 1;
                }
            }
            Event::FlowCreated { .. } => self.counters.created += 1,
            Event::FlowRemoved { .. } => self.counters.removed += 1,
            Event::FlowUntracked { .. } => self.counters.untracked += 1,
            Event::Demoted { .. } => self.counters.demoted += 1,
            Event::Promoted { .. } => self.counters.promoted += 1,
        }
    }
}

impl Observer for Live {
    fn drops(&mut self) -> &mut Drops {
        &mut self.drops
    }

    #[inline]
    fn arriving(&mut self, packet: &Packet, key: &FlowKey, now: Nanos) {
        self.now = now;
        let flow = self.flows.arrives(packet, key, now);
        let buffer = packet.id as usize;
        if buffer >= self.held.len() {
            self.held.resize(buffer + 1, NOTHING);
        }
        self.held[buffer] = Held {
            arrived: now,
            size: packet.size,
            segments: packet.segments,
            lane: Lane::SHORT,
            queued: false,
            flow,
        };
        self.counters.super_packets += u64::from(packet.segments > 1);
        self.counters.fragments += u64::from(key.selector == Selector::Fragment);
        self.counters.not_ip += u64::from(matches!(key.endpoints, Endpoints::Mac(..)));
    }

    #[inline]
    fn serving(&mut self, now: Nanos) {
        self.now = now;
    }

    fn moving(&mut self, moving: bool) {
        self.moving = moving;
    }

    fn seen(&self, now: Nanos) -> Seen {
        let lane = |counted: &Counted| {
            let of = |reason: DropReason| counted.drops[reason as usize];
            LaneCounters {
                full: of(DropReason::Full),
                pushed_out: of(DropReason::PushedOut),
                congested: of(DropReason::Congested),
                ..counted.counters.clone()
            }
        };
        let drops = self.lanes.iter().enumerate().flat_map(|(lane, counted)| {
            DropReason::ALL.iter().zip(counted.drops).map(move |(reason, packets)| DropCounter {
                reason: reason.name().to_owned(),
                lane: Some(lane as u8),
                packets,
            })
        });
        let (biggest, newest) = self.flows.top(now);
        Seen {
            lanes: self.lanes.iter().map(lane).collect(),
            drops: drops.filter(|drop| drop.packets > 0).collect(),
            counters: self.counters,
            biggest,
            newest,
            at: now,
        }
    }
}

#[cfg(test)]
mod tests;
