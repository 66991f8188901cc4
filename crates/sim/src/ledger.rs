//! The ledger of a port: totals, time means, an account for each flow.

use account::{Account, Book, Held, Totals};
use sched::{Backlog, Drop, DropReason, Event, FlowId, Lane, Nanos, Packet};

use crate::flow_names::{FlowName, FlowNames};
use crate::over_time::{TimeHistogram, TimeMean};
use crate::packet_log::{Outcome, PacketLog};

const REASONS: usize = DropReason::ALL.len();

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
    /// Longest time of one of its packets in the queue.
    pub sojourn_max: Nanos,
    /// Sum of the times of its packets in the queue.
    pub sojourn_sum: Nanos,
}

impl FlowAccount {
    /// Packets dropped, wherever and why.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.iter().flatten().map(|packets| u64::from(*packets)).sum()
    }
}

/// The account of a port: its traffic, the state of its queue over time, its flows.
pub struct Ledger {
    account: Account<Flows>,
    backlog: TimeMean,
    table: TimeHistogram,
    entries_beyond_backlog: u64,
}

/// The flows of a port, what Little's law needs, and the log of packets.
pub(crate) struct Flows {
    names: FlowNames,
    /// By slot of the flow's name.
    accounts: Vec<FlowAccount>,
    queued: Queued,
    log: Option<PacketLog>,
    lost: Vec<(Packet, Drop)>,
}

/// What is known of a packet that is queued.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ticket {
    /// Its place in the log.
    index: u64,
    /// Its place in its flow, from 1; 0 for a straggler.
    place: u32,
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
        let flows = Flows {
            names,
            accounts: Vec::new(),
            queued: Queued::default(),
            log: log.then(PacketLog::default),
            lost: Vec::new(),
        };
        Self {
            account: Account::new(flows, 0),
            backlog: TimeMean::default(),
            table: TimeHistogram::default(),
            entries_beyond_backlog: 0,
        }
    }

    /// Packets and bytes so far.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        self.account.totals()
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

    /// Arrivals and departures after which the flow table had more entries than the queue packets,
    /// in the whole run.
    #[must_use]
    pub const fn entries_beyond_backlog(&self) -> u64 {
        self.entries_beyond_backlog
    }

    /// Packets in the short lane now.
    #[must_use]
    pub fn short_lane(&self) -> u64 {
        self.account.short_lane()
    }

    /// Starts time means and totals anew, for a warm-up that does not count.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.backlog.restart(now);
        self.table.restart(now);
        self.account.restart();
        let queued = &mut self.account.book.queued;
        queued.before_restart_ns = queued.sojourns(now);
    }

    /// Little's law from the last restart until `now`, which lies not before the last event.
    #[must_use]
    pub fn littles_law(&self, now: Nanos) -> LittlesLaw {
        let (totals, queued) = (self.totals(), &self.account.book.queued);
        let gone = totals.sojourn_ns + totals.dropped_sojourn_ns;
        let sojourns = gone + queued.sojourns(now) - queued.before_restart_ns;
        LittlesLaw { length: self.backlog.area(now), sojourns }
    }

    /// What happened to the flow so far.
    #[must_use]
    pub fn flow(&self, name: FlowName) -> FlowAccount {
        match self.account.book.accounts.get(name.slot as usize) {
            Some(account) if account.generation == name.generation => *account,
            _ => FlowAccount::default(),
        }
    }

    pub(crate) fn arriving(&mut self, packet: &Packet, tag: u64, now: Nanos) {
        let ticket = self.account.book.arriving(packet, tag, now);
        self.account.arriving(packet, ticket, now);
    }

    /// What the discipline reports to.
    #[inline]
    pub(crate) fn sink(&mut self) -> &mut Account<Flows> {
        &mut self.account
    }

    /// When a packet arrived that was just sent, and its place in its flow, from 1.
    #[inline]
    pub(crate) fn arrival(&self, packet: &Packet) -> (Nanos, u32) {
        let held = self.account.held(packet);
        (held.arrival, held.ticket.place)
    }

    /// The last bit of a packet that was just sent leaves at `end`.
    pub(crate) fn sent(&mut self, packet: &Packet, end: Nanos) {
        let index = self.account.held(packet).ticket.index;
        if let Some(log) = &mut self.account.book.log {
            log.settles(index, Outcome::Departed(end));
        }
    }

    #[inline]
    pub(crate) fn queue_is(&mut self, backlog: Backlog, flows: usize, now: Nanos) {
        self.backlog.set(backlog.packets, now);
        self.table.set(flows, now);
        self.entries_beyond_backlog += u64::from(flows as u64 > backlog.packets);
    }

    pub(crate) fn lost(&mut self) -> &mut Vec<(Packet, Drop)> {
        &mut self.account.book.lost
    }

    pub(crate) fn stop_log(&mut self) {
        self.account.book.log = None;
    }

    pub(crate) fn log(&mut self) -> Option<&mut PacketLog> {
        self.account.book.log.as_mut()
    }
}

