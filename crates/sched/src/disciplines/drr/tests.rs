use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;

use super::*;
use crate::interface::FlowId;
use crate::testkit::{Bench, Random};

#[test]
fn a_backlogged_flow_costs_forty_bytes() {
    assert_eq!(size_of::<Flow>(), 40);
}

/// Four flows with a quantum of 500: what does not fit in a turn goes in the next.
#[test]
fn what_is_left_of_a_quantum_is_carried_over() {
    let mut drr = Bench::new("drr:quantum=500b");
    let queues: [(u64, &[u32]); 4] =
        [(1, &[200, 750, 20]), (2, &[500, 500]), (3, &[200, 600, 100]), (4, &[50, 700, 180])];
    for (flow, sizes) in queues {
        for size in sizes {
            drr.enqueue(flow, *size);
        }
    }
    assert_eq!(drr.qdisc.flows(), 4);
    // Flow 1 keeps 300 of its first turn, so 750 fits in the second; and so on.
    assert_eq!(drr.drain(), [0, 3, 5, 8, 1, 2, 4, 6, 7, 9, 10]);
    assert_eq!(drr.qdisc.flows(), 0, "an empty flow is forgotten");
}

#[test]
fn a_packet_larger_than_the_quantum_waits_for_several_turns() {
    let mut drr = Bench::new("drr:quantum=500b");
    drr.enqueue(1, 1500);
    for _ in 0..3 {
        drr.enqueue(2, 500);
    }
    assert_eq!(drr.drain(), [1, 2, 0, 3]);
}

#[test]
fn an_emptied_flow_loses_its_deficit_and_its_place() {
    let mut drr = Bench::new("drr:quantum=1500b");
    drr.enqueue(1, 100); // id 0
    drr.enqueue(2, 1500); // id 1
    assert_eq!(drr.depart(1), [0]);
    drr.enqueue(1, 1500); // id 2
    drr.enqueue(1, 1500); // id 3: 1400 of the first turn would let it go at once
    drr.enqueue(2, 1500); // id 4
    assert_eq!(drr.drain(), [1, 2, 4, 3]);
}

#[test]
fn the_longest_queue_is_robbed() {
    for (victim, lost, left) in [("tail", 2, [0, 3, 1, 4]), ("head", 0, [1, 3, 2, 4])] {
        let mut drr = Bench::new(&format!("drr:limit=4packets,victim={victim}"));
        drr.enqueue(7, 100); // id 0 ..
        drr.enqueue(7, 1500);
        drr.enqueue(7, 1500); // .. id 2
        drr.enqueue(8, 1500); // id 3
        assert_eq!(drr.take_drops(), []);
        drr.enqueue(8, 1500); // id 4
        assert_eq!(drr.take_drops(), [(lost, DropReason::PushedOut)]);
        assert_eq!(drr.drain(), left);
    }
}

#[test]
fn of_two_longest_queues_the_one_backlogged_longest_is_robbed() {
    let mut drr = Bench::new("drr:limit=2packets");
    drr.enqueue(9, 1000); // id 0
    drr.enqueue(1, 1000); // id 1
    drr.enqueue(5, 400); // id 2
    assert_eq!(drr.take_drops(), [(0, DropReason::PushedOut)]);
    drr.enqueue(4, 1001); // id 3: the longest itself
    assert_eq!(drr.take_drops(), [(3, DropReason::Full)]);
    assert_eq!(drr.drain(), [1, 2]);
}

#[test]
fn one_flow_is_a_fifo() {
    let mut random = Random(2);
    let mut drr = Bench::new("drr:limit=9000b,quantum=300b");
    let mut fifo = Bench::new("fifo:limit=9000b");
    for _ in 0..20_000 {
        if random.below(100) < 53 {
            let size = 1 + random.below(10_000) as u32;
            drr.enqueue(1, size);
            fifo.enqueue(1, size);
        } else {
            assert_eq!(drr.dequeue(), fifo.dequeue());
        }
        assert_eq!(drr.log.drops, fifo.log.drops);
    }
}

