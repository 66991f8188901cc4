//! The packet events against a replay of a few lines, and against each other.

mod common;

use std::collections::{HashMap, VecDeque};

use common::{Event, config, events, pcap, tcp, udp};
use proptest::prelude::*;
use sched::registry;

/// FIFO on a link: exact times as fractions of `rate` nanoseconds, a list for the queue.
fn naive_fifo(packets: &[(u64, Vec<u8>)], rate: u64, limit: usize) -> Vec<Option<u64>> {
    let exact = |ns: u64| u128::from(ns) * u128::from(rate);
    let mut departures = vec![None; packets.len()];
    // When the transmission of each admitted packet starts and ends.
    let mut admitted: VecDeque<(u128, u128)> = VecDeque::new();
    for (index, (time, bytes)) in packets.iter().enumerate() {
        let now = exact(*time);
        // The link is asked at whole nanoseconds.
        let started = |start: u128| start.div_ceil(u128::from(rate)) <= u128::from(*time);
        while admitted.front().is_some_and(|(start, _)| started(*start)) && admitted.len() > 1 {
            admitted.pop_front();
        }
        let waiting = admitted.iter().filter(|(start, _)| !started(*start)).count();
        let free = admitted.back().map_or(0, |(_, end)| *end);
        // A link that is free within this nanosecond has not been idle.
        let is_busy = free.div_ceil(u128::from(rate)) > u128::from(*time);
        if is_busy && waiting == limit {
            continue;
        }
        let start = now.max(free);
        let end = start + bytes.len() as u128 * 8 * 1_000_000_000;
        admitted.push_back((start, end));
        departures[index] = Some(end.div_ceil(u128::from(rate)) as u64);
    }
    departures
}

/// Packets of a few flows, of any size, at random times from the first at 0 on.
fn trace() -> impl Strategy<Value = Vec<(u64, Vec<u8>)>> {
    let gap = prop_oneof![3 => 0u64..3_000, 1 => Just(0), 1 => 0u64..100_000];
    let packet = (gap, 0u16..6, 42usize..1500);
    proptest::collection::vec(packet, 1..150).prop_map(|packets| {
        let mut time = 0;
        let mut first = true;
        let at = |(gap, flow, length): (u64, u16, usize)| {
            time += if std::mem::take(&mut first) { 0 } else { gap };
            (time, udp(flow, length))
        };
        packets.into_iter().map(at).collect()
    })
}

