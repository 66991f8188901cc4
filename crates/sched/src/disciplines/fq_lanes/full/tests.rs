use alloc::vec::Vec;

use super::super::tests::to;
use crate::interface::{DropReason, HostId};
use crate::testkit::Bench;

#[test]
fn the_fattest_flow_of_the_fattest_host_makes_room() {
    let mut fq = Bench::new("fq-lanes:limit=20packets");
    for _ in 0..15 {
        fq.offer(to(2, 1, 1000)); // ids 0 to 14
    }
    for _ in 0..5 {
        fq.offer(to(3, 2, 1500)); // ids 15 to 19
    }
    assert_eq!(fq.take_drops(), []);
    let arrival = fq.offer(to(3, 3, 100));
    let lost: Vec<_> = (0..8).map(|id| (id, DropReason::PushedOut)).collect();
    assert_eq!(fq.take_drops(), lost, "half of 15,000 bytes");
    assert!(fq.drain().contains(&arrival));
}

#[test]
fn of_thin_flows_the_arrival_is_lost() {
    let mut fq = Bench::new("fq-lanes:limit=20packets");
    for flow in 0..20 {
        fq.offer(to(2, flow, 100));
    }
    let arrival = fq.offer(to(2, 50, 100));
    assert_eq!(fq.take_drops(), [(arrival, DropReason::Full)]);
    // Another host's packet is not lost for them.
    let other = fq.offer(to(3, 60, 100));
    assert_eq!(fq.take_drops().len(), 1);
    assert!(fq.drain().contains(&other));
}

/// Found by the fuzzer `path`: nobody was the fattest, and nothing made room.
#[test]
fn packets_without_bytes_make_room_as_well() {
    for other in [2, 3] {
        let mut fq = Bench::new("fq-lanes:limit=3packets");
        fq.offer(to(4, 1, 0));
        fq.depart(1);
        for _ in 0..3 {
            fq.offer(to(2, 1, 0));
        }
        assert_eq!(fq.take_drops(), []);
        for flow in 2..9 {
            fq.offer(to(other, flow, 0));
            assert_eq!(fq.take_drops().len(), 1);
        }
        assert_eq!(fq.drain().len(), 3);
    }
}

#[test]
fn a_flood_of_thin_flows_makes_room_for_other_hosts() {
    let mut fq = Bench::new("fq-lanes:limit=20packets");
    for flow in 0..20 {
        fq.offer(to(2, flow, 100));
    }
    // The fattest flow, as far as arrivals told, was the first, and has nothing left.
    fq.depart(1);
    let others = [(); 3].map(|()| fq.offer(to(3, 60, 100)));
    let lost: Vec<_> = [1, 2].map(|id| (id, DropReason::PushedOut)).into();
    assert_eq!(fq.take_drops(), lost, "who would have been next");
    let sent = fq.drain();
    assert!(others.iter().all(|id| sent.contains(id)));
}

/// Found by `shortlane worst`: the fattest flow as far as arrivals told was down to one packet, and
/// lost it to another host's, although others of its host had more.
#[test]
fn a_flow_keeps_its_last_packet_while_others_of_its_host_have_more() {
    let mut fq = Bench::new("fq-lanes:limit=26packets");
    let mut last = 0;
    for _ in 0..2 {
        last = fq.offer(to(2, 1, 1500));
    }
    for flow in 2..10 {
        for _ in 0..3 {
            fq.offer(to(2, flow, 500));
        }
    }
    // Each of the first nine flows that lose is left one packet, and twice two are lost at a time.
    let others: Vec<_> = (0..12).map(|_| fq.offer(to(3, 60, 100))).collect();
    let lost: Vec<_> = fq.take_drops().into_iter().map(|(id, _)| id).collect();
    assert!(lost.len() >= 12 && !lost.contains(&last), "{lost:?}");
    let sent = fq.drain();
    assert_eq!(sent.first(), Some(&last));
    assert!(others.iter().all(|id| sent.contains(id)));
}

/// Found by `shortlane worst`: another host's packets pushed out all that the old flow had, so that
/// its tier was no longer listed, and lost what it was owed.
#[test]
fn an_old_flow_keeps_its_part_beside_a_flood_that_other_hosts_push_out() {
    const OLD: u64 = 1;
    let mut fq = Bench::new("fq-lanes:limit=100packets");
    for _ in 0..600 {
        fq.offer(to(2, OLD, 1500));
        fq.depart(1);
    }
    let (mut of_old, mut of_host) = (0, 0);
    for round in 0..20_000 {
        fq.offer(to(2, OLD, 1500));
        fq.offer(to(2, 1000 + round, 1460));
        for flow in 2..8 {
            fq.offer(to(3, flow, 256));
        }
        for _ in 0..4 {
            let packet = fq.dequeue().expect("the queue is full");
            let is_hosts = packet.destination == HostId(2);
            of_host += if is_hosts { u64::from(packet.size) } else { 0 };
            of_old += if packet.flow.get() == OLD { u64::from(packet.size) } else { 0 };
        }
        fq.take_drops();
    }
    assert!(of_old * 36 >= of_host, "{of_old} of {of_host} bytes, and a 32nd is owed");
}

/// Found by `shortlane worst`: small packets filled a queue whose limit counts packets, and a
/// download of another host lost its own to them, since it had more bytes.
#[test]
fn small_packets_of_one_host_do_not_push_out_large_ones_of_another() {
    let mut fq = Bench::new("fq-lanes:limit=100packets");
    for _ in 0..20 {
        fq.offer(to(2, 1, 1500));
    }
    for _ in 0..5000 {
        for flow in 2..12 {
            fq.offer(to(3, flow, 64));
        }
        let sent = fq.dequeue().expect("the queue is full");
        if sent.destination == HostId(2) {
            fq.offer(to(2, 1, 1500));
        }
    }
    let left = core::iter::from_fn(|| fq.dequeue());
    assert_eq!(left.filter(|packet| packet.size == 1500).count(), 20, "it has lost nothing");
}
