//! The running state of a simulation.

mod ends;
mod flows;
mod packets;
mod ways;

use std::collections::{HashMap, HashSet};
use std::hint::black_box;

use sched::Nanos;
use tcp::Config;

use self::ways::Feeder;
use crate::events::{Entry, EventQueue};
use crate::flow::{Flow, FlowReport, SourceId, Way};
use crate::flow_names::{FlowName, FlowNames};
use crate::link::Link;
use crate::network::{LinkId, Network, NodeId};
use crate::recorder::{Advance, Exchange, Probe};
use crate::transit::{Transit, Transits};

/// Something that is to happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A packet reaches the end of a link.
    Arrive(u32),
    /// A port may be due for service.
    Service(u32),
    /// A TCP end may have a timer due: twice the flow's slot, plus the end.
    Timer(u32),
    /// A source asked to be woken.
    Wake(u32),
    /// Ports are to be looked at.
    Sample,
}

/// Something that a source or the recorder is to hear.
pub(crate) enum Notice {
    Exchanged { source: SourceId, flow: FlowName, index: u64 },
    Done(Box<FlowReport>),
    Probe(Probe),
    Advance(Advance),
    Exchange(Exchange),
}

/// Fewer flows stay in the processor's cache.
const MANY_FLOWS: usize = 1000;

/// Ends a way in the hop table.
const END: LinkId = LinkId(u32::MAX);

pub(crate) struct World {
    now: Nanos,
    pub(crate) events: EventQueue<Event>,
    pub(crate) links: Vec<Link>,
    network: Network,
    /// The links of all ways, each way followed by `END`.
    hops: Vec<LinkId>,
    /// By link: what leads packets to it.
    feeders: Vec<Feeder>,
    ways: HashMap<(NodeId, NodeId), Way>,
    pub(crate) transits: Transits,
    flows: Vec<Flow>,
    free_flows: Vec<u32>,
    names: FlowNames,
    serial: u64,
    pub(crate) tcps: Vec<Config>,
    pub(crate) notices: Vec<Notice>,
    /// Connections to come whose progress is told, by source and its own name for them.
    pub(crate) watched: HashSet<(SourceId, u64)>,
    /// DSCP of the packets of a source's flows, unless it is 0.
    pub(crate) marks: HashMap<SourceId, u8>,
    /// Packets that reached the end of a link.
    pub(crate) packet_hops: u64,
}

impl World {
    pub(crate) fn new(network: Network, seed: u64) -> Self {
        let names = FlowNames::new(seed);
        let links = network.links().iter().map(|link| Link::new(link, seed, names)).collect();
        let feeders = vec![Feeder::Nobody; network.links().len()];
        Self {
            now: Nanos::ZERO,
            events: EventQueue::new(),
            links,
            network,
            hops: Vec::new(),
            feeders,
            ways: HashMap::new(),
            transits: Transits::default(),
            flows: Vec::new(),
            free_flows: Vec::new(),
            names,
            serial: 0,
            tcps: Vec::new(),
            notices: Vec::new(),
            watched: HashSet::new(),
            marks: HashMap::new(),
            packet_hops: 0,
        }
    }

    pub(crate) const fn now(&self) -> Nanos {
        self.now
    }

    pub(crate) fn set_now(&mut self, now: Nanos) {
        self.now = now;
    }

    pub(crate) const fn network(&self) -> &Network {
        &self.network
    }

    /// Flows that are open.
    pub(crate) fn open_flows(&self) -> usize {
        self.flows.len() - self.free_flows.len()
    }

    /// The next event, if it is not later than `until`.
    #[inline]
    pub(crate) fn next_event(&mut self, until: Nanos) -> Option<(Nanos, Event)> {
        let Self { events, transits, flows, .. } = self;
        let next = events.pop_until(until.0, |coming| fetch(coming, transits, flows));
        next.map(|(time, event)| (Nanos(time), event))
    }

    /// Lets happen what was scheduled for now.
    #[inline]
    pub(crate) fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(slot) => self.arrive(slot),
            Event::Service(link) => self.service(LinkId(link)),
            Event::Timer(end) => self.timer(end / 2, (end % 2) as usize),
            // The simulation's own business.
            Event::Wake(_) | Event::Sample => {}
        }
    }

    pub(crate) fn wake_at(&mut self, source: SourceId, time: Nanos) {
        self.events.push(time.max(self.now).0, Event::Wake(source.0));
    }
}

/// Reads what coming events will need of their packets and flows. Of thousands of flows all has
/// left the processor's cache; these reads do not wait for each other, as those of the events do.
fn fetch(coming: &[Entry<Event>], transits: &Transits, flows: &[Flow]) {
    if flows.len() < MANY_FLOWS {
        return;
    }
    let packets = || {
        coming.iter().filter_map(|entry| match entry.what {
            Event::Arrive(slot) => Some(transits.get(slot)),
            _ => None,
        })
    };
    black_box(packets().fold(0, |all, packet| all ^ packet.hop));
    let flow = |packet: &Transit| flows.get(packet.flow().slot as usize);
    black_box(packets().fold(0, |all, packet| {
        all ^ flow(packet).map_or(0, |flow| flow.first_read(packet.sender()))
    }));
}

/// The name of what one end sends: to a queue, the directions of a connection are two flows.
#[inline]
const fn queue_name(slot: u32, end: usize, flow: FlowName) -> FlowName {
    FlowName { slot: 2 * slot + end as u32, generation: flow.generation }
}
