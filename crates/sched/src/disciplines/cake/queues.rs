//! The queues that flows are hashed to, in sets of eight, and the hosts that they belong to.
//!
//! A flow looks for its queue in one set only: first the one that bears its tag, from the place
//! that its hash names; else an idle one; else it shares the place that its hash names, and takes
//! its tag over. Hosts are found in the same way, senders and receivers each in a table of their
//! own; the table says how many bulk queues a host has.

use alloc::vec::Vec;

use super::cobalt::Cobalt;
use crate::interface::{HostId, Packet};
use crate::queues::per_flow::{FlowQueue, NONE};

/// Queues in a set.
pub(super) const WAYS: u32 = 8;

/// Where a queue stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// In no list, and free for any flow.
    #[default]
    Idle,
    /// New, and served before the bulk queues until its first quantum is spent.
    Sparse,
    /// Empty after its first quantum, waiting for its turn among the bulk queues.
    SpentSparse,
    /// Backlogged for more than a quantum.
    Bulk,
    /// Empty, and kept until its control law has come to rest.
    Decaying,
}

/// A queue with its place in the rounds and its control state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HashedQueue {
    pub(super) packets: FlowQueue,
    pub(super) bytes: u64,
    /// What it may still send, in units of 2^-16 bytes.
    pub(super) deficit: i64,
    pub(super) cobalt: Cobalt,
    /// Neighbours in its list.
    next: u32,
    prev: u32,
    /// Places of its hosts in their tables.
    source: u16,
    destination: u16,
    pub(super) standing: Standing,
}

/// Which queues are told apart, and what is shared equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Isolation {
    flows: bool,
    sources: bool,
    destinations: bool,
}

impl Isolation {
    /// The words that `tc` has for it.
    pub(super) const WORDS: &'static [&'static str] = &[
        "triple-isolate",
        "dual-srchost",
        "dual-dsthost",
        "flows",
        "hosts",
        "srchost",
        "dsthost",
        "flowblind",
    ];

    pub(super) fn named(word: &str) -> Self {
        let (flows, sources, destinations) = match word {
            "flowblind" => (false, false, false),
            "srchost" => (false, true, false),
            "dsthost" => (false, false, true),
            "hosts" => (false, true, true),
            "flows" => (true, false, false),
            "dual-srchost" => (true, true, false),
            "dual-dsthost" => (true, false, true),
            _ => (true, true, true),
        };
        Self { flows, sources, destinations }
    }

    /// What packets of one queue have in common; `None` where all are in one.
    fn tag(self, packet: &Packet) -> Option<u64> {
        if self.flows {
            return Some(packet.flow.get());
        }
        let of = |told_apart: bool, host: HostId| if told_apart { u64::from(host.0) } else { 0 };
        let hosts = of(self.sources, packet.source) ^ of(self.destinations, packet.destination);
        (self.sources || self.destinations).then_some(hosts)
    }
}

/// All queues, by index.
#[derive(Debug)]
pub(super) struct Queues {
    queues: Vec<HashedQueue>,
    tags: Vec<u64>,
    isolation: Isolation,
    /// Where sources, and destinations, have equal shares.
    sources: Option<Hosts>,
    destinations: Option<Hosts>,
}

impl Queues {
    /// `sets` sets of idle queues.
    pub(super) fn new(sets: u32, isolation: Isolation) -> Self {
        let count = sets * WAYS;
        let Isolation { flows, sources, destinations } = isolation;
        Self {
            queues: alloc::vec![HashedQueue::default(); count as usize],
            tags: alloc::vec![0; count as usize],
            isolation,
            sources: (flows && sources).then(|| Hosts::new(count)),
            destinations: (flows && destinations).then(|| Hosts::new(count)),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.queues.len() as u32
    }

    #[inline]
    pub(super) fn get(&mut self, index: u32) -> &mut HashedQueue {
        &mut self.queues[index as usize]
    }

    /// Every queue with its index.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &HashedQueue)> {
        (0..).zip(&self.queues)
    }

    /// The queue that a packet joins.
    #[inline]
    pub(super) fn find(&mut self, packet: &Packet) -> u32 {
        let Some(tag) = self.isolation.tag(packet) else { return 0 };
        let home = tag as u32 % self.queues.len() as u32;
        if self.tags[home as usize] == tag && !self.is_idle(home) {
            return home;
        }
        self.find_in_set(home, tag, packet)
    }

