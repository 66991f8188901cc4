use frame::{Endpoints, Selector};
use sched::FlowId;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn key(flow: u64) -> FlowKey {
    let bytes = flow.to_be_bytes();
    FlowKey {
        endpoints: Endpoints::V4([10, bytes[5], bytes[6], bytes[7]], [10, 0, 0, 1]),
        selector: Selector::Ports(1, 2),
        protocol: 17,
        vlans: 0,
    }
}

/// Spreads flows over the sets, as a keyed hash does.
fn fingerprint(flow: u64) -> u64 {
    flow.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8 | 1 << 63
}

fn arrive(table: &mut FlowTable, flow: u64, size: u32, now: u64) -> Place {
    let packet = Packet::new(FlowId::new(fingerprint(flow)), size);
    table.arrives(&packet, &key(flow), Nanos(now))
}

#[test]
fn the_biggest_stay_and_the_newest_are_there_under_a_flood_of_new_flows() {
    let mut table = FlowTable::new();
    for n in 0..2_000_000u64 {
        let now = n * 1000;
        // Ten elephants, each with a hundredth of the packets; the rest are flows of one packet.
        match n % 100 {
            flow @ 0..10 => arrive(&mut table, flow, 1500, now),
            _ => arrive(&mut table, 1000 + n, 60, now),
        };
    }
    let (biggest, newest) = table.top(Nanos(2 * SECOND));
    assert_eq!(biggest.len(), LISTED);
    assert!(biggest.is_sorted_by_key(|entry| std::cmp::Reverse(entry.arrived.bytes)));
    for flow in 0..10 {
        let found = biggest[..10].iter().find(|entry| entry.key == key(flow));
        assert_eq!(found.map(|entry| entry.arrived.packets), Some(20_000), "flow {flow}");
    }
    let expected = (0..2_000_000u64).rev().filter(|n| n % 100 >= 10).map(|n| key(1000 + n));
    let found: Vec<_> = newest.iter().map(|entry| entry.key).collect();
    assert_eq!(found, expected.take(LISTED).collect::<Vec<_>>());
}

#[test]
fn an_idle_giant_makes_room_and_is_not_listed() {
    let mut table = FlowTable::new();
    let in_one_set = |n: u64| 1 + n * SETS as u64;
    let arrive = |table: &mut FlowTable, n: u64, size, now| {
        let packet = Packet::new(FlowId::new(in_one_set(n)), size);
        table.arrives(&packet, &key(n), Nanos(now))
    };
    let giant = arrive(&mut table, 0, u32::MAX, SECOND);
    for n in 1..WAYS as u64 {
        arrive(&mut table, n, 100, 50 * SECOND);
    }
    assert!(table.at(giant).is_some());
    let (biggest, _) = table.top(Nanos(50 * SECOND));
    assert!(biggest.iter().all(|entry| entry.key != key(0)), "idle for 49 s");
    arrive(&mut table, 99, 100, 51 * SECOND);
    assert!(table.at(giant).is_none(), "its place is another flow's");
    let (_, newest) = table.top(Nanos(51 * SECOND));
    assert_eq!(newest.len(), WAYS);
    assert_eq!(newest[0].key, key(99));
}

#[test]
fn a_rate_is_that_of_about_the_last_second() {
    let mut table = FlowTable::new();
    // 1250 bytes each millisecond: 10 Mbit/s.
    for ms in 0..10_000u64 {
        arrive(&mut table, 1, 1250, ms * 1_000_000);
    }
    let rate =
        |table: &FlowTable, now| table.top(Nanos(now)).0[0].describe(Nanos(now)).arriving_bps;
    let found = rate(&table, 10 * SECOND);
    assert!((9_900_000..10_100_000).contains(&found), "{found}");
    let later = rate(&table, 11 * SECOND);
    assert!(later < 10_000_000, "{later}");
    assert_eq!(rate(&table, 13 * SECOND), 0);
}

#[test]
fn a_flow_is_described() {
    let mut table = FlowTable::new();
    let place = arrive(&mut table, 1, 100, 5);
    let entry = table.at(place).unwrap();
    entry.lane = Some(1);
    entry.sent.count(100);
    let flow = table.top(Nanos(25)).0[0].describe(Nanos(25));
    assert_eq!(flow.flow, "10.0.0.1:1 > 10.0.0.1:2 udp");
    assert_eq!((flow.lane, flow.age, flow.idle), (Some(1), Nanos(20), Nanos(20)));
    assert_eq!((flow.arrived.bytes, flow.sent.packets), (100, 1));
    assert!(table.at(Place::default()).is_none());
}
