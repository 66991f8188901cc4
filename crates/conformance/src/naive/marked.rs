//! Marks in front of the model of `cake`, to which long packets come as CS1, or of two `fq-codel` in a
//! row, which are those of the registry. The rule is that of `sched::marks`; all else is not.

use std::collections::BTreeMap;

use sched::marks::{Mark, MarkedFlow, Marks, ShortShare};
use sched::{Amount, Dequeue, Drop, FlowId, Nanos, Packet, Params, Qdisc, Rate, Spec};

use super::{Cake, Model};
use crate::run::Step;

const WAYS: usize = 8;

/// The model of `marked`.
pub struct Marked {
    rule: Marks,
    share: ShortShare,
    sets: u64,
    /// With the times of their last packets.
    flows: BTreeMap<u64, Vec<(FlowId, MarkedFlow, Nanos)>>,
    behind: Behind,
    limit: Amount,
    marks: bool,
    losses: Vec<u64>,
}

enum Behind {
    Tins(Box<Cake>),
    Bands([Box<dyn Qdisc>; 2]),
}

fn cake(params: &Params) -> Spec {
    let (rate, limit) = (Rate(params.number("rate")), params.amount("limit"));
    format!("cake:tins=diffserv3,rate={rate},limit={limit}").parse().expect("a spec")
}

fn ids(lost: Vec<(Packet, Drop)>) -> Vec<u64> {
    lost.into_iter().map(|(packet, _)| packet.id).collect()
}

impl Marked {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let band = || Spec::named("fq-codel").expect("from the registry").build(1);
        let behind = if params.word("queues") == "prio" {
            Behind::Bands([band(), band()])
        } else {
            Behind::Tins(Box::new(Cake::new(cake(params).params())))
        };
        Self {
            rule: Marks::for_rate(Rate(params.number("rate"))),
            share: ShortShare::default(),
            sets: params.number("sets"),
            flows: BTreeMap::new(),
            behind,
            limit: params.amount("limit"),
            marks: false,
            losses: Vec::new(),
        }
    }

    fn mark(&mut self, packet: &Packet, now: Nanos) -> Mark {
        let set = self.flows.entry(packet.flow.get() % self.sets).or_default();
        let known = set.iter().position(|(flow, ..)| *flow == packet.flow);
        let fresh = (packet.flow, MarkedFlow::default(), now);
        let place = known.unwrap_or_else(|| {
            if set.len() < WAYS {
                set.push(fresh);
                return set.len() - 1;
            }
            let oldest = (0..WAYS).min_by_key(|place| set[*place].2).expect("a full set");
            set[oldest] = fresh;
            oldest
        });
        let (_, flow, last) = &mut set[place];
        *last = now;
        self.rule.mark(flow, &mut self.share, packet.size.into(), now)
    }
}

impl Model for Marked {
    fn enqueue(&mut self, packet: Packet, now: Nanos, said: &Step) -> Vec<u64> {
        let mark = self.mark(&packet, now);
        match (&mut self.behind, mark) {
            (Behind::Tins(cake), Mark::Short) => cake.enqueue(packet, now, said),
            (Behind::Tins(cake), Mark::Long) => cake.enqueue(packet.with_dscp(8), now, said),
            (Behind::Bands(bands), mark) => {
                let queued = bands[0].backlog() + bands[1].backlog();
                let (used, cost) = match self.limit {
                    Amount::Packets(_) => (queued.segments, u64::from(packet.segments)),
                    Amount::Bytes(_) => (queued.bytes, u64::from(packet.size)),
                };
                if used.saturating_add(cost) > self.limit.value() {
                    return vec![packet.id];
                }
                let mut lost = Vec::new();
                bands[usize::from(mark == Mark::Long)].enqueue(packet, now, &mut lost);
                ids(lost)
            }
        }
    }

    fn dequeue(&mut self, now: Nanos, said: &Step) -> Option<u64> {
        match &mut self.behind {
            Behind::Tins(cake) => {
                let left = cake.dequeue(now, said);
                (self.marks, self.losses) = (cake.marks(), cake.losses().to_vec());
                left
            }
            Behind::Bands(bands) => {
                let mut lost = Vec::new();
                let mut left = bands[0].dequeue(now, &mut lost);
                // One that is asked while it is empty ends its flows' turns by that.
                if left == Dequeue::Empty {
                    left = bands[1].dequeue(now, &mut lost);
                }
                self.marks = matches!(left, Dequeue::Packet { mark: true, .. });
                self.losses = ids(lost);
                left.packet().map(|packet| packet.id)
            }
        }
    }

    fn marks(&self) -> bool {
        self.marks
    }

    fn losses(&self) -> &[u64] {
        &self.losses
    }

    fn change(&mut self, params: &Params) {
        self.rule = Marks::for_rate(Rate(params.number("rate")));
        self.limit = params.amount("limit");
        if let Behind::Tins(model) = &mut self.behind {
            model.change(cake(params).params());
        }
    }

    fn flows(&self) -> usize {
        self.flows.values().map(Vec::len).sum()
    }
}
