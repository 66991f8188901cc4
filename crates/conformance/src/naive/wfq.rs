//! Weighted fair queueing with its fluid system in full: what every flow still has to get, in
//! bytes, and no virtual time but that it takes a flow at weight 1 to get a byte.

use std::collections::HashMap;

use sched::{Event, FlowId, Nanos, Packet, Params};

use super::Model;
use super::buffer::{Buffer, NEAR, least_or_said};
use super::marks;
use super::wire::Wire;
use crate::run::Step;

/// The model of `wfq`.
pub struct Wfq {
    weights: String,
    buffer: Buffer,
    wire: Wire,
    /// Work that has been done since the fluid system was last looked at.
    work: f64,
    /// Virtual time.
    time: f64,
    fluid: HashMap<FlowId, Fluid>,
    /// By packet: when the fluid system ends it.
    finishes: HashMap<u64, f64>,
}

struct Fluid {
    weight: f64,
    /// Bytes it still has to get.
    left: f64,
}

impl Wfq {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            weights: params.text("weights").to_owned(),
            buffer: Buffer::new(params),
            wire: Wire::new(params),
            work: 0.0,
            time: 0.0,
            fluid: HashMap::new(),
            finishes: HashMap::new(),
        }
    }

    /// Serves the fluid system: until the next flow is done, and the next, and so on.
    fn advance(&mut self) {
        loop {
            let flows = self.fluid.values().filter(|flow| flow.left > 0.0);
            let weight: f64 = flows.clone().map(|flow| flow.weight).sum();
            let Some(until) = flows.map(|flow| flow.left / flow.weight).min_by(f64::total_cmp)
            else {
                self.work = 0.0;
                return;
            };
            let step = until.min(self.work / weight);
            self.time += step;
            self.work -= step * weight;
            for flow in self.fluid.values_mut().filter(|flow| flow.left > 0.0) {
                flow.left -= step * flow.weight;
                if flow.left < 1e-6 {
                    flow.left = 0.0;
                }
            }
            if step < until {
                return;
            }
        }
    }

    fn restart(&mut self) {
        (self.work, self.time) = (0.0, 0.0);
        self.wire.restart();
        self.fluid.clear();
    }

    /// Forgets flows that are done in both systems. One that is nearly done in the fluid system, or
    /// has only just been, is forgotten if the discipline says so.
    fn forget(&mut self, said: &Step) {
        let is_said = |flow| said.events().any(|event| event == Event::FlowRemoved { flow });
        let buffer = &self.buffer;
        self.fluid.retain(|id, flow| {
            let is_close = flow.left / flow.weight <= NEAR;
            buffer.is_backlogged(*id) || !is_close || !is_said(*id)
        });
    }
}

impl Model for Wfq {
    fn enqueue(&mut self, packet: Packet, now: Nanos, said: &Step) -> Vec<u64> {
        if !self.buffer.admits(&packet) {
            return vec![packet.id];
        }
        self.work += self.wire.done(now);
        if self.buffer.is_empty() && self.wire.is_idle() {
            self.restart();
        }
        self.advance();
        self.forget(said);
        let weight = marks::of_code(&self.weights, packet.dscp).map_or(1.0, |w| w.parse().unwrap());
        let flow = self.fluid.entry(packet.flow).or_insert(Fluid { weight, left: 0.0 });
        flow.left += f64::from(packet.size);
        self.finishes.insert(packet.id, self.time + flow.left / flow.weight);
        self.buffer.join(packet);
        let mut lost = Vec::new();
        while let Some(packet) = self.buffer.overflow() {
            let flow = self.fluid.get_mut(&packet.flow).expect("it is known");
            flow.left = (flow.left - f64::from(packet.size)).max(0.0);
            lost.push(packet.id);
        }
        self.forget(said);
        lost
    }

    fn dequeue(&mut self, now: Nanos, said: &Step) -> Option<u64> {
        if self.buffer.is_empty() {
            self.work += self.wire.done(now);
            if self.wire.is_idle() {
                self.restart();
            }
            return None;
        }
        self.work += self.wire.rest();
        let heads = self.buffer.heads();
        let ranked: Vec<_> = heads.iter().map(|head| (self.finishes[&head.id], head.id)).collect();
        let next = least_or_said(&ranked, said.departed().map(|packet| packet.id))?;
        let packet = self.buffer.take(next);
        self.wire.start(packet.size, now);
        self.forget(said);
        if self.buffer.is_empty() && self.wire.is_idle() {
            self.restart();
        }
        Some(next)
    }

    fn change(&mut self, params: &Params) {
        self.buffer.change(params);
        self.wire.change(params);
    }

    fn flows(&self) -> usize {
        self.fluid.len()
    }
}
