//! LIFO: the newest packet first, which no link should do; the newcomer of `scripts/test-newcomer.sh`.

use alloc::boxed::Box;

use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Info, Lane, Nanos, Packet, ParamError, Params, Qdisc,
    Queue, Sink, shared,
};
use crate::queues::ring::Ring;

pub(crate) struct Lifo {
    limit: Amount,
    queue: Ring,
}

impl Discipline for Lifo {
    const INFO: Info = Info {
        name: "lifo",
        summary: "last in, first out",
        source: "nobody",
        params: &[shared::LIMIT.any()],
        keeps_order: |_| false,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        let limit = params.get(shared::LIMIT);
        Box::new(Self { limit, queue: Ring::with_capacity(shared::ring_capacity(limit)) })
    }
}

impl<S: Sink> Qdisc<S> for Lifo {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        if !self.queue.backlog().has_room(self.limit, &packet) {
            return sink.refused(packet, Lane::ONLY, now);
        }
        self.queue.push(packet);
        sink.enqueued(&packet, Lane::ONLY, now);
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let Some(packet) = self.queue.pop_tail() else { return Dequeue::Empty };
        sink.dequeued(&packet, Lane::ONLY, now);
        Dequeue::unmarked(packet)
    }
}

impl Queue for Lifo {
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.limit = params.get(shared::LIMIT);
        Ok(())
    }
}
