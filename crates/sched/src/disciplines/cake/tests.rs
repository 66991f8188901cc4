use alloc::format;
use alloc::vec::Vec;

use super::cobalt::Law;
use super::queues::Standing;
use super::*;
use crate::Spec;
use crate::interface::{Amount, FlowId, HostId, Nanos};
use crate::testkit::{Bench, Random};

const MS: u64 = 1_000_000;

fn packet(flow: u64, source: u32, destination: u32, size: u32) -> Packet {
    Packet::new(FlowId::new(flow), size).with_hosts(HostId(source), HostId(destination))
}

/// The limit, and of each tin the quantum and the law.
fn derived(spec: &str) -> (Amount, Vec<(u32, Law)>) {
    let mut cake = Cake::new(spec.parse::<Spec>().unwrap().params(), 1);
    let mut of = |tin| (cake.tins.get(tin).quantum >> 16, cake.tins.get(tin).law);
    let tins = if spec.contains("diffserv3") { Tin::ALL } else { &Tin::ALL[..1] };
    let tins = tins.iter().map(|tin| of(*tin)).collect();
    (cake.limit, tins)
}

#[test]
fn a_queue_costs_seventy_two_bytes() {
    assert_eq!(size_of::<HashedQueue>(), 72);
}

#[test]
fn quantum_limit_and_law_follow_from_the_rate() {
    let law = |rtt_ms, mtu_time| Law::new(Nanos::from_millis(rtt_ms), Nanos(mtu_time));
    for (rate, bytes, quantum, mtu_time) in [
        ("1mbit", 4 << 20, 300, 12_112_000),
        ("10mbit", 4 << 20, 305, 1_211_200),
        ("40mbit", 4 << 20, 1220, 302_800),
        ("200mbit", 10_000_000, 1514, 60_560),
        ("1gbit", 10_240 * 1514, 1514, 12_112),
        ("inf", 10_240 * 1514, 1514, 0),
    ] {
        let expected = (Amount::Bytes(bytes), [(quantum, law(100, mtu_time))].into());
        assert_eq!(derived(&format!("cake:rate={rate}")), expected, "{rate}");
    }
    let given = derived("cake:rate=1mbit,rtt=20ms,limit=7packets");
    assert_eq!(given, (Amount::Packets(7), [(300, law(20, 12_112_000))].into()));
    // A 16th and a quarter of it. Bulk's target is 29 ms.
    let (limit, tins) = derived("cake:rate=10mbit,tins=diffserv3");
    let expected =
        [(305, law(100, 1_211_200)), (300, law(100, 19_379_200)), (300, law(100, 4_844_800))];
    assert_eq!((limit, tins), (Amount::Bytes(4 << 20), expected.into()));
}

#[test]
fn queues_take_turns_of_a_quantum() {
    let mut cake = Bench::new("cake");
    for _ in 0..4 {
        cake.enqueue(1, 1500); // ids 0, 2, 4, 6
        cake.enqueue(2, 1500); // ids 1, 3, 5, 7
    }
    // As sparse queues both send two; from then on both are bulk queues, of one host: a turn is
    // 757 bytes. After its second packet a queue is at -1486, then -729, then 28.
    assert_eq!(cake.drain(), [0, 2, 1, 3, 4, 5, 6, 7]);
}

#[test]
fn a_sparse_flow_passes_all_that_are_backlogged() {
    let mut cake = Bench::new("cake:rtt=inf");
    for _ in 0..20 {
        cake.enqueue(1, 1500);
        cake.enqueue(2, 1500);
    }
    assert_eq!(cake.depart(5).len(), 5);
    for _ in 0..3 {
        let id = cake.enqueue(3, 200);
        assert_eq!(cake.depart(1), [id], "before the bulk ones");
        assert_eq!(cake.depart(1).len(), 1, "its queue is found empty, and idle from then on");
    }
}

/// Bytes that each host sends of `total`, while all of its flows have packets.
fn shares(isolation: &str, hosts: &[u32], of: fn(u64, u32) -> Packet) -> Vec<u64> {
    let mut cake = Bench::new(&format!("cake:isolation={isolation},rtt=inf,rate=20mbit"));
    let mut flow = 0;
    let mut served = alloc::vec![0; hosts.len()];
    let flows: Vec<_> = (0..).zip(hosts).flat_map(|(host, n)| (0..*n).map(move |_| host)).collect();
    for host in &flows {
        flow += 1;
        for _ in 0..2 {
            cake.offer(of(flow, *host));
        }
    }
    for _ in 0..20_000 {
        let sent = cake.dequeue().expect("always full");
        served[flows[sent.flow.get() as usize - 1] as usize] += u64::from(sent.size);
        cake.offer(sent);
    }
    served
}

