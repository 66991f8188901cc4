//! LAS as its equivalent per-flow form: the backlogged flow that was served least is next.

use sched::{Amount, FlowId, Nanos, Packet, Params};

use super::{Model, cost};

struct Flow {
    id: FlowId,
    served: u64,
    queue: Vec<Packet>,
    last_arrival: Nanos,
}

/// The model of `las` with roll-back and the packet at the end of the queue as victim.
pub struct Las {
    limit: Amount,
    idle: Nanos,
    sweep: Nanos,
    swept: Nanos,
    flows: Vec<Flow>,
}

impl Las {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let mut las = Self {
            limit: Amount::UNLIMITED,
            idle: Nanos::MAX,
            sweep: Nanos::MAX,
            swept: Nanos::ZERO,
            flows: Vec::new(),
        };
        las.change(params);
        las
    }

    fn used(&self) -> u64 {
        self.flows.iter().flat_map(|flow| &flow.queue).map(|p| cost(self.limit, p)).sum()
    }

    /// The packet with the largest key, the latest of those; its key is what its flow will have
    /// been served when its turn comes.
    fn remove_last(&mut self) -> u64 {
        let mut last = None;
        for (index, flow) in self.flows.iter().enumerate() {
            let mut key = flow.served;
            for (place, packet) in flow.queue.iter().enumerate() {
                last = last.max(Some((key, packet.id, index, place)));
                key += u64::from(packet.size);
            }
        }
        let (_, id, index, place) = last.expect("something is queued");
        self.flows[index].queue.remove(place);
        id
    }
}

impl Model for Las {
    fn enqueue(&mut self, packet: Packet, now: Nanos, _sampled: bool) -> Vec<u64> {
        let index = match self.flows.iter().position(|flow| flow.id == packet.flow) {
            Some(index) => index,
            None => {
                let (id, queue) = (packet.flow, Vec::new());
                self.flows.push(Flow { id, served: 0, queue, last_arrival: now });
                self.flows.len() - 1
            }
        };
        self.flows[index].last_arrival = now;
        self.flows[index].queue.push(packet);
        let mut lost = Vec::new();
        while self.used() > self.limit.value() {
            lost.push(self.remove_last());
        }
        lost
    }

    fn dequeue(&mut self, _now: Nanos) -> Option<u64> {
        let backlogged = self.flows.iter_mut().filter(|flow| !flow.queue.is_empty());
        let next = backlogged.min_by_key(|flow| (flow.served, flow.queue[0].id))?;
        let packet = next.queue.remove(0);
        next.served += u64::from(packet.size);
        Some(packet.id)
    }

    fn change(&mut self, params: &Params) {
        self.limit = params.amount("limit");
        self.idle = params.time("idle");
        self.sweep = params.time("sweep");
    }

    fn flows(&self) -> usize {
        self.flows.len()
    }
}
