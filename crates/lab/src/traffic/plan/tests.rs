use super::*;

const SECOND: Nanos = Nanos::from_secs(1);

/// A plan with one of everything.
fn plan() -> Plan {
    let mut plan = Plan::new("10.0.2.1".parse().unwrap(), "10.0.1.1".parse().unwrap());
    (plan.arrivals_end, plan.drain_end) = (SECOND, 2 * SECOND);
    let (id, tcp, start, stop) = (1, Tcp::Bbr, Nanos::ZERO, SECOND);
    plan.transfers.push(Transfer { id, start, size_bytes: 1, tcp });
    plan.downloads.push(Stream { id, tcp, start, stop });
    plan.uploads.push(Stream { id, tcp, start, stop });
    plan.sessions.push(Session { id, tcp, due: vec![start, stop], size_bytes: 1 });
    let object = Transfer { id: 2, ..plan.transfers[0] };
    let pages = vec![VisitedPage { objects: vec![object], think: start }];
    plan.visitors.push(Visitor { number: 0, tcp, start, stop, connections: 1, pages });
    let name = "voice".to_string();
    plan.cbr.push(Cbr { name, rate: Rate(64_000), packet_bytes: 200, start, stop });
    plan.pings.push(Pings { id, packet_bytes: 64, period: SECOND, start, stop });
    plan
}

#[test]
fn a_plan_survives_json_on_one_line() {
    let line = serde_json::to_string(&plan()).unwrap();
    assert!(!line.contains('\n') && line.contains("\"tcp\":\"bbr\""), "{line}");
    assert_eq!(serde_json::from_str::<Plan>(&line).unwrap(), plan());
    let unknown = line.replacen("\"port\"", "\"prot\"", 1);
    assert!(serde_json::from_str::<Plan>(&unknown).is_err());
}

#[test]
fn what_contradicts_itself_is_refused_with_what_is_accepted() {
    plan().check().unwrap();
    type Change = fn(&mut Plan);
    let cases: &[(Change, &str)] = &[
        (|p| p.client = "::1".parse().unwrap(), "differ in family"),
        (|p| p.port = 0, "port 0 with 1 cbr streams; 1 to 65535"),
        (|p| p.port = 65535, "port 65535 with 1 cbr streams; 1 to 65535"),
        (|p| p.sample_every = Nanos::ZERO, "sample_ns is 0; at least 1"),
        (|p| p.drain_end = SECOND - Nanos(1), "arrivals_end_ns 1000000000 is after"),
        (|p| p.transfers[0].size_bytes = 0, "transfer 1: size_bytes is 0; at least 1"),
        (|p| p.transfers[0].start = SECOND, "is not before arrivals_end_ns"),
        (|p| p.transfers.push(p.transfers[0]), "transfers: '1' occurs twice"),
        (|p| p.downloads[0].stop = Nanos::ZERO, "download 1: start_ns 0, stop_ns 0; start < stop"),
        (|p| p.uploads[0].stop = 3 * SECOND, "upload 1: start_ns 0, stop_ns 3000000000"),
        (|p| p.sessions[0].due.clear(), "session 1: due_ns is empty"),
        (|p| p.sessions[0].due.push(Nanos(1)), "session 1: due_ns is empty, not ascending"),
        (|p| p.sessions[0].due.push(2 * SECOND), "or goes on beyond drain_end_ns"),
        (|p| p.sessions[0].size_bytes = 0, "session 1: size_bytes is 0"),
        (|p| p.visitors[0].connections = 0, "visitor: connections is 0"),
        (|p| p.visitors[0].pages[0].objects[0].id = 1, "transfers: '1' occurs twice"),
        (|p| p.visitors[0].pages[0].objects[0].size_bytes = 0, "transfer 2: size_bytes is 0"),
        (|p| p.cbr[0].rate = Rate(0), "cbr voice: rate_bps is 0"),
        (|p| p.cbr[0].packet_bytes = 55, "cbr voice: packet_bytes is 55; 56 to 65535"),
        (|p| p.cbr[0].rate = Rate::UNLIMITED, "packets; at most 10000000"),
        (|p| p.cbr.push(p.cbr[0].clone()), "cbr: 'voice' occurs twice"),
        (|p| p.pings[0].packet_bytes = 0, "pings 1: packet_bytes is 0; 56 to 65535"),
        (|p| p.pings[0].period = Nanos::ZERO, "pings 1: period_ns is 0"),
        (|p| p.pings[0].period = Nanos(1), "pings 1: 1000000000 packets; at most"),
    ];
    for (change, expected) in cases {
        let mut plan = plan();
        change(&mut plan);
        let error = plan.check().unwrap_err().to_string();
        assert!(error.contains(expected), "{error} (not: {expected})");
    }
}

#[test]
fn schedules_are_exact_and_do_not_drift() {
    let mut cbr = plan().cbr.remove(0);
    assert_eq!((cbr.packets(), cbr.due(1).0, cbr.due(39).0), (40, 25_000_000, 975_000_000));
    // 3 kbit/s of 200 bytes: every 533.3 ms, and the thirds add up.
    (cbr.rate, cbr.start) = (Rate(3_000), Nanos(5));
    assert_eq!(
        [0, 1, 2, 3].map(|seq| cbr.due(seq).0),
        [5, 533_333_338, 1_066_666_671, 1_600_000_005]
    );
    cbr.stop = Nanos(1_600_000_005);
    assert_eq!(cbr.packets(), 3);
    cbr.stop += Nanos(1);
    assert_eq!(cbr.packets(), 4);

    let mut pings = plan().pings.remove(0);
    (pings.period, pings.stop) = (Nanos(300), Nanos(901));
    assert_eq!((pings.requests(), pings.due(3).0), (4, 900));
    pings.stop = Nanos(900);
    assert_eq!(pings.requests(), 3);
}
