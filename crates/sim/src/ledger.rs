//! The ledger of a port: totals, time means, an account for each flow.

use sched::{Backlog, Drop, DropReason, Event, Lane, Nanos, Packet, Sink};

use crate::flow_names::{FlowName, FlowNames};
use crate::over_time::{TimeHistogram, TimeMean};
use crate::packet_log::{Outcome, PacketLog};

const REASONS: usize = DropReason::ALL.len();

/// Packets and bytes of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Bytes that arrived.
    pub arrived_bytes: u64,
    /// Packets whose transmission started.
    pub sent_packets: u64,
    /// Bytes whose transmission started.
    pub sent_bytes: u64,
    /// Packets marked "congestion experienced".
    pub marked_packets: u64,
    /// Sum of the times in the queue of all packets sent, in ns.
    pub sojourn_ns: u128,
    /// Sum of the times in the queue of all packets dropped, in ns: 0 for those dropped on arrival.
    pub dropped_sojourn_ns: u128,
    /// How often the flow table was at its bound and could not take up a flow.
    pub flows_untracked: u64,
    /// Arrivals and departures after which the flow table had more entries than the queue packets.
    pub entries_beyond_backlog: u64,
    /// Packets sent, by lane.
    pub sent_by_lane: Vec<u64>,
    /// Packets and bytes dropped, by lane and [`DropReason`].
    pub dropped: Vec<[(u64, u64); REASONS]>,
}

impl Totals {
    /// Packets dropped.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.iter().flatten().map(|(packets, _)| packets).sum()
    }
}

/// Little's law at a port: the integral of the queue's length is the sum of the times that packets
/// were in the queue. Both sides are exact, in packets times nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LittlesLaw {
    /// The integral of the length that the discipline said it had.
    pub length: u128,
    /// The sum over packets, each by its own arrival: sent, dropped, and queued still.
    pub sojourns: u128,
}

impl LittlesLaw {
    /// Whether it holds. If not, a discipline miscounts its packets.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.length == self.sojourns
    }
}

/// What happened to one flow at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowAccount {
    generation: u32,
    /// Packets that arrived.
    pub arrived_packets: u32,
    /// Packets marked "congestion experienced".
    pub marked_packets: u32,
    /// Entries it had in the flow table, one after another.
    pub fragments: u32,
    /// How often it came to count as long.
    pub demotions: u32,
    /// Packets sent from the short lane, and from any other.
    pub sent: [u32; 2],
    /// Of these, packets that left behind a later one of the flow, as RFC 4737 counts them.
    pub reordered_packets: u32,
    /// The place in the flow of the latest packet sent, from 1.
    latest_sent: u32,
    /// Packets dropped in or before the short lane, and any other, by [`DropReason`].
    pub dropped: [[u32; REASONS]; 2],
    /// Bytes dropped, by the same.
    pub dropped_bytes: [[u64; REASONS]; 2],
    /// Longest time of one of its packets in the queue, in ns.
    pub sojourn_max_ns: u64,
    /// Sum of the times of its packets in the queue, in ns.
    pub sojourn_sum_ns: u64,
}

impl FlowAccount {
    /// Packets dropped, wherever and why.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.iter().flatten().map(|packets| u64::from(*packets)).sum()
    }
}

/// Accounts of a port's traffic, and the sink its discipline reports to.
pub struct Ledger {
    now: Nanos,
    names: FlowNames,
    /// By packet id.
    tickets: Vec<Ticket>,
    totals: Totals,
    queued: Queued,
    /// Packets in the short lane.
    short_lane: u64,
    backlog: TimeMean,
    table: TimeHistogram,
    /// By slot of the flow's name.
    accounts: Vec<FlowAccount>,
    log: Option<PacketLog>,
    lost: Vec<(Packet, Drop)>,
}

/// What is known of a packet that is queued.
#[derive(Clone, Copy, Default)]
struct Ticket {
    arrival: Nanos,
    /// Its place in the log.
    index: u64,
    /// Its place in its flow, from 1; 0 for a straggler.
    place: u32,
    /// Whether it is in the short lane.
    is_short: bool,
}

/// The packets in the queue, by what arrived and has not left.
#[derive(Clone, Copy, Default)]
struct Queued {
    packets: u64,
    /// Sum of their arrival times.
    arrivals_ns: u128,
    /// How long those that were there at the last restart had been there.
    before_restart_ns: u128,
}

impl Queued {
    #[inline]
    fn join(&mut self, arrival: Nanos) {
        self.packets += 1;
        self.arrivals_ns += u128::from(arrival.0);
    }

    #[inline]
    fn leave(&mut self, arrival: Nanos) {
        self.packets -= 1;
        self.arrivals_ns -= u128::from(arrival.0);
    }

    /// How long they have been there, in all.
    fn sojourns(&self, now: Nanos) -> u128 {
        u128::from(self.packets) * u128::from(now.0) - self.arrivals_ns
    }
}

