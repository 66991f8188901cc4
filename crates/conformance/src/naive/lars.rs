//! LARS by its definition: all that a flow was served, each packet faded by its age, in reals.

use std::collections::HashMap;

use sched::{Amount, FlowId, Nanos, Packet, Params};

use super::{Model, cost};
use crate::run::Step;

/// The model of `lars`.
///
/// The discipline reckons in integers. Where two flows are closer together than its rounding, and
/// were not served the same packets at the same times, the model takes its word.
pub struct Lars {
    limit: Amount,
    half_life: Nanos,
    by_key: bool,
    idle: Nanos,
    sweep: Nanos,
    next_sweep: Nanos,
    flows: HashMap<FlowId, Flow>,
    /// In order of arrival.
    queue: Vec<Packet>,
}

#[derive(Default)]
struct Flow {
    last_arrival: Nanos,
    /// The packets it was served, with their times.
    served: Vec<(u32, Nanos)>,
}

impl Lars {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            limit: params.amount("limit"),
            half_life: params.time("half-life"),
            by_key: params.word("victim") == "key",
            idle: params.time("idle"),
            sweep: params.time("sweep"),
            next_sweep: params.time("sweep"),
            flows: HashMap::new(),
            queue: Vec::new(),
        }
    }

    fn used(&self) -> u64 {
        self.queue.iter().map(|packet| cost(self.limit, packet)).sum()
    }

    fn served(&self, flow: FlowId) -> &[(u32, Nanos)] {
        &self.flows[&flow].served
    }

    fn volume(&self, flow: FlowId, now: Nanos) -> f64 {
        volume(self.served(flow), now, self.half_life)
    }

    /// The head of the flow with the least volume: the earliest arrival, of flows served alike.
    fn head(&self, now: Nanos, said: Option<u64>) -> Option<u64> {
        let of_flow = |flow| self.queue.iter().filter(move |packet| packet.flow == flow);
        let heads: Vec<_> = self
            .queue
            .iter()
            .filter(|head| of_flow(head.flow).all(|packet| packet.id >= head.id))
            .map(|head| (self.volume(head.flow, now), head))
            .collect();
        let first_of_its_like = |(_, head): &&(f64, &Packet)| {
            let alike = |other: &&Packet| self.served(other.flow) == self.served(head.flow);
            heads.iter().map(|(_, other)| *other).filter(alike).all(|other| other.id >= head.id)
        };
        let least = heads.iter().filter(first_of_its_like).min_by(|a, b| a.0.total_cmp(&b.0))?;
        let is_said =
            |(volume, head): &&(f64, &Packet)| Some(head.id) == said && is_near(*volume, least.0);
        let chosen = heads.iter().filter(first_of_its_like).find(is_said).unwrap_or(least);
        Some(chosen.1.id)
    }

    /// The newest packet of the flow with the largest volume (with the bytes ahead of that packet,
    /// by key): the latest arrival, of flows alike.
    fn victim(&self, now: Nanos, said: Option<u64>) -> u64 {
        let of_flow = |flow| self.queue.iter().filter(move |packet| packet.flow == flow);
        let ahead = |tail: &Packet| -> u64 {
            let bytes = of_flow(tail.flow).map(|packet| u64::from(packet.size)).sum::<u64>();
            if self.by_key { bytes - u64::from(tail.size) } else { 0 }
        };
        let tails: Vec<_> = self
            .queue
            .iter()
            .filter(|tail| of_flow(tail.flow).all(|packet| packet.id <= tail.id))
            .map(|tail| (self.volume(tail.flow, now) + ahead(tail) as f64, tail))
            .collect();
        let last_of_its_like = |(_, tail): &&(f64, &Packet)| {
            let alike = |other: &&Packet| {
                self.served(other.flow) == self.served(tail.flow) && ahead(other) == ahead(tail)
            };
            tails.iter().map(|(_, other)| *other).filter(alike).all(|other| other.id <= tail.id)
        };
        let tails_in_question = || tails.iter().filter(last_of_its_like);
        let most = tails_in_question().max_by(|a, b| a.0.total_cmp(&b.0)).expect("it is full");
        let is_said =
            |(rank, tail): &&(f64, &Packet)| Some(tail.id) == said && is_near(*rank, most.0);
        tails_in_question().find(is_said).unwrap_or(most).1.id
    }

    fn remove(&mut self, id: u64) -> Packet {
        let place = self.queue.iter().position(|packet| packet.id == id).expect("it is queued");
        self.queue.remove(place)
    }

    fn upkeep(&mut self, now: Nanos) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + self.sweep;
        let Self { flows, queue, idle, .. } = self;
        flows.retain(|flow, state| {
            queue.iter().any(|p| p.flow == *flow) || now - state.last_arrival <= *idle
        });
    }
}

/// What packets that were served at these times amount to now.
fn volume(served: &[(u32, Nanos)], now: Nanos, half_life: Nanos) -> f64 {
    let fade = |then: Nanos| match half_life {
        Nanos::MAX => 1.0,
        _ => (-((now - then).0 as f64) / half_life.0 as f64).exp2(),
    };
    served.iter().map(|(size, then)| f64::from(*size) * fade(*then)).sum()
}

/// Whether two volumes are closer together than the discipline can tell apart.
pub(crate) fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1.0 + 1e-6 * a.abs()
}

impl Model for Lars {
    fn enqueue(&mut self, packet: Packet, now: Nanos, said: &Step) -> Vec<u64> {
        self.upkeep(now);
        self.flows.entry(packet.flow).or_default().last_arrival = now;
        let limit = self.limit.value();
        // Nobody is pushed out for a packet that never fits, nor because the limit was lowered.
        if cost(self.limit, &packet) > limit || self.used() > limit {
            return vec![packet.id];
        }
        self.queue.push(packet);
        let mut said = said.dropped().map(|(packet, _)| packet.id);
        let mut lost = Vec::new();
        while self.used() > limit {
            lost.push(self.remove(self.victim(now, said.next())).id);
        }
        lost
    }

    fn dequeue(&mut self, now: Nanos, said: &Step) -> Option<u64> {
        self.upkeep(now);
        let packet = self.remove(self.head(now, said.departed().map(|packet| packet.id))?);
        let flow = self.flows.get_mut(&packet.flow).expect("it had a packet");
        flow.served.push((packet.size, now));
        Some(packet.id)
    }

    fn change(&mut self, params: &Params) {
        self.limit = params.amount("limit");
        self.by_key = params.word("victim") == "key";
        self.idle = params.time("idle");
        self.next_sweep = (self.next_sweep - self.sweep) + params.time("sweep");
        self.sweep = params.time("sweep");
    }

    fn flows(&self) -> usize {
        self.flows.len()
    }
}