fn from_first(packets: &[(u64, Vec<u8>)], offset: u64) -> Vec<u8> {
    let moved = packets.iter().map(|(time, bytes)| (time + offset, bytes.clone()));
    pcap(&moved.collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn fifo_is_the_naive_one(
        packets in trace(),
        rate in prop_oneof![Just(1_000_000_000u64), Just(3_000_000_000), 100_000_000u64..9_000_000_000],
        limit in 1usize..20,
    ) {
        let spec = format!("fifo:limit={limit}packets");
        let file = from_first(&packets, 1_700_000_000_123_456_789);
        let (_, rows) = events(&config(rate, &[&spec]), &file);
        let expected = naive_fifo(&packets, rate, limit);
        prop_assert_eq!(rows[0].len(), packets.len());
        for ((row, (time, bytes)), departure) in rows[0].iter().zip(&packets).zip(expected) {
            prop_assert_eq!((row.arrival, row.size), (*time, bytes.len() as u64));
            prop_assert_eq!(row.departure, departure, "packet {}", row.index);
            let (outcome, reason) =
                if departure.is_some() { ("departed", "") } else { ("dropped", "full") };
            prop_assert_eq!((row.outcome.as_str(), row.reason.as_str()), (outcome, reason));
        }
    }

    #[test]
    fn efd_without_a_threshold_is_fifo(packets in trace(), rate in 50_000_000u64..5_000_000_000) {
        let specs = ["fifo:limit=9packets", "efd:limit=9packets,threshold=inf"];
        let (_, rows) = events(&config(rate, &specs), &from_first(&packets, 5));
        prop_assert_eq!(&rows[0], &rows[1]);
    }

    #[test]
    fn every_packet_has_one_fate_under_every_discipline(
        packets in trace(),
        rate in 50_000_000u64..5_000_000_000,
    ) {
        let names = registry::ALL.iter().filter(|info| !info.needs.flow_size).map(|info| info.name);
        let specs: Vec<String> = names.map(|name| format!("{name}:limit=12packets")).collect();
        let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
        let config = config(rate, &specs);
        let (report, rows) = events(&config, &from_first(&packets, 0));
        for ((spec, rows), scheduler) in config.schedulers.iter().zip(&rows).zip(&report.schedulers) {
            prop_assert_eq!(rows.len(), packets.len());
            let indices = rows.iter().map(|row| row.index);
            prop_assert!(indices.eq(0..packets.len() as u64), "{spec}");
            check_link(rows, rate)?;
            let departed = rows.iter().filter(|row| row.departure.is_some()).count() as u64;
            let dropped = rows.iter().filter(|row| row.outcome == "dropped").count() as u64;
            prop_assert_eq!(departed + dropped, packets.len() as u64, "{}: all are sent", spec);
            prop_assert_eq!((scheduler.sent_packets, scheduler.dropped_packets), (departed, dropped));
            prop_assert_eq!(scheduler.delay.packets, departed);
            let of_classes: u64 = scheduler.classes.iter().map(|class| class.dropped_packets).sum();
            prop_assert_eq!(of_classes, dropped);
            if (spec.info().keeps_order)(spec.params()) {
                check_order(rows)?;
            }
        }
    }
}

/// The link sends one packet at a time, each for as long as it takes, and not before it came.
fn check_link(rows: &[Event], rate: u64) -> Result<(), TestCaseError> {
    let mut sent: Vec<(u64, u64, u64)> =
        rows.iter().filter_map(|row| Some((row.departure?, row.arrival, row.size))).collect();
    sent.sort_unstable();
    let mut free = 0;
    for (departure, arrival, size) in sent {
        // Departures are rounded up, and what follows starts up to a nanosecond before.
        let took = (u128::from(size) * 8_000_000_000 / u128::from(rate)) as u64;
        prop_assert!(departure + 1 >= arrival.max(free) + took);
        free = departure;
    }
    Ok(())
}

fn check_order(rows: &[Event]) -> Result<(), TestCaseError> {
    let mut last: HashMap<&str, u64> = HashMap::new();
    for row in rows {
        if let Some(departure) = row.departure {
            let before = last.insert(&row.flow, departure).unwrap_or(0);
            prop_assert!(before <= departure, "{}", row.flow);
        }
    }
    Ok(())
}

/// Ten packets of a long flow, then one of a short one, all at once at 1 byte a microsecond.
#[test]
fn efd_lets_a_short_flow_pass() {
    let mut packets: Vec<_> = (0..10).map(|_| (0, udp(1, 1000))).collect();
    packets.push((1, udp(2, 100)));
    let specs = ["fifo:limit=300packets", "efd:limit=300packets,threshold=3packets"];
    let (report, rows) = events(&config(8_000_000, &specs), &pcap(&packets));
    assert_eq!(rows[0][10].departure, Some(10_100_000));
    // The packet on the wire is not queued, so four of the nine queued ones are short.
    let short: Vec<u64> =
        rows[1].iter().filter(|row| row.lane == Some(0)).map(|row| row.index).collect();
    assert_eq!(rows[1][10].lane, Some(0));
    let passed = rows[1][10].departure.unwrap();
    assert_eq!(passed, (short.len() as u64 - 1) * 1_000_000 + 100_000);
    assert!(short.len() < 6, "{short:?}");
    let delay = |scheduler: usize| report.schedulers[scheduler].delay.max_ns;
    assert_eq!((delay(0), delay(1)), (Some(9_999_999), Some(9_100_000)));
    assert_eq!(report.schedulers[1].lanes[0].sent_packets, short.len() as u64);
}

/// By byte offsets the third segment is long, however slowly segments come.
#[test]
fn offsets_come_from_sequence_numbers() {
    let isn = u32::MAX - 700;
    let mut packets = vec![(0, tcp(1, isn, true, 60))];
    for segment in 0..4u32 {
        let sequence = isn.wrapping_add(1 + 1000 * segment);
        packets.push((u64::from(segment + 1) * 1_000_000_000, tcp(1, sequence, false, 1054)));
    }
    // Sent again, it is short again.
    packets.push((9_000_000_000, tcp(1, isn.wrapping_add(1), false, 1054)));
    let specs = ["run2c-seq:threshold=2000b"];
    let (_, rows) = events(&config(8_000_000, &specs), &pcap(&packets));
    let lanes: Vec<u8> = rows[0].iter().map(|row| row.lane.unwrap()).collect();
    assert_eq!(lanes, [0, 0, 0, 1, 1, 0]);
}

#[test]
fn a_flow_that_was_silent_counts_again() {
    let packets: Vec<_> = [0, 1, 59, 118, 200].map(|s| (s * 1_000_000_000, udp(1, 100))).to_vec();
    let (report, _) = events(&config(8_000_000, &["fifo"]), &pcap(&packets));
    assert_eq!(report.capture.flows, 2);
    assert_eq!(report.schedulers[0].classes[0].flows, 2);
    assert_eq!(report.schedulers[0].flows_complete, 2);
}

#[test]
fn classes_are_by_the_whole_flow() {
    let mut packets = Vec::new();
    for (flow, count) in [(1u16, 20u64), (2, 21), (3, 1001), (4, 1000)] {
        packets.extend((0..count).map(|n| (n * 1_000_000 + u64::from(flow), udp(flow, 100))));
    }
    packets.sort_by_key(|(time, _)| *time);
    let report = common::replay(&config(80_000_000, &["fifo"]), &pcap(&packets)).unwrap();
    let classes: Vec<(&str, u64, u64, u64)> = report.schedulers[0]
        .classes
        .iter()
        .map(|c| (c.size_class.name(), c.flows, c.packets, c.delay.packets))
        .collect();
    let expected = [
        ("<=20", 1, 20, 20),
        ("20-100", 1, 21, 21),
        ("100-1000", 1, 1000, 1000),
        (">1000", 1, 1001, 1001),
    ];
    assert_eq!(classes, expected);
    assert_eq!(report.schedulers[0].first_20_packets.packets, 80);
}

/// One queue for each receiver: ten flows to one of them, then a packet to another, all at once.
#[test]
fn a_discipline_that_needs_hosts_is_told_them() {
    let to = |host: u8, flow: u16| {
        let mut frame = udp(flow, 1000);
        frame[33] = host;
        (0, frame)
    };
    let packets: Vec<_> = (0..10).map(|flow| to(2, flow)).chain([to(3, 10)]).collect();
    let specs = ["cake:isolation=dsthost", "cake:isolation=flows"];
    let (_, rows) = events(&config(8_000_000, &specs), &pcap(&packets));
    // By receivers it follows the packet on the wire, with which the others' queue has had its turn.
    assert_eq!(rows[0][10].departure, Some(2_000_000));
    assert_eq!(rows[1][10].departure, Some(11_000_000));
}
