//! Disciplines with lanes: three independent choices, one generic type.
//!
//! "A Flow Scheduler Architecture" takes a size-based scheduler apart: *accounting* says whose
//! packet is long, *service* says how the lanes share the link, *buffer* says who is dropped
//! when it is full. [`Lanes`] puts one of each together; inside a lane packets are FIFO. The
//! named disciplines (EFD, Run2C, SB, ...) are a line each in the files beside this one, and
//! `lanes:accounting=...,service=...,buffer=...` composes any other.

mod accounting;
mod auto;
mod buffer;
mod compose;
mod efd;
mod lifetime;
mod mark;
mod offset;
mod queues;
mod run2c;
mod run2c_seq;
mod sampler;
mod sb;
mod sb_sh;
mod service;
mod sift;
mod while_queued;
mod x_protect;

pub use accounting::{Accounting, Arrival, Rule};
pub use auto::Auto;
pub use buffer::{Buffer, DropTail, Knockout, Limits, Room};
pub use compose::Composed;
pub use efd::Efd;
pub use lifetime::Lifetime;
pub use mark::Mark;
pub use offset::Offset;
pub use queues::{Position, Queues};
pub use run2c::Run2c;
pub use run2c_seq::Run2cSeq;
pub use sampler::{EveryFlow, PerByte, PerPacket, Retest, Sampler, miss_byte};
pub use sb::{Sb, SbKo};
pub use sb_sh::SbSh;
pub use service::{Guaranteed, Pick, Service, Strict, Weighted};
pub use sift::Sift;
pub use while_queued::WhileQueued;
pub use x_protect::XProtect;

use core::marker::PhantomData;

use crate::interface::{
    Backlog, Dequeue, Drop, DropReason, FlowId, Lane, Nanos, Packet, ParamError, Params, Qdisc,
    Queue, Sink,
};

/// A discipline with a short and a long lane: accounting `A`, service `V`, buffer `B`.
///
/// Cost: one look-up of the flow at arrival and one at departure, no allocation, two rings.
pub struct Lanes<A, V, B> {
    accounting: A,
    service: V,
    buffer: PhantomData<B>,
    limits: Limits,
    queues: Queues,
    /// Whether the packet on the wire still counts as queued for its flow.
    hold_on_wire: bool,
    on_wire: Option<FlowId>,
    params: Params,
}

impl<A: Accounting, V: Service, B: Buffer> Lanes<A, V, B> {
    /// An empty queue with these parts; `limit` and `hold-on-wire` come from `params`.
    pub(crate) fn new(accounting: A, service: V, params: &Params) -> Self {
        let limits = Limits::new(params.amount("limit"), service.long_share());
        Self {
            accounting,
            service,
            buffer: PhantomData,
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
    fn push_out_for<S: Sink>(&mut self, packet: &Packet, sink: &mut S) {
        while !self.queues.fits(self.limits, packet) {
            let Some(victim) = self.queues.pop_long_tail() else { return };
            self.service.pushed_out(&self.queues);
            if victim.is_counted() {
                self.accounting.left(victim.flow, sink);
            }
            sink.dropped(victim, Drop { reason: DropReason::PushedOut, lane: Lane::LONG });
        }
    }
}

fn holds_on_wire(params: &Params) -> bool {
    params.has("hold-on-wire") && params.flag("hold-on-wire")
}

impl<S: Sink, A: Accounting, V: Service, B: Buffer> Qdisc<S> for Lanes<A, V, B> {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        let Arrival { lane, counted } =
            self.accounting.arrived(&packet, self.queues.mark(), now, sink);
        match B::room(&self.queues, self.limits, &packet, lane) {
            Room::Enough => {}
            Room::PushOut => self.push_out_for(&packet, sink),
            Room::None => {
                if counted {
                    self.accounting.left(packet.flow, sink);
                }
                return sink.refused(packet, lane);
            }
        }
        self.service.arrived(&packet, lane, &self.queues);
        self.queues.push(packet, lane, counted);
        sink.enqueued(&packet, lane);
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
        sink.dequeued(&packet, lane);
        Dequeue::unmarked(packet)
    }
}

impl<A: Accounting, V: Service, B: Buffer> Queue for Lanes<A, V, B> {
    fn backlog(&self) -> Backlog {
        self.queues.total()
    }

    fn flows(&self) -> usize {
        self.accounting.flows()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.params.check_live(params)?;
        self.accounting.change(params)?;
        self.service.change(params, &self.queues);
        self.limits = Limits::new(params.amount("limit"), self.service.long_share());
        self.hold_on_wire = holds_on_wire(params);
        self.params = params.clone();
        Ok(())
    }
}
