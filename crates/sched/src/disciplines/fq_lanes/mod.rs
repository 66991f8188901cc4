//! `fq-lanes`: fair queueing in which the young go first.
//!
//! Every flow has a queue of its own under CoDel, hosts take turns, and so do the flows of a host,
//! sparse ones first: FQ-CoDel (RFC 8290), twice. What is new is among the flows of a host. A flow
//! has an *age*: the bytes that it was served in excess of its fair share. Whatever stays within
//! its fair share (voice, a game, a call) beside downloads never ages; a download does. Flows
//! with packets do not form one round but one per *tier* of ages, and a younger tier goes first.
//! Nobody starves: a tier is owed half of what fair queueing would give its members, and at least
//! a 32nd of the link.
//!
//! The oldest wait for the younger, which is no sign of congestion. So their sojourn time, for
//! CoDel, counts only while no younger packet is sent. A queue delays its own flow alone, so `target`
//! is larger than where flows share one.
//!
//! Cost: constant per packet, but for a packet that is larger than a quantum, which takes as many
//! turns as it has quanta. 80 bytes a flow and 248 a host beside the tables', 64 a packet.

mod clock;
mod full;
mod idle;
mod rules;
mod stage;
mod table;

use alloc::boxed::Box;
use core::hash::{Hash, Hasher};

use self::clock::{Clock, Stamp};
use self::idle::Idle;
pub use self::rules::standing;
use self::rules::{LAST, NEW, QUANTUM, Rules, WITHOUT, lane};
use self::stage::{NOWHERE, Stage};
use self::table::{HostMembers, Table};
use crate::disciplines::codel::{ECN, HeadQueue, INTERVAL, Law, TARGET};
use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, DropReason, FlowId, Info, Lane, Nanos, Needs,
    Packet, Param, ParamError, Params, Qdisc, Queue, Sink, Standing, Takes, shared,
};
use crate::queues::per_flow::{NONE, PacketStore};

/// Bytes that a host may send ahead of its turn, beyond its fair share: ten packets.
const MOST_AHEAD: u64 = 15_000;

/// The rules among hosts.
const HOST_RULES: Rules = Rules::of_hosts();

/// Fair queueing over hosts and flows, the young first.
pub(crate) struct FqLanes {
    params: Params,
    limit: Amount,
    rules: Rules,
    law: Law,
    table: Table,
    /// The hosts.
    root: Stage,
    /// Ends of the line of hosts with new flows.
    ahead: (u32, u32),
    most_ahead: u64,
    packets: PacketStore,
    backlog: Backlog,
    /// The host that has most of what the limit counts, as far as arrivals tell: who grows past it
    /// takes its place.
    fattest: u32,
    clock: Clock,
    idle: Idle,
}

/// A packet's way out: its host, the host's list, its flow, the flow's list.
struct Turn {
    host: u32,
    host_list: usize,
    flow: u32,
    list: usize,
}

const HOSTS: Param<&'static str> = Param {
    name: "hosts",
    kind: Takes::words(&["destination", "source", "none"]),
    default: "destination",
    effect: "which address is the host that shares the link equally with others: that of the \
             clients, in this direction; none: flows alone",
    source: "ours; dual-dsthost and dual-srchost of Linux sch_cake",
    live: false,
};

const FLOWS: Param<u64> = Param {
    effect: "most flows tracked; when full, a flow with nothing queued is evicted, and without one \
             a new flow shares one of 64 queues with others",
    ..shared::FLOWS.with_default("4096", "Linux sch_cake has 1024, fq_codel 1024")
};

const WITHOUT_PART: Param<&'static str> = Param {
    name: "without",
    kind: Takes::words(WITHOUT),
    default: "nothing",
    effect: "leave one mechanism out, to see what it is good for; without ages it is FQ-CoDel",
    source: "ours",
    live: false,
};

