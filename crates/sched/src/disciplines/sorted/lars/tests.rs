extern crate std;

use alloc::format;
use alloc::vec::Vec;

use super::*;
use crate::disciplines::sorted::FlowState;
use crate::interface::{DropReason, FlowId};
use crate::spec::Spec;
use crate::testkit::{Bench, Random};

#[test]
fn a_flow_costs_thirty_two_bytes() {
    assert_eq!(size_of::<FlowState<Recent>>(), 32);
}

#[test]
fn powers_of_two_are_right_and_grow() {
    let mut before = 0;
    for step in 0..=100_000u64 {
        let x = (u64::MAX / 100_000) * step;
        let expected = (x as f64 / 2f64.powi(64)).exp2();
        let power = exp2(x);
        assert!((power as f64 / 2f64.powi(63) / expected - 1.0).abs() < 1e-8, "{x}");
        assert!(power >= before, "{x}");
        before = power;
    }
    assert_eq!(exp2(0), 1 << 63);
    assert!(exp2(u64::MAX) > u64::MAX - (1 << 40), "just below 2, and no overflow");
}

#[test]
fn leading_bits_keep_the_order() {
    assert_eq!(significant((1 << 46) - 1), (1 << 46) - 1);
    assert!(significant(u64::MAX) < 1 << 50);
    for bit in 45..64 {
        for x in [(1u64 << bit) - (1 << 18), 1 << bit, (1 << bit) + (1 << 18)] {
            assert!(significant(x) < significant(x.saturating_add(1 << 18)), "{x:x}");
            assert!(significant(x) <= significant(x + 1), "{x:x}");
        }
    }
}

/// Flow 1 was served 2000, and a half-life later flow 2 was served 1500.
#[test]
fn what_was_served_long_ago_counts_less() {
    for (spec, order) in [("lars:half-life=1s", [3, 2]), ("las", [2, 3])] {
        let mut queue = Bench::new(spec);
        queue.enqueue(1, 2000); // id 0
        assert_eq!(queue.drain(), [0]);
        queue.advance(Nanos::from_secs(1));
        queue.enqueue(2, 1500); // id 1
        assert_eq!(queue.drain(), [1]);
        queue.enqueue(2, 1000); // id 2
        queue.enqueue(1, 1000); // id 3: a volume of 1000 against 1500
        assert_eq!(queue.drain(), order, "{spec}");
    }
}

/// Flow 1 was served 1000 and has one packet; flow 2 was served nothing and has four.
#[test]
fn the_two_victims_differ_and_one_of_them_ages() {
    for (victim, seconds, lost) in
        [("most-served", 0, 1), ("key", 0, 5), ("most-served", 5, 1), ("key", 5, 5)]
    {
        let mut lars = Bench::new(&format!("lars:limit=5packets,half-life=1s,victim={victim}"));
        lars.enqueue(1, 1000); // id 0
        assert_eq!(lars.drain(), [0]);
        lars.enqueue(1, 1000); // id 1
        for _ in 0..4 {
            lars.enqueue(2, 1000); // ids 2 to 5
        }
        lars.advance(Nanos::from_secs(seconds));
        lars.enqueue(3, 1000); // id 6
        assert_eq!(lars.take_drops(), [(lost, DropReason::PushedOut)], "{victim}");
    }
    // Volume 4000 against 3000 bytes queued ahead: the larger key, until it has halved.
    for (seconds, lost) in [(0, 1), (1, 5)] {
        let mut lars = Bench::new("lars:limit=5packets,half-life=1s,victim=key");
        lars.enqueue(1, 4000); // id 0
        assert_eq!(lars.drain(), [0]);
        lars.enqueue(1, 1000); // id 1
        for _ in 0..4 {
            lars.enqueue(2, 1000); // ids 2 to 5
        }
        lars.advance(Nanos::from_secs(seconds));
        lars.enqueue(3, 1000); // id 6
        assert_eq!(lars.take_drops(), [(lost, DropReason::PushedOut)], "after {seconds} s");
    }
}

fn lars(spec: &str) -> Lars {
    let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{error}"));
    Lars::new(spec.params())
}

