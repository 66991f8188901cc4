use super::*;
use crate::settings::framing::Cells;

#[test]
fn times_beyond_the_sum_are_counted_all_the_same() {
    let mut times = Histogram::default();
    times.count(Nanos::MAX);
    times.count(Nanos(2));
    assert_eq!((times.packets(), times.sum), (2, Nanos(1)));
}

#[test]
fn times_fall_into_buckets_that_double() {
    let mut times = Histogram::default();
    for ns in [0, 1, 1023, 1024, 2047, 2048, 1 << 36, u64::MAX / 2] {
        times.count(Nanos(ns));
    }
    assert_eq!(times.counts[..3], [3, 2, 1]);
    assert_eq!(times.counts[BUCKETS - 1], 2);
    assert_eq!(Histogram::bound(0), Nanos(1024));
    assert_eq!(Histogram::bound(BUCKETS - 2), Nanos(1 << 36));
    assert_eq!(Histogram::bound(BUCKETS - 1), Nanos::MAX);
    assert_eq!(times.packets(), 8);
    assert_eq!(times.quantile(0.3), Nanos(1024));
    assert_eq!(times.quantile(0.5), Nanos(2048));
    assert_eq!(times.quantile(1.0), Nanos::MAX);
    assert_eq!(Histogram::default().quantile(0.5), Nanos::ZERO);
}

#[test]
fn a_histogram_comes_back_from_a_document() {
    let mut times = Histogram::default();
    [5, 5000, 1 << 40].iter().for_each(|ns| times.count(Nanos(*ns)));
    let text = serde_json::to_string(&times).unwrap();
    assert!(text.starts_with(r#"{"buckets":[{"below_ns":1024,"packets":1},"#), "{text}");
    assert!(text.contains(r#"{"below_ns":null,"packets":1}"#), "{text}");
    assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), times);
    let odd = r#"{"buckets":[{"below_ns":1000,"packets":1}],"sum_ns":1}"#;
    assert!(serde_json::from_str::<Histogram>(odd).is_err());
}

#[test]
fn what_has_been_counted_since_an_earlier_look() {
    let mut times = Histogram::default();
    times.count(Nanos(5));
    let earlier = times.clone();
    times.count(Nanos(3000));
    let since = times.since(&earlier);
    assert_eq!((since.packets(), since.sum, since.counts[0]), (1, Nanos(3000), 0));
}

fn status() -> Status {
    Status {
        device: "eth0".into(),
        ifindex: 2,
        scheduler: "efd".into(),
        limit: Some("300packets".into()),
        link: LinkSettings {
            overhead: "ip+10,atm".parse().unwrap(),
            burst_time: Nanos(1),
            ..LinkSettings::default()
        },
        framing: Framing { overhead: -4, mpu: 0, cells: Cells::Atm },
        uptime: Nanos(2),
        attached_at: Nanos(3),
        lanes: vec![LaneCounters::default(); 2],
        drops: vec![DropCounter { reason: "full".into(), lane: Some(1), packets: 7 }],
        ..Status::default()
    }
}

#[test]
fn each_engine_has_its_own_keys_beside_the_common_ones() {
    let qdisc = Qdisc {
        kind: "shortlane".into(),
        handle: "8001:".into(),
        parent: "root".into(),
        ..Qdisc::default()
    };
    let process = Process {
        pid: 1,
        received: Tally { packets: u64::MAX, bytes: 1 },
        realtime: true,
        ..Process::default()
    };
    let seen = Seen {
        busiest_hosts: vec![Host { host: "a".into(), ..Host::default() }],
        biggest_flows: vec![Flow {
            flow: "a > b tcp".into(),
            lane: None,
            standing: Some(Standing { lane: 1, tier: 2, excess_bytes: 3 }),
            arrived: Tally::default(),
            sent: Tally::default(),
            dropped_packets: 1,
            marked_packets: 0,
            arriving_bps: 5,
            age: Nanos(1),
            idle: Nanos(1),
        }],
        newest_flows: Vec::new(),
    };
    let auto = Some(Auto {
        probe: "10.0.0.1".into(),
        extra_delay_ns: Some(1),
        last_decision: Some("2000kbit -> 1000kbit: no probe is answered".into()),
        ..Auto::default()
    });
    let kernel = Status { qdisc: Some(qdisc), auto, ..status() };
    let marks = Status { engine: EngineKind::Marks, seen: Some(seen.clone()), ..kernel.clone() };
    let (engine, process, seen) = (EngineKind::Userspace, Some(process), Some(seen));
    let userspace = Status { engine, process, seen, ..status() };
    for status in [&kernel, &marks, &userspace, &status()] {
        let text = serde_json::to_string(status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), *status, "{text}");
    }
    let keys = |status| serde_json::to_value(status).unwrap().as_object().unwrap().clone();
    let (kernel, userspace) = (keys(&kernel), keys(&userspace));
    assert!(kernel.contains_key("tc") && !kernel.contains_key("biggest_flows"));
    assert!(userspace.contains_key("biggest_flows") && !userspace.contains_key("tc"));
    assert_eq!(kernel["engine"], "kernel");
    assert_eq!(userspace["direction"], "egress");
    assert!(kernel["rate_bps"].is_null() && kernel.contains_key("rate_bps"));
    let link = ["overhead", "overhead_bytes", "mpu_bytes", "cells", "burst_ns"];
    let link = link.map(|key| kernel[key].to_string());
    assert_eq!(link, ["\"ip+10,atm\"", "-4", "0", "\"atm\"", "1"]);
    assert_eq!(kernel["lanes"].as_array().unwrap().len(), 2);
}
