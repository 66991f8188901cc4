//! Disciplines that throw dice: the frequencies are those of the definitions.
//!
//! Seeds are fixed, so a run is the same every time; the bounds are the 0.1 % points of the
//! chi-square distribution, so that a right generator passes with nearly any seed.

use conformance::run::{Record, Recorder};
use sched::{Dequeue, Event, FlowId, Lane, Nanos, Packet, Qdisc, Spec};

/// The 0.1 % points for 1 to 9 degrees of freedom.
const CRITICAL: [f64; 9] = [10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32, 26.12, 27.88];

/// Checks counts against probabilities, each of so many trials: `(hits, trials, probability)`.
fn assert_binomial(samples: &[(u32, u32, f64)]) {
    let term = |&(hits, trials, p): &(u32, u32, f64)| {
        let expected = f64::from(trials) * p;
        assert!(
            expected >= 5.0 && expected <= f64::from(trials) - 5.0,
            "too few trials: {expected}"
        );
        (f64::from(hits) - expected).powi(2) / (expected * (1.0 - p))
    };
    let statistic: f64 = samples.iter().map(term).sum();
    assert!(statistic < CRITICAL[samples.len() - 1], "{statistic:.1} for {samples:?}");
}

fn build(spec: &str, seed: u64) -> Box<dyn Qdisc<Recorder>> {
    let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{spec}: {error}"));
    spec.build(seed)
}

