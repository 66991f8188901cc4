//! Marks in front of other queues: `attach --engine marks`, as the simulator has it.
//!
//! The rule of [`marks`](super::marks) says of each packet whether its flow is short or long. Long
//! ones go to the tin Bulk of [`cake`](super::cake), or to the lower of two bands of
//! [`fq-codel`](super::fq_codel); all others go where they would have gone. Neither queue knows of
//! marks, and nothing of either is here.
//!
//! Cost: a look at a set of eight flows, and what the queues behind cost. 32 bytes a flow.

use alloc::boxed::Box;
use alloc::format;

use crate::disciplines::cake::{Cake, Tin};
use crate::disciplines::fq_codel::FqCodel;
use crate::disciplines::marks::{Flows, Known, Mark, Marks, ShortShare};
use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, Event, Info, Lane, Nanos, Needs, Packet, Param,
    ParamError, Params, Qdisc, Queue, Rate, Sink, Takes, shared,
};

const QUEUES: Param<&'static str> = Param {
    name: "queues",
    kind: Takes::words(&["cake", "prio"]),
    default: "cake",
    effect: "what is behind the marks: `cake:tins=diffserv3`, or two `fq-codel` of which the first \
             goes first",
    source: "ours",
    live: false,
};

const LIMIT: Param<Amount> = Param {
    name: "limit",
    kind: Takes::amount(1, 1 << 32).or_unlimited(),
    default: "inf",
    effect: "what the queues hold together; inf: the limits that they have of their own",
    source: "ours",
    live: true,
};

const RATE: Param<Rate> = Param {
    effect: "the link's rate, which the rule and `cake` follow from; inf: no flow becomes long",
    ..shared::RATE
};

const SETS: Param<u64> = Param {
    name: "sets",
    kind: Takes::count(1, 1 << 20),
    default: "4096",
    effect: "sets of 8 flows that are remembered; in a full one the oldest gives way",
    source: "ours",
    live: false,
};

/// Marks, and what is behind them.
pub(crate) struct Marked<Q> {
    params: Params,
    rule: Marks,
    share: ShortShare,
    flows: Flows,
    behind: Q,
}

impl Discipline for Marked<Cake> {
    const INFO: Info = Info {
        name: "marked",
        summary: "flows beyond a token bucket go to CAKE's tin Bulk, or to the lower of two fq-codels",
        source: "ours: docs/marks.md",
        params: &[LIMIT.any(), QUEUES.any(), RATE.any(), SETS.any()],
        lanes: &["short", "long", "voice"],
        least_lanes: 2,
        needs: Needs { flow_size: false, offset: false, hosts: true },
        // A flow that becomes long may overtake its own last packets, or is overtaken by the first
        // ones after it was idle.
        keeps_order: |_| false,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        match params.get(QUEUES) {
            "prio" => Box::new(Marked::new(params, Bands::new(params.get(LIMIT)))),
            _ => Box::new(Marked::new(params, Cake::new(&tins(params), seed))),
        }
    }
}

/// CAKE's parameters by those of marks.
fn tins(params: &Params) -> Params {
    let (rate, limit) = (params.get(RATE), params.get(LIMIT));
    let mut tins = Cake::INFO.defaults();
    let read = tins.read(&format!("tins=diffserv3,rate={rate},limit={limit}"));
    debug_assert!(read.is_ok(), "{read:?}");
    tins
}

/// Queues that can be told that a packet is of a long flow.
pub(crate) trait Behind: Queue {
    fn enqueue<S: Sink>(&mut self, mark: Mark, packet: Packet, now: Nanos, sink: &mut S);
    fn dequeue<S: Sink>(&mut self, now: Nanos, sink: &mut S) -> Dequeue;
    /// Takes over the parameters of marks that concern it.
    fn configure(&mut self, params: &Params) -> Result<(), ParamError>;
}

impl Behind for Cake {
    #[inline]
    fn enqueue<S: Sink>(&mut self, mark: Mark, packet: Packet, now: Nanos, sink: &mut S) {
        match mark {
            Mark::Short => Qdisc::enqueue(self, packet, now, sink),
            Mark::Long => self.enqueue_in(Tin::BULK, packet, now, sink),
        }
    }

    #[inline]
    fn dequeue<S: Sink>(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        Qdisc::dequeue(self, now, sink)
    }

