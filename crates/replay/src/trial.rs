//! One discipline's link, and the delays and drops of its packets.

use account::{Drops, Histogram, Tally};
use measure::{SizeClass, Text};
use sched::{DropReason, Lane, Nanos, Packet, Rate, Spec};
use sim::{FlowAccount, FlowNames, Port, Sent};

use crate::flows::Flows;

/// The first packets of a flow: what EFD's default threshold calls short.
const FIRST_PACKETS: u32 = 20;
/// A flow of more packets is of the largest class, whatever is to come.
const LARGE: u64 = 1000;

/// Delays in ns, with quantiles to 0.1 %.
pub(crate) type Delays = Histogram<9>;
type Bucket = account::Bucket<9>;

/// A discipline in front of a link of its own.
pub(crate) struct Trial {
    pub(crate) name: Text,
    /// Whether the discipline has lanes.
    pub(crate) has_lanes: bool,
    pub(crate) port: Port,
    names: FlowNames,
    /// Packet ids that are free, of those below `ids`.
    free: Vec<u64>,
    ids: u64,
    /// By slot of the flow.
    flows: Vec<OwnFlow>,
    pub(crate) classes: [ClassTally; 4],
    pub(crate) first_packets: Delays,
    /// When the last bit of all had left.
    pub(crate) end: Nanos,
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
    /// What was dropped from the short lane, and from any other as if it were the long one.
    pub(crate) dropped: Drops,
}

/// What became of a flow under one discipline.
pub(crate) struct FlowOutcome {
    pub(crate) account: FlowAccount,
    pub(crate) end: Nanos,
}

impl Trial {
    pub(crate) fn new(spec: &Spec, rate: Rate, seed: u64, names: FlowNames, log: bool) -> Self {
        Self {
            name: spec.to_string().into(),
            has_lanes: spec.info().parts.is_some(),
            port: Port::new(spec, rate, seed, names, log),
            names,
            free: Vec::new(),
            ids: 0,
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
        let id = self.free.pop().unwrap_or_else(|| {
            self.ids += 1;
            self.ids - 1
        });
        flows.joins(slot);
        self.port.arrive(packet.with_id(id), 0, now);
        self.part_with_lost(flows);
        self.advance(now, flows);
    }

    fn serve(&mut self, at: Nanos, flows: &mut Flows) {
        if let Some(sent) = self.port.serve(at) {
            let slot = self.names.name(sent.packet.flow).slot;
            self.record(&sent, at, slot, flows.get(slot).packets > LARGE);
            flows.leaves(slot);
            self.free.push(sent.packet.id);
        }
        self.part_with_lost(flows);
    }

    #[inline]
    fn record(&mut self, sent: &Sent, start: Nanos, slot: u32, is_large: bool) {
        let delay = start.since(sent.arrival).0;
        if sent.place <= FIRST_PACKETS {
            self.first_packets.add(delay);
        }
        let slot = slot as usize;
        if slot >= self.flows.len() {
            self.flows.resize(slot + 1, OwnFlow::default());
        }
        let own = &mut self.flows[slot];
        own.end = sent.end;
        self.end = sent.end;
        if is_large {
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
            flows.leaves(self.names.name(packet.flow).slot);
            self.free.push(packet.id);
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
        class.delays.add_moments(sent, account.sojourn_sum.0.into(), account.sojourn_max.0);
        for (at, lane) in [Lane::SHORT, Lane::LONG].into_iter().enumerate() {
            for reason in DropReason::ALL {
                let packets = account.dropped[at][reason as usize].into();
                let bytes = account.dropped_bytes[at][reason as usize];
                class.dropped.add(lane, reason, Tally { packets, bytes });
            }
        }
        FlowOutcome { account, end: own.end }
    }
}
