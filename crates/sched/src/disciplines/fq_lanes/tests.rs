use alloc::format;
use alloc::vec::Vec;

use super::*;
use crate::interface::{Ecn, FlowId, HostId};
use crate::testkit::Bench;

const MS: u64 = 1_000_000;

/// A packet of `flow` to host `host`.
pub(super) fn to(host: u32, flow: u64, size: u32) -> Packet {
    Packet::new(FlowId::new(flow), size).with_hosts(HostId(1), HostId(host))
}

/// Offers `packets` packets of 1500 bytes of one flow.
fn fill(bench: &mut Bench, flow: u64, packets: u64) -> Vec<u64> {
    (0..packets).map(|_| bench.enqueue(flow, 1500)).collect()
}

/// Makes `flow` age by `packets` packets while another flow is backlogged.
fn age(bench: &mut Bench, flow: u64, packets: u64) {
    for _ in 0..packets {
        bench.enqueue(flow, 1500);
        bench.depart(1);
    }
}

#[test]
fn the_young_go_before_the_old() {
    let mut fq = Bench::new("fq-lanes");
    age(&mut fq, 1, 30); // 45,000 bytes: second tier
    let old = fill(&mut fq, 1, 3);
    assert_eq!(fq.depart(1), old[..1], "nobody else is there");
    let young = fill(&mut fq, 2, 4);
    assert_eq!(fq.depart(4), young);
    assert_eq!(fq.drain(), old[1..]);
}

#[test]
fn it_tells_why_a_flow_stands_where_it_does() {
    let mut fq = Bench::new("fq-lanes");
    let told = |fq: &Bench, flow, at| {
        let told = fq.qdisc.standing(FlowId::new(flow), Nanos(at));
        told.map(|told| (told.lane.0, told.tier, told.excess_bytes))
    };
    assert_eq!(told(&fq, 1, 0), None, "nobody knows it");
    age(&mut fq, 1, 30);
    assert_eq!(told(&fq, 1, 0), Some((1, 2, 45_000)));
    fill(&mut fq, 1, 1);
    assert_eq!(told(&fq, 1, 0), Some((1, 2, 45_000)), "backlogged it is no other");
    fq.depart(1);
    assert_eq!(told(&fq, 1, 0), Some((1, 2, 46_500)));
    // A half-life of 2 s.
    assert_eq!(told(&fq, 1, 2000 * MS).unwrap().2, 46_500 / 2);
    assert_eq!(told(&fq, 1, 60_000 * MS), Some((1, 2, 0)), "its turn is not over");
    assert!(fq.dequeue().is_none());
    assert_eq!(told(&fq, 1, 60_000 * MS), Some((0, 0, 0)));
    let mut fq = Bench::new("fq-lanes:without=ages");
    fill(&mut fq, 1, 1);
    assert_eq!(told(&fq, 1, 0), None);
}

#[test]
fn an_older_tier_is_owed_half_of_its_fair_share() {
    let mut fq = Bench::new("fq-lanes");
    age(&mut fq, 1, 200); // past 150,000 bytes
    fill(&mut fq, 1, 100);
    fill(&mut fq, 2, 19); // in the first tier to the end
    let of_old = (0..19).filter(|_| fq.dequeue().unwrap().flow == FlowId::new(1)).count();
    // Of two flows a half is fair, reckoned for one more a third, and half of that is a sixth.
    assert!((2..=4).contains(&of_old), "{of_old} of 19");
}

#[test]
fn the_oldest_of_many_are_owed_a_32nd() {
    let mut fq = Bench::new("fq-lanes:limit=100000packets");
    age(&mut fq, 1, 700); // the last tier
    fill(&mut fq, 1, 100);
    for flow in 2..502 {
        fill(&mut fq, flow, 4);
    }
    let of_old = (0..1600).filter(|_| fq.dequeue().unwrap().flow == FlowId::new(1)).count();
    assert!((40..=60).contains(&of_old), "{of_old} of 1600");
}

