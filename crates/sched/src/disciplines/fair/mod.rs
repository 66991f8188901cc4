//! Fair queueing: disciplines with a queue per flow that serve the least tag.
//!
//! They share the queues, the limit and whom a full buffer drops: the arrival, or the newest
//! packet of the flow with most bytes queued. In the latter case the arrival is inserted first;
//! of two such flows the one that has been backlogged longest loses. What they differ in, which
//! flow is next, is a [`Service`]. A packet larger than the whole limit is refused at once: nobody
//! should lose a packet to it.

mod curve;
mod fsc;
mod group;
mod hfsc;
mod marks;
mod scfq;
mod tree;
mod weights;
mod wf2q;
mod wfq;
mod wire;

use alloc::boxed::Box;

use crate::interface::{
    Amount, Backlog, Dequeue, Drop, DropReason, Event, FlowId, Lane, Nanos, Packet, Param,
    ParamError, Params, Qdisc, Queue, Sink, Takes, shared,
};
use crate::queues::heap::Ranking;
use crate::queues::per_flow::{FlowQueue, Flows, NONE, PacketStore, Slot};
use crate::queues::runs;

pub(crate) use fsc::Fsc;
pub(crate) use hfsc::Hfsc;
pub(crate) use scfq::Scfq;
pub(crate) use wf2q::Wf2q;
pub(crate) use wfq::Wfq;

/// Which flow is served next.
///
/// A service decides how long a flow is remembered: it calls [`Queues::forget`] when it does
/// not need what it keeps of one that has nothing queued.
pub(crate) trait Service: Send + Sized {
    /// What it keeps of a flow.
    type Flow: Copy + Default + Send;

    /// The service that `params` describe.
    fn new(params: &Params) -> Self;

    /// Takes over live parameters.
    fn change(&mut self, queues: &Queues<Self::Flow>, params: &Params);

    /// It is `now`, and a packet is about to join the queues.
    #[inline(always)]
    fn arrival<S: Sink>(&mut self, _queues: &mut Queues<Self::Flow>, _now: Nanos, _sink: &mut S) {}

    /// The packet is at the end of its flow's queue.
    fn joined(&mut self, queues: &mut Queues<Self::Flow>, joined: Joined<'_>);

    /// The flow whose head is sent now. There is one if anything is queued.
    fn next<S: Sink>(
        &mut self,
        queues: &mut Queues<Self::Flow>,
        now: Nanos,
        sink: &mut S,
    ) -> Option<u32>;

    /// The head of that flow has left its queue, and is sent.
    fn served<S: Sink>(
        &mut self,
        queues: &mut Queues<Self::Flow>,
        slot: u32,
        packet: &Packet,
        now: Nanos,
        sink: &mut S,
    );

    /// The newest packet of a flow has left its queue, and is lost.
    fn pushed_out<S: Sink>(
        &mut self,
        queues: &mut Queues<Self::Flow>,
        slot: u32,
        packet: &Packet,
        sink: &mut S,
    );
}

/// A packet that has joined its flow's queue.
pub(crate) struct Joined<'a> {
    pub(crate) packet: &'a Packet,
    /// Its flow.
    pub(crate) slot: u32,
    /// Where it is in the packet store.
    pub(crate) node: u32,
    /// Whether the flow has been taken up just now.
    pub(crate) is_new: bool,
    /// Whether it is the head.
    pub(crate) is_head: bool,
}

/// `drop`: whom a full buffer drops.
pub(crate) const DROP: Param<&'static str> = Param {
    name: "drop",
    kind: Takes::words(&["tail", "longest-queue"]),
    default: "longest-queue",
    effect: "full buffer: drop the arrival, or the newest packet of the flow with most bytes queued",
    source: "choice",
    live: true,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Tail,
    LongestQueue,
}

impl Policy {
    fn from_params(params: &Params) -> Self {
        match params.get(DROP) {
            "longest-queue" => Self::LongestQueue,
            _ => Self::Tail,
        }
    }
}

/// A flow: its packets, and what the service keeps.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(crate) struct Flow<T> {
    queue: FlowQueue,
    bytes: u64,
    /// The arrival that made it backlogged.
    since: u64,
    own: T,
}