impl Ledger {
    /// An empty ledger for flows named by `names`; with a record per packet if `log` is set.
    #[must_use]
    pub(crate) fn new(names: FlowNames, log: bool) -> Self {
        Self {
            now: Nanos::ZERO,
            names,
            tickets: Vec::new(),
            totals: Totals::default(),
            queued: Queued::default(),
            short_lane: 0,
            backlog: TimeMean::default(),
            table: TimeHistogram::default(),
            accounts: Vec::new(),
            log: log.then(PacketLog::default),
            lost: Vec::new(),
        }
    }

    /// Packets and bytes so far.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The queue's length in packets over time.
    #[must_use]
    pub const fn backlog(&self) -> &TimeMean {
        &self.backlog
    }

    /// The entries in the flow table over time.
    #[must_use]
    pub const fn table(&self) -> &TimeHistogram {
        &self.table
    }

    /// Packets in the short lane now.
    #[must_use]
    pub const fn short_lane(&self) -> u64 {
        self.short_lane
    }

    /// Starts time means and totals anew, for a warm-up that does not count.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.backlog.restart(now);
        self.table.restart(now);
        self.totals = Totals::default();
        self.queued.before_restart_ns = self.queued.sojourns(now);
    }

    /// Little's law from the last restart until `now`, which lies not before the last event.
    #[must_use]
    pub fn littles_law(&self, now: Nanos) -> LittlesLaw {
        let gone = self.totals.sojourn_ns + self.totals.dropped_sojourn_ns;
        let sojourns = gone + self.queued.sojourns(now) - self.queued.before_restart_ns;
        LittlesLaw { length: self.backlog.area(now), sojourns }
    }

    /// What happened to the flow so far.
    #[must_use]
    pub fn flow(&self, name: FlowName) -> FlowAccount {
        match self.accounts.get(name.slot as usize) {
            Some(account) if account.generation == name.generation => *account,
            _ => FlowAccount::default(),
        }
    }

    pub(crate) fn arriving(&mut self, packet: &Packet, tag: u64, now: Nanos) {
        self.now = now;
        self.totals.arrived_packets += 1;
        self.totals.arrived_bytes += u64::from(packet.size);
        self.queued.join(now);
        let index = self.log.as_mut().map_or(0, |log| log.arrives(now, packet.size, tag));
        let id = packet.id as usize;
        if id >= self.tickets.len() {
            self.tickets.resize(id + 1, Ticket::default());
        }
        self.tickets[id] = Ticket { arrival: now, index, ..Ticket::default() };
        let name = self.names.name(packet.flow);
        let slot = name.slot as usize;
        if slot >= self.accounts.len() {
            self.accounts.resize(slot + 1, FlowAccount::default());
        }
        let account = &mut self.accounts[slot];
        // A straggler of the slot's last user must not wipe out the account of its new one.
        if account.generation < name.generation {
            *account = FlowAccount { generation: name.generation, ..FlowAccount::default() };
        }
        if account.generation == name.generation {
            account.arrived_packets += 1;
            self.tickets[id].place = account.arrived_packets;
        }
    }

    /// The time of the last call.
    #[inline]
    pub(crate) const fn now(&self) -> Nanos {
        self.now
    }

    /// When a packet arrived that was just queued.
    #[inline]
    pub(crate) fn arrival(&self, packet: &Packet) -> Nanos {
        self.tickets[packet.id as usize].arrival
    }

    pub(crate) fn serving(&mut self, now: Nanos) {
        self.now = now;
    }

    pub(crate) fn sent(&mut self, packet: &Packet, end: Nanos) {
        self.totals.sent_packets += 1;
        self.totals.sent_bytes += u64::from(packet.size);
        let ticket = self.tickets[packet.id as usize];
        self.queued.leave(ticket.arrival);
        if let Some(log) = &mut self.log {
            log.settles(ticket.index, Outcome::Departed(end));
        }
    }

    #[inline]
    pub(crate) fn queue_is(&mut self, backlog: Backlog, flows: usize) {
        self.backlog.set(backlog.packets, self.now);
        self.table.set(flows, self.now);
        self.totals.entries_beyond_backlog += u64::from(flows as u64 > backlog.packets);
    }

    pub(crate) fn lost(&mut self) -> &mut Vec<(Packet, Drop)> {
        &mut self.lost
    }

    pub(crate) fn stop_log(&mut self) {
        self.log = None;
    }

    pub(crate) fn log(&mut self) -> Option<&mut PacketLog> {
        self.log.as_mut()
    }

    /// A packet is no longer queued.
    #[inline]
    fn leaves_its_lane(&mut self, packet: u64) {
        let ticket = &mut self.tickets[packet as usize];
        self.short_lane -= u64::from(ticket.is_short);
        ticket.is_short = false;
    }

    #[inline]
    fn account(&mut self, flow: sched::FlowId) -> Option<&mut FlowAccount> {
        let name = self.names.name(flow);
        let account = self.accounts.get_mut(name.slot as usize)?;
        (account.generation == name.generation).then_some(account)
    }
}