/// Sends `count` packets of a flow through the queue, each on its own; what was told of them.
fn send(queue: &mut dyn Qdisc<Recorder>, flow: u64, count: u32, size: u32) -> Vec<Event> {
    let flow = FlowId::new(flow.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut sink = Recorder::default();
    for _ in 0..count {
        queue.enqueue(Packet::new(flow, size), Nanos::ZERO, &mut sink);
        assert!(queue.dequeue(Nanos::ZERO, &mut sink).packet().is_some());
    }
    let event = |record| match record {
        Record::Event(event) => Some(event),
        Record::Dropped(..) => None,
    };
    sink.take().into_iter().filter_map(event).collect()
}

fn is_low(event: &Event) -> bool {
    matches!(event, Event::Enqueued { lane: Lane::LONG, .. })
}

fn is_created(event: &Event) -> bool {
    matches!(event, Event::FlowCreated { .. })
}

/// A flow of n packets is ever long with probability 1-(1-p)^(n-1): the packet that is sampled
/// is short itself.
#[test]
fn sift_finds_a_flow_by_its_packets() {
    let (p, flows) = (0.05, 4_000);
    let sample = |packets: u32| {
        let mut queue = build("sift:probability=0.05,idle=inf,flows=100000", u64::from(packets));
        let found = |flow: &u32| {
            send(queue.as_mut(), u64::from(*flow) + 1, packets, 1000).iter().any(is_low)
        };
        let hits = (0..flows).filter(found).count() as u32;
        (hits, flows, 1.0 - f64::powi(1.0 - p, packets as i32 - 1))
    };
    assert_binomial(&[2, 5, 10, 20, 40].map(sample));
}

/// Re-tested, it takes two: the packets that were sampled are short themselves.
#[test]
fn sift_tests_a_flow_again() {
    let (p, flows) = (0.05, 4_000);
    let sample = |packets: u32| {
        let spec = "sift:retest=yes,probability=0.05,idle=inf,flows=100000";
        let mut queue = build(spec, u64::from(packets));
        let found = |flow: &u32| {
            send(queue.as_mut(), u64::from(*flow) + 1, packets, 1000).iter().any(is_low)
        };
        let hits = (0..flows).filter(found).count() as u32;
        let tested = packets as i32 - 1;
        let none = f64::powi(1.0 - p, tested);
        let one = f64::from(tested) * p * f64::powi(1.0 - p, tested - 1);
        (hits, flows, 1.0 - none - one)
    };
    assert_binomial(&[5, 10, 20, 40].map(sample));
}

/// Drops of RED at a constant average, which a queue of 3 is with an averaging of 1: p is 1/8.
fn gaps_between_drops(spec: &str, drops: usize) -> Vec<u32> {
    let mut queue = build(spec, 7);
    let mut sink = Recorder::default();
    let (mut gap, mut gaps) = (0, Vec::new());
    while gaps.len() < drops {
        queue.enqueue(Packet::new(FlowId::new(1), 1000), Nanos::ZERO, &mut sink);
        gap += 1;
        if sink.take().iter().any(|record| matches!(record, Record::Dropped(..))) {
            gaps.push(std::mem::take(&mut gap));
        } else if queue.backlog().packets > 3 {
            assert!(queue.dequeue(Nanos::ZERO, &mut sink).packet().is_some());
        }
    }
    // The first gap is from the beginning, not from a drop.
    gaps.split_off(1)
}

/// Checks that every gap in `range` is as frequent as the others, and no other occurs.
fn assert_uniform(gaps: &[u32], range: std::ops::Range<u32>) {
    let count = |gap: u32| gaps.iter().filter(|found| **found == gap).count() as f64;
    let all: f64 = range.clone().map(count).sum();
    assert_eq!(all, gaps.len() as f64, "{:?}", gaps.iter().find(|gap| !range.contains(gap)));
    let expected = all / range.len() as f64;
    let statistic: f64 = range.clone().map(|gap| (count(gap) - expected).powi(2) / expected).sum();
    assert!(statistic < CRITICAL[range.len() - 2], "{statistic:.1}");
}

/// Floyd and Jacobson 1993, section 7: gaps are uniform, from 1 to 1/p arrivals; from 1/p to
/// 2/p with `wait`. (With p exactly 1/8 the last value of each has no chance left.)
#[test]
fn red_spreads_its_drops_out_evenly() {
    let red = "red:averaging=1,min=1packets,max=5packets,max-probability=0.25";
    assert_uniform(&gaps_between_drops(&format!("{red},wait=no"), 4_000), 1..8);
    assert_uniform(&gaps_between_drops(red, 4_000), 8..16);
    // ... so that 2p and p/1.5 are dropped, about.
    let rio = "rio:averaging=1,out-min=1packets,out-max=5packets,out-probability=0.25";
    assert_uniform(&gaps_between_drops(rio, 4_000), 8..16);
}

/// A flow of n packets comes into the table with probability 1-(1-p)^n, whatever their size.
#[test]
fn x_protect_samples_packets() {
    let (p, flows) = (0.01, 8_000);
    let sample = |packets: u32| {
        let mut queue = build("x-protect:idle=inf,flows=100000", u64::from(packets));
        let found = |flow: &u32| {
            send(queue.as_mut(), u64::from(*flow) + 1, packets, 40 * packets).iter().any(is_created)
        };
        let hits = (0..flows).filter(found).count() as u32;
        (hits, flows, 1.0 - f64::powi(1.0 - p, packets as i32))
    };
    assert_binomial(&[1, 3, 10, 30, 100].map(sample));
}

/// A packet of s bytes is sampled with probability 1-(1-p)^(s/1000).
#[test]
fn sample_and_hold_samples_bytes() {
    let (p, packets) = (0.1, 20_000);
    let sample = |size: u32| {
        let mut queue = build("sb-sh:probability=0.1,idle=inf,flows=100000", u64::from(size));
        let found =
            |flow: &u32| send(queue.as_mut(), u64::from(*flow) + 1, 1, size).iter().any(is_created);
        let hits = (0..packets).filter(found).count() as u32;
        (hits, packets, 1.0 - f64::powf(1.0 - p, f64::from(size) / 1000.0))
    };
    assert_binomial(&[40, 576, 1000, 1500, 9000].map(sample));
}

/// A flow is long on average 1/p + theta packets into its life: the packet at which it is
/// sampled is geometric.
#[test]
fn sample_and_hold_finds_a_flow_late() {
    let (p, theta, flows) = (0.02f64, 5, 4_000);
    let mut queue = build("sb-sh:probability=0.02,threshold=5packets,idle=inf,flows=100000", 3);
    let mut detected = [0u32; 9];
    let bin = |packets: usize| (packets / 20).min(8);
    for flow in 1..=flows {
        let events = send(queue.as_mut(), flow, 400, 1000);
        let lanes = events.iter().filter(|event| matches!(event, Event::Enqueued { .. }));
        if let Some(short) = lanes.into_iter().position(is_low) {
            assert!(short >= theta, "long after {short} packets");
            detected[bin(short - theta)] += 1;
        }
    }
    // Sampled at packet k+1 with probability p(1-p)^k.
    let until = |k: i32| 1.0 - f64::powi(1.0 - p, k);
    let statistic: f64 = (0..8)
        .map(|index| {
            let expected = flows as f64 * (until(20 * index + 20) - until(20 * index));
            (f64::from(detected[index as usize]) - expected).powi(2) / expected
        })
        .sum();
    assert!(statistic < CRITICAL[7], "{statistic:.1} for {detected:?}");
}

/// With both lanes backlogged, the coin gives the short lane its weight.
#[test]
fn the_coin_is_fair() {
    let sample = |(weight, seed): (f64, u64)| {
        let spec =
            format!("sb:sharing=coin,weight={weight},threshold=1packets,limit=100000packets");
        let mut queue = build(&spec, seed);
        let mut sink = Recorder::default();
        for n in 0..20_000 {
            for flow in [1, 1_000 + n] {
                let flow = FlowId::new(flow * 0x9e37_79b9);
                queue.enqueue(Packet::new(flow, 1000), Nanos::ZERO, &mut sink);
            }
        }
        let served = 10_000;
        sink.take();
        for _ in 0..served {
            assert_ne!(queue.dequeue(Nanos::ZERO, &mut sink), Dequeue::Empty);
        }
        let high = |record: &Record| {
            matches!(record, Record::Event(Event::Dequeued { lane: Lane::SHORT, .. }))
        };
        (sink.take().iter().filter(|record| high(record)).count() as u32, served, weight)
    };
    assert_binomial(&[(0.8, 1), (0.5, 2), (0.25, 3)].map(sample));
}

/// Another seed, other dice.
#[test]
fn the_seed_decides() {
    let outcome = |seed| {
        let mut queue = build("sift:probability=0.5,idle=inf", seed);
        (1..100).map(|flow| send(queue.as_mut(), flow, 3, 100).len()).collect::<Vec<_>>()
    };
    assert_eq!(outcome(1), outcome(1));
    assert_ne!(outcome(1), outcome(2));
}