    fn find_in_set(&mut self, home: u32, tag: u64, packet: &Packet) -> u32 {
        if let Some(index) = set_from(home).find(|index| self.tags[*index as usize] == tag) {
            if self.is_idle(index) {
                self.assign_hosts(index, packet);
            }
            return index;
        }
        let index = set_from(home).find(|index| self.is_idle(*index)).unwrap_or(home);
        // With no idle queue, two flows share one, and it counts for the hosts of the later flow.
        let is_bulk = self.queues[index as usize].standing == Standing::Bulk;
        if is_bulk {
            self.count_bulk(index, false);
        }
        self.tags[index as usize] = tag;
        self.assign_hosts(index, packet);
        if is_bulk {
            self.count_bulk(index, true);
        }
        index
    }

    fn is_idle(&self, index: u32) -> bool {
        self.queues[index as usize].standing == Standing::Idle
    }

    fn assign_hosts(&mut self, index: u32, packet: &Packet) {
        let queue = &mut self.queues[index as usize];
        if let Some(hosts) = &mut self.sources {
            queue.source = hosts.find(packet.source);
        }
        if let Some(hosts) = &mut self.destinations {
            queue.destination = hosts.find(packet.destination);
        }
    }

    /// Moves a queue into or out of the bulk queues of its hosts.
    pub(super) fn count_bulk(&mut self, index: u32, enters: bool) {
        let queue = &self.queues[index as usize];
        if let Some(hosts) = &mut self.sources {
            hosts.count(queue.source, enters);
        }
        if let Some(hosts) = &mut self.destinations {
            hosts.count(queue.destination, enters);
        }
    }

    /// The bulk queues of that host of a queue which has more of them; at least 1.
    #[inline]
    pub(super) fn host_load(&self, index: u32) -> u16 {
        let queue = &self.queues[index as usize];
        let bulk = |hosts: &Option<Hosts>, place| hosts.as_ref().map_or(0, |h| h.bulk(place));
        let (source, destination) =
            (bulk(&self.sources, queue.source), bulk(&self.destinations, queue.destination));
        source.max(destination).max(1)
    }
}

/// The places of a set, from `home` on.
fn set_from(home: u32) -> impl Iterator<Item = u32> {
    let way = home % WAYS;
    (way..way + WAYS).map(move |way_on| home - way + way_on % WAYS)
}

/// The hosts on one side.
#[derive(Debug)]
struct Hosts(Vec<Host>);

#[derive(Clone, Copy, Debug, Default)]
struct Host {
    tag: u32,
    bulk: u16,
}

impl Hosts {
    fn new(count: u32) -> Self {
        Self(alloc::vec![Host::default(); count as usize])
    }

    /// The place of a host: its own, else one without bulk queues, else one that it shares.
    fn find(&mut self, host: HostId) -> u16 {
        let home = host.0 % self.0.len() as u32;
        let hosts = &self.0;
        let is_own = |place: &u32| hosts[*place as usize].tag == host.0;
        let is_free = |place: &u32| hosts[*place as usize].bulk == 0;
        let own = set_from(home).find(is_own).or_else(|| set_from(home).find(is_free));
        let place = own.unwrap_or(home);
        self.0[place as usize].tag = host.0;
        place as u16
    }

    fn bulk(&self, place: u16) -> u16 {
        self.0[usize::from(place)].bulk
    }

    fn count(&mut self, place: u16, enters: bool) {
        let bulk = &mut self.0[usize::from(place)].bulk;
        *bulk = if enters { *bulk + 1 } else { *bulk - 1 };
    }
}

/// A list of queues, linked through the queues themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    first: u32,
    last: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE };

    /// The first queue of the list.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub(super) fn push_back(&mut self, queues: &mut Queues, index: u32) {
        let last = self.last;
        let queue = queues.get(index);
        (queue.next, queue.prev) = (NONE, last);
        match last {
            NONE => self.first = index,
            last => queues.get(last).next = index,
        }
        self.last = index;
    }

    pub(super) fn remove(&mut self, queues: &mut Queues, index: u32) {
        let HashedQueue { next, prev, .. } = *queues.get(index);
        match prev {
            NONE => self.first = next,
            prev => queues.get(prev).next = next,
        }
        match next {
            NONE => self.last = prev,
            next => queues.get(next).prev = prev,
        }
    }
}

#[cfg(test)]
impl Queues {
    /// Bulk queues by the sources' count, and by the destinations'.
    pub(super) fn bulk_at_hosts(&self) -> [usize; 2] {
        [&self.sources, &self.destinations].map(|hosts| {
            hosts.iter().flat_map(|hosts| &hosts.0).map(|host| usize::from(host.bulk)).sum()
        })
    }
}