#[test]
fn what_stays_within_its_fair_share_never_ages() {
    let mut fq = Bench::new("fq-lanes");
    age(&mut fq, 1, 30);
    fill(&mut fq, 1, 100);
    // One packet in four is less than a fair half.
    for _ in 0..2000 {
        let id = fq.enqueue(2, 1500);
        assert_eq!(fq.depart(1), [id], "new each time");
        fill(&mut fq, 1, 3);
        fq.depart(3);
    }
}

#[test]
fn age_is_forgiven_while_idle() {
    for (idle, is_new) in [(100, false), (20_000, true)] {
        let mut fq = Bench::new("fq-lanes");
        age(&mut fq, 1, 30);
        assert_eq!(fq.drain(), []);
        fq.now.0 += idle * MS;
        let other = fill(&mut fq, 2, 4);
        let again = fq.enqueue(1, 1500);
        assert_eq!(fq.depart(2), other[..2], "a turn");
        let next = if is_new { again } else { other[2] };
        assert_eq!(fq.depart(1), [next], "after {idle} ms");
    }
}

/// A stream of `of_ten` tenths of a link of 10 Mbit/s, for a second, after the link has been full
/// for a while: the oldest tier that it comes to, and the last.
fn tiers_on_a_link_of_its_own(spec: &str, of_ten: u64, had: u64) -> (u8, u8) {
    let mut fq = Bench::new(spec);
    fill(&mut fq, 2, 30);
    for _ in 0..30 {
        fq.depart(1);
        fq.now.0 += MS * 12 / 10;
    }
    age(&mut fq, 1, had);
    assert!(fq.dequeue().is_none());
    let (mut oldest, mut last) = (0, 0);
    for _ in 0..100 * of_ten {
        fq.enqueue(1, 1250);
        let told = fq.qdisc.standing(FlowId::new(1), fq.now);
        last = told.expect("it is known").tier;
        oldest = oldest.max(last);
        fq.depart(1);
        fq.now.0 += MS;
        assert!(fq.dequeue().is_none(), "the link is free, and idle");
        fq.now.0 += (10 - of_ten) * MS / of_ten;
    }
    (oldest, last)
}

#[test]
fn a_stream_of_less_than_half_of_an_idle_link_does_not_age() {
    let of = tiers_on_a_link_of_its_own;
    assert_eq!(of("fq-lanes", 1, 0), (0, 0));
    assert_eq!(of("fq-lanes", 4, 0), (0, 0));
    assert_eq!(of("fq-lanes:without=idle", 1, 0), (2, 2));
    assert_eq!(of("fq-lanes", 6, 0), (3, 3), "more than what it leaves");
    // Who has been among the oldest comes back.
    assert_eq!(of("fq-lanes", 1, 40), (2, 0));
    assert_eq!(of("fq-lanes:without=idle", 1, 40), (3, 3));
}

#[test]
fn hosts_take_turns_however_many_flows_they_have() {
    let mut fq = Bench::new("fq-lanes");
    for flow in 10..42 {
        for _ in 0..40 {
            fq.offer(to(7, flow, 1500));
        }
    }
    for _ in 0..400 {
        fq.offer(to(8, 99, 1500));
    }
    let of_one = (0..600).filter(|_| fq.dequeue().unwrap().flow == FlowId::new(99)).count();
    assert!((295..=305).contains(&of_one), "{of_one} of 600");
}

/// Found by `shortlane worst`: a whole quantum each time was enough for both.
#[test]
fn a_host_that_sends_in_pairs_has_no_more_than_its_share() {
    let mut fq = Bench::new("fq-lanes:target=inf");
    fill(&mut fq, 1, 2000);
    // Two packets in 3.2 slots, from the third on, when the other host has used up its turn.
    let (mut of_pairs, mut due) = (0, 23);
    for slot in 0..1000 {
        while due <= 10 * slot {
            fq.offer(to(3, 2, 1500));
            fq.offer(to(3, 2, 1500));
            due += 32;
        }
        let packet = fq.dequeue().expect("somebody is backlogged");
        of_pairs += usize::from(packet.destination == HostId(3));
    }
    assert!((490..=510).contains(&of_pairs), "{of_pairs} of 1000, and a half is fair");
}

