//! Disciplines with lanes: three independent choices, one generic type.
//!
//! "A Flow Scheduler Architecture" takes a size-based scheduler apart: *accounting* says which
//! packets are long, *service* says how the lanes share the link, *buffer* says which packet is
//! dropped at the limit. `Lanes` puts one of each together; inside a lane packets are FIFO. The
//! disciplines with a name of their own (Run2C, SB, ...) are the rows of `named`, EFD has a file,
//! and `lanes:accounting=...,service=...,buffer=...` composes any other.

mod accounting;
pub(crate) mod auto;
mod buffer;
pub(crate) mod compose;
pub(crate) mod efd;
mod lifetime;
mod mark;
pub(crate) mod named;
mod offset;
mod params;
mod queues;
mod sampler;
mod service;
mod while_queued;

pub use accounting::Rule;
pub use sampler::miss_byte;

use core::hash::{Hash, Hasher};

use self::params::HOLD_ON_WIRE;
use crate::interface::parts::Buffer;
use crate::interface::{
    Backlog, Dequeue, Drop, DropReason, FlowId, Lane, Nanos, Packet, ParamError, Params, Qdisc,
    Queue, Sink, shared,
};

use accounting::{Accounting, Arrival};
use buffer::{Limits, Room};
use queues::Queues;
use service::{Pick, Service};

/// A discipline with a short and a long lane: accounting `A`, service `V`, and a buffer.
///
/// Cost: one look-up of the flow at arrival and one at departure, no allocation, two rings.
pub(crate) struct Lanes<A, V> {
    accounting: A,
    service: V,
    buffer: Buffer,
    limits: Limits,
    queues: Queues,
    /// Whether the packet on the wire still counts as queued for its flow.
    hold_on_wire: bool,
    on_wire: Option<FlowId>,
    params: Params,
}

impl<A: Accounting, V: Service> Lanes<A, V> {
    /// An empty queue with these parts; `limit` and `hold-on-wire` come from `params`.
    pub(crate) fn new(accounting: A, service: V, buffer: Buffer, params: &Params) -> Self {
        let limits = Limits::new(params.get(shared::LIMIT), service.long_share());
        Self {
            accounting,
            service,
            buffer,
            limits,
            queues: Queues::new(limits.whole),
            hold_on_wire: holds_on_wire(params),
            on_wire: None,
            params: params.clone(),
        }
    }

    /// The transmission that the last dequeue started is over.
    #[cold]
    fn wire_is_free<S: Sink>(&mut self, sink: &mut S) {
        if let Some(flow) = self.on_wire.take() {
            self.accounting.left(flow, sink);
        }
    }

    /// Removes packets from the tail of the long lane until `packet` fits.
    #[cold]
    fn push_out_for<S: Sink>(&mut self, packet: &Packet, now: Nanos, sink: &mut S) {
        while !self.queues.fits(self.limits, packet) {
            let Some(victim) = self.queues.pop_long_tail() else { return };
            self.service.pushed_out(&self.queues);
            if victim.is_counted() {
                self.accounting.left(victim.flow, sink);
            }
            sink.dropped(victim, Drop { reason: DropReason::PushedOut, lane: Lane::LONG }, now);
        }
    }
}

fn holds_on_wire(params: &Params) -> bool {
    params.find(HOLD_ON_WIRE).unwrap_or(false)
}

impl<S: Sink, A: Accounting, V: Service> Qdisc<S> for Lanes<A, V> {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        let Arrival { lane, counted } =
            self.accounting.arrived(&packet, self.queues.mark(), now, sink);
        match self.buffer.room(&self.queues, self.limits, &packet, lane) {
            Room::Enough => {}
            Room::PushOut => self.push_out_for(&packet, now, sink),
            Room::None => {
                if counted {
                    self.accounting.left(packet.flow, sink);
                }
                return sink.refused(packet, lane, now);
            }
        }
        self.service.arrived(&packet, lane, &self.queues);
        self.queues.push(packet, lane, counted);
        sink.enqueued(&packet, lane, now);
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        if self.on_wire.is_some() {
            self.wire_is_free(sink);
        }
        let pick = self.service.pick(&self.queues, now, |head| {
            self.accounting.demoted_at(head).is_none_or(|mark| self.queues.has_passed(mark))
        });
        let lane = match pick {
            Pick::Lane(lane) => lane,
            Pick::Wait(until) => return Dequeue::Wait(until),
        };
        let Some(packet) = self.queues.pop(lane) else { return Dequeue::Empty };
        self.service.sent(&packet, lane, &self.queues, now);
        if packet.is_counted() {
            if self.hold_on_wire {
                self.on_wire = Some(packet.flow);
            } else {
                self.accounting.left(packet.flow, sink);
            }
        }
        sink.dequeued(&packet, lane, now);
        Dequeue::unmarked(packet)
    }
}

impl<A: Accounting, V: Service> Queue for Lanes<A, V> {
    fn backlog(&self) -> Backlog {
        self.queues.total()
    }

    fn flows(&self) -> usize {
        self.accounting.flows()
    }

    fn digest(&self, mut into: &mut dyn Hasher) -> bool {
        let Self { accounting, service, buffer, limits, queues, hold_on_wire, on_wire, params: _ } =
            self;
        (accounting, service, buffer, limits, queues, hold_on_wire, on_wire).hash(&mut into);
        true
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.params.check_live(params)?;
        self.accounting.change(params)?;
        self.service.change(params, &self.queues);
        self.limits = Limits::new(params.get(shared::LIMIT), self.service.long_share());
        self.hold_on_wire = holds_on_wire(params);
        self.params = params.clone();
        Ok(())
    }
}
