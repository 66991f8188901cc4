//! What the unit tests of the disciplines share.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::interface::{Drop, DropReason, Event, FlowId, Nanos, Packet, Qdisc, Sink};
use crate::spec::Spec;

/// A queue, its clock and all it has told.
pub(crate) struct Bench {
    pub(crate) qdisc: Box<dyn Qdisc<Log>>,
    pub(crate) now: Nanos,
    pub(crate) log: Log,
    next_id: u64,
}

/// Everything a sink is told.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) drops: Vec<(u64, DropReason)>,
    pub(crate) events: Vec<Event>,
}

impl Sink for Log {
    fn dropped(&mut self, packet: Packet, drop: Drop, _now: Nanos) {
        self.drops.push((packet.id, drop.reason));
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

impl Bench {
    /// The discipline that `spec` describes, empty, at time 0.
    pub(crate) fn new(spec: &str) -> Self {
        let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{error}"));
        let (now, log) = (Nanos::ZERO, Log::default());
        Self { qdisc: spec.build(1), now, log, next_id: 0 }
    }

    /// A packet arrives; ids count from 0.
    pub(crate) fn enqueue(&mut self, flow: u64, size: u32) -> u64 {
        self.offer(Packet::new(FlowId::new(flow), size))
    }

    /// This packet arrives, under the next id.
    pub(crate) fn offer(&mut self, packet: Packet) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.qdisc.enqueue(packet.with_id(id), self.now, &mut self.log);
        id
    }

    /// The next packet to leave.
    pub(crate) fn dequeue(&mut self) -> Option<Packet> {
        self.qdisc.dequeue(self.now, &mut self.log).packet()
    }

    /// The ids of the next `n` packets to leave.
    pub(crate) fn depart(&mut self, n: usize) -> Vec<u64> {
        (0..n).map_while(|_| self.dequeue()).map(|packet| packet.id).collect()
    }

    /// The ids of all that is queued, in the order of their departure.
    pub(crate) fn drain(&mut self) -> Vec<u64> {
        self.depart(usize::MAX)
    }

    /// The drops since the last call.
    pub(crate) fn take_drops(&mut self) -> Vec<(u64, DropReason)> {
        core::mem::take(&mut self.log.drops)
    }

    /// Changes one parameter of the running queue.
    pub(crate) fn change(&mut self, spec: &str) -> Result<(), crate::spec::SpecError> {
        let spec: Spec = spec.parse()?;
        Ok(self.qdisc.change(spec.params())?)
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, by: Nanos) {
        self.now += by;
    }
}

/// A reproducible stream of numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % n
    }
}