#[test]
fn a_new_flow_goes_ahead_of_the_turns_of_hosts() {
    let mut fq = Bench::new("fq-lanes");
    for host in 2..10 {
        for flow in 0..3 {
            for _ in 0..20 {
                fq.offer(to(host, u64::from(host) * 10 + flow, 1500));
            }
        }
    }
    fq.depart(150);
    let voice = fq.offer(to(5, 500, 200));
    assert_eq!(fq.depart(1), [voice]);
}

#[test]
fn a_host_cannot_go_ahead_beyond_its_share() {
    let mut fq = Bench::new("fq-lanes");
    for _ in 0..4000 {
        fq.offer(to(2, 20, 1500));
    }
    fq.depart(100);
    let mut of_flood = 0;
    for flow in 0..2000 {
        fq.offer(to(3, 1000 + flow, 1500));
        fq.offer(to(3, 5000 + flow, 1500));
        of_flood += u64::from(fq.dequeue().unwrap().flow != FlowId::new(20));
    }
    assert!((980..=1040).contains(&of_flood), "{of_flood} of 2000, and a half is fair");
}

#[test]
fn a_flow_that_finds_no_room_is_not_reordered() {
    let mut fq = Bench::new("fq-lanes:flows=2,limit=1000packets");
    for flow in 1..9 {
        for _ in 0..5 {
            fq.enqueue(flow, 1500);
        }
    }
    assert_eq!(fq.qdisc.flows(), 2);
    let mut seen: [Option<u64>; 9] = [None; 9];
    let mut in_order = |packet: Packet| {
        let last = &mut seen[packet.flow.get() as usize];
        assert!(last.is_none_or(|id| id < packet.id), "{packet:?} after {last:?}");
        *last = Some(packet.id);
    };
    for round in 0..60 {
        let flow = 1 + round % 8;
        fq.enqueue(flow, 1500);
        in_order(fq.dequeue().unwrap());
    }
    while let Some(packet) = fq.dequeue() {
        in_order(packet);
    }
}

#[test]
fn an_age_outlives_the_host_it_was_reckoned_by() {
    let mut fq = Bench::new("fq-lanes:flows=8");
    let old = |fq: &mut Bench| {
        let id = fq.offer(to(2, 20, 1500));
        let young = fq.offer(to(2, 21, 1500));
        assert_eq!(fq.depart(2), [young, id], "it goes last");
    };
    for _ in 0..600 {
        fq.offer(to(2, 20, 1500));
        fq.depart(1);
    }
    old(&mut fq);
    // More hosts than there is room for, and one flow: the first host goes, its old flow stays.
    for host in 3..200 {
        fq.offer(to(host, 30, 1500));
        fq.drain();
    }
    old(&mut fq);
}

#[test]
fn hosts_that_have_gone_make_room_for_others() {
    let mut fq = Bench::new("fq-lanes:flows=8");
    for host in 100..150 {
        fq.offer(to(host, u64::from(host), 1500));
        fq.offer(to(99, 99, 1500));
        assert_eq!(fq.drain().len(), 2);
    }
    for (host, flow) in [(2, 20), (3, 30), (3, 31), (3, 32)] {
        for _ in 0..50 {
            fq.offer(to(host, flow, 1500));
        }
    }
    let of_one = (0..80).filter(|_| fq.dequeue().unwrap().flow == FlowId::new(20)).count();
    assert!((38..=42).contains(&of_one), "{of_one} of 80");
}

#[test]
fn codel_leaves_a_queue_of_20_ms_alone_whatever_the_age_of_its_flow() {
    for (packets, wait, acts) in [(0, 20, false), (700, 20, false), (0, 40, true), (700, 40, true)]
    {
        let mut fq = Bench::new("fq-lanes:limit=10000packets");
        age(&mut fq, 1, packets);
        for _ in 0..400 {
            fq.offer(Packet::new(FlowId::new(1), 1500).with_ecn(Ecn::NotEct));
            if fq.qdisc.backlog().packets > wait {
                fq.dequeue();
            }
            fq.now.0 += MS;
        }
        let congested = fq.take_drops().len();
        assert_eq!(congested > 0, acts, "{packets} packets before, {wait} ms: {congested} drops");
    }
}

