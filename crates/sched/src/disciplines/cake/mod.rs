//! CAKE's queue: deficit round robin over flows and their hosts, COBALT in each queue.
//!
//! The rules are those of Linux `sch_cake` with `besteffort`: a queue that was idle is *sparse* and
//! goes first until a quantum is spent; from then on it is *bulk*, and takes turns. A bulk queue's
//! quantum is divided by the number of bulk queues of its host (of that of its two hosts which has
//! more), so hosts share the link equally, whatever their number of flows. An empty queue *decays*
//! until its control law has come to rest; one decaying queue is looked at with every departure.
//! When the buffer is full, the queue with most bytes loses its head.
//!
//! CAKE's shaper is not here: the link, or whoever drives the queue, paces it. There is one tin and
//! no ACK filter.
//!
//! Cost: constant per packet, but for turns in which a quantum is less than a packet: a queue waits
//! for packet / quantum of them, so a host of n bulk queues costs up to n turns per packet.

mod cobalt;
mod queues;

use alloc::boxed::Box;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use self::cobalt::Law;
use self::queues::{HashedQueue, Isolation, List, Queues, Standing};
use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, DropReason, Info, Lane, Nanos, Needs, Packet,
    Param, ParamError, Params, Qdisc, Queue, Rate, Sink, Takes, shared,
};
use crate::queues::heap::Ranking;
use crate::queues::per_flow::PacketStore;

/// Flows and hosts, isolated.
pub(crate) struct Cake {
    params: Params,
    limit: Amount,
    /// Bytes of a turn, in units of 2^-16.
    quantum: u32,
    law: Law,
    queues: Queues,
    sparse: List,
    bulk: List,
    decaying: List,
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
    effect: "sets of 8 queues that flows are hashed to, and as many of 8 hosts on each side",
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
    effect: "the link's rate, where it is known: for the quantum, for the least delay that is \
             signalled, and for `limit`; inf: a quantum of a packet",
    ..shared::RATE
};

impl Discipline for Cake {
    const INFO: Info = Info {
        name: "cake",
        summary: "fair queueing over flows and their hosts, COBALT in each, sparse flows first",
        source: "Linux sch_cake; Høiland-Jørgensen, Täht, Morton, \"Piece of CAKE\", 2018",
        params: &[LIMIT.any(), ISOLATION.any(), RTT.any(), RATE.any(), SETS.any()],
        needs: Needs { flow_size: false, offset: false, hosts: true },
        // A flow whose queue is taken over by another one, in a full set, goes on in a third.
        keeps_order: |_| false,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        Box::new(Self::new(params, seed))
    }
}

/// The parameters that follow from those given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Derived {
    limit: Amount,
    quantum: u32,
    law: Law,
}

impl Derived {
    fn new(params: &Params) -> Self {
        let (rtt, rate) = (params.get(RTT), params.get(RATE).0);
        let limit = params.get(LIMIT);
        let most = MOST_PACKETS * MTU;
        if rate == u64::MAX {
            let limit = if limit.value() == u64::MAX { Amount::Bytes(most) } else { limit };
            return Self { limit, quantum: (MTU as u32) << 16, law: Law::new(rtt, Nanos::ZERO) };
        }
        let in_rtt = u128::from(rate / 8) * u128::from(rtt.0) / 1_000_000_000;
        let products = u64::try_from(4 * in_rtt).unwrap_or(u64::MAX);
        let limit = match limit.value() {
            u64::MAX => Amount::Bytes(products.max(LEAST_BYTES).min(most)),
            _ => limit,
        };
        // A 4096th of a second's bytes, for packets of others to come between at low rates.
        let quantum = (rate / 8 / 4096).clamp(300, MTU) as u32;
        let mtu_time = Nanos(MTU * 8_000_000_000 / rate);
        Self { limit, quantum: quantum << 16, law: Law::new(rtt, mtu_time) }
    }
}

