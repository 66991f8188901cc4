//! FQ-Lanes in one list of packets: who has how much queued is counted when it is asked for, and
//! flows and hosts stand in lists that are searched from end to end.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

use sched::{Amount, Event, Nanos, Packet, Params};

use super::codel::{Codel, Head, Law};
use super::idle::Idle;
use super::turns::{LAST, Member, OF_HOSTS, QUANTUM, Rules, Stage};
use super::{Model, cost};
use crate::run::Step;

/// Queues for flows without an entry.
const SPILLS: u64 = 64;
/// The table of flows looks at so many when it needs room, the table of hosts as well.
const LOOKED_AT: usize = 16;
const MOST_HOSTS: usize = 1024;

/// A flow's fingerprint, or the number of a spill queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Flow {
    Spill(u64),
    Known(u64),
}

/// A host's address; `None` is that of the spill queues.
type Host = Option<u32>;

/// The model of `fq-lanes`.
pub struct FqLanes {
    hosts_by: String,
    most_flows: usize,
    rules: Rules,
    host_rules: Rules,
    limit: Amount,
    law: Law,
    most_ahead: u64,
    /// Whether the clock of the oldest ever stands.
    stands: bool,
    packets: Vec<Queued>,
    flows: BTreeMap<Flow, FlowState>,
    hosts: BTreeMap<Host, HostState>,
    root: Stage<Host>,
    /// Hosts with new flows.
    line: VecDeque<Host>,
    fattest: Option<Host>,
    /// When the link asked last, for how long the clock has stood, and whether it stands since.
    asked: u64,
    stood: u64,
    standing: bool,
    /// Whether idle time counts, and what there was of it.
    credits: bool,
    idle: Idle,
    marks: bool,
    losses: Vec<u64>,
}

#[derive(Clone, Copy, Hash)]
struct Queued {
    flow: Flow,
    host: Host,
    packet: Packet,
    arrived: u64,
    stood: u64,
}

#[derive(Clone, Copy, Default, Hash)]
struct FlowState {
    member: Member,
    codel: Codel,
    host: Host,
}

#[derive(Clone, Default, Hash)]
struct HostState {
    member: Member,
    stage: Stage<Flow>,
    fattest: Option<Flow>,
    /// Sent ahead of its turn, as of a reading of the hosts' clock.
    ahead: u64,
    reading: u64,
}

