//! Who is remembered: the flows and hosts of `fq-lanes`, in bounded tables.
//!
//! At the bound, the idle entry whose age has faded most among a few makes room. A flow that finds
//! no room has its packets in one of the *spill* queues, which belong to a host of their own. While
//! such a queue holds packets, no further flow of it gets an entry: so no flow is reordered.

use alloc::vec::Vec;

use super::rules::Rules;
use super::stage::{Member, Members, NOWHERE, Stage};
use crate::disciplines::codel::{Course, Watch};
use crate::interface::{Backlog, Event, FlowId, HostId, Nanos, Packet, Params, Sink, shared};
use crate::queues::per_flow::{FlowQueue, Flows, NONE, Slot};

/// Queues for flows that find no room. They come first in the table of flows.
const SPILLS: u32 = 64;
/// The host of the spill queues, and of hosts that find no room.
const SPILL_HOST: u32 = 0;
/// Most hosts.
const HOSTS: usize = 1024;

/// A host.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Host {
    pub(super) member: Member,
    /// Its flows.
    pub(super) stage: Stage,
    pub(super) backlog: Backlog,
    /// Its flow with most bytes.
    pub(super) fattest: Fattest,
    pub(super) ahead: Ahead,
    key: Option<FlowId>,
}

impl Host {
    /// A packet left `flow`, which has `bytes` then.
    #[inline]
    pub(super) fn lose(&mut self, flow: u32, bytes: u64, packet: &Packet) {
        self.backlog.remove(packet);
        self.fattest.shrunk(flow, bytes);
    }
}

/// What a host sent ahead of its turn.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Ahead {
    /// Bytes, less its fair share of the time since, as of `reading`.
    pub(super) bytes: u64,
    /// The virtual time of hosts.
    pub(super) reading: u64,
    /// The next host in the line of those with new flows.
    pub(super) next: u32,
    /// Whether it stands in that line.
    pub(super) waits: bool,
}

/// A flow, or a spill queue, but for its [`Course`]: one cache line.
#[derive(Clone, Copy, Debug, Default, Hash)]
#[repr(align(64))]
pub(super) struct Flow {
    /// Its stage is that of its host while it is backlogged or listed, and of the host before.
    pub(super) member: Member,
    pub(super) queue: FlowQueue,
    pub(super) bytes: u64,
    pub(super) watch: Watch,
}

impl Flow {
    /// Its host.
    #[inline]
    pub(super) fn host(&self) -> u32 {
        u32::from(self.member.stage)
    }
}

/// The hosts as members of their stage.
pub(super) struct HostMembers<'a> {
    pub(super) hosts: &'a mut Flows<Host>,
    pub(super) flows: &'a mut Flows<Flow>,
}

impl Members for HostMembers<'_> {
    #[inline]
    fn member(&mut self, index: u32) -> &mut Member {
        &mut self.hosts[index].member
    }

    #[inline]
    fn is_empty(&self, index: u32) -> bool {
        self.hosts[index].backlog.packets == 0
    }

    /// Its flows' turns are over as well, although none of them came to see it.
    fn unlisted(&mut self, index: u32) {
        self.hosts[index].stage.clear(self.flows);
    }
}

impl Members for Flows<Flow> {
    #[inline]
    fn member(&mut self, index: u32) -> &mut Member {
        &mut self[index].member
    }

    #[inline]
    fn is_empty(&self, index: u32) -> bool {
        self[index].queue.is_empty()
    }
}

/// The flow with most bytes, as far as arrivals tell: who grows past it takes its place. One that
/// got nothing since may exceed it, until its next arrival.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Fattest {
    pub(super) index: u32,
    pub(super) bytes: u64,
}

impl Default for Fattest {
    fn default() -> Self {
        Self { index: NONE, bytes: 0 }
    }
}

impl Fattest {
    /// Someone has grown to `bytes`.
    #[inline]
    pub(super) fn grown(&mut self, index: u32, bytes: u64) {
        // Whoever comes first is it, if only with packets without bytes.
        if index == self.index || bytes > self.bytes || self.index == NONE {
            *self = Self { index, bytes };
        }
    }

    /// Someone has shrunk to `bytes`.
    #[inline]
    pub(super) fn shrunk(&mut self, index: u32, bytes: u64) {
        if index == self.index {
            self.bytes = bytes;
        }
    }
}

/// Which address of a packet is its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum HostOf {
    Destination,
    Source,
    Nobody,
}

/// The tables of flows and hosts.
#[derive(Hash)]
pub(super) struct Table {
    pub(super) flows: Flows<Flow>,
    pub(super) hosts: Flows<Host>,
    /// Of the flows.
    pub(super) courses: Vec<Course>,
    host_of: HostOf,
}

