//! LAS as its first paper has it: packets stamped with what their flow has sent, in one list.

use std::collections::HashMap;

use sched::{Amount, FlowId, Nanos, Packet, Params};

use super::{Model, cost};
use crate::run::Step;

/// The model of `las`.
pub struct Las {
    limit: Amount,
    charge_drops: bool,
    most_served: bool,
    idle: Nanos,
    sweep: Nanos,
    next_sweep: Nanos,
    /// Bytes attained and last arrival of each flow.
    flows: HashMap<FlowId, (u64, Nanos)>,
    /// Packets with their stamps: what their flow had attained before.
    queue: Vec<(u64, Packet)>,
}

impl Las {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            limit: params.amount("limit"),
            charge_drops: params.flag("charge-drops"),
            most_served: params.word("victim") == "most-served",
            idle: params.time("idle"),
            sweep: params.time("sweep"),
            next_sweep: params.time("sweep"),
            flows: HashMap::new(),
            queue: Vec::new(),
        }
    }

    fn used(&self) -> u64 {
        self.queue.iter().map(|(_, packet)| cost(self.limit, packet)).sum()
    }

    /// The place of the packet that is pushed out: the largest stamp, or the newest packet of
    /// the flow whose head has the largest stamp. The later arrival, of equals.
    fn victim(&self) -> usize {
        let of_flow = |flow| self.queue.iter().filter(move |(_, packet)| packet.flow == flow);
        let key = |&(stamp, packet): &(u64, Packet)| {
            if !self.most_served {
                return Some((stamp, packet.id));
            }
            let newest = of_flow(packet.flow).map(|(_, p)| p.id).max();
            let served = of_flow(packet.flow).map(|(stamp, _)| *stamp).min()?;
            (newest == Some(packet.id)).then_some((served, packet.id))
        };
        let places = (0..self.queue.len()).filter(|place| key(&self.queue[*place]).is_some());
        places.max_by_key(|place| key(&self.queue[*place])).expect("something is queued")
    }

    fn upkeep(&mut self, now: Nanos) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + self.sweep;
        let Self { flows, queue, idle, .. } = self;
        flows.retain(|flow, (_, last_arrival)| {
            queue.iter().any(|(_, packet)| packet.flow == *flow) || now - *last_arrival <= *idle
        });
    }
}

impl Model for Las {
    fn enqueue(&mut self, packet: Packet, now: Nanos, _said: &Step) -> Vec<u64> {
        self.upkeep(now);
        let limit = self.limit.value();
        // Nobody is pushed out for a packet that never fits, nor because the limit was lowered.
        let is_refused = cost(self.limit, &packet) > limit || self.used() > limit;
        let (attained, last_arrival) = self.flows.entry(packet.flow).or_default();
        *last_arrival = now;
        let stamp = *attained;
        if !is_refused || self.charge_drops {
            *attained += u64::from(packet.size);
        }
        if is_refused {
            return vec![packet.id];
        }
        self.queue.push((stamp, packet));
        let mut lost = Vec::new();
        while self.used() > limit {
            let (_, victim) = self.queue.remove(self.victim());
            if !self.charge_drops {
                let (attained, _) = self.flows.get_mut(&victim.flow).expect("it has a packet");
                *attained -= u64::from(victim.size);
            }
            lost.push(victim.id);
        }
        lost
    }

    fn dequeue(&mut self, now: Nanos, _said: &Step) -> Option<u64> {
        self.upkeep(now);
        let places = 0..self.queue.len();
        let next = places.min_by_key(|place| (self.queue[*place].0, self.queue[*place].1.id))?;
        Some(self.queue.remove(next).1.id)
    }

    fn change(&mut self, params: &Params) {
        self.limit = params.amount("limit");
        self.most_served = params.word("victim") == "most-served";
        self.idle = params.time("idle");
        self.next_sweep = (self.next_sweep - self.sweep) + params.time("sweep");
        self.sweep = params.time("sweep");
    }

    fn flows(&self) -> usize {
        self.flows.len()
    }
}