impl FqLanes {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let without = params.word("without");
        let law = Law { target: 0, interval: 0, mtu: QUANTUM as u64, ecn: false };
        let mut model = Self {
            hosts_by: params.word("hosts").to_owned(),
            most_flows: params.number("flows") as usize,
            rules: Rules::without(without),
            host_rules: OF_HOSTS,
            limit: Amount::UNLIMITED,
            law,
            most_ahead: if without == "ahead" { 0 } else { 15_000 },
            stands: without != "clock",
            packets: Vec::new(),
            flows: BTreeMap::new(),
            hosts: BTreeMap::new(),
            root: Stage::default(),
            line: VecDeque::new(),
            fattest: None,
            asked: 0,
            stood: 0,
            standing: false,
            credits: without != "idle",
            idle: Idle::default(),
            marks: false,
            losses: Vec::new(),
        };
        model.flows.extend((0..SPILLS).map(|spill| (Flow::Spill(spill), FlowState::default())));
        model.hosts.insert(None, HostState::default());
        model.change(params);
        model
    }

    fn used(&self) -> u64 {
        self.packets.iter().map(|queued| cost(self.limit, &queued.packet)).sum()
    }

    fn bytes(&self, counts: impl Fn(&Queued) -> bool) -> u64 {
        let counted = self.packets.iter().filter(|queued| counts(queued));
        counted.map(|queued| u64::from(queued.packet.size)).sum()
    }

    fn head(&self, flow: Flow) -> Option<usize> {
        self.packets.iter().position(|queued| queued.flow == flow)
    }

    fn is_listed(&self, flow: Flow) -> bool {
        self.hosts.values().any(|host| host.stage.list_of(flow).is_some())
    }

    /// The flow that a packet counts for: its own, or a spill queue.
    fn flow_of(&mut self, packet: &Packet, now: u64, said: &Step) -> Flow {
        let (flow, spill) = (packet.flow.get(), Flow::Spill((packet.flow.get() >> 32) % SPILLS));
        if self.flows.contains_key(&Flow::Known(flow)) {
            return Flow::Known(flow);
        }
        if self.head(spill).is_some() {
            return spill;
        }
        if Model::flows(self) == self.most_flows {
            let idle = self.flows.iter().filter_map(|(flow, state)| match flow {
                Flow::Known(id) if self.head(*flow).is_none() && !self.is_listed(*flow) => {
                    let member = state.member;
                    Some((self.rules.faded(member.age, now - member.served), *id))
                }
                _ => None,
            });
            // In a larger table, whom it looks at is a matter of its own.
            let least = if self.most_flows <= LOOKED_AT {
                idle.min().map(|(_, id)| id)
            } else {
                said.events().find_map(|event| match event {
                    Event::FlowRemoved { flow } => Some(flow.get()),
                    _ => None,
                })
            };
            let Some(least) = least else { return spill };
            self.flows.remove(&Flow::Known(least));
        }
        self.flows.insert(Flow::Known(flow), FlowState::default());
        Flow::Known(flow)
    }

    /// The host of a flow that stands in no list.
    fn host_of(&mut self, flow: Flow, packet: &Packet) -> Host {
        let address = match (flow, self.hosts_by.as_str()) {
            (Flow::Spill(_), _) => return None,
            (_, "destination") => packet.destination.0,
            (_, "source") => packet.source.0,
            _ => 0,
        };
        if self.hosts.contains_key(&Some(address)) {
            return Some(address);
        }
        if self.hosts.len() - 1 == self.most_flows.min(MOST_HOSTS) {
            // As the table of hosts has them in order, which is at most of three here.
            let order = |host: &u32| {
                let scattered = u64::from(*host).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (scattered ^ (scattered >> 32)).max(1)
            };
            let idle = |host: &u32| {
                self.root.list_of(Some(*host)).is_none() && !self.line.contains(&Some(*host))
            };
            let least = self.hosts.keys().flatten().copied().filter(idle).min_by_key(order)?;
            self.hosts.remove(&Some(least));
        }
        self.hosts.insert(Some(address), HostState::default());
        Some(address)
    }

    fn becomes_backlogged(&mut self, flow: Flow, packet: &Packet, now: u64) {
        if !self.is_listed(flow) {
            let host = self.host_of(flow, packet);
            let clock = self.hosts[&host].stage.clock + self.idle.credit;
            let state = self.flows.get_mut(&flow).expect("known");
            if state.host.is_none() != host.is_none() {
                state.member.reading = clock;
            }
            state.host = host;
        }
        let key = self.flows[&flow].host;
        let was_idle = !self.packets.iter().any(|queued| queued.host == key);
        let host = self.hosts.get_mut(&key).expect("a host");
        if was_idle {
            self.root.arrive(key, &mut host.member, 0, &self.host_rules, now);
        }
        let member = &mut self.flows.get_mut(&flow).expect("known").member;
        let is_new = host.stage.arrive(flow, member, self.idle.credit, &self.rules, now);
        if is_new && self.most_ahead > 0 && !self.line.contains(&key) {
            self.line.push_back(key);
        }
    }

    /// Whether the first flow of a list of a host may send.
    fn flow_ready(&mut self, host: Host, list: usize) -> Option<Flow> {
        let stage = &mut self.hosts.get_mut(&host).expect("a host").stage;
        let flow = stage.lists[list][0];
        let is_empty = !self.packets.iter().any(|queued| queued.flow == flow);
        let member = &mut self.flows.get_mut(&flow).expect("known").member;
        stage.ready(list, member, is_empty, &self.rules).then_some(flow)
    }

    /// Host, its list, flow, its list.
    fn turn(&mut self) -> Option<(Host, usize, Flow, usize)> {
        if self.root.listed() > 1
            && let Some(turn) = self.turn_ahead()
        {
            return Some(turn);
        }
        while let Some(first) = self.line.front()
            && !self.packets.iter().any(|queued| queued.host == *first)
        {
            self.line.pop_front();
        }
        let (host, host_list) = loop {
            let list = self.root.list_in_turn(&self.host_rules)?;
            let key = self.root.lists[list][0];
            let is_empty = !self.packets.iter().any(|queued| queued.host == key);
            let host = self.hosts.get_mut(&key).expect("a host");
            if self.root.ready(list, &mut host.member, is_empty, &self.host_rules) {
                break (key, list);
            }
            if self.root.list_of(key).is_none() {
                // No turn of its flows is left.
                host.stage.lists = Default::default();
                host.stage.owed = Default::default();
            }
        };
        let (flow, list) = self.turn_of(host)?;
        Some((host, host_list, flow, list))
    }

    /// The flow of a host whose turn it is, and its list.
    fn turn_of(&mut self, host: Host) -> Option<(Flow, usize)> {
        loop {
            let list = self.hosts[&host].stage.list_in_turn(&self.rules)?;
            if let Some(flow) = self.flow_ready(host, list) {
                return Some((flow, list));
            }
        }
    }

    /// The flow whose turn it is in the first list of a host.
    fn first_of_youngest(&mut self, host: Host) -> Option<Flow> {
        loop {
            let lists = &self.hosts[&host].stage.lists;
            let list = lists.iter().position(|list| !list.is_empty())?;
            if let Some(flow) = self.flow_ready(host, list) {
                return Some(flow);
            }
        }
    }

    /// The first of the 64 flows of a host that are next in turn to have more than one packet, if
    /// the host has more packets than flows listed.
    fn first_with_several(&self, host: Host) -> Option<Flow> {
        let of = |flow: Option<Flow>| {
            let is_of = |queued: &&Queued| {
                queued.host == host && flow.is_none_or(|flow| queued.flow == flow)
            };
            self.packets.iter().filter(is_of).count()
        };
        let in_turn = || self.hosts[&host].stage.lists.iter().flatten().copied();
        let mut looked_at = in_turn().take(64);
        if of(None) <= in_turn().count() {
            return None;
        }
        looked_at.find(|flow| of(Some(*flow)) > 1)
    }

    /// A new flow ahead of the turns of hosts.
    fn turn_ahead(&mut self) -> Option<(Host, usize, Flow, usize)> {
        while let Some(key) = self.line.pop_front() {
            let host = self.hosts.get_mut(&key).expect("a host");
            let share = self.root.clock.saturating_sub(host.reading) / 256;
            host.ahead = host.ahead.saturating_sub(share);
            host.reading = self.root.clock;
            let has_packets = self.packets.iter().any(|queued| queued.host == key);
            if !has_packets || host.ahead >= self.most_ahead {
                continue;
            }
            while !self.hosts[&key].stage.lists[0].is_empty() {
                if let Some(flow) = self.flow_ready(key, 0) {
                    self.line.push_back(key);
                    return Some((key, self.root.list_of(key)?, flow, 0));
                }
            }
        }
        None
    }

    /// What CoDel does before a packet of a flow leaves: drops, and whether that one is marked.
    fn judge(&mut self, flow: Flow, oldest: bool, now: u64) -> bool {
        let of_flow = self.packets.iter().filter(|queued| queued.flow == flow);
        let mut heads: VecDeque<_> = of_flow
            .map(|queued| {
                let waited = (now - queued.arrived) % (1 << 40);
                let stood = (self.stood >> 16).wrapping_sub(queued.stood >> 16) % (1 << 22);
                let uncounted = if oldest { stood << 16 } else { 0 };
                Head { packet: queued.packet, waited: waited.saturating_sub(uncounted) }
            })
            .collect();
        let count = heads.len();
        let codel = &mut self.flows.get_mut(&flow).expect("known").codel;
        let mark = codel.judge(self.law, now.into(), &mut heads);
        for _ in heads.len()..count {
            let head = self.head(flow).expect("it was there");
            self.losses.push(self.packets.remove(head).packet.id);
        }
        mark
    }

    /// Makes room. Returns who is lost.
    fn make_room(&mut self, arrival: Flow) -> Vec<u64> {
        let host = self.fattest.expect("somebody has grown");
        let of =
            |model: &Self, flow| model.bytes(|queued| queued.flow == flow && queued.host == host);
        let mut loser = self.hosts[&host].fattest;
        let count = |model: &Self, flow| {
            model.packets.iter().filter(|queued| queued.flow == flow && queued.host == host).count()
        };
        let flow = loser.expect("and a flow of it");
        let bytes = of(self, flow);
        let is_thin = bytes <= 4 * QUANTUM as u64;
        if is_thin && self.flows[&arrival].host == host {
            loser = None;
        } else if bytes == 0 || is_thin && count(self, flow) == 1 {
            // It would have nothing left: one with more takes its place, or the first of the youngest.
            loser = self.first_with_several(host).or_else(|| self.first_of_youngest(host));
            let state = self.hosts.get_mut(&host).expect("a host");
            state.fattest = loser.or(state.fattest);
        }
        let Some(flow) = loser else {
            let last = self.packets.iter().rposition(|queued| queued.flow == arrival);
            return last.map(|last| self.packets.remove(last).packet.id).into_iter().collect();
        };
        let bytes = of(self, flow);
        let mut lost = Vec::new();
        while lost.len() < 64
            && 2 * self.bytes(|queued| queued.flow == flow) > bytes - bytes % 2
            && (lost.is_empty() || count(self, flow) > 1)
            && let Some(head) = self.head(flow)
        {
            lost.push(self.packets.remove(head).packet.id);
        }
        self.flows.get_mut(&flow).expect("known").codel.count_drops(lost.len());
        lost
    }
}