#[test]
fn hosts_share_whatever_their_number_of_flows() {
    let from = |flow, host| packet(flow, host + 1, 99, 1000);
    let to = |flow, host| packet(flow, 99, host + 1, 1000);
    let assert_equal = |shares: Vec<u64>| {
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        assert!(most - least < 300_000, "{shares:?}");
    };
    assert_equal(shares("dual-srchost", &[1, 16, 4], from));
    assert_equal(shares("dual-dsthost", &[1, 16, 4], to));
    // Not told apart: flows share, so a host has as much as it has flows.
    for (isolation, of) in [("flows", from as fn(_, _) -> _), ("dual-srchost", to)] {
        let shares = shares(isolation, &[1, 9], of);
        assert!(shares[1] > 8 * shares[0], "{isolation}: {shares:?}");
    }
    // One queue for each host.
    assert_equal(shares("srchost", &[1, 9], from));
    assert_equal(shares("dsthost", &[1, 9], to));
    assert_equal(shares("hosts", &[1, 9], to));
}

#[test]
fn triple_isolation_goes_by_the_host_with_more_flows() {
    // Flows 1 to 4 come from one host, 1 and 5 to 7 go to one host: all have a quarter of a
    // quantum, flow 8 is alone at both ends and has a whole one.
    let hosts = [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (3, 1), (4, 1), (5, 5)];
    let mut cake = Bench::new("cake:rtt=inf");
    for (flow, (source, destination)) in (1..).zip(hosts) {
        for _ in 0..2 {
            cake.offer(packet(flow, source, destination, 1000));
        }
    }
    let mut served = [0; 8];
    for _ in 0..22_000 {
        let sent = cake.dequeue().unwrap();
        served[sent.flow.get() as usize - 1] += 1;
        cake.offer(sent);
    }
    for (flow, packets) in served.into_iter().enumerate() {
        let expected = if flow == 7 { 8000 } else { 2000 };
        assert!(i32::abs(packets - expected) < 20, "flow {}: {packets}", flow + 1);
    }
}

/// Where the kernel's fresh queues drop one packet of ten.
#[test]
fn a_fresh_queue_has_its_interval_too() {
    let mut cake = Bench::new("cake:rate=10mbit");
    for _ in 0..10 {
        cake.enqueue(7, 1500);
    }
    for n in 0..10 {
        cake.now = Nanos(n * 1_200_000);
        assert_eq!(cake.depart(1), [n]);
    }
}

#[test]
fn the_last_packet_of_a_queue_is_not_dropped() {
    let mut cake = Bench::new("cake");
    for second in 0..100 {
        cake.now = Nanos::from_secs(second);
        assert_eq!(cake.depart(1).len(), usize::from(second > 0), "waited for a second");
        cake.enqueue(1, 1500);
    }
    assert_eq!(cake.take_drops(), []);
}

#[test]
fn the_longest_queue_loses_its_head() {
    let mut cake = Bench::new("cake:limit=4packets");
    cake.enqueue(7, 100); // id 0
    cake.enqueue(7, 1500);
    cake.enqueue(8, 1700); // id 2
    cake.enqueue(9, 40);
    assert_eq!(cake.take_drops(), []);
    cake.enqueue(9, 40); // id 4
    assert_eq!(cake.take_drops(), [(2, DropReason::PushedOut)]);
    cake.enqueue(8, 1600); // id 5: as long as that of 7, which stands before it
    assert_eq!(cake.take_drops(), [(0, DropReason::PushedOut)]);
    cake.enqueue(8, 1); // id 6
    assert_eq!(cake.take_drops(), [(5, DropReason::PushedOut)]);
    cake.enqueue(5, 9000); // id 7: the longest itself
    assert_eq!(cake.take_drops(), [(7, DropReason::Full)]);
    assert_eq!(cake.qdisc.backlog().packets, 4);
}