impl Flows {
    fn arriving(&mut self, packet: &Packet, tag: u64, now: Nanos) -> Ticket {
        self.queued.join(now);
        let index = self.log.as_mut().map_or(0, |log| log.arrives(now, packet.size, tag));
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
        if account.generation != name.generation {
            return Ticket { index, place: 0 };
        }
        account.arrived_packets += 1;
        Ticket { index, place: account.arrived_packets }
    }

    #[inline]
    fn account(&mut self, flow: FlowId) -> Option<&mut FlowAccount> {
        let name = self.names.name(flow);
        let account = self.accounts.get_mut(name.slot as usize)?;
        (account.generation == name.generation).then_some(account)
    }
}

impl Book for Flows {
    type Ticket = Ticket;

    #[inline]
    fn enqueued(&mut self, _packet: &Packet, lane: Lane, held: Held<Ticket>) {
        if let Some(log) = &mut self.log {
            log.joins(held.ticket.index, lane);
        }
    }

    #[inline]
    fn dequeued(&mut self, packet: &Packet, lane: Lane, held: Held<Ticket>, now: Nanos) {
        self.queued.leave(held.arrival);
        let Ticket { index, place } = held.ticket;
        if let Some(log) = &mut self.log {
            log.joins(index, lane);
        }
        if let Some(account) = self.account(packet.flow) {
            let sojourn = now.since(held.arrival);
            account.sent[two_lanes(lane)] += 1;
            account.reordered_packets += u32::from(place < account.latest_sent);
            account.latest_sent = account.latest_sent.max(place);
            account.sojourn_sum += sojourn;
            account.sojourn_max = account.sojourn_max.max(sojourn);
        }
    }

    fn dropped(&mut self, packet: Packet, drop: Drop, held: Held<Ticket>) {
        self.queued.leave(held.arrival);
        let lane = two_lanes(drop.lane);
        if let Some(account) = self.account(packet.flow) {
            account.dropped[lane][drop.reason as usize] += 1;
            account.dropped_bytes[lane][drop.reason as usize] += u64::from(packet.size);
        }
        if let Some(log) = &mut self.log {
            log.joins(held.ticket.index, drop.lane);
            log.settles(held.ticket.index, Outcome::Dropped(drop.reason));
        }
        self.lost.push((packet, drop));
    }

    fn marked(&mut self, packet: &Packet, _held: Held<Ticket>) {
        if let Some(account) = self.account(packet.flow) {
            account.marked_packets += 1;
        }
    }

    fn flow(&mut self, event: Event) {
        let (flow, count): (_, fn(&mut FlowAccount)) = match event {
            Event::FlowCreated { flow } => (flow, |account| account.fragments += 1),
            Event::Demoted { flow } => (flow, |account| account.demotions += 1),
            _ => return,
        };
        if let Some(account) = self.account(flow) {
            count(account);
        }
    }
}

const fn two_lanes(lane: Lane) -> usize {
    (lane.0 > 0) as usize
}

#[cfg(test)]
mod tests {
    use sched::Sink;

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
            let packet = Packet::new(flow, 100).with_id(packet);
            ledger.sink().dequeued(&packet, Lane::SHORT, Nanos(2));
        }
        assert_eq!(ledger.flow(name).reordered_packets, 2);
    }
}