impl Model for FqLanes {
    fn enqueue(&mut self, packet: Packet, now: Nanos, said: &Step) -> Vec<u64> {
        let (limit, now) = (self.limit.value(), now.0);
        if cost(self.limit, &packet) > limit || self.used() > limit {
            return vec![packet.id];
        }
        let flow = self.flow_of(&packet, now, said);
        if self.credits && self.packets.is_empty() {
            self.idle.ends(now);
        }
        if self.head(flow).is_none() {
            self.becomes_backlogged(flow, &packet, now);
        }
        let host = self.flows[&flow].host;
        self.packets.push(Queued { flow, host, packet, arrived: now, stood: self.stood });
        // The fattest are those that have outgrown the fattest before them.
        let of = |flow: Flow| self.bytes(|queued| queued.flow == flow && queued.host == host);
        if self.hosts[&host].fattest.is_none_or(|fattest| of(flow) > of(fattest)) {
            self.hosts.get_mut(&host).expect("a host").fattest = Some(flow);
        }
        let of = |host: Host| {
            let its = self.packets.iter().filter(|queued| queued.host == host);
            its.map(|queued| cost(self.limit, &queued.packet)).sum::<u64>()
        };
        if self.fattest.is_none_or(|fattest| of(host) > of(fattest)) {
            self.fattest = Some(host);
        }
        let mut lost = Vec::new();
        while self.used() > limit {
            lost.extend(self.make_room(flow));
        }
        lost
    }