impl Discipline for FqLanes {
    const INFO: Info = Info {
        name: "fq-lanes",
        summary: "fair queueing over hosts and flows, CoDel in each, the young first",
        source: "ours; RFC 8290, and LAS for the order of ages",
        lanes: &["new", "young", "old"],
        least_lanes: 3,
        params: &[
            shared::LIMIT.with_default("4mb", "Linux sch_cake").any(),
            HOSTS.any(),
            TARGET.with_default("30ms", "ours; RFC 8290 has 5 ms").any(),
            INTERVAL.any(),
            ECN.with_default("yes", "RFC 8290, section 5.2").any(),
            FLOWS.any(),
            WITHOUT_PART.any(),
        ],
        needs: Needs { hosts: true, ..Needs::NOTHING },
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Box::new(Self::new(params))
    }
}

impl FqLanes {
    fn new(params: &Params) -> Self {
        let without = params.get(WITHOUT_PART);
        let limit = params.get(shared::LIMIT);
        Self {
            params: params.clone(),
            limit,
            rules: Rules::of_flows(without),
            law: Self::law(params),
            table: Table::new(params),
            root: Stage::default(),
            ahead: (NONE, NONE),
            most_ahead: if without == "ahead" { 0 } else { MOST_AHEAD },
            packets: PacketStore::new(shared::ring_capacity(limit)),
            backlog: Backlog::default(),
            fattest: NONE,
            clock: Clock::new(without != "clock"),
            idle: Idle::new(without != "idle"),
        }
    }

    fn law(params: &Params) -> Law {
        let (target, interval) = (params.get(TARGET), params.get(INTERVAL));
        Law::of(target, interval, u64::from(QUANTUM), params.get(ECN))
    }

    /// Whether a flow of `list` is of the oldest, for whom the clock stands.
    fn is_oldest(&self, list: usize) -> bool {
        list == LAST && self.rules.know_ages()
    }

    fn is_over(&self) -> bool {
        self.backlog.in_unit_of(self.limit) > self.limit.value()
    }

    /// A host has got a packet.
    #[inline]
    fn has_grown(&mut self, host: u32) {
        let load = |host: u32| self.table.hosts[host].backlog.in_unit_of(self.limit);
        if self.fattest == NONE || load(host) > load(self.fattest) {
            self.fattest = host;
        }
    }

    /// Whose packet leaves.
    #[inline]
    fn turn(&mut self) -> Option<Turn> {
        if self.root.listed() > 1
            && self.ahead.0 != NONE
            && let Some(turn) = self.turn_ahead()
        {
            return Some(turn);
        }
        // Who has nothing queued need not stand in the line, and could not be forgotten there.
        while self.ahead.0 != NONE && self.table.hosts[self.ahead.0].backlog.packets == 0 {
            self.leave_line();
        }
        let Table { hosts, flows, .. } = &mut self.table;
        let members = &mut HostMembers { hosts, flows };
        let (host, host_list) = self.root.next(members, &HOST_RULES)?;
        let (flow, list) = hosts[host].stage.next(flows, &self.rules)?;
        Some(Turn { host, host_list, flow, list })
    }

    /// A new flow goes ahead of the turns of hosts, while its own has not had more than its fair
    /// share in this way: a packet of voice must not wait for the downloads of others.
    #[cold]
    fn turn_ahead(&mut self) -> Option<Turn> {
        while self.ahead.0 != NONE {
            let index = self.leave_line();
            let Table { hosts, flows, .. } = &mut self.table;
            let host = &mut hosts[index];
            host.ahead.bytes =
                host.ahead.bytes.saturating_sub(self.root.share_since(host.ahead.reading));
            host.ahead.reading = self.root.virtual_time();
            if host.backlog.packets == 0 || host.ahead.bytes >= self.most_ahead {
                continue;
            }
            if let Some(flow) = host.stage.next_new(flows, &self.rules) {
                let host_list = host.member.list();
                self.join_line(index);
                return Some(Turn { host: index, host_list, flow, list: NEW });
            }
        }
        None
    }