/// Lets a packet of the flow depart at `now`, after `others` have been brought down if due.
fn serve(lars: &mut Lars, flows: &mut [Recent], served: usize, size: u32, now: Nanos) {
    if lars.tick(now) {
        lars.rebase(flows.iter_mut());
    }
    let packet = Packet::new(FlowId::new(1), size);
    let flow = &mut flows[served];
    lars.joined(flow, &packet, 0, true);
    lars.departed(flow, &packet, 0, now);
}

#[test]
fn time_never_changes_the_order_of_flows_that_are_not_served() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut lars = lars("lars:half-life=700ms");
        let mut now = Nanos::ZERO;
        let mut flows = [Recent::default(); 20];
        for _ in 0..200 {
            now += Nanos(random.below(300_000_000));
            let (flow, size) = (random.below(20) as usize, 40 + random.below(1461) as u32);
            serve(&mut lars, &mut flows, flow, size, now);
        }
        let mut order: Vec<usize> = (1..20).collect();
        order.sort_by_key(|index| flows[*index].inflated);
        let distinct = |flows: &[Recent; 20]| {
            order.windows(2).filter(|p| flows[p[0]].inflated < flows[p[1]].inflated).count()
        };
        assert_eq!(distinct(&flows), 18, "seed {seed}");
        let mut rebased = 0;
        for _ in 0..300 {
            // Flow 0 alone is served.
            now += Nanos(random.below(300_000_000));
            let largest = flows[order[18]].inflated;
            serve(&mut lars, &mut flows, 0, 1500, now);
            rebased += u32::from(flows[order[18]].inflated < largest);
            let kept = |pair: &[usize]| flows[pair[0]].inflated <= flows[pair[1]].inflated;
            assert!(order.windows(2).all(kept), "seed {seed}");
            // Only what has faded to less than a unit becomes equal.
            assert!(rebased > 0 || distinct(&flows) == 18, "seed {seed}");
        }
        assert!(rebased >= 3, "{rebased}");
    }
}

/// The volume that the definition gives: of bytes served at these times.
fn volume(services: &[(u32, Nanos)], now: Nanos, half_life: Nanos) -> f64 {
    let faded = |(size, then): &(u32, Nanos)| {
        f64::from(*size) * (-(now.since(*then).0 as f64 / half_life.0 as f64)).exp2()
    };
    services.iter().map(faded).sum()
}

#[test]
fn the_volume_is_that_of_the_definition_whenever_it_is_brought_down() {
    for (half_life, gap) in [(1, 1), (1, 40), (5_000, 3), (3_600_000, 500_000)] {
        let half_life = Nanos::from_millis(half_life);
        let mut lars = lars(&format!("lars:half-life={}ms", half_life.0 / 1_000_000));
        let mut random = Random(gap);
        let (mut now, mut flows) = (Nanos(12_345), [Recent::default()]);
        let mut services = Vec::new();
        for _ in 0..3000 {
            now += Nanos(random.below(gap * 1_000_000));
            let size = 40 + random.below(1461) as u32;
            serve(&mut lars, &mut flows, 0, size, now);
            services.push((size, now));
            let found = lars.inflation.deflator().volume(flows[0].inflated) as f64 / 256.0;
            let expected = volume(&services, now, half_life);
            assert!((found - expected).abs() < 0.1 + 1e-5 * expected, "{found}, {expected}");
        }
    }
}

/// A link of 10 Mbit/s and packets of 1250 bytes: one per millisecond.
const PACKET_TIME: Nanos = Nanos::from_millis(1);
const BYTES_PER_SECOND: f64 = 1_250_000.0;

#[test]
fn a_flow_of_steady_rate_has_its_volume() {
    let half_life = 5.0;
    let mut lars = lars("lars:half-life=5s");
    let (mut now, mut flows) = (Nanos::ZERO, [Recent::default()]);
    // 64 kbit/s in packets of 160 bytes, for 100 s.
    for _ in 0..5_000 {
        now += Nanos::from_millis(20);
        serve(&mut lars, &mut flows, 0, 160, now);
    }
    let found = lars.inflation.deflator().volume(flows[0].inflated) as f64 / 256.0;
    let expected = 8_000.0 * half_life / core::f64::consts::LN_2;
    assert!((found / expected - 1.0).abs() < 0.005, "{found}, {expected}");
}

