//! FIFO with drop-tail: the baseline, and the template for a new discipline.
//!
//! One queue. An arrival that does not fit is dropped, the head is served. No state per flow,
//! no arithmetic. Every other discipline here reduces to it when its distinction is switched off.

use alloc::boxed::Box;

use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, DropReason, Event, Info, Lane, Nanos, Packet,
    ParamError, Params, Qdisc, Queue, Sink, shared,
};
use crate::queues::ring::Ring;

/// First in, first out, drop-tail.
pub(crate) struct Fifo {
    limit: Amount,
    queue: Ring,
}

impl Discipline for Fifo {
    const INFO: Info = Info {
        name: "fifo",
        summary: "first in, first out, drop-tail: what most links run today",
        source: "textbook; limit as in the EFD paper",
        params: &[shared::LIMIT],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        let limit = params.amount("limit");
        Box::new(Self { limit, queue: Ring::with_capacity(shared::ring_capacity(limit)) })
    }
}

impl<S: Sink> Qdisc<S> for Fifo {
    fn enqueue(&mut self, packet: Packet, _now: Nanos, sink: &mut S) {
        if !self.queue.backlog().has_room(self.limit, &packet) {
            return sink.dropped(packet, Drop { reason: DropReason::Full, lane: Lane::ONLY });
        }
        self.queue.push(packet);
        sink.event(Event::Enqueued { packet: packet.id, flow: packet.flow, lane: Lane::ONLY });
    }

    fn dequeue(&mut self, _now: Nanos, sink: &mut S) -> Dequeue {
        let Some(packet) = self.queue.pop() else { return Dequeue::Empty };
        sink.event(Event::Dequeued { packet: packet.id, flow: packet.flow, lane: Lane::ONLY });
        Dequeue::unmarked(packet)
    }
}

impl Queue for Fifo {
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.limit = params.amount("limit");
        Ok(())
    }
}
