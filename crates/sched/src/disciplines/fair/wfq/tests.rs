use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::Flow;
use super::*;
use crate::interface::{Drop, Qdisc};
use crate::spec::Spec;
use crate::testkit::{Bench, Random};

#[test]
fn a_flow_costs_sixty_four_bytes() {
    assert_eq!(size_of::<Flow<Fluid>>(), 64);
}

/// Flow n has the DSCP n, and this weight.
const WEIGHTS: [f64; 4] = [1.0, 1.0, 4.0, 2.5];
const SPEC: &str = "wfq:limit=100000packets,drop=tail,rate=8mbit,weights=2+8@2+5@3";

fn packet(flow: u8, size: u32) -> Packet {
    let mut packet = Packet::new(FlowId::new(u64::from(flow) + 1), size);
    packet.dscp = flow;
    packet
}

/// When GPS at a byte per microsecond ends each of these packets: times, flows, sizes.
fn fluid_ends(arrivals: &[(f64, u8, u32)]) -> Vec<f64> {
    let mut ends = alloc::vec![f64::INFINITY; arrivals.len()];
    let mut queues: [Vec<(usize, f64)>; 4] = Default::default();
    let (mut now, mut next) = (0.0, 0);
    loop {
        let flows = (0..4).filter(|flow| !queues[*flow].is_empty());
        let weight: f64 = flows.clone().map(|flow| WEIGHTS[flow]).sum();
        let head_ends = flows.map(|flow| now + queues[flow][0].1 * weight / WEIGHTS[flow]);
        let head_ends = head_ends.fold(f64::INFINITY, f64::min);
        let arrives = arrivals.get(next).map_or(f64::INFINITY, |arrival| arrival.0);
        let until = head_ends.min(arrives);
        if until.is_infinite() {
            return ends;
        }
        for flow in 0..4 {
            if let Some(head) = queues[flow].first_mut() {
                head.1 -= (until - now) * WEIGHTS[flow] / weight;
                if head.1 < 1e-7 {
                    ends[head.0] = until;
                    queues[flow].remove(0);
                }
            }
        }
        now = until;
        if arrives <= head_ends {
            let (_, flow, size) = arrivals[next];
            queues[usize::from(flow)].push((next, f64::from(size)));
            next += 1;
        }
    }
}

/// Parekh and Gallager's theorem 1, on a link of a byte per microsecond.
#[test]
fn no_packet_ends_later_than_in_the_fluid_system_by_more_than_the_largest() {
    let mut latest = f64::MIN;
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut time = 0;
        let arrivals: Vec<(f64, u8, u32)> = (0..600)
            .map(|n| {
                time += random.below(if n / 100 % 2 == 0 { 600 } else { 2500 });
                let size = [40, 1500, 1 + random.below(1500) as u32][random.below(3) as usize];
                (time as f64, random.below(4) as u8, size)
            })
            .collect();
        let ends = fluid_ends(&arrivals);
        let mut wfq = Bench::new(SPEC);
        let (mut free, mut next) = (0.0, 0);
        for _ in 0..arrivals.len() {
            // The link takes its next packet when it is free, or when one comes.
            let due = if wfq.qdisc.backlog().packets > 0 { free } else { arrivals[next].0 };
            let due = due.max(free);
            while let Some((time, flow, size)) = arrivals.get(next).filter(|a| a.0 <= due) {
                wfq.now = Nanos((*time * 1000.0) as u64);
                wfq.offer(packet(*flow, *size));
                next += 1;
            }
            wfq.now = Nanos((due * 1000.0) as u64);
            let sent = wfq.dequeue().expect("a packet is there");
            free = due + f64::from(sent.size);
            let late = free - ends[sent.id as usize];
            assert!(late <= 1500.001, "seed {seed}: {} is {late} us late", sent.id);
            latest = latest.max(late);
        }
    }
    assert!(latest > 1000.0, "the bound is nearly met: {latest}");
}

/// Packets so large that numbers are lowered every few of them, and flows that come and go.
#[test]
fn a_busy_period_of_any_length_keeps_the_shares() {
    let spec: Spec = "wfq:limit=100000packets".parse().unwrap();
    let mut wfq: Fair<Wfq> = Fair::new(spec.params());
    let mut sink: Vec<(Packet, Drop)> = Vec::new();
    let mut random = Random(3);
    let offer = |wfq: &mut Fair<Wfq>, flow: u64, size: u32| {
        let mut sink: Vec<(Packet, Drop)> = Vec::new();
        wfq.enqueue(Packet::new(FlowId::new(flow), size), Nanos::ZERO, &mut sink);
    };
    let mut served: BTreeMap<u64, u64> = BTreeMap::new();
    for flow in [1, 2, 1, 2] {
        offer(&mut wfq, flow, 1 << 31);
    }
    for _ in 0..5000 {
        if random.below(3) == 0 {
            offer(&mut wfq, 3 + random.below(5), random.below(1 << 32) as u32);
        }
        let Some(sent) = wfq.dequeue(Nanos::ZERO, &mut sink).packet() else { break };
        *served.entry(sent.flow.get()).or_default() += u64::from(sent.size);
        if sent.flow.get() <= 2 {
            offer(&mut wfq, sent.flow.get(), 1 + random.below(1 << 32) as u32);
        }
        assert!(wfq.service.time < 2 * MOST_TIME, "{}", wfq.service.time);
        let apart = served.get(&1).unwrap_or(&0).abs_diff(*served.get(&2).unwrap_or(&0));
        assert!(apart <= 2 << 32, "{apart}");
    }
    assert!(served.values().sum::<u64>() > 100 * (MOST_TIME >> 20), "lowered many times");
}

/// A flow that is pushed out time and again comes back with the same finish every time. What it
/// left behind is swept out with the rest, also while it is in the fluid system itself.
#[test]
fn a_flow_that_comes_back_leaves_nothing_behind() {
    let mut wfq = Bench::new("wfq:limit=2packets");
    wfq.enqueue(1, 40);
    wfq.enqueue(2, 40);
    for _ in 0..16 {
        wfq.enqueue(3, 1500);
    }
    wfq.change("wfq:limit=3packets").unwrap();
    wfq.enqueue(3, 1500);
    for _ in 0..16 {
        wfq.enqueue(4, 9000);
    }
    assert_eq!(wfq.take_drops().len(), 32);
    assert_eq!(wfq.drain(), [0, 1, 18]);
    assert_eq!(wfq.qdisc.flows(), 0);
}

#[test]
fn a_weight_that_is_none_is_refused_with_the_reason() {
    for (weights, reason) in [
        ("0", "weight '0' is not a whole number from 1 to 1000"),
        ("1+-2@ef", "weight '-2'"),
        ("1+2@ef/46", "code 46 is there twice"),
        ("1+2@zz", "'zz' is not a DSCP"),
        ("997+991@ef+983@le", "no common multiple up to"),
    ] {
        for name in ["wfq", "wf2q+"] {
            let error = alloc::format!("{name}:weights={weights}").parse::<Spec>().unwrap_err();
            let error = alloc::format!("{error}");
            assert!(error.contains(reason) && error.contains("1+4@ef"), "{error}");
        }
    }
}
