//! One discipline's link, and the delays and drops of its packets.

use measure::{SizeClass, Text};
use sched::{DropReason, Nanos, Packet, Spec};
use sim::{FlowAccount, FlowNames, Port};

use crate::delays::{Bucket, Delays};
use crate::flows::{Flow, Flows};

/// The first packets of a flow: what EFD's default threshold calls short.
const FIRST_PACKETS: u64 = 20;
/// A flow of more packets is of the largest class, whatever is to come.
const LARGE: u64 = 1000;

/// A discipline in front of a link of its own.
pub(crate) struct Trial {
    pub(crate) name: Text,
    /// Whether the discipline has lanes.
    pub(crate) has_lanes: bool,
    pub(crate) port: Port,
    /// By packet id.
    tickets: Vec<Ticket>,
    free: Vec<u32>,
    /// By slot of the flow.
    flows: Vec<OwnFlow>,
    pub(crate) classes: [ClassTally; 4],
    pub(crate) first_packets: Delays,
    /// When the last bit of all had left.
    pub(crate) end: Nanos,
}

/// What is known of a packet in the queue.
#[derive(Clone, Copy, Default)]
struct Ticket {
    arrival: Nanos,
    slot: u32,
    is_first: bool,
}

/// What a discipline did to a flow, as far as its port does not know it.
#[derive(Clone, Default)]
struct OwnFlow {
    /// Delays of its packets so far, unless it is large.
    delays: Vec<Bucket>,
    /// When the last bit of its last packet so far had left.
    end: Nanos,
}

/// All flows of one size class.
#[derive(Clone, Default)]
pub(crate) struct ClassTally {
    pub(crate) flows: u64,
    pub(crate) packets: u64,
    /// Flows of which every packet was sent.
    pub(crate) complete: u64,
    pub(crate) delays: Delays,
    /// Packets and bytes dropped, by lane (short, long) and reason.
    pub(crate) dropped: [[(u64, u64); DropReason::ALL.len()]; 2],
}

/// What became of a flow under one discipline.
pub(crate) struct FlowOutcome {
    pub(crate) account: FlowAccount,
    pub(crate) end: Nanos,
}

impl Trial {
    pub(crate) fn new(spec: &Spec, rate_bps: u64, seed: u64, names: FlowNames, log: bool) -> Self {
        Self {
            name: spec.to_string().into(),
            has_lanes: spec.info().parts.is_some(),
            port: Port::new(spec, rate_bps, seed, names, log),
            tickets: Vec::new(),
            free: Vec::new(),
            flows: Vec::new(),
            classes: Default::default(),
            first_packets: Delays::default(),
            end: Nanos::ZERO,
        }
    }

    /// Sends what is due until `now`, `now` included.
    #[inline]
    pub(crate) fn advance(&mut self, now: Nanos, flows: &mut Flows) {
        while let Some(at) = self.port.next_service()
            && at <= now
        {
            self.serve(at, flows);
        }
    }

    /// A packet arrives, after [`Trial::advance`] to the same time.
    #[inline]
    pub(crate) fn arrive(&mut self, packet: Packet, slot: u32, now: Nanos, flows: &mut Flows) {
        let ticket =
            Ticket { arrival: now, slot, is_first: flows.get(slot).packets <= FIRST_PACKETS };
        let id = self.free.pop().unwrap_or(self.tickets.len() as u32);
        match self.tickets.get_mut(id as usize) {
            Some(unused) => *unused = ticket,
            None => self.tickets.push(ticket),
        }
        flows.joins(slot);
        self.port.arrive(packet.with_id(id.into()), 0, now);
        self.part_with_lost(flows);
        self.advance(now, flows);
    }

    fn serve(&mut self, at: Nanos, flows: &mut Flows) {
        if let Some(sent) = self.port.serve(at) {
            let id = sent.packet.id as u32;
            let ticket = self.tickets[id as usize];
            self.record(ticket, at, sent.end, flows.get(ticket.slot));
            flows.leaves(ticket.slot);
            self.free.push(id);
        }
        self.part_with_lost(flows);
    }

    #[inline]
    fn record(&mut self, ticket: Ticket, start: Nanos, end: Nanos, flow: &Flow) {
        let delay = start.since(ticket.arrival).0;
        if ticket.is_first {
            self.first_packets.add(delay);
        }
        let slot = ticket.slot as usize;
        if slot >= self.flows.len() {
            self.flows.resize(slot + 1, OwnFlow::default());
        }
        let own = &mut self.flows[slot];
        own.end = end;
        self.end = end;
        if flow.packets > LARGE {
            let large = &mut self.classes[SizeClass::Over1000 as usize].delays;
            // The memory goes as well: few flows are large, and their slots are used again.
            std::mem::take(&mut own.delays).into_iter().for_each(|bucket| large.add_bucket(bucket));
            large.add_bucket(Bucket::of(delay));
        } else {
            own.delays.push(Bucket::of(delay));
        }
    }

    #[inline]
    fn part_with_lost(&mut self, flows: &mut Flows) {
        for (packet, _) in self.port.take_lost() {
            flows.leaves(self.tickets[packet.id as usize].slot);
            self.free.push(packet.id as u32);
        }
    }

    /// The flow is over: its class is known.
    pub(crate) fn finish_flow(&mut self, slot: u32, flows: &Flows) -> FlowOutcome {
        let flow = flows.get(slot);
        let account = self.port.flow(flows.name(slot));
        let own = self.flows.get_mut(slot as usize).map(std::mem::take).unwrap_or_default();
        let class = &mut self.classes[SizeClass::of_packets(flow.packets) as usize];
        class.flows += 1;
        class.packets += flow.packets;
        own.delays.iter().for_each(|bucket| class.delays.add_bucket(*bucket));
        let sent = account.sent.iter().map(|sent| u64::from(*sent)).sum();
        class.complete += u64::from(sent == flow.packets);
        class.delays.add_moments(sent, account.sojourn_sum_ns.into(), account.sojourn_max_ns);
        for lane in 0..2 {
            for reason in 0..DropReason::ALL.len() {
                let dropped = &mut class.dropped[lane][reason];
                dropped.0 += u64::from(account.dropped[lane][reason]);
                dropped.1 += account.dropped_bytes[lane][reason];
            }
        }
        FlowOutcome { account, end: own.end }
    }
}