/// The link is never idle. Flow 1 has had it alone for so long, then flow 2 comes.
fn lock_out(half_life: u64, alone: u64) -> Nanos {
    let mut lars = Bench::new(&format!("lars:half-life={half_life}s,idle=inf"));
    let mut longest = Nanos::ZERO;
    let mut last = Nanos::ZERO;
    while lars.now < Nanos::from_secs(alone + 3 * half_life) {
        lars.enqueue(1, 1250);
        if lars.now >= Nanos::from_secs(alone) {
            lars.enqueue(2, 1250);
        }
        lars.take_drops();
        if lars.dequeue().is_some_and(|packet| packet.flow == FlowId::new(1)) {
            longest = Nanos(longest.0.max(lars.now.since(last).0));
            last = lars.now;
        }
        lars.advance(PACKET_TIME);
    }
    longest
}

/// A volume V0 is overtaken after ln(1 + lambda V0 / C) / lambda, which is a half-life where V0
/// is all that the link can give.
#[test]
fn a_new_flow_locks_an_old_one_out_for_a_half_life_at_most() {
    for (half_life, alone) in [(1, 20), (5, 60), (5, 2)] {
        let longest = lock_out(half_life, alone).0 as f64 / 1e9;
        let lambda = core::f64::consts::LN_2 / half_life as f64;
        let largest = BYTES_PER_SECOND / lambda;
        let volume = largest * (1.0 - (-lambda * alone as f64).exp());
        let expected = (lambda * volume / BYTES_PER_SECOND).ln_1p() / lambda;
        assert!(longest <= half_life as f64 + 0.002, "{longest} s of {half_life} s");
        assert!((longest - expected).abs() < 0.004, "{longest} s, expected {expected} s");
    }
}

/// Three greedy flows and one of steady rate: below its share of 2.5 Mbit/s that one waits for
/// the packet in front of it and no longer, above it has its share like the others.
#[test]
fn a_flow_below_its_share_is_served_at_once_and_one_above_has_its_share() {
    for (gap, alone) in [(8, 1.0), (2, 0.5)] {
        let mut lars = Bench::new("lars:half-life=2s,limit=100packets");
        let (mut sent, mut served) = (0, [0u32; 4]);
        for step in 0..60_000 {
            (1..=3).for_each(|flow| {
                lars.enqueue(flow, 1250);
            });
            if step % gap == 0 {
                lars.enqueue(4, 1250);
                sent += u32::from(step >= 30_000);
            }
            lars.take_drops();
            let flow = lars.dequeue().expect("the link is never idle").flow.get();
            served[flow as usize - 1] += u32::from(step >= 30_000);
            lars.advance(PACKET_TIME);
        }
        let share = f64::from(served[3]) / f64::from(sent);
        assert!((share - alone).abs() < 0.01, "{share} of what it sent, not {alone}");
        let (least, most) = (served[..3].iter().min(), served[..3].iter().max());
        assert!(most.unwrap() - least.unwrap() <= 300, "{served:?}");
    }
}

#[test]
fn a_new_half_life_keeps_the_volumes_and_fades_them_from_then_on() {
    let mut lars = Bench::new("lars:half-life=1s");
    lars.enqueue(1, 4000); // id 0
    assert_eq!(lars.drain(), [0]);
    lars.advance(Nanos::from_secs(1));
    lars.enqueue(2, 1900); // id 1: flow 1 has 2000 left
    assert_eq!(lars.drain(), [1]);
    lars.change("lars:half-life=inf").unwrap();
    lars.advance(Nanos::from_secs(10));
    lars.enqueue(3, 1950); // id 2: nothing fades any more
    assert_eq!(lars.drain(), [2]);
    for flow in 1..=3 {
        lars.enqueue(flow, 1000); // ids 3, 4, 5
    }
    assert_eq!(lars.drain(), [4, 5, 3]);
}

#[test]
fn a_forgotten_flow_starts_at_nothing() {
    for (idle, order) in [("30s", [3, 2]), ("inf", [2, 3])] {
        let mut lars = Bench::new(&format!("lars:half-life=3600s,idle={idle}"));
        lars.enqueue(1, 9000); // id 0
        assert_eq!(lars.drain(), [0]);
        lars.advance(Nanos::from_secs(31));
        lars.enqueue(2, 100); // id 1
        assert_eq!(lars.drain(), [1]);
        lars.enqueue(2, 100); // id 2
        lars.enqueue(1, 100); // id 3
        assert_eq!(lars.drain(), order, "{idle}");
    }
}