/// Service of two flows that stay backlogged differs by a quantum and two packets at most.
#[test]
fn backlogged_flows_share_to_within_the_bound() {
    for quantum in [64, 500, 1500, 4000] {
        let mut random = Random(quantum);
        let mut drr = Bench::new(&format!("drr:limit=100000packets,quantum={quantum}b"));
        for _ in 0..12_000 {
            drr.enqueue(1 + random.below(3), 1 + random.below(1500) as u32);
        }
        let mut served = [0i64; 3];
        for _ in 0..6000 {
            let packet = drr.dequeue().unwrap();
            served[packet.flow.get() as usize - 1] += i64::from(packet.size);
            let spread = served.iter().max().unwrap() - served.iter().min().unwrap();
            assert!(spread <= quantum as i64 + 2 * 1500, "{served:?}");
        }
    }
}

/// A line of flows, searched from end to end.
struct Model {
    limit: u64,
    quantum: u64,
    head: bool,
    line: VecDeque<(FlowId, u64, VecDeque<Packet>)>,
    in_turn: bool,
}

impl Model {
    fn bytes(queue: &VecDeque<Packet>) -> u64 {
        queue.iter().map(|packet| u64::from(packet.size)).sum()
    }

    fn enqueue(&mut self, packet: Packet, since: &[FlowId]) -> Option<u64> {
        match self.line.iter_mut().find(|(flow, ..)| *flow == packet.flow) {
            Some((.., queue)) => queue.push_back(packet),
            None => self.line.push_back((packet.flow, 0, [packet].into())),
        }
        if self.line.iter().map(|(.., queue)| queue.len() as u64).sum::<u64>() <= self.limit {
            return None;
        }
        let age = |flow: &FlowId| since.iter().position(|f| f == flow).unwrap_or(since.len());
        let longest = |at: &usize| {
            let (flow, _, queue) = &self.line[*at];
            (Self::bytes(queue), core::cmp::Reverse(age(flow)))
        };
        let at = (0..self.line.len()).max_by_key(longest)?;
        let queue = &mut self.line[at].2;
        let lost = if self.head { queue.pop_front()? } else { queue.pop_back()? };
        if queue.is_empty() {
            self.line.remove(at);
            self.in_turn &= at != 0;
        }
        Some(lost.id)
    }

    fn dequeue(&mut self) -> Option<u64> {
        loop {
            let (_, deficit, queue) = self.line.front_mut()?;
            *deficit += if self.in_turn { 0 } else { self.quantum };
            self.in_turn = true;
            if u64::from(queue[0].size) <= *deficit {
                let packet = queue.pop_front()?;
                *deficit -= u64::from(packet.size);
                if queue.is_empty() {
                    self.line.pop_front();
                    self.in_turn = false;
                }
                return Some(packet.id);
            }
            self.line.rotate_left(1);
            self.in_turn = false;
        }
    }
}

#[test]
fn it_agrees_with_a_line_that_is_searched() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let limit = 1 + random.below(20);
        let quantum = 64 + random.below(2000);
        let head = seed % 2 == 0;
        let victim = if head { "head" } else { "tail" };
        let spec = format!("drr:limit={limit}packets,quantum={quantum}b,victim={victim}");
        let mut drr = Bench::new(&spec);
        let line = VecDeque::new();
        let mut model = Model { limit, quantum, head, line, in_turn: false };
        // Backlogged flows, the one that has been so longest first.
        let mut since: Vec<FlowId> = Vec::new();
        for step in 0..1500 {
            if random.below(100) < 53 {
                let flow = FlowId::new(1 + random.below(8));
                let packet = Packet::new(flow, [40, 576, 1500][random.below(3) as usize]);
                let id = drr.offer(packet);
                if !since.contains(&flow) {
                    since.push(flow);
                }
                let lost = model.enqueue(packet.with_id(id), &since);
                let told = drr.take_drops();
                assert_eq!(told.first().map(|d| d.0), lost, "seed {seed}, step {step}");
                assert!(told.len() <= 1);
            } else {
                let departed = drr.dequeue().map(|packet| packet.id);
                assert_eq!(departed, model.dequeue(), "seed {seed}, step {step}");
            }
            since.retain(|flow| model.line.iter().any(|(f, ..)| f == flow));
            assert_eq!(drr.qdisc.flows(), since.len());
        }
    }
}
