//! The buffer of fair queues: packets in a list, and whom it drops.

use std::collections::HashMap;

use sched::{Amount, FlowId, Packet, Params};

use super::cost;

/// Packets in order of arrival.
pub(super) struct Buffer {
    limit: Amount,
    longest_queue: bool,
    packets: Vec<Packet>,
    /// The arrival since which each flow has had something queued.
    since: HashMap<FlowId, u64>,
}

impl Buffer {
    pub(super) fn new(params: &Params) -> Self {
        let (packets, since) = (Vec::new(), HashMap::new());
        let mut buffer = Self { limit: Amount::UNLIMITED, longest_queue: false, packets, since };
        buffer.change(params);
        buffer
    }

    pub(super) fn change(&mut self, params: &Params) {
        self.limit = params.amount("limit");
        self.longest_queue = params.word("drop") == "longest-queue";
    }

    fn used(&self) -> u64 {
        self.packets.iter().map(|packet| cost(self.limit, packet)).sum()
    }

    /// Whether an arrival is let in, perhaps at the expense of others.
    pub(super) fn admits(&self, packet: &Packet) -> bool {
        let (size, limit) = (cost(self.limit, packet), self.limit.value());
        if self.longest_queue {
            size <= limit && self.used() <= limit
        } else {
            self.used() + size <= limit
        }
    }

    pub(super) fn join(&mut self, packet: Packet) {
        self.packets.push(packet);
        self.since.entry(packet.flow).or_insert(packet.id);
    }

    /// Takes out the newest packet of the flow with most bytes queued, if there are too many; of
    /// equals, of the one that has been backlogged longest.
    pub(super) fn overflow(&mut self) -> Option<Packet> {
        if self.used() <= self.limit.value() {
            return None;
        }
        let bytes = |flow| {
            let of_flow = self.packets.iter().filter(|packet| packet.flow == flow);
            of_flow.map(|packet| u64::from(packet.size)).sum::<u64>()
        };
        let rank =
            |packet: &&Packet| (bytes(packet.flow), u64::MAX - self.since[&packet.flow], packet.id);
        let victim = self.packets.iter().max_by_key(rank)?.id;
        Some(self.take(victim))
    }

    pub(super) fn take(&mut self, id: u64) -> Packet {
        let place = self.packets.iter().position(|packet| packet.id == id).expect("it is queued");
        let packet = self.packets.remove(place);
        if !self.is_backlogged(packet.flow) {
            self.since.remove(&packet.flow);
        }
        packet
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn is_backlogged(&self, flow: FlowId) -> bool {
        self.packets.iter().any(|packet| packet.flow == flow)
    }

    /// The oldest packet of every flow, in order of arrival.
    pub(super) fn heads(&self) -> Vec<Packet> {
        let mut heads: Vec<Packet> = Vec::new();
        for packet in &self.packets {
            if heads.iter().all(|head| head.flow != packet.flow) {
                heads.push(*packet);
            }
        }
        heads
    }
}

/// What models that reckon in reals take for equal: bytes of virtual time. A discipline's units are
/// 2^-19 of a byte and finer, and sequences are short.
pub(super) const NEAR: f64 = 1e-3;

/// The one that a discipline says, if it is near the least of these; else the first of the least.
pub(super) fn least_or_said(ranked: &[(f64, u64)], said: Option<u64>) -> Option<u64> {
    let least = ranked.iter().map(|(rank, _)| *rank).min_by(f64::total_cmp)?;
    let taken = ranked.iter().find(|(rank, id)| Some(*id) == said && *rank <= least + NEAR);
    let first = ranked.iter().find(|(rank, _)| *rank <= least);
    taken.or(first).map(|(_, id)| *id)
}
