//! SRPT, shortest remaining processing time: the clairvoyant reference.
//!
//! The flow with the least bytes still to come is served, which minimises the mean completion
//! time on a fluid link. It must know how long a flow will be, which a simulator does and a link
//! never does, so it shows how much of what is possible a blind discipline reaches.
//!
//! What is left of a flow is its size less the bytes that have departed for the first time.
//! Where packets carry their offset, what departs a second time is told from what is new;
//! otherwise every departure counts. A flow of unknown size is served after all others.

use alloc::boxed::Box;

use crate::flowqueue::{FlowQueue, Node};
use crate::packet::Packet;
use crate::params::Params;
use crate::qdisc::{Qdisc, Sink};
use crate::registry::{self, Discipline, Info, Needs, shared};
use crate::sorted::{FLOWS, IDLE, Order, SWEEP, Sorted};

/// Shortest remaining processing time.
pub(crate) struct Srpt;

impl Discipline for Srpt {
    const INFO: Info = Info {
        name: "srpt",
        summary: "shortest remaining size first: the clairvoyant reference, for simulation",
        source: "Schrage, \"A proof of the optimality of the shortest remaining processing time \
                 discipline\", 1968",
        parts: None,
        params: &[shared::LIMIT, SWEEP, IDLE, FLOWS],
        needs: Needs { flow_size: true, offset: false, hosts: false },
        keeps_order: registry::always,
        work_conserving: registry::always,
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Box::new(Sorted::<Self>::new(Self::INFO.name, params))
    }
}

/// What SRPT knows of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Bytes that have not departed yet.
    remaining: u64,
    /// The index of its first arrival.
    start: u64,
    /// The end of what has departed, where packets carry offsets.
    edge: u64,
    /// Bytes before the edge that were skipped: lost upstream or here, and still to come.
    skipped: u64,
}

impl Progress {
    /// Bytes of a departing packet that have not departed before.
    ///
    /// A packet from before the edge fills what was skipped as far as that goes. One that
    /// departs twice while something is skipped is mistaken for it; the sum stays right.
    fn advance(&mut self, packet: &Packet) -> u64 {
        let size = u64::from(packet.size);
        let Some(offset) = packet.offset() else { return size };
        let end = offset.saturating_add(size);
        if end <= self.edge {
            let filled = size.min(self.skipped);
            self.skipped -= filled;
            return filled;
        }
        self.skipped += offset.saturating_sub(self.edge);
        let new = end - offset.max(self.edge);
        self.edge = end;
        new
    }
}

impl Order for Srpt {
    type Flow = Progress;

    fn new(_params: &Params) -> Self {
        Self
    }

    fn change(&mut self, _params: &Params) {}

    fn created(&mut self, flow: &mut Progress, packet: &Packet, index: u64) {
        flow.remaining = packet.flow_size().unwrap_or(u64::MAX);
        flow.start = index;
    }

    fn joined(&mut self, _flow: &mut Progress, _packet: &Packet, _node: u32, _first: bool) {}

    fn departed(&mut self, flow: &mut Progress, packet: &Packet, _next: u32) {
        // An unknown size stays unknown.
        if flow.remaining != u64::MAX {
            flow.remaining = flow.remaining.saturating_sub(flow.advance(packet));
        }
    }

    fn pushed_out(&mut self, _flow: &mut Progress, _packet: &Packet) {}

    fn refused(&mut self, _flow: &mut Progress, _packet: &Packet) {}

    fn key(&self, flow: &Progress, _head: &Node) -> (u64, u64) {
        (flow.remaining, flow.start)
    }

    fn rank(&self, flow: &Progress, _queue: &FlowQueue, _tail: &Node) -> (u64, u64) {
        (flow.remaining, flow.start)
    }
}
