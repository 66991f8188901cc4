use alloc::collections::BTreeMap;
use alloc::format;

use super::*;
use crate::interface::Event;
use crate::interface::{Ecn, FlowId};
use crate::testkit::{Bench, Random};

#[test]
fn a_bucket_is_one_cache_line() {
    assert_eq!(size_of::<Bucket>(), 64);
}

#[test]
fn buckets_take_turns_of_a_quantum() {
    let mut fq = Bench::new("fq-codel");
    for _ in 0..4 {
        fq.enqueue(1, 1500); // ids 0, 2, 4, 6
        fq.enqueue(2, 1500); // ids 1, 3, 5, 7
    }
    // 14 of 1514 are left after the first packet, so each sends two before its deficit is
    // spent; from then on a quantum is one packet.
    assert_eq!(fq.drain(), [0, 2, 1, 3, 4, 5, 6, 7]);
    // A deficit of nothing is spent too.
    fq.change("fq-codel:quantum=1500b").unwrap();
    for flow in [1, 1, 2, 2] {
        fq.enqueue(flow, 1500); // ids 8 to 11
    }
    assert_eq!(fq.drain(), [8, 10, 9, 11]);
}

#[test]
fn a_sparse_flow_passes_all_that_are_backlogged() {
    let mut fq = Bench::new("fq-codel");
    for _ in 0..10 {
        fq.enqueue(1, 1500);
        fq.enqueue(2, 1500);
    }
    assert_eq!(fq.depart(5).len(), 5);
    for _ in 0..3 {
        let id = fq.enqueue(3, 200);
        assert_eq!(fq.depart(1), [id], "before the old ones");
        assert_eq!(fq.depart(4).len(), 4, "a round, so that its bucket leaves the lists");
    }
}

#[test]
fn an_emptied_new_bucket_waits_among_the_old() {
    let mut fq = Bench::new("fq-codel");
    for _ in 0..6 {
        fq.enqueue(1, 1500); // ids 0 to 5
    }
    assert_eq!(fq.depart(2), [0, 1]);
    fq.enqueue(2, 100); // id 6: new
    assert_eq!(fq.depart(2), [6, 2]); // and then its bucket is found empty
    fq.enqueue(2, 100); // id 7: still listed, so not new again, but next among the old
    fq.enqueue(3, 100); // id 8: new
    assert_eq!(fq.depart(2), [8, 7]);
}

#[test]
fn flows_that_collide_share_a_queue() {
    let mut fq = Bench::new("fq-codel:buckets=10");
    fq.enqueue(3, 1500);
    fq.enqueue(3, 1500);
    fq.enqueue(13, 100);
    assert_eq!(fq.drain(), [0, 1, 2]);
}

#[test]
fn overflow_takes_half_of_the_fattest_bucket_or_a_batch() {
    for (batch, lost) in [(64, 5), (2, 2)] {
        let mut fq = Bench::new(&format!("fq-codel:limit=10packets,drop-batch={batch}"));
        for _ in 0..10 {
            fq.enqueue(1, 1000); // ids 0 to 9
        }
        fq.enqueue(2, 1000);
        let expected: Vec<_> = (0..lost).map(|id| (id, DropReason::PushedOut)).collect();
        assert_eq!(fq.take_drops(), expected);
        assert_eq!(fq.qdisc.backlog().packets, 11 - lost);
    }
}

#[test]
fn overflow_adds_to_the_count_of_codel() {
    let spec: crate::spec::Spec = "fq-codel:limit=10packets".parse().unwrap();
    let mut fq = FqCodel::new(spec.params());
    let mut sink = Vec::new();
    for id in 0..11 {
        fq.enqueue(Packet::new(FlowId::new(5), 1000).with_id(id), Nanos::ZERO, &mut sink);
    }
    assert_eq!(sink.len(), 6, "half of 11000 bytes");
    let mut expected = Control::default();
    expected.count_drops(6);
    assert_eq!(fq.buckets[5].control, expected);
}

#[test]
fn an_arrival_can_be_the_fattest_itself() {
    let mut fq = Bench::new("fq-codel:limit=1packets");
    fq.enqueue(1, 100);
    fq.enqueue(2, 1500);
    assert_eq!(fq.take_drops(), [(1, DropReason::Full)]);
    fq.enqueue(3, 50);
    assert_eq!(fq.take_drops(), [(0, DropReason::PushedOut)]);
    assert_eq!(fq.drain(), [2]);
}