#[test]
fn parameters_change_while_packets_are_queued() {
    let mut fq = Bench::new("fq-lanes:limit=100packets");
    let ids = fill(&mut fq, 1, 50);
    fq.change("fq-lanes:limit=10packets,target=1ms,ecn=no").unwrap();
    let refused = fq.enqueue(2, 100);
    assert_eq!(fq.take_drops(), [(refused, DropReason::Full)]);
    assert_eq!(fq.drain(), ids);
    for fixed in ["hosts=source", "flows=5", "without=ages"] {
        assert!(fq.change(&format!("fq-lanes:{fixed}")).is_err(), "{fixed}");
    }
}

#[test]
fn a_super_packet_waits_for_as_many_turns_as_it_has_quanta() {
    let mut fq = Bench::new("fq-lanes");
    let large = Packet::new(FlowId::new(1), 65_000).with_segments(45);
    let ids = [fq.offer(large), fq.offer(large), fq.offer(large)];
    let small: Vec<_> = (0..60).map(|_| fq.enqueue(2, 1500)).collect();
    assert_eq!(fq.depart(1), ids[..1]);
    let next = fq.depart(45);
    let of_large = next.iter().filter(|id| ids.contains(id)).count();
    assert!(of_large <= 1, "it may go into debt once, and pays back then: {next:?}");
    assert_eq!(fq.drain().len(), small.len() + ids.len() - 46);
}

#[test]
fn a_flow_of_one_byte_packets_has_its_turns_in_bytes() {
    let mut fq = Bench::new("fq-lanes");
    let [thin, full] = [(1, 1, 30_000), (2, 1500, 30)].map(|(flow, size, packets)| {
        for _ in 0..packets {
            fq.enqueue(flow, size);
        }
        FlowId::new(flow)
    });
    let (mut lead, mut most) = (0_i64, 0);
    // Until the larger packets have filled the first tier.
    while fq.qdisc.standing(full, fq.now).is_some_and(|told| told.excess_bytes < 28_500) {
        let packet = fq.dequeue().unwrap();
        lead += i64::from(packet.size) * if packet.flow == thin { 1 } else { -1 };
        most = most.max(lead.abs());
    }
    // A turn, and what either may carry over: a packet.
    assert!(most <= i64::from(QUANTUM) + 1500 + 1500, "{most} bytes apart");
}

/// The longest that one of `old` flows of the last tier goes without a packet, in bytes that its
/// host sends meanwhile, beside `young` ones that are replaced whenever they have aged.
fn longest_wait(old: u64, young: u64, new_each_time: bool) -> u64 {
    let mut fq = Bench::new("fq-lanes:limit=100000packets");
    for flow in 0..old {
        age(&mut fq, 1 + flow, 700);
    }
    for flow in 0..old {
        fill(&mut fq, 1 + flow, 30);
    }
    let mut next_young = 1000;
    for _ in 0..young {
        fill(&mut fq, next_young, 19);
        next_young += 1;
    }
    let mut since = alloc::vec![0; old as usize];
    let mut longest = 0;
    for _ in 0..6000 {
        if new_each_time {
            fill(&mut fq, next_young, 1);
            next_young += 1;
        }
        let packet = fq.dequeue().expect("never empty");
        since.iter_mut().for_each(|bytes| *bytes += u64::from(packet.size));
        let flow = packet.flow.get();
        if (1..=old).contains(&flow) {
            longest = longest.max(core::mem::take(&mut since[flow as usize - 1]));
            fill(&mut fq, flow, 1);
        } else if !new_each_time {
            // Young ones come as fast as they leave.
            fill(&mut fq, next_young, 1);
            next_young += u64::from(packet.id.is_multiple_of(19));
        }
    }
    longest.max(since.into_iter().max().unwrap_or(0))
}

#[test]
fn nobody_waits_longer_than_the_bound_of_the_docs() {
    for old in [1, 2, 8] {
        for young in [1, 4, 32] {
            for new_each_time in [false, true] {
                let waited = longest_wait(old, young, new_each_time);
                // All may be in one tier, which is owed a 32nd at least.
                let quantum = u64::from(QUANTUM);
                let bound = 2 * (old + young + 5) * 32 * quantum + 34 * quantum;
                assert!(waited <= bound, "{old} old, {young} young: {waited} of {bound} bytes");
            }
        }
    }
}