    fn configure(&mut self, params: &Params) -> Result<(), ParamError> {
        self.change(&tins(params))
    }
}

/// Two queues, of which the first goes first.
struct Bands {
    bands: [FqCodel; 2],
    /// Of both together.
    limit: Amount,
}

impl Bands {
    fn new(limit: Amount) -> Self {
        let band = || FqCodel::new(&FqCodel::INFO.defaults());
        Self { bands: [band(), band()], limit }
    }
}

impl Behind for Bands {
    #[inline]
    fn enqueue<S: Sink>(&mut self, mark: Mark, packet: Packet, now: Nanos, sink: &mut S) {
        let lane = if mark == Mark::Short { Lane::SHORT } else { Lane::LONG };
        if !self.backlog().has_room(self.limit, &packet) {
            return sink.refused(packet, lane, now);
        }
        self.bands[usize::from(lane.0)].enqueue(packet, now, &mut Band { lane, sink });
    }

    #[inline]
    fn dequeue<S: Sink>(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let [first, second] = &mut self.bands;
        match first.dequeue(now, &mut Band { lane: Lane::SHORT, sink }) {
            Dequeue::Empty => second.dequeue(now, &mut Band { lane: Lane::LONG, sink }),
            found => found,
        }
    }

    fn configure(&mut self, params: &Params) -> Result<(), ParamError> {
        self.limit = params.get(LIMIT);
        Ok(())
    }
}

impl Queue for Bands {
    fn backlog(&self) -> Backlog {
        self.bands[0].backlog() + self.bands[1].backlog()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.bands.iter_mut().try_for_each(|band| band.change(params))
    }
}

/// What a band tells, with the lane that it is.
struct Band<'a, S> {
    lane: Lane,
    sink: &'a mut S,
}

impl<S: Sink> Sink for Band<'_, S> {
    fn dropped(&mut self, packet: Packet, drop: Drop, now: Nanos) {
        self.sink.dropped(packet, Drop { lane: self.lane, ..drop }, now);
    }

    fn event(&mut self, event: Event) {
        self.sink.event(event);
    }

    fn enqueued(&mut self, packet: &Packet, _lane: Lane, now: Nanos) {
        self.sink.enqueued(packet, self.lane, now);
    }

    fn dequeued(&mut self, packet: &Packet, _lane: Lane, now: Nanos) {
        self.sink.dequeued(packet, self.lane, now);
    }

    fn marked(&mut self, packet: &Packet, now: Nanos) {
        self.sink.marked(packet, now);
    }

    fn refused(&mut self, packet: Packet, _lane: Lane, now: Nanos) {
        self.sink.refused(packet, self.lane, now);
    }
}

impl<Q: Behind> Marked<Q> {
    fn new(params: &Params, behind: Q) -> Self {
        Self {
            params: params.clone(),
            rule: Marks::for_rate(params.get(RATE)),
            share: ShortShare::default(),
            flows: Flows::new(params.get(SETS) as usize),
            behind,
        }
    }

    /// What the rule says of a packet, and what becomes of its flow.
    #[inline]
    fn mark<S: Sink>(&mut self, packet: &Packet, now: Nanos, sink: &mut S) -> Mark {
        let flow = packet.flow;
        let (state, known) = self.flows.find(flow);
        if let Known::Instead(gone) = known {
            sink.event(Event::FlowRemoved { flow: gone });
        }
        if known != Known::Yes {
            sink.event(Event::FlowCreated { flow });
        }
        let was_long = state.is_long();
        let mark = self.rule.mark(state, &mut self.share, packet.size.into(), now);
        match (was_long, mark) {
            (false, Mark::Long) => sink.event(Event::Demoted { flow }),
            (true, Mark::Short) => sink.event(Event::Promoted { flow }),
            _ => {}
        }
        mark
    }
}

impl<S: Sink, Q: Behind> Qdisc<S> for Marked<Q> {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        let mark = self.mark(&packet, now, sink);
        self.behind.enqueue(mark, packet, now, sink);
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        self.behind.dequeue(now, sink)
    }
}

impl<Q: Behind> Queue for Marked<Q> {
    fn backlog(&self) -> Backlog {
        self.behind.backlog()
    }

    fn flows(&self) -> usize {
        self.flows.len()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.params.check_live(params)?;
        self.behind.configure(params)?;
        self.rule = Marks::for_rate(params.get(RATE));
        self.params = params.clone();
        Ok(())
    }
}
