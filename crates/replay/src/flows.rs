//! The flows of a capture that have not ended.

use std::hash::{BuildHasherDefault, Hasher};

use frame::TcpSequence;
use hashbrown::HashMap;
use measure::Text;
use sched::{FlowId, Nanos};
use sim::FlowName;

/// Flows in progress: found by fingerprint, ordered by their last packet.
///
/// A flow ends when it has been silent for a time, or when there are too many and it has been
/// silent for longest. It keeps its slot until none of its packets is queued anywhere.
pub(crate) struct Flows {
    index: HashMap<u64, u32, BuildHasherDefault<Identity>>,
    slots: Vec<Flow>,
    free: Vec<u32>,
    /// Ended, with nothing queued any more.
    finished: Vec<u32>,
    /// The ends of the list of flows in progress, by their last packet.
    oldest: u32,
    newest: u32,
    idle: Nanos,
    most: usize,
    begun: u64,
    evicted: u64,
}

/// One flow.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    fingerprint: FlowId,
    /// How many flows had its slot before.
    generation: u32,
    /// Its place among the flows of the capture.
    pub(crate) number: u64,
    /// Its 5-tuple, where anybody will read it.
    pub(crate) text: Option<Text>,
    pub(crate) first: Nanos,
    last: Nanos,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    sequence: Option<Sequence>,
    /// Packets of it queued now, in all queues.
    queued: u32,
    ended: bool,
    older: u32,
    newer: u32,
}

/// Where a TCP connection has got to.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    number: u32,
    offset: u64,
}

const NONE: u32 = u32::MAX;

impl Flows {
    pub(crate) fn new(idle: Nanos, most: usize) -> Self {
        Self {
            index: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            finished: Vec::new(),
            oldest: NONE,
            newest: NONE,
            idle,
            most,
            begun: 0,
            evicted: 0,
        }
    }

    /// Counts a packet of `bytes` in; gives its flow's slot.
    #[inline]
    pub(crate) fn arrived(
        &mut self,
        fingerprint: FlowId,
        bytes: u32,
        now: Nanos,
        text: impl FnOnce() -> Option<Text>,
    ) -> u32 {
        self.end_idle(now);
        let slot = match self.index.get(&fingerprint.get()) {
            Some(&slot) if slot == self.newest => slot,
            Some(&slot) => {
                self.unlink(slot);
                self.link(slot);
                slot
            }
            None => self.begin(fingerprint, now, text()),
        };
        let flow = &mut self.slots[slot as usize];
        flow.last = now;
        flow.packets += 1;
        flow.bytes += u64::from(bytes);
        slot
    }

    #[cold]
    fn begin(&mut self, fingerprint: FlowId, now: Nanos, text: Option<Text>) -> u32 {
        if self.index.len() == self.most {
            self.evicted += 1;
            self.end(self.oldest);
        }
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        let flow = Flow {
            fingerprint,
            generation: 0,
            number: self.begun,
            text,
            first: now,
            last: now,
            packets: 0,
            bytes: 0,
            sequence: None,
            queued: 0,
            ended: false,
            older: NONE,
            newer: NONE,
        };
        self.begun += 1;
        match self.slots.get_mut(slot as usize) {
            Some(old) => *old = Flow { generation: old.generation + 1, ..flow },
            None => self.slots.push(flow),
        }
        self.index.insert(fingerprint.get(), slot);
        self.link(slot);
        slot
    }

    #[inline]
    fn end_idle(&mut self, now: Nanos) {
        while self.oldest != NONE && now.since(self.slots[self.oldest as usize].last) > self.idle {
            self.end(self.oldest);
        }
    }

    /// Ends all flows.
    pub(crate) fn end_all(&mut self) {
        while self.oldest != NONE {
            self.end(self.oldest);
        }
    }

    fn end(&mut self, slot: u32) {
        self.unlink(slot);
        let flow = &mut self.slots[slot as usize];
        flow.ended = true;
        self.index.remove(&flow.fingerprint.get());
        if flow.queued == 0 {
            self.finished.push(slot);
        }
    }

    /// A packet of the flow joins a queue.
    #[inline]
    pub(crate) fn joins(&mut self, slot: u32) {
        self.slots[slot as usize].queued += 1;
    }

    /// A packet of the flow was sent or lost.
    #[inline]
    pub(crate) fn leaves(&mut self, slot: u32) {
        let flow = &mut self.slots[slot as usize];
        flow.queued -= 1;
        if flow.ended && flow.queued == 0 {
            self.finished.push(slot);
        }
    }

    /// A flow that is over and done with. The caller gives its slot back with [`Flows::release`].
    #[inline]
    pub(crate) fn next_finished(&mut self) -> Option<u32> {
        self.finished.pop()
    }