#[test]
fn memory_is_a_limit_too() {
    let mut fq = Bench::new("fq-codel:memory=3000b,drop-batch=1");
    for _ in 0..3 {
        fq.enqueue(1, 1500);
    }
    assert_eq!(fq.take_drops(), [(0, DropReason::PushedOut)]);
    fq.enqueue(2, 3001);
    assert_eq!(fq.take_drops(), [(3, DropReason::Full)]);
    // Lowered below the backlog, it refuses arrivals and drops nothing else.
    fq.change("fq-codel:memory=2000b,drop-batch=1").unwrap();
    fq.enqueue(2, 100);
    assert_eq!(fq.take_drops(), [(4, DropReason::Full)]);
}

#[test]
fn a_packet_that_can_never_fit_pushes_nobody_out() {
    let mut fq = Bench::new("fq-codel:limit=10packets");
    fq.enqueue(1, 1500);
    fq.offer(Packet::new(FlowId::new(2), 1000).with_segments(11));
    assert_eq!(fq.take_drops(), [(1, DropReason::Full)]);
}

#[test]
fn each_bucket_is_under_codel_and_marks_by_default() {
    for (ecn, dropped) in [(Ecn::Ect0, 0), (Ecn::NotEct, 1)] {
        let mut fq = Bench::new("fq-codel");
        for _ in 0..20 {
            fq.offer(Packet::new(FlowId::new(1), 1500).with_ecn(ecn));
        }
        fq.advance(Nanos::from_millis(5));
        fq.dequeue();
        fq.advance(Nanos::from_millis(100));
        fq.enqueue(2, 100);
        fq.dequeue();
        let marks = fq.log.events.iter().filter(|e| matches!(e, Event::Marked { .. })).count();
        assert_eq!((fq.take_drops().len(), marks), (dropped, 1 - dropped));
    }
}

#[test]
fn what_is_not_live_is_refused_by_name() {
    let mut fq = Bench::new("fq-codel");
    let error = fq.change("fq-codel:buckets=9").unwrap_err();
    assert_eq!(format!("{error}"), "fq-codel: buckets cannot change while the discipline runs");
    fq.change("fq-codel:quantum=300b,target=1ms,ecn=no,drop-batch=1,limit=1packets").unwrap();
}

/// Overload with everything at once: the limits hold after every arrival, a backlog yields
/// a packet, order holds within a flow, and all is accounted for.
#[test]
fn the_limits_hold_and_nothing_is_lost_or_overtaken() {
    for seed in 0..100 {
        let mut random = Random(seed);
        let limit = 5 + random.below(40);
        let memory = 3000 + random.below(40_000);
        let spec = format!(
            "fq-codel:limit={limit}packets,memory={memory}b,buckets=7,target=1ms,interval=10ms"
        );
        let mut fq = Bench::new(&spec);
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut arrivals, mut departures) = (0, 0);
        for _ in 0..3000 {
            fq.advance(Nanos(random.below(2_000_000)));
            if random.below(100) < 53 {
                let segments = 1 + (random.below(8) / 7 * random.below(4)) as u16;
                let flow = FlowId::new(1 + random.below(20));
                let packet = Packet::new(flow, random.below(1501) as u32);
                fq.offer(packet.with_segments(segments));
                arrivals += 1;
                let backlog = fq.qdisc.backlog();
                assert!(backlog.segments <= limit && backlog.bytes <= memory, "seed {seed}");
            } else {
                let backlog = fq.qdisc.backlog().packets;
                let packet = fq.dequeue();
                assert_eq!(packet.is_some(), backlog > 0, "seed {seed}");
                let Some(packet) = packet else { continue };
                departures += 1;
                let before = last.insert(packet.flow.get(), packet.id);
                assert!(before.is_none_or(|id| id < packet.id), "seed {seed}");
            }
        }
        let dropped = fq.log.drops.len() as u64;
        assert_eq!(arrivals, departures + dropped + fq.qdisc.backlog().packets);
    }
}

/// Buckets that stay backlogged differ by a quantum and a packet per round at most.
#[test]
fn backlogged_buckets_share_to_within_a_quantum_and_a_packet() {
    let mut random = Random(8);
    let mut fq = Bench::new("fq-codel:target=inf,quantum=600b");
    for _ in 0..9000 {
        fq.enqueue(1 + random.below(3), 1 + random.below(1500) as u32);
    }
    let mut served = [0i64; 3];
    for _ in 0..4500 {
        let packet = fq.dequeue().unwrap();
        served[packet.flow.get() as usize - 1] += i64::from(packet.size);
        let spread = served.iter().max().unwrap() - served.iter().min().unwrap();
        assert!(spread <= 600 + 2 * 1500, "{served:?}");
    }
}