impl<T> Flow<T> {
    /// Most bytes first; of equals, the one that has been backlogged longest.
    fn rank(&self) -> u128 {
        u128::from(self.bytes) << 64 | u128::from(u64::MAX - self.since)
    }
}

/// The queues of all flows.
pub(crate) struct Queues<T> {
    flows: Flows<Flow<T>>,
    packets: PacketStore,
    ranking: Ranking,
    backlog: Backlog,
    /// Arrivals so far: the tag of a queued packet is its index among them.
    arrivals: u64,
}

impl<T: Copy + Default> Queues<T> {
    /// What the service keeps of a flow.
    #[inline]
    pub(crate) fn of(&mut self, slot: u32) -> &mut T {
        &mut self.flows[slot].own
    }

    /// The same, to read.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &T {
        &self.flows[slot].own
    }

    /// What the service keeps of all flows, also in places that belong to none at present.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut T> {
        self.flows.states_mut().map(|flow| &mut flow.own)
    }

    /// The size of a flow's head, and its arrival.
    #[inline]
    pub(crate) fn head(&self, slot: u32) -> Option<(u32, u64)> {
        let node = self.packets.front(&self.flows[slot].queue)?;
        Some((node.packet.size, node.tag))
    }

    /// The node of a flow's head, or [`NONE`].
    #[inline]
    pub(crate) fn head_node(&self, slot: u32) -> u32 {
        self.flows[slot].queue.head()
    }

    /// Whether a flow has nothing queued.
    #[inline]
    pub(crate) fn is_idle(&self, slot: u32) -> bool {
        self.flows[slot].queue.is_empty()
    }

    /// The entry of a backlogged flow with this tag in a queue of heads.
    #[inline]
    pub(crate) fn entry(&self, slot: u32, tag: u64) -> Option<u128> {
        let node = self.packets.front(&self.flows[slot].queue)?;
        Some(runs::pack(tag, node.tag, slot))
    }

    /// Flows that are remembered.
    pub(crate) const fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Packets queued.
    #[inline]
    pub(crate) const fn packets(&self) -> u64 {
        self.backlog.packets
    }

    /// Forgets a flow with nothing queued.
    #[inline]
    pub(crate) fn forget<S: Sink>(&mut self, flow: FlowId, sink: &mut S) {
        self.flows.remove(flow);
        sink.event(Event::FlowRemoved { flow });
    }

    /// Starts to load what the next departure will need, while the arrival's own loads are under
    /// way. Nothing waits for the values, so with many flows the misses overlap.
    #[inline]
    pub(crate) fn warm(&self, slot: u32) {
        let queue = &self.flows[slot].queue;
        core::hint::black_box(self.packets.front(queue).map_or(0, |node| node.tag));
    }

    #[inline]
    fn insert<S: Sink>(&mut self, packet: &Packet, sink: &mut S) -> (u32, u32, bool, bool) {
        let (slot, is_new) = match self.flows.slot(packet.flow) {
            Slot::Found(slot) => (slot, false),
            Slot::Created(slot) => (slot, true),
            Slot::Full => unreachable!("there is a slot for each of 2^32 flows"),
        };
        if is_new {
            sink.event(Event::FlowCreated { flow: packet.flow });
        }
        let flow = &mut self.flows[slot];
        let is_head = flow.queue.is_empty();
        if is_head {
            flow.since = self.arrivals;
        }
        let node = self.packets.push_back(&mut flow.queue, *packet, self.arrivals);
        flow.bytes += u64::from(packet.size);
        self.backlog.add(packet);
        self.rank(slot);
        (slot, node, is_new, is_head)
    }

    /// Counts out a packet that has just been taken from a flow's queue.
    #[inline]
    fn removed(&mut self, slot: u32, packet: &Packet) {
        self.backlog.remove(packet);
        self.flows[slot].bytes -= u64::from(packet.size);
        self.rank(slot);
    }

    /// Brings the rank of a flow up to date, while ranks are kept.
    #[inline]
    fn rank(&mut self, slot: u32) {
        if self.ranking.is_active() {
            let flow = &self.flows[slot];
            match flow.queue.is_empty() {
                false => self.ranking.set(slot, flow.rank()),
                true => self.ranking.remove(slot),
            }
        }
    }

    /// The flow that loses its newest packet.
    fn longest(&mut self) -> Option<u32> {
        if !self.ranking.is_active() {
            let backlogged = self.flows.states().filter(|(_, flow)| !flow.queue.is_empty());
            self.ranking.activate(backlogged.map(|(slot, flow)| (slot, flow.rank())));
        }
        self.ranking.top()
    }
}

