//! SCFQ, self-clocked fair queueing: one queue per flow, equal shares, in the order of tags.
//!
//! A packet of L bytes has the tag F = max(F of the packet before it in its flow, v) + L, where
//! v is the tag of the packet in service. The smallest tag is sent first; of equal tags the one
//! whose packet arrived first. When nothing is queued, v and all tags start again at 0.
//!
//! Of that, little must be kept. While a flow is backlogged its last tag is not below v, so the
//! tags of its packets are the tag before its head plus sums of sizes. Once its last packet has
//! left, its last tag is not above v, so an idle flow need not be remembered. And a packet that
//! is dropped at the end of its queue takes its bytes, and so its tag, with it.
//!
//! The papers leave open whom a full buffer drops: the arrival, or the newest packet of the
//! longest queue.
//!
//! Cost: a table look-up per arrival, a heap operation per departure.

use alloc::boxed::Box;

use super::{DROP, Fair, Joined, Queues, Service};
use crate::interface::{Discipline, Info, Nanos, Packet, Params, Qdisc, Sink, shared};
use crate::queues::runs::Heads;

/// Self-clocked fair queueing.
#[derive(Default)]
pub(crate) struct Scfq {
    /// v: the tag of the packet that was sent last.
    virtual_time: u64,
    heads: Heads,
}

impl Discipline for Scfq {
    const INFO: Info = Info {
        name: "scfq",
        summary: "self-clocked fair queueing: equal shares per flow, in the order of finish tags",
        source: "Golestani, \"A self-clocked fair queueing scheme for broadband applications\", 1994",
        params: &[
            shared::LIMIT.any(),
            DROP.with_default("tail", "EFD paper, section 4, which leaves it open").any(),
        ],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Fair::<Self>::boxed(params)
    }
}

/// The tag before the head's: the head's own is a packet size more.
type Start = u64;

/// The entry of a backlogged flow. A tag saturates at 2^56 bytes, which is two months of 100 Gbit/s
/// without an empty queue; flows are then served in the order of their heads.
#[inline]
fn entry(queues: &Queues<Start>, slot: u32) -> Option<u128> {
    let (size, _) = queues.head(slot)?;
    queues.entry(slot, queues.get(slot) + u64::from(size))
}

impl Service for Scfq {
    type Flow = Start;

    fn new(_params: &Params) -> Self {
        Self::default()
    }

    fn change(&mut self, _queues: &Queues<Start>, _params: &Params) {}

    #[inline]
    fn joined(&mut self, queues: &mut Queues<Start>, joined: Joined<'_>) {
        if joined.is_new {
            *queues.of(joined.slot) = self.virtual_time;
            if let Some(entry) = entry(queues, joined.slot) {
                self.heads.push(entry);
            }
        }
    }

    #[inline]
    fn next<S: Sink>(
        &mut self,
        queues: &mut Queues<Start>,
        _now: Nanos,
        _sink: &mut S,
    ) -> Option<u32> {
        self.heads.next(|slot| entry(queues, slot))
    }

    #[inline]
    fn served<S: Sink>(
        &mut self,
        queues: &mut Queues<Start>,
        slot: u32,
        packet: &Packet,
        _now: Nanos,
        sink: &mut S,
    ) {
        let start = queues.of(slot);
        *start += u64::from(packet.size);
        self.virtual_time = *start;
        let next = entry(queues, slot);
        self.heads.served(next);
        if next.is_none() {
            queues.forget(packet.flow, sink);
        }
        if queues.packets() == 0 {
            self.virtual_time = 0;
            self.heads.clear();
        }
    }

