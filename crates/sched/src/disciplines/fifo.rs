//! FIFO with drop-tail: the baseline, and the template for a new discipline.
//!
//! One queue: an arrival that does not fit is dropped, the head is served. No state per flow, no
//! arithmetic. Every other discipline reduces to it when its distinction is switched off.

use alloc::boxed::Box;

use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Info, Lane, Nanos, Packet, ParamError, Params, Qdisc,
    Queue, Sink, shared,
};
use crate::queues::ring::Ring;

pub(crate) struct Fifo {
    limit: Amount,
    queue: Ring,
}

impl Discipline for Fifo {
    const INFO: Info = Info {
        name: "fifo",
        summary: "first in, first out, drop-tail: what most links run today",
        source: "textbook; limit as in the EFD paper",
        params: &[shared::LIMIT.any()],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        let limit = params.get(shared::LIMIT);
        Box::new(Self { limit, queue: Ring::with_capacity(shared::ring_capacity(limit)) })
    }
}

impl<S: Sink> Qdisc<S> for Fifo {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        if !self.queue.backlog().has_room(self.limit, &packet) {
            return sink.refused(packet, Lane::ONLY, now);
        }
        self.queue.push(packet);
        sink.enqueued(&packet, Lane::ONLY, now);
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let Some(packet) = self.queue.pop() else { return Dequeue::Empty };
        sink.dequeued(&packet, Lane::ONLY, now);
        Dequeue::unmarked(packet)
    }
}

impl Queue for Fifo {
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.limit = params.get(shared::LIMIT);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::interface::DropReason;
    use crate::testkit::Bench;

    #[test]
    fn packets_leave_as_they_came_and_what_does_not_fit_is_dropped() {
        let mut fifo = Bench::new("fifo:limit=3packets");
        let ids = [1, 2, 1, 2].map(|flow| fifo.enqueue(flow, 1500));
        assert_eq!(fifo.take_drops(), [(ids[3], DropReason::Full)]);
        assert_eq!(fifo.drain(), ids[..3]);
    }

    #[test]
    fn a_limit_can_be_lowered_below_the_backlog() {
        let mut fifo = Bench::new("fifo:limit=3packets");
        let [first, second] = [1, 2].map(|flow| fifo.enqueue(flow, 1500));
        fifo.change("fifo:limit=1packets").expect("the limit is live");
        let third = fifo.enqueue(3, 1500);
        assert_eq!(fifo.take_drops(), [(third, DropReason::Full)]);
        assert_eq!(fifo.drain(), [first, second]);
    }
}