    fn dequeue(&mut self, now: Nanos, _said: &Step) -> Option<u64> {
        let now = now.0;
        if self.standing {
            self.stood += now - self.asked;
        }
        (self.asked, self.standing, self.marks) = (now, false, false);
        self.losses.clear();
        let (key, host_list, flow, list) = self.turn()?;
        let oldest = self.rules.ages && list == LAST;
        self.marks = self.judge(flow, oldest, now);
        let packet = self.packets.remove(self.head(flow)?).packet;
        let size = u64::from(packet.size);
        let host = self.hosts.get_mut(&key).expect("a host");
        let member = &mut self.flows.get_mut(&flow).expect("known").member;
        host.stage.served(list, member, size, self.idle.credit, &self.rules, now);
        if list == 0 {
            host.ahead += size;
        }
        self.root.served(host_list, &mut host.member, size, 0, &self.host_rules, now);
        self.idle.takes(packet.size, now);
        self.standing = self.stands && !oldest;
        Some(packet.id)
    }

    fn marks(&self) -> bool {
        self.marks
    }

    fn losses(&self) -> &[u64] {
        &self.losses
    }

    fn change(&mut self, params: &Params) {
        self.limit = params.amount("limit");
        let (target, interval) = (params.time("target").0, params.time("interval").0);
        let ecn = params.flag("ecn");
        self.law = Law { target, interval: interval.into(), mtu: QUANTUM as u64, ecn };
    }

    /// All but what it answered last.
    fn digest(&self, mut into: &mut dyn Hasher) -> bool {
        let Self { hosts_by, most_flows, rules, host_rules, limit, law, most_ahead, .. } = self;
        let Self { stands, packets, flows, hosts, root, line, fattest, .. } = self;
        let Self { asked, stood, standing, credits, idle, marks: _, losses: _, .. } = self;
        (hosts_by, most_flows, rules, host_rules, limit, law, most_ahead).hash(&mut into);
        (stands, packets, flows, hosts, root, line, fattest).hash(&mut into);
        (asked, stood, standing, credits, idle).hash(&mut into);
        true
    }

    fn flows(&self) -> usize {
        self.flows.keys().filter(|flow| matches!(flow, Flow::Known(_))).count()
    }
}