impl Cake {
    fn new(params: &Params, seed: u64) -> Self {
        let Derived { limit, quantum, law } = Derived::new(params);
        let isolation = Isolation::named(params.get(ISOLATION));
        Self {
            params: params.clone(),
            limit,
            quantum,
            law,
            queues: Queues::new(params.get(SETS) as u32, isolation),
            sparse: List::EMPTY,
            bulk: List::EMPTY,
            decaying: List::EMPTY,
            packets: PacketStore::new(shared::ring_capacity(limit)),
            ranking: Ranking::default(),
            backlog: Backlog::default(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// What a queue may send in a turn.
    #[inline]
    fn quantum_of(&self, index: u32) -> i64 {
        i64::from(self.quantum / u32::from(self.queues.host_load(index)))
    }

    /// Notes that a queue has a packet more: an idle one becomes sparse, one that was empty among
    /// the bulk queues is one of them.
    #[inline]
    fn wake(&mut self, index: u32) {
        match self.queues.get(index).standing {
            Standing::Sparse | Standing::Bulk => return,
            Standing::SpentSparse => return self.make_bulk(index),
            Standing::Decaying => self.decaying.remove(&mut self.queues, index),
            Standing::Idle => {}
        }
        self.sparse.push_back(&mut self.queues, index);
        let quantum = self.quantum_of(index);
        let queue = self.queues.get(index);
        (queue.standing, queue.deficit) = (Standing::Sparse, quantum);
    }

    fn make_bulk(&mut self, index: u32) {
        self.queues.get(index).standing = Standing::Bulk;
        self.queues.count_bulk(index, true);
    }

    /// Drops heads of the longest queue until the rest fits. Returns whether the packet that has
    /// just joined queue `arrival` is still there.
    #[cold]
    fn make_room<S: Sink>(&mut self, arrival: u32, now: Nanos, sink: &mut S) -> bool {
        if !self.ranking.is_active() {
            let backlogged = self.queues.iter().filter(|(_, queue)| queue.bytes > 0);
            self.ranking.activate(backlogged.map(|(index, queue)| (index, queue.rank(index))));
        }
        let mut survived = true;
        while self.is_over() {
            let Some(longest) = self.ranking.top() else { break };
            let Some((packet, _)) = self.pop(longest) else { break };
            let queue = self.queues.get(longest);
            queue.cobalt.overflowed(&self.law, now);
            let is_arrival = longest == arrival && queue.packets.is_empty();
            survived &= !is_arrival;
            let reason = if is_arrival { DropReason::Full } else { DropReason::PushedOut };
            sink.dropped(packet, Drop { reason, lane: Lane::ONLY }, now);
        }
        survived
    }

    fn is_over(&self) -> bool {
        self.backlog.in_unit_of(self.limit) > self.limit.value()
    }

    /// Takes the head of a queue, with the time of its arrival.
    #[inline]
    fn pop(&mut self, index: u32) -> Option<(Packet, Nanos)> {
        let queue = self.queues.get(index);
        let (packet, arrived) = self.packets.pop_front(&mut queue.packets)?;
        queue.bytes -= u64::from(packet.size);
        self.backlog.remove(&packet);
        if self.ranking.is_active() {
            let rank = queue.rank(index);
            if queue.packets.is_empty() {
                self.ranking.remove(index);
            } else {
                self.ranking.set(index, rank);
            }
        }
        Some((packet, Nanos(arrived)))
    }

    /// The next packet of a queue by COBALT, and whether it is marked. The last one is not dropped.
    #[inline]
    fn serve<S: Sink>(&mut self, index: u32, now: Nanos, sink: &mut S) -> Option<(Packet, bool)> {
        loop {
            let (packet, arrived) = self.pop(index)?;
            let queue = self.queues.get(index);
            let (waited, capable) = (now.since(arrived), packet.ecn().is_capable());
            let is_last = queue.packets.is_empty();
            let dice = |probability| !is_last && self.rng.next_u32() < probability;
            let verdict = queue.cobalt.judge(&self.law, now, waited, capable, dice);
            if !verdict.drop || is_last {
                queue.deficit -= i64::from(packet.size) << 16;
                return Some((packet, verdict.mark));
            }
            sink.dropped(packet, Drop { reason: DropReason::Congested, lane: Lane::ONLY }, now);
        }
    }

    /// The list that is served next: nobody waits for decaying queues.
    #[inline]
    fn list(&mut self) -> &mut List {
        if self.sparse.first().is_some() {
            &mut self.sparse
        } else if self.bulk.first().is_some() {
            &mut self.bulk
        } else {
            &mut self.decaying
        }
    }

    /// Takes a queue out of the list that it stands in.
    fn unlist(&mut self, index: u32) {
        let list = match self.queues.get(index).standing {
            Standing::Idle => return,
            Standing::Sparse => &mut self.sparse,
            Standing::SpentSparse | Standing::Bulk => &mut self.bulk,
            Standing::Decaying => &mut self.decaying,
        };
        list.remove(&mut self.queues, index);
    }

    /// Gives a queue that has spent its quantum another one, and the last place among the bulk
    /// queues. Only one with packets counts as one of them.
    fn pass_turn(&mut self, index: u32) {
        self.unlist(index);
        self.bulk.push_back(&mut self.queues, index);
        let queue = self.queues.get(index);
        if queue.standing == Standing::Sparse {
            if queue.packets.is_empty() {
                queue.standing = Standing::SpentSparse;
            } else {
                self.make_bulk(index);
            }
        }
        let quantum = self.quantum_of(index);
        self.queues.get(index).deficit += quantum;
    }

    /// Takes a queue that was found empty out of the rounds, at once or after it has decayed.
    fn retire(&mut self, index: u32, now: Nanos) {
        self.unlist(index);
        let queue = self.queues.get(index);
        let was_bulk = queue.standing == Standing::Bulk;
        queue.cobalt.found_empty(&self.law, now);
        if queue.cobalt.is_at_rest(now) {
            queue.standing = Standing::Idle;
        } else {
            queue.standing = Standing::Decaying;
            self.decaying.push_back(&mut self.queues, index);
        }
        if was_bulk {
            self.queues.count_bulk(index, false);
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
        if self.backlog.must_refuse(self.limit, &packet) {
            return sink.refused(packet, Lane::ONLY, now);
        }
        let index = self.queues.find(&packet);
        let queue = self.queues.get(index);
        self.packets.push_back(&mut queue.packets, packet, now.0);
        queue.bytes += u64::from(packet.size);
        if self.ranking.is_active() {
            self.ranking.set(index, queue.rank(index));
        }
        self.backlog.add(&packet);
        self.wake(index);
        if !self.is_over() || self.make_room(index, now, sink) {
            sink.enqueued(&packet, Lane::ONLY, now);
        }
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        if self.backlog.packets == 0 {
            return Dequeue::Empty;
        }
        let mut next = self.decaying.first().or_else(|| self.list().first());
        while let Some(index) = next {
            if self.queues.get(index).deficit <= 0 {
                self.pass_turn(index);
            } else if let Some((packet, mark)) = self.serve(index, now, sink) {
                self.ranking.relax(self.backlog.in_unit_of(self.limit), self.limit.value());
                if mark {
                    sink.marked(&packet, now);
                }
                sink.dequeued(&packet, Lane::ONLY, now);
                return Dequeue::Packet { packet, mark };
            } else {
                self.retire(index, now);
            }
            next = self.list().first();
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
        let Derived { limit, quantum, law } = Derived::new(params);
        (self.limit, self.quantum, self.law) = (limit, quantum, law);
        self.params = params.clone();
        // It is relaxed by the limit's unit.
        self.ranking.deactivate();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