#[test]
fn eight_flows_of_a_set_have_queues_of_their_own() {
    // Every flow's home is queue 0 of set 0.
    let flow = |n: u64| n << 32 | 8;
    let spec = "cake:isolation=flows,sets=1,rtt=inf";
    let mut cake = Bench::new(spec);
    for n in 1..=8 {
        cake.enqueue(flow(n), 2000);
        cake.enqueue(flow(n), 2000);
    }
    assert_eq!(cake.drain(), [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15]);
    // The ninth shares the first one's queue, which is its own from then on: the first flow's
    // next packet takes it back.
    let mut cake = Bench::new(spec);
    for n in 1..=9 {
        cake.enqueue(flow(n), 2000); // ids 0 to 8
    }
    cake.enqueue(flow(1), 2000); // id 9
    assert_eq!(cake.drain(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

/// More flows than queues, more hosts than places.
#[test]
fn a_full_table_goes_on() {
    let mut random = Random(3);
    let mut cake = Bench::new("cake:sets=1,limit=200packets");
    for _ in 0..100_000 {
        cake.advance(Nanos(random.below(3 * MS)));
        if random.below(100) < 52 {
            let (flow, hosts) = (1 + random.below(300), random.below(900) as u32);
            cake.offer(packet(flow, hosts % 30, hosts / 30, 1 + random.below(1500) as u32));
        } else {
            let backlog = cake.qdisc.backlog().packets;
            assert_eq!(cake.dequeue().is_some(), backlog > 0);
        }
    }
    let backlog = cake.qdisc.backlog().packets;
    cake.take_drops();
    assert_eq!((cake.drain().len() + cake.take_drops().len()) as u64, backlog);
}

#[test]
fn bulk_queues_are_counted_at_their_hosts() {
    let mut random = Random(8);
    let spec: Spec = "cake:sets=1,limit=300packets,rate=5mbit".parse().unwrap();
    let mut cake = Cake::new(spec.params(), 1);
    let mut sink = Vec::new();
    let mut now = Nanos::ZERO;
    for _ in 0..50_000 {
        now += Nanos(random.below(2 * MS));
        if random.below(100) < 52 {
            let (flow, host) = (1 + random.below(20), random.below(5) as u32);
            cake.enqueue(packet(flow, host, 7 - host, 1500), now, &mut sink);
        } else {
            cake.dequeue(now, &mut sink);
        }
        let queues = &cake.tins.get(Tin::BEST_EFFORT).queues;
        let bulk = queues.iter().filter(|(_, queue)| queue.standing == Standing::Bulk);
        assert_eq!(queues.bulk_at_hosts(), [bulk.count(); 2]);
    }
}

/// Bytes that flows of these codepoints have sent of 20,000 packets, all of them backlogged.
fn tins_share(rate: &str, codes: &[u8]) -> Vec<u64> {
    let mut cake = Bench::new(&format!("cake:tins=diffserv3,rtt=inf,rate={rate}"));
    let of = |n: usize| packet(n as u64 + 1, 1, 2, 1000).with_dscp(codes[n]);
    for n in 0..codes.len() {
        for _ in 0..2 {
            cake.offer(of(n));
        }
    }
    let mut served = alloc::vec![0; codes.len()];
    for _ in 0..20_000 {
        // As a link of 10 Mbit/s does.
        cake.now += Nanos(800_000);
        let sent = cake.dequeue().expect("always full");
        served[sent.flow.get() as usize - 1] += u64::from(sent.size);
        cake.offer(sent);
    }
    served
}

#[test]
fn tins_have_their_part_and_what_is_left_over() {
    for rate in ["10mbit", "inf"] {
        let [best_effort, bulk] = tins_share(rate, &[0, 8])[..] else { panic!() };
        // A 16th by its own clock; in turns, a 16th of what Best Effort has.
        let expected = if rate == "inf" { 20_000_000 / 17 } else { 20_000_000 / 16 };
        assert!(bulk.abs_diff(expected) < 20_000, "{rate}: {best_effort} and {bulk}");
        assert_eq!(tins_share(rate, &[8]), [20_000_000], "{rate}");
        let [_, bulk, voice] = tins_share(rate, &[0, 1, 46])[..] else { panic!() };
        let expected = if rate == "inf" { 20_000_000 * 4 / 21 } else { 20_000_000 / 4 };
        assert!(bulk > 900_000 && voice.abs_diff(expected) < 20_000, "{rate}: {bulk} {voice}");
    }
}

#[test]
fn of_tins_that_are_due_the_last_is_served_and_each_has_queues_of_its_own() {
    let mut cake = Bench::new("cake:tins=diffserv3,rate=10mbit");
    // One flow, whose packets are in three queues; ids 0 to 5.
    for code in [0, 8, 46, 0, 8, 46] {
        cake.offer(packet(1, 1, 2, 1000).with_dscp(code));
    }
    // All are due; then Best Effort every 0.8 ms, Bulk every 12.8, Voice every 3.2.
    assert_eq!(cake.depart(3), [2, 1, 0]);
    cake.now = Nanos(800_000);
    assert_eq!(cake.depart(1), [3]);
    // Nothing is due: that which is due first.
    cake.now = Nanos(1_000_000);
    assert_eq!(cake.depart(2), [5, 4]);
}
