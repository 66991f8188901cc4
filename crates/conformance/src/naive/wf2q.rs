//! WF2Q+ by its definition, in reals: every flow with the finish of what it was sent last.

use std::collections::HashMap;

use sched::{Event, FlowId, Nanos, Packet, Params};

use super::Model;
use super::buffer::{Buffer, NEAR, least_or_said};
use super::marks;
use super::wire::Wire;
use crate::run::Step;

/// The model of `wf2q+`.
pub struct Wf2q {
    weights: String,
    buffer: Buffer,
    wire: Wire,
    work: f64,
    /// V.
    time: f64,
    flows: HashMap<FlowId, Flow>,
}

#[derive(Clone, Copy)]
struct Flow {
    weight: f64,
    /// S of its head, or of the next packet to come.
    start: f64,
}

impl Wf2q {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            weights: params.text("weights").to_owned(),
            buffer: Buffer::new(params),
            wire: Wire::new(params),
            work: 0.0,
            time: 0.0,
            flows: HashMap::new(),
        }
    }

    fn advance(&mut self, said: &Step) {
        let weight: f64 = self.flows.values().map(|flow| flow.weight).sum();
        if weight > 0.0 {
            self.time += self.work / weight;
        }
        self.work = 0.0;
        let starts = self.buffer.heads().into_iter().map(|head| self.flows[&head.flow].start);
        let least = starts.min_by(f64::total_cmp);
        self.time = self.time.max(least.unwrap_or(self.time));
        self.forget(said);
    }

    /// Forgets idle flows that V has reached. One that it has only just reached, or not quite, is
    /// forgotten if the discipline says so.
    fn forget(&mut self, said: &Step) {
        let is_said = |flow| said.events().any(|event| event == Event::FlowRemoved { flow });
        let (time, buffer) = (self.time, &self.buffer);
        self.flows.retain(|id, flow| {
            let is_close = (flow.start - time).abs() <= NEAR;
            buffer.is_backlogged(*id) || if is_close { !is_said(*id) } else { flow.start > time }
        });
    }

    fn restart(&mut self) {
        (self.work, self.time) = (0.0, 0.0);
        self.wire.restart();
        self.flows.clear();
    }
}

impl Model for Wf2q {
    fn enqueue(&mut self, packet: Packet, now: Nanos, said: &Step) -> Vec<u64> {
        if !self.buffer.admits(&packet) {
            return vec![packet.id];
        }
        self.work += self.wire.done(now);
        if self.buffer.is_empty() && self.wire.is_idle() {
            self.restart();
        }
        self.advance(said);
        let weight = marks::of_code(&self.weights, packet.dscp).map_or(1.0, |w| w.parse().unwrap());
        self.flows.entry(packet.flow).or_insert(Flow { weight, start: self.time });
        self.buffer.join(packet);
        let mut lost = Vec::new();
        while let Some(packet) = self.buffer.overflow() {
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
        self.advance(said);
        let said = said.departed().map(|packet| packet.id);
        // One that V has only just reached, or not quite, is eligible if the discipline says so.
        let is_eligible = |head: &Packet| {
            let start = self.flows[&head.flow].start;
            start <= self.time - NEAR || (start <= self.time + NEAR && Some(head.id) == said)
        };
        let finish = |head: &Packet| {
            let flow = self.flows[&head.flow];
            flow.start + f64::from(head.size) / flow.weight
        };
        let mut heads = self.buffer.heads();
        if heads.iter().any(is_eligible) {
            heads.retain(is_eligible);
        } else {
            heads.retain(|head| self.flows[&head.flow].start <= self.time);
        }
        let ranked: Vec<_> = heads.iter().map(|head| (finish(head), head.id)).collect();
        let next = least_or_said(&ranked, said)?;
        let packet = self.buffer.take(next);
        let flow = self.flows.get_mut(&packet.flow).expect("it is known");
        flow.start += f64::from(packet.size) / flow.weight;
        self.wire.start(packet.size, now);
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
        self.flows.len()
    }
}
