//! FRED, flow RED: RED that looks at how much of the queue is the arrival's own flow.
//!
//! Lin and Morris, "Dynamics of random early detection", SIGCOMM 1997. A flow may always have
//! `min-queue` packets queued and never more than `min`; between the thresholds of the average
//! only flows with their share or more of the queue are subject to RED's coin, and a flow that has
//! been refused for too much gets a strike, after which it is held to the average share. The table
//! has the flows with a packet queued and no others, as EFD's.
//!
//! Everything is counted in packets; where `limit` is in bytes, in packets of `mean-packet`.

use alloc::boxed::Box;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::disciplines::early::red::{MAX, MAX_PROBABILITY, MIN};
use crate::disciplines::early::{self, Average, Curve, Place, Wire, coin, exactly};
use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, DropReason, Event, Info, Lane, Nanos, Packet,
    Param, ParamError, Params, Qdisc, Queue, Sink, Takes, shared,
};
use crate::queues::flow_table::{Entry, FlowTable};
use crate::queues::ring::Ring;

/// Flow RED.
pub(crate) struct Fred {
    limit: Amount,
    rules: Rules,
    average: Average,
    /// Arrivals between the thresholds since the last drop of the coin; one more than FRED's own
    /// count, which begins at -1.
    since_drop: u64,
    wire: Wire,
    rng: Xoshiro256PlusPlus,
    queue: Ring,
    flows: FlowTable<Flow>,
    params: Params,
}

/// A flow with packets queued.
#[derive(Clone, Copy, Default)]
struct Flow {
    /// Packets; super-packets count as their segments.
    queued: u32,
    strikes: u32,
}

/// The parameters as the decisions need them; lengths as averages are.
struct Rules {
    curve: Curve,
    min_queue: u64,
    /// Packets of a flow that are too many while the average is below `max`.
    most_queued: u64,
    two_packets: bool,
}

const MIN_QUEUE: Param<u64> = Param {
    name: "min-queue",
    kind: Takes::count(1, 1 << 20),
    default: "2",
    effect: "packets of a flow that the coin leaves alone",
    source: "FRED paper; implementations of it (4 for large buffers)",
    live: true,
};
const TWO_PACKETS: Param<bool> = Param {
    name: "two-packets",
    kind: Takes::FLAG,
    default: "no",
    effect: "with the average above max, let every flow have two packets queued, \
             instead of dropping every arrival",
    source: "FRED paper, from memory (variant for many flows)",
    live: true,
};

/// The limit in packets.
fn packets(params: &Params) -> Amount {
    match params.get(shared::LIMIT) {
        Amount::Bytes(n) => Amount::Packets(n / params.get(early::MEAN_PACKET)),
        packets => packets,
    }
}

impl Rules {
    fn new(params: &Params) -> Self {
        let (limit, min, max) = (packets(params), params.get(MIN), params.get(MAX));
        let curve = Curve::new(limit, min, max, params.get(MAX_PROBABILITY), false);
        Self {
            curve,
            min_queue: exactly(params.get(MIN_QUEUE)),
            most_queued: curve.min().max(exactly(1)),
            two_packets: params.get(TWO_PACKETS),
        }
    }
}

impl Discipline for Fred {
    const INFO: Info = Info {
        name: "fred",
        summary: "flow RED: early drops for flows with more than their share of the queue",
        source: "Lin, Morris, \"Dynamics of random early detection\", SIGCOMM 1997",
        params: &[
            shared::LIMIT.any(),
            MIN.with_default("0.25", "FRED paper, from memory").any(),
            MAX.with_default("0.5", "FRED paper, from memory (twice min)").any(),
            MAX_PROBABILITY.with_default("0.02", "FRED paper, from memory").any(),
            early::AVERAGING.with_default("0.002", "FRED paper, from memory").any(),
            MIN_QUEUE.any(),
            TWO_PACKETS.any(),
            Param {
                effect: "most flows in the table; at the bound a new one is not tracked",
                ..shared::FLOWS
            }
            .any(),
            early::RATE.any(),
            early::MEAN_PACKET.any(),
        ],
        check,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        let limit = params.get(shared::LIMIT);
        let expected = shared::ring_capacity(limit);
        Box::new(Self {
            limit,
            rules: Rules::new(params),
            average: Average::new(params.get(early::AVERAGING)),
            since_drop: 0,
            wire: Wire::new(params),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            queue: Ring::with_capacity(expected),
            flows: FlowTable::new(expected, params.get(shared::FLOWS) as usize),
            params: params.clone(),
        })
    }
}

fn check(params: &Params) -> Result<(), ParamError> {
    early::check_thresholds(params, packets(params), MIN, MAX)
}

