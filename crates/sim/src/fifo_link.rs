//! A link behind a drop-tail FIFO, without a discipline's cost.
//!
//! In a FIFO nothing that arrives later changes when a packet leaves, so its departure is known
//! when it arrives: no event is needed to start its transmission.

use std::collections::VecDeque;

use sched::{Amount, Nanos, Rate};

use crate::transmitter::Transmitter;

#[derive(Debug)]
pub(crate) struct FifoLink {
    link: Transmitter,
    /// Absent where anything may wait.
    buffer: Option<Box<Buffer>>,
}

#[derive(Debug)]
struct Buffer {
    limit: Amount,
    /// What waits, or waited: when its transmission starts, and its size.
    waiting: VecDeque<(Nanos, u32)>,
    waiting_bytes: u64,
    drops: FifoDrops,
}

/// Drops at a plain FIFO link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FifoDrops {
    /// Packets dropped.
    pub packets: u64,
    /// Bytes dropped.
    pub bytes: u64,
}

impl FifoLink {
    pub(crate) fn new(rate: Rate, limit: Amount) -> Self {
        let buffer = (limit.value() != u64::MAX).then(|| {
            Box::new(Buffer {
                limit,
                waiting: VecDeque::new(),
                waiting_bytes: 0,
                drops: FifoDrops::default(),
            })
        });
        Self { link: Transmitter::new(rate), buffer }
    }

    /// When the last bit of the packet will have left; `None` if it is dropped.
    #[inline]
    pub(crate) fn accept(&mut self, size: u32, now: Nanos) -> Option<Nanos> {
        let start = self.link.free_at();
        if start > now
            && let Some(buffer) = &mut self.buffer
            && !buffer.wait(size, start, now)
        {
            return None;
        }
        Some(self.link.start(size, now))
    }

    pub(crate) fn drops(&self) -> FifoDrops {
        self.buffer.as_ref().map_or_else(FifoDrops::default, |buffer| buffer.drops)
    }
}

impl Buffer {
    /// Whether there is room to wait.
    fn wait(&mut self, size: u32, start: Nanos, now: Nanos) -> bool {
        while self.waiting.front().is_some_and(|(start, _)| *start <= now) {
            if let Some((_, size)) = self.waiting.pop_front() {
                self.waiting_bytes -= u64::from(size);
            }
        }
        let has_room = match self.limit {
            Amount::Packets(most) => (self.waiting.len() as u64) < most,
            Amount::Bytes(most) => self.waiting_bytes + u64::from(size) <= most,
        };
        if has_room {
            self.waiting.push_back((start, size));
            self.waiting_bytes += u64::from(size);
        } else {
            self.drops.packets += 1;
            self.drops.bytes += u64::from(size);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_names::{FlowName, FlowNames};
    use crate::port::Port;
    use proptest::prelude::*;
    use sched::Packet;

    /// Departure of each packet through a port with the discipline `fifo`.
    fn through_port(limit: Amount, rate: Rate, trace: &[(u64, u32)]) -> Vec<Option<Nanos>> {
        let names = FlowNames::new(1);
        let limit = if limit == Amount::UNLIMITED { Amount::Packets(1 << 32) } else { limit };
        let spec = format!("fifo:limit={limit}").parse().expect("a discipline");
        let mut port = Port::new(&spec, rate, 1, names, false);
        let mut ends = vec![None; trace.len()];
        let serve = |port: &mut Port, until: u64, ends: &mut Vec<Option<Nanos>>| {
            while let Some(at) = port.next_service().filter(|at| at.0 <= until) {
                let sent = port.serve(at).expect("it was due");
                ends[sent.packet.id as usize] = Some(sent.end);
            }
        };
        let mut now = 0;
        for (id, (gap, size)) in trace.iter().enumerate() {
            now += gap;
            serve(&mut port, now, &mut ends);
            let flow = names.id(FlowName::default());
            port.arrive(Packet::new(flow, *size).with_id(id as u64), 0, Nanos(now));
            serve(&mut port, now, &mut ends); // on an idle link it starts at once
        }
        serve(&mut port, u64::MAX, &mut ends);
        ends
    }

    proptest! {
        #[test]
        fn it_is_the_discipline_fifo(
            rate in 1_000_000u64..20_000_000_000,
            limit in prop_oneof![
                (0u64..20).prop_map(Amount::Packets),
                (0u64..20_000).prop_map(Amount::Bytes),
                Just(Amount::UNLIMITED),
            ],
            trace in proptest::collection::vec((0u64..3_000_000, 40u32..1501), 1..100),
        ) {
            // What starts at once passes through a port's queue, so that must hold a packet.
            let limit = match limit {
                Amount::Packets(n) => Amount::Packets(n.max(1)),
                Amount::Bytes(n) => Amount::Bytes(n.max(1500)),
            };
            let rate = Rate(rate);
            let mut link = FifoLink::new(rate, limit);
            let mut now = 0;
            let mut ends = Vec::new();
            for (gap, size) in &trace {
                now += gap;
                ends.push(link.accept(*size, Nanos(now)));
            }
            prop_assert_eq!(ends, through_port(limit, rate, &trace));
        }
    }
}
