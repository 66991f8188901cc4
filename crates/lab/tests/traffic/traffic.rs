//! What is planned arrives, and both reports agree.

use std::collections::{BTreeMap, HashMap};

use lab::traffic::{
    Cbr, ClientReport, ConnectionKind, ConnectionRow, Failures, Pings, Plan, ServerReport, Session,
    Tcp, Transfer, cbr_packets,
};
use units::{Nanos, Rate};

use crate::setup::{MS, plan, run, stream, transfer};

pub(crate) fn all_kinds_of_traffic_arrive() {
    let mut plan = plan(600, 60_000);
    mixed_traffic(&mut plan);
    let (server, client) = run(&plan);
    check_transfers(&plan, &server, &client);
    check_streams(&server, &client);
    check_sessions(&plan, &server, &client);
    check_cbr(&plan, &server, &client);
    check_pings(&plan, &client);
    assert_eq!((&server.failures, &client.failures), (&Failures::new(), &Failures::new()));
}

pub(crate) fn ipv6_carries_it_too() {
    let mut plan = plan(600, 60_000);
    plan.server = "::1".parse().unwrap();
    plan.client = plan.server;
    mixed_traffic(&mut plan);
    let (server, client) = run(&plan);
    check_transfers(&plan, &server, &client);
    check_cbr(&plan, &server, &client);
    check_pings(&plan, &client);
    assert!(client.cbr[0].flow.starts_with("[::1]:5000 > [::1]:5001 udp"));
    assert_eq!((&server.failures, &client.failures), (&Failures::new(), &Failures::new()));
}

pub(crate) fn a_thousand_transfers_at_once() {
    let mut plan = plan(1, 60_000);
    plan.transfers = (0..1000).map(|id| transfer(id, 0, 20_000)).collect();
    let (server, client) = run(&plan);
    check_transfers(&plan, &server, &client);
    assert_eq!((&server.failures, &client.failures), (&Failures::new(), &Failures::new()));
}

fn mixed_traffic(plan: &mut Plan) {
    plan.transfers = (0..60)
        .map(|id| Transfer {
            id,
            // Not in order of their starts: rows come in the plan's order all the same.
            start: u64::from(59 - id) * 10 * MS,
            size_bytes: 1 + u64::from(id) * 7919,
            tcp: Tcp::ALL[id as usize % 3],
        })
        .collect();
    plan.downloads.push(stream(3, Tcp::Bbr, 0, 500));
    plan.uploads.push(stream(4, Tcp::Reno, 10, 500));
    plan.sessions.push(Session {
        id: 5,
        tcp: Tcp::Cubic,
        due: (0..10).map(|request| (5 + 50 * request) * MS).collect(),
        size_bytes: 30_000,
    });
    for (name, rate, packet_bytes) in [("voice", Rate(64_000), 200), ("video", Rate(500_000), 1000)]
    {
        let (start, stop) = (7 * MS, 507 * MS);
        plan.cbr.push(Cbr { name: name.into(), rate, packet_bytes, start, stop });
    }
    let (period, stop) = (20 * MS, 500 * MS);
    plan.pings.push(Pings { id: 6, packet_bytes: 76, period, start: Nanos::ZERO, stop });
}

fn rows(server: &ServerReport, kind: ConnectionKind) -> HashMap<u32, &ConnectionRow> {
    let of_kind = server.connections.iter().filter(|row| row.kind == kind);
    of_kind.map(|row| (row.id, row)).collect()
}

fn check_transfers(plan: &Plan, server: &ServerReport, client: &ClientReport) {
    let sent = rows(server, ConnectionKind::Transfer);
    assert_eq!(sent.len(), plan.transfers.len());
    assert_eq!(client.transfers.len(), plan.transfers.len());
    for (planned, row) in plan.transfers.iter().zip(&client.transfers) {
        assert_eq!((row.id, row.bytes, row.failure), (planned.id, planned.size_bytes, None));
        let [connected, first, end] =
            [row.link.connected, row.first_byte, row.end].map(Option::unwrap);
        assert_eq!(row.link.due, planned.start);
        assert!(planned.start <= row.link.start && row.link.late() <= client.worst_late);
        assert!(row.link.start <= connected && connected <= first && first <= end);
        assert_eq!(row.completion(), Some(end - row.link.start));

        let sender = sent[&row.id];
        assert_eq!(row.link.flow.as_ref(), Some(&sender.flow));
        assert_eq!((sender.tcp, sender.failure), (planned.tcp, None));
        let info = sender.info.unwrap();
        let acked = info.bytes_acked.unwrap();
        assert!((planned.size_bytes..=planned.size_bytes + 2).contains(&acked), "{info:?}");
        assert!(info.bytes_sent.unwrap() >= planned.size_bytes, "{info:?}");
        assert!(info.cwnd.unwrap() >= 1 && info.mss.unwrap() >= 536, "{info:?}");
        assert!(info.data_segments.unwrap() >= 1, "{info:?}");
        // Loopback is far from a second: a field read at a wrong offset is not.
        assert!((1..1_000_000).contains(&info.rtt_us.unwrap()), "{info:?}");
        assert!((1..1_000_000).contains(&info.min_rtt_us.unwrap()), "{info:?}");
        assert!(info.retransmissions.unwrap() <= info.data_segments.unwrap(), "{info:?}");
    }
    let flows: BTreeMap<_, _> = sent.values().map(|row| (&row.flow, row.id)).collect();
    assert_eq!(flows.len(), sent.len(), "two transfers on one 5-tuple");
}