impl Table {
    pub(super) fn new(params: &Params) -> Self {
        let bound = params.get(shared::FLOWS) as usize;
        let (mut flows, mut hosts) = (Flows::new(bound), Flows::new(HOSTS.min(bound)));
        for _ in 0..SPILLS {
            flows.add_anonymous();
        }
        hosts.add_anonymous();
        let host_of = match params.get(super::HOSTS) {
            "destination" => HostOf::Destination,
            "source" => HostOf::Source,
            _ => HostOf::Nobody,
        };
        let courses = alloc::vec![Course::default(); SPILLS as usize];
        Self { flows, hosts, courses, host_of }
    }

    /// The place of a packet's flow; that of a spill queue if there is no room for it.
    #[inline]
    pub(super) fn flow<S: Sink>(
        &mut self,
        packet: &Packet,
        rules: &Rules,
        now: Nanos,
        sink: &mut S,
    ) -> u32 {
        match self.flows.slot(packet.flow) {
            Slot::Found(flow) => flow,
            slot => self.take_up(slot, packet.flow, rules, now, sink),
        }
    }

    /// An entry for a flow that had none.
    fn take_up<S: Sink>(
        &mut self,
        slot: Slot,
        flow: FlowId,
        rules: &Rules,
        now: Nanos,
        sink: &mut S,
    ) -> u32 {
        let spill = (flow.get() >> 32) as u32 % SPILLS;
        let must_spill = !self.flows[spill].queue.is_empty();
        let place = match slot {
            Slot::Created(_) if must_spill => {
                self.flows.remove(flow);
                None
            }
            Slot::Created(place) | Slot::Found(place) => Some(place),
            Slot::Full if must_spill => None,
            Slot::Full => {
                let idle = |flow: &Flow| flow.queue.is_empty() && !flow.member.is_listed();
                let worth = |flow: &Flow| u64::from(flow.member.faded(rules, now));
                let rank = |flow: &Flow| idle(flow).then(|| worth(flow));
                self.flows.evict_near(flow, rank).and_then(|evicted| {
                    sink.event(Event::FlowRemoved { flow: evicted });
                    created(self.flows.slot(flow))
                })
            }
        };
        let Some(place) = place else {
            sink.event(Event::FlowUntracked { flow });
            return spill;
        };
        sink.event(Event::FlowCreated { flow });
        match self.courses.get_mut(place as usize) {
            Some(course) => *course = Course::default(),
            None => self.courses.push(Course::default()),
        }
        place
    }

    /// Finds its host for a flow that has nothing queued and stands in no list.
    #[inline]
    pub(super) fn find_host(&mut self, flow: u32, packet: &Packet, credit: u64) {
        let host = self.host(flow, packet);
        let Self { flows, hosts, .. } = self;
        let member = &mut flows[flow].member;
        if (member.stage == SPILL_HOST as u16) != (host == SPILL_HOST) {
            member.set_reading(hosts[host].stage.virtual_time() + credit);
        }
        member.stage = host as u16;
    }

    /// The place of a flow's host.
    #[inline]
    fn host(&mut self, flow: u32, packet: &Packet) -> u32 {
        if flow < SPILLS {
            return SPILL_HOST;
        }
        let host = match self.host_of {
            HostOf::Destination => packet.destination,
            HostOf::Source => packet.source,
            HostOf::Nobody => HostId(0),
        };
        // One-to-one, and scattered: what the table takes for a hash.
        let key = u64::from(host.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = FlowId::new(key ^ (key >> 32));
        let known = self.flows[flow].member.stage;
        if known != NOWHERE && self.hosts[u32::from(known)].key == Some(key) {
            return u32::from(known);
        }
        let place = match self.hosts.slot(key) {
            Slot::Found(host) => return host,
            Slot::Created(host) => Some(host),
            Slot::Full => {
                let idle = |host: &Host| !host.member.is_listed() && !host.ahead.waits;
                let evicted = self.hosts.evict_near(key, |host| idle(host).then_some(0));
                evicted.and_then(|_| created(self.hosts.slot(key)))
            }
        };
        let Some(place) = place else { return SPILL_HOST };
        self.hosts[place].key = Some(key);
        place
    }
}

const fn created(slot: Slot) -> Option<u32> {
    match slot {
        Slot::Created(place) => Some(place),
        Slot::Found(_) | Slot::Full => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!((size_of::<Flow>(), size_of::<Course>(), size_of::<Host>()), (64, 16, 248));
        assert!(u16::try_from(HOSTS).is_ok_and(|hosts| hosts < NOWHERE));
    }
}
