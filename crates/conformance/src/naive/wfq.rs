//! Weighted fair queueing with its fluid system in full: what every flow still has to get, in
//! bytes, and no virtual time but that it takes a flow at weight 1 to get a byte.

use std::collections::HashMap;

use sched::{FlowId, Nanos, Packet, Params};

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
    /// When flows that were forgotten were done.
    gone: Vec<f64>,
    said_flows: usize,
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
            gone: Vec::new(),
            said_flows: 0,
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
        self.gone.clear();
    }

    /// Forgets flows that are done in both systems.
    fn forget(&mut self) {
        let (buffer, gone, time) = (&self.buffer, &mut self.gone, self.time);
        gone.retain(|then| *then > time - NEAR);
        self.fluid.retain(|flow, fluid| {
            let stays = fluid.left > 0.0 || buffer.is_backlogged(*flow);
            gone.extend((!stays).then_some(time));
            stays
        });
    }
}

impl Model for Wfq {
    fn enqueue(&mut self, packet: Packet, now: Nanos, said: &Step) -> Vec<u64> {
        self.said_flows = said.flows;
        if !self.buffer.admits(&packet) {
            return vec![packet.id];
        }
        self.work += self.wire.done(now);
        if self.buffer.is_empty() && self.wire.is_idle() {
            self.restart();
        }
        self.advance();
        self.forget();
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
        self.forget();
        lost
    }

    fn dequeue(&mut self, now: Nanos, said: &Step) -> Option<u64> {
        self.said_flows = said.flows;
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
        self.forget();
        if self.buffer.is_empty() && self.wire.is_idle() {
            self.restart();
        }
        Some(next)
    }

    fn change(&mut self, params: &Params) {
        self.buffer.change(params);
        self.wire.change(params);
    }

    /// Those that are nearly done, or have just been, may be remembered or not.
    fn flows(&self) -> usize {
        let is_sure = |flow: &FlowId, fluid: &Fluid| {
            fluid.left / fluid.weight > NEAR || self.buffer.is_backlogged(*flow)
        };
        let sure = self.fluid.iter().filter(|(flow, fluid)| is_sure(flow, fluid)).count();
        self.said_flows.clamp(sure, self.fluid.len() + self.gone.len())
    }
}