    /// At the end of a run: ended flows of which packets stay queued.
    pub(crate) fn stuck(&self) -> Vec<u32> {
        let slots = (0..).zip(&self.slots);
        slots.filter(|(_, flow)| flow.ended && flow.queued > 0).map(|(slot, _)| slot).collect()
    }

    pub(crate) fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Flow {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(crate) fn name(&self, slot: u32) -> FlowName {
        FlowName { slot, generation: self.slots[slot as usize].generation }
    }

    /// Byte offset of a TCP segment's payload in its flow, counted from the SYN, or from the first
    /// segment of the flow in a capture that began later.
    pub(crate) fn offset(&mut self, slot: u32, segment: TcpSequence) -> u64 {
        let flow = &mut self.slots[slot as usize];
        let first = segment.number.wrapping_add(u32::from(segment.syn));
        let known = match flow.sequence {
            Some(known) if !segment.syn => known,
            _ => Sequence { number: first, offset: 0 },
        };
        // Sequence numbers wrap around: a segment is the next one on either side.
        let ahead = first.wrapping_sub(known.number) as i32;
        let offset = known.offset.saturating_add_signed(ahead.into());
        flow.sequence = Some(if ahead > 0 { Sequence { number: first, offset } } else { known });
        offset
    }

    /// Flows so far.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// Flows that were ended because there were too many.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    fn link(&mut self, slot: u32) {
        let newest = self.newest;
        let flow = &mut self.slots[slot as usize];
        (flow.older, flow.newer) = (newest, NONE);
        match newest {
            NONE => self.oldest = slot,
            _ => self.slots[newest as usize].newer = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let Flow { older, newer, .. } = self.slots[slot as usize];
        match older {
            NONE => self.oldest = newer,
            _ => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.slots[newer as usize].older = older,
        }
    }
}

/// Fingerprints are hashes already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are 64-bit numbers");
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(flows: &mut Flows, fingerprint: u64, now: u64) -> u32 {
        flows.arrived(FlowId::new(fingerprint), 100, Nanos(now), || None)
    }

    #[test]
    fn a_silent_flow_ends_and_its_slot_is_used_again() {
        let mut flows = Flows::new(Nanos(10), 8);
        let first = arrive(&mut flows, 1, 0);
        assert_eq!(arrive(&mut flows, 1, 10), first);
        arrive(&mut flows, 2, 21);
        assert_eq!(flows.next_finished(), Some(first));
        assert_eq!(flows.get(first).packets, 2);
        let before = flows.name(first);
        flows.release(first);
        let again = arrive(&mut flows, 1, 22);
        assert_eq!(again, first);
        assert_ne!(flows.name(again), before);
        assert_eq!((flows.get(again).number, flows.get(again).packets), (2, 1));
    }

    #[test]
    fn a_flow_with_packets_queued_is_not_finished() {
        let mut flows = Flows::new(Nanos(10), 8);
        let slot = arrive(&mut flows, 1, 0);
        flows.joins(slot);
        flows.end_all();
        assert_eq!((flows.next_finished(), flows.stuck()), (None, vec![slot]));
        flows.leaves(slot);
        assert_eq!(flows.next_finished(), Some(slot));
    }

    #[test]
    fn of_too_many_flows_the_longest_silent_one_ends() {
        let mut flows = Flows::new(Nanos(1000), 2);
        let (a, b) = (arrive(&mut flows, 1, 0), arrive(&mut flows, 2, 1));
        arrive(&mut flows, 1, 2);
        arrive(&mut flows, 3, 3);
        assert_eq!((flows.next_finished(), flows.evicted()), (Some(b), 1));
        assert_eq!(arrive(&mut flows, 1, 4), a);
    }

    #[test]
    fn offsets_count_from_the_syn_and_survive_wrapping_and_retransmission() {
        let mut flows = Flows::new(Nanos(10), 8);
        let slot = arrive(&mut flows, 1, 0);
        let mut at = |number, syn| flows.offset(slot, TcpSequence { number, syn });
        let isn = u32::MAX - 1000;
        assert_eq!(at(isn, true), 0);
        assert_eq!(at(isn.wrapping_add(1), false), 0);
        assert_eq!(at(isn.wrapping_add(1461), false), 1460);
        assert_eq!(at(isn.wrapping_add(1), false), 0);
        let mut number = isn.wrapping_add(1461);
        for step in 1..=10u64 {
            number = number.wrapping_add(1_000_000_000);
            assert_eq!(at(number, false), 1460 + step * 1_000_000_000);
        }
        assert_eq!(at(5, true), 0, "the ports are used for a new connection");
    }

    #[test]
    fn offsets_of_a_flow_that_began_before_count_from_its_first_segment() {
        let mut flows = Flows::new(Nanos(10), 8);
        let slot = arrive(&mut flows, 1, 0);
        let mut at = |number| flows.offset(slot, TcpSequence { number, syn: false });
        assert_eq!([at(5000), at(6000), at(4000)], [0, 1000, 0]);
    }
}
