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

use crate::disciplines::sorted::{Order, Sorted};
use crate::interface::{Discipline, Info, Nanos, Needs, Packet, Params, Qdisc, Sink, shared};
use crate::queues::per_flow::{FlowQueue, Node};

/// Shortest remaining processing time.
pub(crate) struct Srpt;

impl Discipline for Srpt {
    const INFO: Info = Info {
        name: "srpt",
        summary: "shortest remaining size first: the clairvoyant reference, for simulation",
        source: "Schrage, \"A proof of the optimality of the shortest remaining processing time \
                 discipline\", 1968",
        params: &[
            shared::LIMIT.any(),
            shared::SWEEP.any(),
            shared::IDLE.any(),
            shared::FLOWS.any(),
        ],
        needs: Needs { flow_size: true, offset: false, hosts: false },
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Box::new(Sorted::<Self>::new(params))
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

    fn departed(&mut self, flow: &mut Progress, packet: &Packet, _next: u32, _now: Nanos) {
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

#[cfg(test)]
mod tests {
    use alloc::collections::{BTreeMap, VecDeque};
    use alloc::format;

    use super::*;
    use crate::disciplines::sorted::FlowState;
    use crate::interface::{DropReason, FlowId};
    use crate::testkit::{Bench, Random};

    fn packet(flow: u64, flow_size: u64, size: u32) -> Packet {
        Packet::new(FlowId::new(flow), size).with_flow_size(flow_size)
    }

    #[test]
    fn a_flow_costs_one_cache_line() {
        assert_eq!(size_of::<FlowState<Progress>>(), 64);
    }

    #[test]
    fn the_flow_with_the_least_to_come_goes_first() {
        let mut srpt = Bench::new("srpt");
        for _ in 0..3 {
            srpt.offer(packet(1, 4000, 1000)); // ids 0, 1, 2
        }
        srpt.offer(packet(2, 3000, 1000)); // id 3
        srpt.offer(packet(3, 3000, 1000)); // id 4: a tie, and later
        srpt.enqueue(4, 100); // id 5: of unknown size
        assert_eq!(srpt.depart(2), [3, 4]);
        srpt.offer(packet(1, 4000, 1000)); // id 6
        assert_eq!(srpt.depart(3), [0, 1, 2]); // 4000, then 3000 and 2000 to come
        srpt.offer(packet(5, 1000, 1000)); // id 7: a tie with flow 1, and later
        assert_eq!(srpt.drain(), [6, 7, 5]);
    }

    #[test]
    fn a_full_queue_loses_the_newest_packet_of_the_flow_with_most_to_come() {
        let mut srpt = Bench::new("srpt:limit=3packets");
        srpt.offer(packet(1, 9000, 1000)); // id 0
        srpt.offer(packet(1, 9000, 1000)); // id 1
        srpt.offer(packet(2, 2000, 1000)); // id 2
        srpt.offer(packet(2, 2000, 1000)); // id 3
        assert_eq!(srpt.take_drops(), [(1, DropReason::PushedOut)]);
        srpt.offer(packet(3, 9001, 1000)); // id 4
        assert_eq!(srpt.take_drops(), [(4, DropReason::Full)]);
        assert_eq!(srpt.drain(), [2, 3, 0]);
    }

    #[test]
    fn bytes_that_depart_again_are_not_new() {
        let mut flow = Progress::default();
        let mut advance = |offset| flow.advance(&packet(1, 9000, 1000).with_offset(offset));
        assert_eq!(advance(0), 1000);
        assert_eq!(advance(1000), 1000);
        assert_eq!(advance(1000), 0, "departed before");
        assert_eq!(advance(3000), 1000, "2000 is skipped");
        assert_eq!(advance(2000), 1000, "and filled");
        assert_eq!(advance(2000), 0);
        assert_eq!(advance(3500), 500, "half of it is new");
    }

    #[test]
    fn a_retransmission_does_not_advance_the_flow() {
        let mut srpt = Bench::new("srpt");
        let of = |offset| packet(1, 3000, 1000).with_offset(offset);
        srpt.offer(of(0)); // id 0
        srpt.offer(of(0)); // id 1
        srpt.offer(of(1000)); // id 2
        assert_eq!(srpt.depart(2), [0, 1]);
        srpt.offer(packet(2, 1500, 1000)); // id 3: less than the 2000 still to come
        assert_eq!(srpt.drain(), [3, 2]);
    }

    /// Equal packets, all present at once: no other discipline completes flows sooner on average.
    #[test]
    fn the_mean_completion_is_the_least_of_all() {
        let total = |name: &str| -> usize {
            let mut random = Random(3);
            let sizes: [u64; 12] = core::array::from_fn(|_| 1 + random.below(30));
            let mut queue = Bench::new(&format!("{name}:limit=1000packets"));
            let mut left = sizes;
            while left.iter().any(|n| *n > 0) {
                let flow = random.below(12) as usize;
                if left[flow] > 0 {
                    left[flow] -= 1;
                    queue.offer(packet(1 + flow as u64, sizes[flow] * 1000, 1000));
                }
            }
            let mut end = BTreeMap::new();
            let mut time = 0;
            while let Some(packet) = queue.dequeue() {
                time += 1;
                end.insert(packet.flow, time);
            }
            end.values().sum()
        };
        let srpt = total("srpt");
        for other in ["fifo", "las", "drr", "fq-codel"] {
            assert!(srpt <= total(other), "{other}");
        }
    }

    /// The same random operations on the discipline and on an obvious model.
    #[test]
    fn it_agrees_with_a_queue_per_flow_that_is_searched() {
        #[derive(Default)]
        struct Flow {
            remaining: u64,
            start: u64,
            queue: VecDeque<u64>,
        }
        for seed in 0..200 {
            let mut random = Random(seed);
            let limit = 1 + random.below(15);
            let mut srpt = Bench::new(&format!("srpt:limit={limit}packets,sweep=inf"));
            let mut flows: BTreeMap<u64, Flow> = BTreeMap::new();
            let mut backlog = 0;
            for _ in 0..1500 {
                if random.below(100) < 53 {
                    let key = 1 + random.below(9);
                    let id = srpt.offer(packet(key, 7000 * key, 1000));
                    let new = || Flow { remaining: 7000 * key, start: id, ..Flow::default() };
                    flows.entry(key).or_insert_with(new).queue.push_back(id);
                    backlog += 1;
                    if backlog > limit {
                        let backlogged = flows.values_mut().filter(|f| !f.queue.is_empty());
                        let most = backlogged.max_by_key(|f| (f.remaining, f.start)).unwrap();
                        let lost = most.queue.pop_back().unwrap();
                        backlog -= 1;
                        assert_eq!(srpt.take_drops()[0].0, lost, "seed {seed}");
                    }
                    assert_eq!(srpt.take_drops(), []);
                } else {
                    let backlogged = flows.values_mut().filter(|f| !f.queue.is_empty());
                    let next = backlogged.min_by_key(|f| (f.remaining, f.start));
                    let expected = next.map(|flow| {
                        flow.remaining = flow.remaining.saturating_sub(1000);
                        backlog -= 1;
                        flow.queue.pop_front().unwrap()
                    });
                    assert_eq!(srpt.dequeue().map(|p| p.id), expected, "seed {seed}");
                }
            }
        }
    }
}
