//! CAKE's queue: deficit round robin over flows and their hosts, COBALT in each queue.
//!
//! The rules are those of Linux `sch_cake`: a queue that was idle is *sparse* and goes first until a
//! quantum is spent; from then on it is *bulk*, and takes turns. A bulk queue's
//! quantum is divided by the number of bulk queues of its host (of that of its two hosts which has
//! more), so hosts share the link equally, whatever their number of flows. An empty queue *decays*
//! until its control law has come to rest; one decaying queue is looked at with every departure.
//! When the buffer is full, the queue with most bytes loses its head.
//!
//! With `tins=diffserv3` all of this is there three times, and a packet's DSCP, or who marks it,
//! says where it goes: see [`tins`]. The buffer is one.
//!
//! CAKE's shaper is not here: the link, or whoever drives the queue, paces it. There is no ACK
//! filter.
//!
//! Cost: constant per packet, but for turns in which a quantum is less than a packet: a queue waits
//! for packet / quantum of them, so a host of n bulk queues costs up to n turns per packet.

mod cobalt;
mod queues;
mod tins;

use alloc::boxed::Box;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use self::queues::{HashedQueue, Isolation};
use self::tins::{Rules, Tins};
use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, DropReason, Info, Nanos, Needs, Packet, Param,
    ParamError, Params, Qdisc, Queue, Rate, Sink, Takes, shared,
};
use crate::queues::heap::Ranking;
use crate::queues::per_flow::PacketStore;

pub(crate) use self::tins::Tin;

/// Flows and hosts, isolated.
pub(crate) struct Cake {
    params: Params,
    limit: Amount,
    tins: Tins,
    packets: PacketStore,
    ranking: Ranking,
    backlog: Backlog,
    rng: Xoshiro256PlusPlus,
}

/// The largest packet, with its Ethernet header.
const MTU: u64 = 1514;
/// Packets of that size that the buffer holds at most, and bytes that it holds at least, where no
/// limit is given.
const MOST_PACKETS: u64 = 10_240;
const LEAST_BYTES: u64 = 4 << 20;

const ISOLATION: Param<&'static str> = Param {
    name: "isolation",
    kind: Takes::words(Isolation::WORDS),
    default: "triple-isolate",
    effect: "what shares equally: flows, and first their senders, receivers or both; or these alone",
    source: "Linux sch_cake",
    live: false,
};

const TINS: Param<&'static str> = Param {
    name: "tins",
    kind: Takes::words(Rules::WORDS),
    default: "besteffort",
    effect: "one for all, or Best Effort, Bulk with a 16th of the rate guaranteed, and Voice with a \
             quarter, by DSCP",
    source: "Linux sch_cake",
    live: false,
};

const RTT: Param<Nanos> = Param {
    name: "rtt",
    kind: Takes::time(Nanos(1_000), Nanos::from_secs(60)).or_unlimited(),
    default: "100ms",
    effect: "a usual round-trip time: COBALT's interval, its target a 20th of it; inf never signals",
    source: "Linux sch_cake",
    live: true,
};

const SETS: Param<u64> = Param {
    name: "sets",
    kind: Takes::count(1, 4096),
    default: "128",
    effect: "sets of 8 queues that flows are hashed to, and as many of 8 hosts on each side, in each tin",
    source: "Linux sch_cake",
    live: false,
};

const LIMIT: Param<Amount> = Param {
    name: "limit",
    kind: Takes::amount(1, 1 << 32).or_unlimited(),
    default: "inf",
    effect: "what the queue holds before it drops; inf: 4 times `rate` times `rtt`, at least 4mb, at \
             most 10240 packets of 1514 bytes",
    source: "Linux sch_cake",
    live: true,
};

const RATE: Param<Rate> = Param {
    effect: "the link's rate, if known: it sets the quantum, the least delay that is signalled, and \
             `limit`; inf: a quantum of one packet",
    ..shared::RATE
};

impl Discipline for Cake {
    const INFO: Info = Info {
        name: "cake",
        summary: "fair queueing over flows and their hosts, COBALT in each, sparse flows first",
        source: "Linux sch_cake; Høiland-Jørgensen, Täht, Morton, \"Piece of CAKE\", 2018",
        params: &[LIMIT.any(), TINS.any(), ISOLATION.any(), RTT.any(), RATE.any(), SETS.any()],
        lanes: &["best effort", "bulk", "voice"],
        needs: Needs { flow_size: false, offset: false, hosts: true },
        // A flow whose queue is taken over by another one, in a full set, goes on in a third.
        keeps_order: |_| false,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        Box::new(Self::new(params, seed))
    }
}

/// What the buffer holds.
fn limit(params: &Params) -> Amount {
    let (rtt, rate, limit) = (params.get(RTT), params.get(RATE), params.get(LIMIT));
    if limit.value() != u64::MAX {
        return limit;
    }
    let most = MOST_PACKETS * MTU;
    if rate.is_unlimited() {
        return Amount::Bytes(most);
    }
    let in_rtt = u128::from(rate.0 / 8) * u128::from(rtt.0) / 1_000_000_000;
    let products = u64::try_from(4 * in_rtt).unwrap_or(u64::MAX);
    Amount::Bytes(products.max(LEAST_BYTES).min(most))
}