    fn pushed_out<S: Sink>(
        &mut self,
        queues: &mut Queues<Start>,
        slot: u32,
        packet: &Packet,
        sink: &mut S,
    ) {
        if queues.is_idle(slot) {
            queues.forget(packet.flow, sink);
            self.heads.pushed_out(queues.flows(), |slot| entry(queues, slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::format;
    use alloc::vec::Vec;

    use super::super::Flow;
    use super::*;
    use crate::interface::{Drop, DropReason, FlowId};
    use crate::spec::Spec;
    use crate::testkit::{Bench, Random};

    #[test]
    fn a_backlogged_flow_costs_thirty_two_bytes() {
        assert_eq!(size_of::<Flow<Start>>(), 32);
    }

    /// Tags of flow 1: 1000, 2000, 3000. Of flow 2: 400, 800, 1200.
    #[test]
    fn the_smallest_tag_goes_first() {
        let mut scfq = Bench::new("scfq");
        for _ in 0..3 {
            scfq.enqueue(1, 1000); // ids 0, 1, 2
        }
        for _ in 0..3 {
            scfq.enqueue(2, 400); // ids 3, 4, 5
        }
        assert_eq!(scfq.depart(3), [3, 4, 0]); // v is 1000
        scfq.enqueue(3, 500); // id 6: tag 1500
        scfq.enqueue(2, 300); // id 7: tag 1500, behind 1200; it arrived later
        assert_eq!(scfq.drain(), [5, 6, 7, 1, 2]);
        assert_eq!(scfq.qdisc.flows(), 0, "an idle flow is forgotten");
    }

    #[test]
    fn a_dropped_arrival_does_not_advance_its_flow() {
        let mut scfq = Bench::new("scfq:limit=3packets");
        scfq.enqueue(1, 1000); // id 0, tag 1000
        scfq.enqueue(1, 1000); // id 1, tag 2000
        scfq.enqueue(2, 1100); // id 2, tag 1100
        scfq.enqueue(2, 1100); // id 3: lost
        scfq.enqueue(3, 500); // id 4: lost, and leaves no entry
        assert_eq!(scfq.take_drops(), [(3, DropReason::Full), (4, DropReason::Full)]);
        assert_eq!(scfq.qdisc.flows(), 2);
        assert_eq!(scfq.depart(1), [0]);
        scfq.enqueue(2, 800); // id 5: tag 1900; were the lost one counted, 3000
        assert_eq!(scfq.drain(), [2, 5, 1]);
    }

    #[test]
    fn the_longest_queue_loses_its_newest_packet_and_the_tag_of_it() {
        let mut scfq = Bench::new("scfq:limit=3packets,drop=longest-queue");
        scfq.enqueue(1, 1000); // id 0, tag 1000
        scfq.enqueue(1, 1000); // id 1, tag 2000
        scfq.enqueue(2, 1500); // id 2, tag 1500
        scfq.enqueue(3, 700); // id 3, tag 700
        assert_eq!(scfq.take_drops(), [(1, DropReason::PushedOut)]);
        assert_eq!(scfq.depart(1), [3]);
        scfq.enqueue(1, 450); // id 4: tag 1450; were the lost one counted, 2450
        assert_eq!(scfq.depart(2), [0, 4]);
        // The longest is the arrival's own queue.
        scfq.enqueue(2, 100); // id 5
        scfq.enqueue(2, 100); // id 6
        scfq.enqueue(2, 100); // id 7
        assert_eq!(scfq.take_drops(), [(7, DropReason::Full)]);
        assert_eq!(scfq.drain(), [2, 5, 6]);
    }

    /// Every flow has one packet, so that a push-out takes a head, and its slot is used again.
    #[test]
    fn a_head_that_is_pushed_out_leaves_nothing_behind() {
        let mut scfq = Bench::new("scfq:limit=2packets,drop=longest-queue");
        scfq.enqueue(1, 1000); // id 0
        scfq.enqueue(2, 900); // id 1
        scfq.enqueue(3, 800); // id 2 pushes out id 0
        scfq.enqueue(1, 850); // id 3 pushes out id 1
        let lost: Vec<u64> = scfq.take_drops().iter().map(|drop| drop.0).collect();
        assert_eq!((lost, scfq.qdisc.flows()), ([0, 1].into(), 2));
        assert_eq!(scfq.drain(), [2, 3]);
    }

    fn new(spec: &str) -> Fair<Scfq> {
        let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{error}"));
        Fair::new(spec.params())
    }

    #[test]
    fn the_heap_stays_small_while_nothing_is_sent() {
        let mut scfq = new("scfq:limit=50packets,drop=longest-queue");
        let mut sink: Vec<(Packet, Drop)> = Vec::new();
        for flow in 1..=10_000 {
            scfq.enqueue(Packet::new(FlowId::new(flow), 1000), Nanos::ZERO, &mut sink);
            let (entries, stale) = scfq.service.heads.len();
            assert!(entries <= 2 * 50 + 17, "{entries} entries for 50 packets");
            assert_eq!(entries, scfq.queues.flows() + stale);
        }
    }

    #[test]
    fn virtual_time_grows_in_a_busy_period_and_starts_again_after_it() {
        for (seed, policy) in (0..50).flat_map(|n| [(n, "tail"), (n, "longest-queue")]) {
            let mut scfq = new(&format!("scfq:limit=20packets,drop={policy}"));
            let mut sink: Vec<(Packet, Drop)> = Vec::new();
            let mut random = Random(seed);
            let (mut busy_periods, mut last) = (0, 0);
            for step in 0..3000 {
                if random.below(100) < if step / 100 % 2 == 0 { 60 } else { 30 } {
                    let flow = FlowId::new(1 + random.below(6));
                    let packet = Packet::new(flow, 40 + random.below(1461) as u32);
                    scfq.enqueue(packet, Nanos::ZERO, &mut sink);
                } else if scfq.dequeue(Nanos::ZERO, &mut sink).packet().is_some() {
                    let virtual_time = scfq.service.virtual_time;
                    if scfq.queues.packets() == 0 {
                        assert_eq!((virtual_time, scfq.service.heads.len()), (0, (0, 0)));
                        busy_periods += 1;
                    } else {
                        assert!(virtual_time >= last, "seed {seed}, step {step}");
                    }
                    last = virtual_time;
                }
            }
            assert!(busy_periods > 3);
        }
    }

    /// Golestani's bound: of two flows that are backlogged throughout any interval, the service
    /// differs by the sum of their largest packets at most.
    #[test]
    fn backlogged_flows_share_to_within_a_packet_each() {
        for seed in 0..60 {
            let mut random = Random(seed);
            let largest: [u32; 4] = core::array::from_fn(|_| 40 + random.below(8961) as u32);
            let mut scfq = Bench::new("scfq:limit=100000packets");
            let mut queued = [0u32; 4];
            // Bytes by which one flow is ahead of another: now, least, most since both have been
            // backlogged.
            let mut leads: BTreeMap<(usize, usize), [i64; 3]> = BTreeMap::new();
            let mut checked = 0;
            for _ in 0..6000 {
                if random.below(100) < 51 {
                    let flow = random.below(4) as usize;
                    scfq.enqueue(
                        flow as u64 + 1,
                        1 + random.below(u64::from(largest[flow])) as u32,
                    );
                    queued[flow] += 1;
                    continue;
                }
                let Some(packet) = scfq.dequeue() else { continue };
                let flow = packet.flow.get() as usize - 1;
                queued[flow] -= 1;
                leads.retain(|(a, b), _| queued[*a] > 0 && queued[*b] > 0);
                let others = (0..4).filter(|other| *other != flow && queued[*other] > 0);
                for other in others.filter(|_| queued[flow] > 0) {
                    let pair = (flow.min(other), flow.max(other));
                    let bytes = i64::from(packet.size);
                    let [now, least, most] = leads.entry(pair).or_default();
                    *now += if flow == pair.0 { bytes } else { -bytes };
                    (*least, *most) = ((*least).min(*now), (*most).max(*now));
                    let bound = i64::from(largest[pair.0]) + i64::from(largest[pair.1]);
                    assert!(*most - *least <= bound, "{pair:?}: {least} to {most}, bound {bound}");
                    checked += 1;
                }
            }
            assert!(checked > 500, "{checked} intervals");
        }
    }
}