impl Sink for Ledger {
    fn dropped(&mut self, packet: Packet, drop: Drop, _now: Nanos) {
        let lane = usize::from(drop.lane.0);
        if lane >= self.totals.dropped.len() {
            self.totals.dropped.resize(lane + 1, Default::default());
        }
        let total = &mut self.totals.dropped[lane][drop.reason as usize];
        total.0 += 1;
        total.1 += u64::from(packet.size);
        self.leaves_its_lane(packet.id);
        let ticket = self.tickets[packet.id as usize];
        self.queued.leave(ticket.arrival);
        self.totals.dropped_sojourn_ns += u128::from(self.now.since(ticket.arrival).0);
        let lane = two_lanes(drop.lane);
        if let Some(account) = self.account(packet.flow) {
            account.dropped[lane][drop.reason as usize] += 1;
            account.dropped_bytes[lane][drop.reason as usize] += u64::from(packet.size);
        }
        if let Some(log) = &mut self.log {
            log.joins(ticket.index, drop.lane);
            log.settles(ticket.index, Outcome::Dropped(drop.reason));
        }
        self.lost.push((packet, drop));
    }

    #[inline]
    fn event(&mut self, event: Event) {
        match event {
            Event::Enqueued { packet, lane, .. } => {
                let is_short = two_lanes(lane) == 0;
                self.short_lane += u64::from(is_short);
                self.tickets[packet as usize].is_short = is_short;
                if let Some(log) = &mut self.log {
                    log.joins(self.tickets[packet as usize].index, lane);
                }
            }
            Event::Dequeued { packet, flow, lane } => {
                self.leaves_its_lane(packet);
                let Ticket { arrival, place, .. } = self.tickets[packet as usize];
                let sojourn = self.now.since(arrival).0;
                self.totals.sojourn_ns += u128::from(sojourn);
                let at = usize::from(lane.0);
                if at >= self.totals.sent_by_lane.len() {
                    self.totals.sent_by_lane.resize(at + 1, 0);
                }
                self.totals.sent_by_lane[at] += 1;
                if let Some(log) = &mut self.log {
                    log.joins(self.tickets[packet as usize].index, lane);
                }
                if let Some(account) = self.account(flow) {
                    account.sent[two_lanes(lane)] += 1;
                    account.reordered_packets += u32::from(place < account.latest_sent);
                    account.latest_sent = account.latest_sent.max(place);
                    account.sojourn_sum_ns += sojourn;
                    account.sojourn_max_ns = account.sojourn_max_ns.max(sojourn);
                }
            }
            Event::Marked { flow, .. } => {
                self.totals.marked_packets += 1;
                if let Some(account) = self.account(flow) {
                    account.marked_packets += 1;
                }
            }
            Event::FlowCreated { flow } => {
                if let Some(account) = self.account(flow) {
                    account.fragments += 1;
                }
            }
            Event::Demoted { flow } => {
                if let Some(account) = self.account(flow) {
                    account.demotions += 1;
                }
            }
            Event::FlowUntracked { .. } => self.totals.flows_untracked += 1,
            Event::Promoted { .. } | Event::FlowRemoved { .. } => {}
        }
    }
}

const fn two_lanes(lane: Lane) -> usize {
    (lane.0 > 0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straggler_is_not_counted_for_the_new_flow() {
        let names = FlowNames::new(1);
        let mut ledger = Ledger::new(names, false);
        let old = FlowName { slot: 2, generation: 0 };
        let new = FlowName { slot: 2, generation: 1 };
        for name in [old, new, old] {
            ledger.arriving(&Packet::new(names.id(name), 100), 0, Nanos(1));
        }
        assert_eq!(ledger.flow(new).arrived_packets, 1);
        assert_eq!(ledger.flow(old), FlowAccount::default());
    }

    /// Of the order 1, 4, 2, 3, 5, packets 2 and 3 left behind a later one.
    #[test]
    fn a_packet_is_reordered_if_a_later_one_left_before() {
        let names = FlowNames::new(1);
        let name = FlowName { slot: 0, generation: 0 };
        let flow = names.id(name);
        let mut ledger = Ledger::new(names, false);
        for id in 1..=5 {
            let mut packet = Packet::new(flow, 100);
            packet.id = id;
            ledger.arriving(&packet, 0, Nanos(1));
        }
        for packet in [1, 4, 2, 3, 5] {
            ledger.event(Event::Dequeued { packet, flow, lane: Lane::SHORT });
        }
        assert_eq!(ledger.flow(name).reordered_packets, 2);
    }
}