impl Cake {
    pub(crate) fn new(params: &Params, seed: u64) -> Self {
        let limit = limit(params);
        let isolation = Isolation::named(params.get(ISOLATION));
        let rules = Rules::named(params.get(TINS));
        let mut tins = Tins::new(rules, params.get(SETS) as u32, isolation);
        tins.set(params.get(RTT), params.get(RATE));
        Self {
            params: params.clone(),
            limit,
            tins,
            packets: PacketStore::new(shared::ring_capacity(limit)),
            ranking: Ranking::default(),
            backlog: Backlog::default(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// Takes a packet into this tin, whatever its DSCP.
    pub(crate) fn enqueue_in<S: Sink>(
        &mut self,
        tin: Tin,
        packet: Packet,
        now: Nanos,
        sink: &mut S,
    ) {
        if self.backlog.must_refuse(self.limit, &packet) {
            return sink.refused(packet, tin.lane(), now);
        }
        let first = self.tins.first(tin);
        let queues = self.tins.get(tin);
        let place = queues.arrive(&packet, now);
        let queue = queues.queue(place);
        self.packets.push_back(&mut queue.packets, packet, now.0);
        queue.bytes += u64::from(packet.size);
        if self.ranking.is_active() {
            let rank = queue.rank(first + place);
            self.ranking.set(first + place, rank);
        }
        self.backlog.add(&packet);
        queues.wake(place);
        if !self.is_over() || self.make_room((tin, place), now, sink) {
            sink.enqueued(&packet, tin.lane(), now);
        }
    }

    /// Drops heads of the longest queue until the rest fits. Returns whether the packet that has
    /// just joined queue `arrival` is still there.
    #[cold]
    fn make_room<S: Sink>(&mut self, arrival: (Tin, u32), now: Nanos, sink: &mut S) -> bool {
        if !self.ranking.is_active() {
            let backlogged = self.tins.queues().filter(|(_, queue)| queue.bytes > 0);
            self.ranking.activate(backlogged.map(|(number, queue)| (number, queue.rank(number))));
        }
        let mut survived = true;
        while self.is_over() {
            let Some(longest) = self.ranking.top() else { break };
            let (tin, place) = self.tins.place(longest);
            let Some((packet, _)) = self.pop(tin, place) else { break };
            let queue = self.tins.get(tin).overflowed(place, now);
            let is_arrival = (tin, place) == arrival && queue.packets.is_empty();
            survived &= !is_arrival;
            let reason = if is_arrival { DropReason::Full } else { DropReason::PushedOut };
            sink.dropped(packet, Drop { reason, lane: tin.lane() }, now);
        }
        survived
    }

    fn is_over(&self) -> bool {
        self.backlog.in_unit_of(self.limit) > self.limit.value()
    }

    /// Takes the head of a queue, with the time of its arrival.
    #[inline]
    fn pop(&mut self, tin: Tin, place: u32) -> Option<(Packet, Nanos)> {
        let number = self.tins.first(tin) + place;
        let queues = self.tins.get(tin);
        let queue = queues.queue(place);
        let (packet, arrived) = self.packets.pop_front(&mut queue.packets)?;
        queue.bytes -= u64::from(packet.size);
        self.backlog.remove(&packet);
        if self.ranking.is_active() {
            let rank = queue.rank(number);
            if queue.packets.is_empty() {
                self.ranking.remove(number);
            } else {
                self.ranking.set(number, rank);
            }
        }
        queues.leave();
        Some((packet, Nanos(arrived)))
    }

    /// The next packet of a queue by COBALT, and whether it is marked. The last one is not dropped.
    #[inline]
    fn serve<S: Sink>(
        &mut self,
        tin: Tin,
        place: u32,
        now: Nanos,
        sink: &mut S,
    ) -> Option<(Packet, bool)> {
        loop {
            let (packet, arrived) = self.pop(tin, place)?;
            let (waited, capable) = (now.since(arrived), packet.ecn().is_capable());
            let dice = || self.rng.next_u32();
            let queues = self.tins.get(tin);
            let (is_last, verdict) = queues.judge(place, (now, waited), capable, dice);
            if !verdict.drop || is_last {
                self.tins.charge(tin, place, packet.size, now);
                return Some((packet, verdict.mark));
            }
            sink.dropped(packet, Drop { reason: DropReason::Congested, lane: tin.lane() }, now);
        }
    }
}

impl HashedQueue {
    /// Most bytes first; of equals, the first queue.
    fn rank(&self, index: u32) -> u128 {
        u128::from(self.bytes) << 32 | u128::from(u32::MAX - index)
    }
}

impl<S: Sink> Qdisc<S> for Cake {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        self.enqueue_in(self.tins.of(&packet), packet, now, sink);
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let mut is_first = true;
        while self.backlog.packets > 0 {
            let tin = self.tins.choose(now);
            let Some(place) = self.tins.get(tin).turn(is_first) else { break };
            is_first = false;
            if let Some((packet, mark)) = self.serve(tin, place, now, sink) {
                self.ranking.relax(self.backlog.in_unit_of(self.limit), self.limit.value());
                if mark {
                    sink.marked(&packet, now);
                }
                sink.dequeued(&packet, tin.lane(), now);
                return Dequeue::Packet { packet, mark };
            }
            self.tins.get(tin).retire(place, now);
        }
        Dequeue::Empty
    }
}

impl Queue for Cake {
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.params.check_live(params)?;
        self.limit = limit(params);
        self.tins.set(params.get(RTT), params.get(RATE));
        self.params = params.clone();
        // It is relaxed by the limit's unit.
        self.ranking.deactivate();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