fn check_streams(server: &ServerReport, client: &ClientReport) {
    let [download] = &client.downloads[..] else { panic!("{:?}", client.downloads) };
    let sender = rows(server, ConnectionKind::Download)[&download.id];
    assert_eq!((download.id, download.failure, sender.failure), (3, None, None));
    assert_eq!((download.link.flow.as_ref(), sender.tcp), (Some(&sender.flow), Tcp::Bbr));
    let received = &download.received;
    assert!(received.total() > 0 && received.cumulative.len() <= 6, "{received:?}");
    assert_eq!(received.between(Nanos::ZERO, 600 * MS), received.total());
    // The receiver was reset at the end: some acknowledged bytes it never read.
    assert!(sender.info.unwrap().bytes_acked.unwrap() >= received.total());

    let ([sent], [arrived]) = (&client.uploads[..], &server.uploads[..]) else {
        panic!("{:?} {:?}", client.uploads, server.uploads)
    };
    assert_eq!((sent.id, arrived.id, sent.failure), (4, 4, None));
    assert_eq!(sent.tcp, Tcp::Reno);
    assert_eq!(sent.link.flow.as_ref(), Some(&arrived.flow));
    assert!(arrived.flow.ends_with(" > 127.0.0.1:5000 tcp"), "{}", arrived.flow);
    let info = sent.info.unwrap();
    assert!(arrived.received.total() > 0);
    assert!(info.bytes_sent.unwrap() >= arrived.received.total(), "{info:?}");
}

fn check_sessions(plan: &Plan, server: &ServerReport, client: &ClientReport) {
    let [session] = &client.sessions[..] else { panic!("{:?}", client.sessions) };
    assert_eq!((session.id, session.failure, session.answers.len()), (5, None, 10));
    for (index, answer) in session.answers.iter().enumerate() {
        assert_eq!(answer.due, plan.sessions[0].due[index]);
        let [first, end] = [answer.first_byte, answer.end].map(Option::unwrap);
        assert!(answer.due <= answer.sent && answer.sent <= first && first <= end);
    }
    let sender = rows(server, ConnectionKind::Session)[&5];
    assert_eq!((session.link.flow.as_ref(), sender.failure), (Some(&sender.flow), None));
    assert!(sender.info.unwrap().bytes_acked.unwrap() >= 10 * 30_000);
}

fn check_cbr(plan: &Plan, server: &ServerReport, client: &ClientReport) {
    // 500 ms of 200 bytes every 25 ms and of 1000 bytes every 16 ms.
    let expected = [("voice", 20), ("video", 32)];
    for (index, (name, count)) in expected.into_iter().enumerate() {
        let (sent, received) = (&server.cbr[index], &client.cbr[index]);
        assert_eq!((sent.name.as_str(), received.name.as_str()), (name, name));
        let packets = cbr_packets(sent, received);
        assert_eq!(packets.len(), count);
        for packet in packets {
            assert!(packet.sent >= plan.cbr[index].due(packet.seq));
            assert!(packet.received.unwrap() >= packet.sent);
        }
        for arrival in &received.arrivals {
            assert_eq!(arrival.sent, sent.sent[arrival.seq as usize]);
        }
        assert_eq!((received.duplicates, received.reordered), (0, 0));
    }
}

fn check_pings(plan: &Plan, client: &ClientReport) {
    let [pings] = &client.pings[..] else { panic!("{:?}", client.pings) };
    assert_eq!((pings.id, pings.rows.len(), pings.duplicates), (6, 25, 0));
    for (seq, row) in (0..).zip(&pings.rows) {
        let [answered, received] = [row.answered, row.received].map(Option::unwrap);
        assert!(plan.pings[0].due(seq) <= row.sent);
        assert!(row.sent <= answered && answered <= received);
    }
}