    /// A host with a new flow joins the line, unless it stands there.
    fn join_line(&mut self, index: u32) {
        let hosts = &mut self.table.hosts;
        if core::mem::replace(&mut hosts[index].ahead.waits, true) {
            return;
        }
        hosts[index].ahead.next = NONE;
        match core::mem::replace(&mut self.ahead.1, index) {
            NONE => self.ahead.0 = index,
            last => hosts[last].ahead.next = index,
        }
    }

    /// Takes the first host from the line.
    fn leave_line(&mut self) -> u32 {
        let index = self.ahead.0;
        let host = &mut self.table.hosts[index];
        host.ahead.waits = false;
        self.ahead.0 = host.ahead.next;
        if self.ahead.0 == NONE {
            self.ahead.1 = NONE;
        }
        index
    }

    /// The next packet of a flow by CoDel, and whether it is to be marked.
    #[inline]
    fn dequeue_from<S: Sink>(
        &mut self,
        turn: &Turn,
        now: Nanos,
        sink: &mut S,
    ) -> Option<(Packet, Lane, bool)> {
        let oldest = self.is_oldest(turn.list);
        let flow = &mut self.table.flows[turn.flow];
        let head = self.packets.front(&flow.queue)?;
        let arrived = now - self.clock.sojourn(Stamp(head.tag), now, oldest);
        let behind = flow.bytes - u64::from(head.packet.size);
        let must_act = flow.watch.must_act(&self.law, now, arrived, behind);
        let mark = must_act && self.act(turn, oldest, now, sink)?;

        let Table { hosts, flows, .. } = &mut self.table;
        let (host, flow) = (&mut hosts[turn.host], &mut flows[turn.flow]);
        let (packet, stamp) = self.packets.pop_front(&mut flow.queue)?;
        self.backlog.remove(&packet);
        flow.bytes -= u64::from(packet.size);
        host.lose(turn.flow, flow.bytes, &packet);
        let (size, credit) = (packet.size, self.idle.credit());
        host.stage.served(&mut flow.member, turn.list, size, credit, &self.rules, now);
        if turn.list == NEW {
            host.ahead.bytes += u64::from(packet.size);
        }
        self.root.served(&mut host.member, turn.host_list, size, 0, &HOST_RULES, now);
        self.idle.takes(size, now);
        self.clock.sends(oldest);
        Some((packet, Stamp(stamp).lane(), mark))
    }

    /// CoDel drops, or marks, at the head of a flow.
    #[cold]
    fn act<S: Sink>(
        &mut self,
        turn: &Turn,
        oldest: bool,
        now: Nanos,
        sink: &mut S,
    ) -> Option<bool> {
        let (law, flow) = (self.law, turn.flow);
        let (mut watch, mut course) =
            (self.table.flows[flow].watch, self.table.courses[flow as usize]);
        let mark =
            watch.act(&mut course, &law, now, &mut Head { queue: self, flow, oldest, now, sink });
        self.table.flows[flow].watch = watch;
        self.table.courses[flow as usize] = course;
        mark
    }
}

/// A flow's queue as the control law sees it.
struct Head<'a, S> {
    queue: &'a mut FqLanes,
    flow: u32,
    oldest: bool,
    now: Nanos,
    sink: &'a mut S,
}

impl<S: Sink> HeadQueue for Head<'_, S> {
    fn head(&self) -> Option<(&Packet, Nanos)> {
        let node = self.queue.packets.front(&self.queue.table.flows[self.flow].queue)?;
        let sojourn = self.queue.clock.sojourn(Stamp(node.tag), self.now, self.oldest);
        Some((&node.packet, self.now - sojourn))
    }

    fn bytes(&self) -> u64 {
        self.queue.table.flows[self.flow].bytes
    }

    fn drop_head(&mut self, now: Nanos) {
        let flow = &mut self.queue.table.flows[self.flow];
        if let Some((packet, stamp)) = self.queue.packets.pop_front(&mut flow.queue) {
            self.queue.left(self.flow, &packet);
            let lane = Stamp(stamp).lane();
            self.sink.dropped(packet, Drop { reason: DropReason::Congested, lane }, now);
        }
    }
}

