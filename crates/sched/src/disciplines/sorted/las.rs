//! LAS, least attained service (also FB, foreground-background, and SET).
//!
//! The flow that has received least is served. A packet's key is the number of bytes its flow
//! had attained before it; the smallest key leaves first, ties go by arrival, and when the buffer
//! is full the packet with the largest key is pushed out. A pushed-out packet is always its
//! flow's newest, so its bytes are taken off the count again, and the key of a flow's head is
//! what the flow was *served*: one queue sorted by key and "serve the backlogged flow with the
//! least service" are the same discipline. A new flow starts at 0 and goes ahead of everyone.
//!
//! Cost: a table look-up and a list insertion per arrival, one heap operation per departure.
//! Known weakness: an old flow waits as long as younger flows keep the link busy, and every flow
//! is remembered long after its last packet.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::disciplines::sorted::{Order, Sorted};
use crate::interface::{
    Discipline, Info, Nanos, Packet, Param, Params, Qdisc, Sink, Takes, shared,
};
use crate::queues::per_flow::{FlowQueue, Node};

/// Least attained service.
pub(crate) struct Las {
    victim: Victim,
    /// With `charge-drops`, the key of the packet in each node: bytes of packets that were lost
    /// in between count, so keys cannot be told from the service any more.
    charged_keys: Option<Vec<u64>>,
}

/// Whose tail is pushed out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// The packet with the largest key.
    Key,
    /// The newest packet of the flow that was served most.
    MostServed,
}

const VICTIM: Param<&'static str> = Param {
    name: "victim",
    kind: Takes::words(&["key", "most-served"]),
    default: "key",
    effect: "full buffer: drop the largest key, or the newest packet of the flow served most",
    source: "LAS paper; the later IEEE Network article names the flow with most service",
    live: true,
};

const CHARGE_DROPS: Param<bool> = Param {
    name: "charge-drops",
    kind: Takes::FLAG,
    default: "no",
    effect: "dropped bytes count as attained, so that a flow pays for what it sends",
    source: "choice; the papers are silent",
    live: false,
};

impl Discipline for Las {
    const INFO: Info = Info {
        name: "las",
        summary: "least attained service: the flow that has received least goes first",
        source: "Rai, Urvoy-Keller, Biersack, \"LAS scheduling to avoid bandwidth hogging in \
                 heterogeneous TCP networks\", 2004",
        params: &[
            shared::LIMIT.any(),
            VICTIM.any(),
            CHARGE_DROPS.any(),
            shared::SWEEP.any(),
            shared::IDLE.any(),
            shared::FLOWS.any(),
        ],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Box::new(Sorted::<Self>::new(params))
    }
}

/// Bytes attained: before the head packet, and in all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attained {
    head: u64,
    all: u64,
}

impl Las {
    /// The key of the packet at the end of a flow's queue.
    fn tail_key(&self, flow: &Attained, node: u32, tail: &Node) -> u64 {
        match &self.charged_keys {
            None => flow.all - u64::from(tail.packet.size),
            Some(keys) => keys[node as usize],
        }
    }
}

impl Order for Las {
    type Flow = Attained;

    fn new(params: &Params) -> Self {
        let charged_keys = params.get(CHARGE_DROPS).then(Vec::new);
        let mut las = Self { victim: Victim::Key, charged_keys };
        las.change(params);
        las
    }

    fn change(&mut self, params: &Params) {
        self.victim = match params.get(VICTIM) {
            "most-served" => Victim::MostServed,
            _ => Victim::Key,
        };
    }

    fn created(&mut self, _flow: &mut Attained, _packet: &Packet, _index: u64) {}

    #[inline]
    fn joined(&mut self, flow: &mut Attained, packet: &Packet, node: u32, first: bool) {
        let key = flow.all;
        if first {
            flow.head = key;
        }
        flow.all += u64::from(packet.size);
        if let Some(keys) = &mut self.charged_keys {
            let node = node as usize;
            if keys.len() <= node {
                keys.resize(node + 1, 0);
            }
            keys[node] = key;
        }
    }

    #[inline]
    fn departed(&mut self, flow: &mut Attained, packet: &Packet, next: u32, _now: Nanos) {
        flow.head = match &self.charged_keys {
            None => flow.head + u64::from(packet.size),
            Some(keys) => keys.get(next as usize).copied().unwrap_or(flow.all),
        };
    }

    fn pushed_out(&mut self, flow: &mut Attained, packet: &Packet) {
        if self.charged_keys.is_none() {
            flow.all -= u64::from(packet.size);
        }
    }

    fn refused(&mut self, flow: &mut Attained, packet: &Packet) {
        if self.charged_keys.is_some() {
            flow.all += u64::from(packet.size);
        }
    }

    #[inline]
    fn key(&self, flow: &Attained, head: &Node) -> (u64, u64) {
        (flow.head, head.tag)
    }

    fn rank(&self, flow: &Attained, queue: &FlowQueue, tail: &Node) -> (u64, u64) {
        let first = match self.victim {
            Victim::Key => self.tail_key(flow, queue.tail(), tail),
            Victim::MostServed => flow.head,
        };
        (first, tail.tag)
    }
}

#[cfg(test)]
mod tests;