impl Fred {
    /// Whether the early dropper lets an arrival of this flow pass.
    fn lets_pass(&mut self, packet: &Packet) -> bool {
        let average = self.average.value();
        let place = self.rules.curve.place(average);
        let share = self.average.share(self.flows.len().max(1) as u64);
        if let Some(flow) = self.flows.get_mut(packet.flow)
            && self.rules.is_too_much(*flow, place, share)
        {
            flow.strikes = flow.strikes.saturating_add(1);
            return false;
        }
        match place {
            Place::Below => self.since_drop = 0,
            Place::Within(p) => {
                self.since_drop += 1;
                let queued = self.flows.get(packet.flow).map_or(0, |flow| flow.queued);
                let is_robust = exactly(queued.into()) >= share.max(self.rules.min_queue);
                if is_robust && coin(&mut self.rng, p, self.since_drop - 1, false) {
                    self.since_drop = 1;
                    return false;
                }
            }
            Place::Beyond if self.rules.two_packets => {}
            Place::Beyond => {
                self.since_drop = 1;
                return false;
            }
        }
        true
    }

    #[cold]
    fn drop<S: Sink>(&mut self, packet: Packet, reason: DropReason, now: Nanos, sink: &mut S) {
        if self.queue.is_empty() {
            self.average.idle(now);
        }
        sink.dropped(packet, Drop { reason, lane: Lane::ONLY }, now);
    }

    fn queued(&self) -> u64 {
        self.queue.in_unit_of(Amount::UNLIMITED)
    }
}

impl Rules {
    /// Whether a flow that does not adapt has enough queued: all it may have; or more than twice
    /// its share, above the upper threshold; or its share, and strikes.
    fn is_too_much(&self, flow: Flow, place: Place, share: u64) -> bool {
        let queued = exactly(flow.queued.into());
        let beyond = place == Place::Beyond;
        queued >= if beyond { exactly(2) } else { self.most_queued }
            || (beyond && queued > 2 * share)
            || (queued >= share && flow.strikes > 1)
    }
}

impl<S: Sink> Qdisc<S> for Fred {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        self.average.arrival(self.queued(), now, &self.wire);
        if !self.lets_pass(&packet) {
            return self.drop(packet, DropReason::Congested, now, sink);
        }
        if !self.queue.backlog().has_room(self.limit, &packet) {
            return self.drop(packet, DropReason::Full, now, sink);
        }
        let flow = match self.flows.entry(packet.flow) {
            Entry::Found(flow) => Some(flow),
            Entry::Created(flow) => {
                sink.event(Event::FlowCreated { flow: packet.flow });
                Some(flow)
            }
            Entry::Full => {
                sink.event(Event::FlowUntracked { flow: packet.flow });
                None
            }
        };
        let counted = flow.is_some();
        if let Some(flow) = flow {
            flow.queued += u32::from(packet.segments);
        }
        self.queue.push(packet).set_counted(counted);
        sink.enqueued(&packet, Lane::ONLY, now);
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let Some(packet) = self.queue.pop() else { return Dequeue::Empty };
        self.average.step(self.queued());
        if self.queue.is_empty() {
            self.average.idle(self.wire.free_after(&packet, now));
        }
        let leaves = |flow: &mut Flow| {
            flow.queued -= u32::from(packet.segments);
            flow.queued > 0
        };
        if packet.is_counted() && self.flows.update(packet.flow, leaves) {
            sink.event(Event::FlowRemoved { flow: packet.flow });
        }
        sink.dequeued(&packet, Lane::ONLY, now);
        Dequeue::unmarked(packet)
    }
}

impl Queue for Fred {
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn flows(&self) -> usize {
        self.flows.len()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.params.check_live(params)?;
        check(params)?;
        self.limit = params.get(shared::LIMIT);
        self.rules = Rules::new(params);
        self.average.set_weight(params.get(early::AVERAGING));
        self.wire = Wire::new(params);
        self.params = params.clone();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::Bench;

    #[test]
    fn three_flows_take_a_cache_line() {
        assert_eq!(size_of::<Flow>(), 8);
        assert_eq!(FlowTable::<Flow>::bucket_size(), 64);
    }

    /// A flow that does not back off is held to its share; one with a packet now and then loses
    /// nothing.
    #[test]
    fn a_greedy_flow_is_held_down_and_a_sparse_one_is_not() {
        let mut fred = Bench::new("fred:limit=100packets,averaging=0.05");
        let (mut greedy, mut sent) = (0, [0; 3]);
        for round in 0..5_000 {
            for _ in 0..3 {
                greedy += 1;
                fred.enqueue(1, 1000);
            }
            if round % 10 == 0 {
                fred.enqueue(2, 1000);
            }
            if let Some(packet) = fred.dequeue() {
                sent[packet.flow.get() as usize] += 1;
            }
        }
        assert!(greedy == 15_000 && sent[2] == 500, "{sent:?}");
        assert!(fred.qdisc.backlog().packets <= 26, "{:?}", fred.qdisc.backlog());
        assert_eq!(fred.qdisc.flows(), 1);
    }

    #[test]
    fn at_the_bound_of_the_table_flows_are_not_tracked_and_not_lost() {
        let mut fred = Bench::new("fred:flows=1,averaging=1,min=2packets,max=20packets");
        for flow in 1..=5 {
            fred.enqueue(flow, 1000);
        }
        assert_eq!((fred.take_drops().len(), fred.qdisc.flows()), (0, 1));
        assert_eq!(fred.drain().len(), 5);
        assert_eq!(fred.qdisc.flows(), 0);
    }
}
