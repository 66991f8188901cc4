//! The observer of an attached engine: what `show`, `top` and `metrics` tell.
//!
//! Beside its account it keeps histograms of the time in the queue with the buckets of the
//! kernel's, and a bounded table of flows. Nothing is allocated per packet once
//! the queue has been as full as it gets; nothing is locked, as the direction's own thread
//! counts, and answers from in between two steps.

mod flows;

use std::collections::BTreeMap;

use account::{Account, Book, Drops, Held, Totals};
use frame::{Endpoints, FlowKey, Selector};
use sched::{Drop, DropReason, FlowId, Lane, Nanos, Packet, Standing};

use self::flows::{FlowTable, Place};
use crate::datapath::observe::Observer;
use crate::status::{self, DropCounter, Flow, Histogram, Host, LaneCounters};

/// What an attached engine counts beside its account's totals.
pub struct Live {
    freed: Vec<u32>,
    /// By lane.
    sojourns: Vec<Histogram>,
    flows: FlowTable,
    counters: Counters,
}

/// Packets that are unlike others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) fragments: u64,
    pub(crate) not_ip: u64,
    pub(crate) super_packets: u64,
}

/// All that was counted up to one moment.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub(crate) lanes: Vec<LaneCounters>,
    pub(crate) drops: Vec<DropCounter>,
    pub(crate) totals: Totals,
    pub(crate) counters: Counters,
    pub(crate) biggest: Vec<flows::Entry>,
    pub(crate) newest: Vec<flows::Entry>,
    /// Of all flows that were seen lately.
    pub(crate) parts: Vec<flows::Part>,
    pub(crate) at: Nanos,
}

impl Seen {
    /// Asks where the listed flows stand.
    pub(crate) fn look_up(&mut self, standing: impl Fn(FlowId) -> Option<Standing>) {
        for entry in self.biggest.iter_mut().chain(&mut self.newest) {
            entry.standing = standing(entry.flow);
        }
    }

    /// The hosts with most of the link, which flows have at one of their ends.
    pub(crate) fn busiest_hosts(&self, of_destination: bool) -> Vec<Host> {
        let mut hosts = BTreeMap::<String, Host>::new();
        for part in &self.parts {
            let name = part.endpoints.name(of_destination);
            let host = hosts.entry(name).or_default();
            host.flows += 1;
            host.arriving_bps += part.arriving.0;
            host.sent += part.sent;
        }
        let named = hosts.into_iter().map(|(name, host)| Host { host: name, ..host });
        status::Seen::busiest(named)
    }

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
    /// An account for a discipline with so many lanes, as far as that is known before packets come.
    #[must_use]
    pub fn account(lanes: usize) -> Account<Self> {
        let live = Self {
            freed: Vec::new(),
            sojourns: vec![Histogram::default(); lanes],
            flows: FlowTable::new(),
            counters: Counters::default(),
        };
        Account::new(live, lanes)
    }
}

impl Book for Live {
    type Ticket = Place;

    #[inline]
    fn enqueued(&mut self, _packet: &Packet, lane: Lane, held: Held<Place>) {
        if let Some(flow) = self.flows.at(held.ticket) {
            flow.lane = Some(lane.0);
        }
    }

    #[inline]
    fn dequeued(&mut self, packet: &Packet, lane: Lane, held: Held<Place>, now: Nanos) {
        let lane = usize::from(lane.0);
        if lane >= self.sojourns.len() {
            self.sojourns.resize(lane + 1, Histogram::default());
        }
        self.sojourns[lane].count(now.since(held.arrival));
        if let Some(flow) = self.flows.at(held.ticket) {
            flow.sent.count(packet.size);
        }
    }

    #[inline]
    fn dropped(&mut self, packet: Packet, _drop: Drop, held: Held<Place>) {
        self.freed.push(packet.id as u32);
        if let Some(flow) = self.flows.at(held.ticket) {
            flow.dropped += 1;
        }
    }

    #[inline]
    fn marked(&mut self, _packet: &Packet, held: Held<Place>) {
        if let Some(flow) = self.flows.at(held.ticket) {
            flow.marked += 1;
        }
    }
}

impl Observer for Account<Live> {
    fn freed(&mut self) -> &mut Vec<u32> {
        &mut self.book.freed
    }

    fn dropped_so_far(&self) -> &Drops {
        &self.totals().drops
    }

    #[inline]
    fn arriving(&mut self, packet: &Packet, key: &FlowKey, now: Nanos) {
        let place = self.book.flows.arrives(packet, key, now);
        self.arriving(packet, place, now);
        let counters = &mut self.book.counters;
        counters.super_packets += u64::from(packet.segments > 1);
        counters.fragments += u64::from(key.selector == Selector::Fragment);
        counters.not_ip += u64::from(matches!(key.endpoints, Endpoints::Mac(..)));
    }

    fn moving(&mut self, moving: bool) {
        self.moving(moving);
    }

    fn seen(&self, now: Nanos) -> Seen {
        let totals = self.totals();
        let drops = |(lane, reason, dropped): (Lane, DropReason, account::Tally)| DropCounter {
            reason: reason.name().to_owned(),
            lane: Some(lane.0),
            packets: dropped.packets,
        };
        // A lane may have lost packets only.
        let lost = totals.drops.iter().last().map_or(0, |(lane, ..)| lane.0 + 1);
        let lanes = (0..lost.max(totals.lanes.len() as u8)).map(Lane);
        let (biggest, newest) = self.book.flows.top(now);
        Seen {
            lanes: lanes.map(|lane| counters(totals, &self.book.sojourns, lane)).collect(),
            drops: totals.drops.iter().map(drops).collect(),
            totals: totals.clone(),
            counters: self.book.counters,
            biggest,
            newest,
            parts: self.book.flows.part(now),
            at: now,
        }
    }
}

/// What a lane has counted, in the shape of a status.
fn counters(totals: &Totals, sojourns: &[Histogram], lane: Lane) -> LaneCounters {
    let at = usize::from(lane.0);
    let counted = totals.lanes.get(at).copied().unwrap_or_default();
    let dropped = |reason| totals.drops.of(lane, reason).packets;
    LaneCounters {
        enqueued_packets: counted.enqueued,
        sent_packets: counted.sent.packets,
        sent_bytes: counted.sent.bytes,
        full: dropped(DropReason::Full),
        pushed_out: dropped(DropReason::PushedOut),
        congested: dropped(DropReason::Congested),
        backlog_packets: counted.backlog.packets,
        backlog_segments: counted.backlog.segments,
        backlog_bytes: counted.backlog.bytes,
        sojourn: sojourns.get(at).cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
