//! Self-clocked fair queueing as its paper has it: every packet with its tag, in one list.

use std::collections::HashMap;

use sched::{Amount, FlowId, Nanos, Packet, Params};

use super::{Model, cost};
use crate::run::Step;

/// The model of `scfq`.
pub struct Scfq {
    limit: Amount,
    longest_queue: bool,
    /// The tag of the packet sent last.
    virtual_time: u64,
    /// The last tag of every flow since the queue was empty.
    last_tags: HashMap<FlowId, u64>,
    /// In order of arrival.
    queue: Vec<Tagged>,
}

struct Tagged {
    tag: u64,
    /// The last tag of the flow before this one.
    before: u64,
    packet: Packet,
    /// The arrival since which its flow has had something queued.
    since: u64,
}

impl Scfq {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            limit: params.amount("limit"),
            longest_queue: params.word("drop") == "longest-queue",
            virtual_time: 0,
            last_tags: HashMap::new(),
            queue: Vec::new(),
        }
    }

    fn used(&self) -> u64 {
        self.queue.iter().map(|queued| cost(self.limit, &queued.packet)).sum()
    }

    /// The place of the newest packet of the flow with most bytes queued; of equals, of the one
    /// that has been backlogged longest.
    fn victim(&self) -> usize {
        let bytes = |flow| {
            let of_flow = self.queue.iter().filter(|queued| queued.packet.flow == flow);
            of_flow.map(|queued| u64::from(queued.packet.size)).sum::<u64>()
        };
        let rank = |place: &usize| {
            let Tagged { packet, since, .. } = &self.queue[*place];
            (bytes(packet.flow), u64::MAX - since, packet.id)
        };
        (0..self.queue.len()).max_by_key(rank).expect("it is full")
    }
}

impl Model for Scfq {
    fn enqueue(&mut self, packet: Packet, _now: Nanos, _said: &Step) -> Vec<u64> {
        let limit = self.limit.value();
        let is_refused = if self.longest_queue {
            cost(self.limit, &packet) > limit || self.used() > limit
        } else {
            self.used() + cost(self.limit, &packet) > limit
        };
        if is_refused {
            return vec![packet.id];
        }
        let before = self.last_tags.get(&packet.flow).copied().unwrap_or(0);
        let tag = before.max(self.virtual_time) + u64::from(packet.size);
        self.last_tags.insert(packet.flow, tag);
        let of_flow = self.queue.iter().find(|queued| queued.packet.flow == packet.flow);
        let since = of_flow.map_or(packet.id, |queued| queued.since);
        self.queue.push(Tagged { tag, before, packet, since });
        let mut lost = Vec::new();
        while self.used() > limit {
            let Tagged { before, packet, .. } = self.queue.remove(self.victim());
            self.last_tags.insert(packet.flow, before);
            lost.push(packet.id);
        }
        lost
    }

    fn dequeue(&mut self, _now: Nanos, _said: &Step) -> Option<u64> {
        let key = |place: &usize| (self.queue[*place].tag, self.queue[*place].packet.id);
        let next = (0..self.queue.len()).min_by_key(key)?;
        let Tagged { tag, packet, .. } = self.queue.remove(next);
        self.virtual_time = tag;
        if self.queue.is_empty() {
            self.virtual_time = 0;
            self.last_tags.clear();
        }
        Some(packet.id)
    }

    fn change(&mut self, params: &Params) {
        self.limit = params.amount("limit");
        self.longest_queue = params.word("drop") == "longest-queue";
    }

    fn flows(&self) -> usize {
        let flows = self.queue.iter().map(|queued| queued.packet.flow);
        flows.collect::<std::collections::HashSet<_>>().len()
    }
}