impl<S: Sink> Qdisc<S> for FqLanes {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        if self.backlog.must_refuse(self.limit, &packet) {
            return sink.refused(packet, Lane(0), now);
        }
        let index = self.table.flow(&packet, &self.rules, now, sink);
        if self.backlog.packets == 0 {
            self.idle.ends(now);
        }
        if self.table.flows[index].queue.is_empty() {
            self.becomes_backlogged(index, &packet, now);
        }
        let Table { hosts, flows, .. } = &mut self.table;
        let flow = &mut flows[index];
        let lane = lane(flow.member.list());
        let stamp = self.clock.stamp(now, lane);
        self.packets.push_back(&mut flow.queue, packet, stamp.0);
        self.backlog.add(&packet);
        flow.bytes += u64::from(packet.size);
        let host_index = flow.host();
        let host = &mut hosts[host_index];
        host.backlog.add(&packet);
        host.fattest.grown(index, flow.bytes);
        self.has_grown(host_index);
        let mut survived = true;
        while self.is_over() {
            survived &= self.make_room(index, now, sink);
        }
        if survived {
            sink.enqueued(&packet, lane, now);
        }
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        self.clock.asked(now);
        while let Some(turn) = self.turn() {
            let Some((packet, lane, mark)) = self.dequeue_from(&turn, now, sink) else { continue };
            if mark {
                sink.marked(&packet, now);
            }
            sink.dequeued(&packet, lane, now);
            return Dequeue::Packet { packet, mark };
        }
        Dequeue::Empty
    }
}

impl FqLanes {
    /// A flow with nothing queued gets a packet.
    #[inline]
    fn becomes_backlogged(&mut self, index: u32, packet: &Packet, now: Nanos) {
        if !self.table.flows[index].member.is_listed() {
            self.table.find_host(index, packet, self.idle.credit());
        }
        let Table { hosts, flows, .. } = &mut self.table;
        let host = flows[index].host();
        if hosts[host].backlog.packets == 0 {
            self.root.arrive(&mut HostMembers { hosts, flows }, host, 0, &HOST_RULES, now);
        }
        let credit = self.idle.credit();
        let is_new = hosts[host].stage.arrive(flows, index, credit, &self.rules, now);
        if is_new && self.most_ahead > 0 {
            self.join_line(host);
        }
    }
}

impl Queue for FqLanes {
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn flows(&self) -> usize {
        self.table.flows.len()
    }

    fn standing(&self, flow: FlowId, now: Nanos) -> Option<Standing> {
        let flow = &self.table.flows[self.table.flows.find(flow)?];
        if !self.rules.know_ages() || flow.member.stage == NOWHERE {
            return None;
        }
        let stage = &self.table.hosts[flow.host()].stage;
        let (member, is_empty) = (&flow.member, flow.queue.is_empty());
        let (list, age) = stage.standing(member, is_empty, self.idle.credit(), &self.rules, now);
        Some(Standing { lane: lane(list), tier: list as u8, excess_bytes: age.into() })
    }

    fn digest(&self, mut into: &mut dyn Hasher) -> bool {
        let Self { params: _, limit, rules, law, table, root, .. } = self;
        let Self { ahead, most_ahead, packets, backlog, fattest, clock, idle, .. } = self;
        (limit, rules, law, table, root).hash(&mut into);
        (ahead, most_ahead, packets, backlog, fattest, clock, idle).hash(&mut into);
        true
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.params.check_live(params)?;
        self.limit = params.get(shared::LIMIT);
        self.law = Self::law(params);
        self.params = params.clone();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