/// A discipline that serves flows as `D` says.
pub(crate) struct Fair<D: Service> {
    params: Params,
    limit: Amount,
    drop: Policy,
    queues: Queues<D::Flow>,
    service: D,
}

impl<D: Service> Fair<D> {
    /// An empty queue.
    pub(crate) fn new(params: &Params) -> Self {
        let limit = params.get(shared::LIMIT);
        Self {
            params: params.clone(),
            limit,
            drop: Policy::from_params(params),
            queues: Queues {
                // Flows are bounded by the packets queued, and by what the service remembers.
                flows: Flows::new(NONE as usize),
                packets: PacketStore::new(shared::ring_capacity(limit)),
                ranking: Ranking::default(),
                backlog: Backlog::default(),
                arrivals: 0,
            },
            service: D::new(params),
        }
    }

    /// The same behind the interface of all disciplines.
    pub(crate) fn boxed<S: Sink + 'static>(params: &Params) -> Box<dyn Qdisc<S>>
    where
        D: 'static,
    {
        Box::new(Self::new(params))
    }

    /// Pushes packets out of the longest queue until the rest fits. Returns whether the packet
    /// that has just arrived is still there.
    #[cold]
    fn make_room<S: Sink>(&mut self, now: Nanos, sink: &mut S) -> bool {
        let Self { queues, service, .. } = self;
        let mut survived = true;
        while queues.backlog.in_unit_of(self.limit) > self.limit.value() {
            let Some(slot) = queues.longest() else { break };
            let queue = &mut queues.flows[slot].queue;
            let Some((packet, index)) = queues.packets.pop_back(queue) else { break };
            queues.removed(slot, &packet);
            service.pushed_out(queues, slot, &packet, sink);
            let is_arrival = index == queues.arrivals;
            survived &= !is_arrival;
            let reason = if is_arrival { DropReason::Full } else { DropReason::PushedOut };
            sink.dropped(packet, Drop { reason, lane: Lane::ONLY }, now);
        }
        survived
    }
}

impl<D: Service, S: Sink> Qdisc<S> for Fair<D> {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        let Self { queues, service, .. } = self;
        let has_room = queues.backlog.has_room(self.limit, &packet);
        let is_refused = match self.drop {
            Policy::Tail => !has_room,
            Policy::LongestQueue => queues.backlog.must_refuse(self.limit, &packet),
        };
        if is_refused {
            return sink.refused(packet, Lane::ONLY, now);
        }
        service.arrival(queues, now, sink);
        let (slot, node, is_new, is_head) = queues.insert(&packet, sink);
        service.joined(queues, Joined { packet: &packet, slot, node, is_new, is_head });
        if has_room || self.make_room(now, sink) {
            sink.enqueued(&packet, Lane::ONLY, now);
        }
        self.queues.arrivals += 1;
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let Self { queues, service, .. } = self;
        let Some(slot) = service.next(queues, now, sink) else { return Dequeue::Empty };
        let queue = &mut queues.flows[slot].queue;
        let Some((packet, _)) = queues.packets.pop_front(queue) else { return Dequeue::Empty };
        queues.removed(slot, &packet);
        service.served(queues, slot, &packet, now, sink);
        queues.ranking.relax(queues.backlog.in_unit_of(self.limit), self.limit.value());
        sink.dequeued(&packet, Lane::ONLY, now);
        Dequeue::unmarked(packet)
    }
}

impl<D: Service> Queue for Fair<D> {
    fn backlog(&self) -> Backlog {
        self.queues.backlog
    }

    fn flows(&self) -> usize {
        self.queues.flows()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.params.check_live(params)?;
        self.params = params.clone();
        self.limit = params.get(shared::LIMIT);
        self.drop = Policy::from_params(params);
        self.service.change(&self.queues, params);
        self.queues.ranking.deactivate();
        Ok(())
    }
}
