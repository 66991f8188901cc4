//! What goes wrong is a row with its cause, and never the end of a run.

use std::io::Write;
use std::net::TcpStream;

use lab::traffic::{Cause, ConnectionKind, Error, Failures, monotonic, run_client, run_server};

use crate::setup::{ENDLESS, MS, plan, run, transfer, with_server};

pub(crate) fn what_the_hard_stop_cuts_is_incomplete() {
    let mut plan = plan(100, 400);
    plan.transfers = vec![transfer(1, 0, ENDLESS), transfer(2, 10, 5000), transfer(3, 20, ENDLESS)];
    let (server, client) = run(&plan);

    let failures: Vec<_> = client.transfers.iter().map(|row| row.failure).collect();
    assert_eq!(failures, [Some(Cause::HardStop), None, Some(Cause::HardStop)]);
    let cut = &client.transfers[0];
    assert!(cut.end.is_none() && cut.first_byte.is_some() && cut.bytes > 0, "{cut:?}");
    assert_eq!(client.failures, Failures::from([(Cause::HardStop.to_string(), 2)]));

    assert_eq!(server.connections.len(), 3);
    for row in &server.connections {
        assert_eq!(row.kind, ConnectionKind::Transfer);
        assert_eq!(row.failure.is_some(), row.id != 2, "{row:?}");
        assert!(row.info.unwrap().bytes_acked.unwrap() > 0, "{row:?}");
    }
}

pub(crate) fn ports_used_up_fail_transfers_only() {
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "40000 40003").unwrap();
    let mut plan = plan(100, 400);
    plan.transfers = (0..8).map(|id| transfer(id, 0, ENDLESS)).collect();
    let (_, client) = run(&plan);

    // Four ports: one carries the control connection, three a transfer.
    let of = |cause| client.transfers.iter().filter(|row| row.failure == Some(cause)).count();
    assert_eq!((of(Cause::HardStop), of(Cause::PortsUsedUp)), (3, 5));
    assert_eq!(client.failures[&Cause::PortsUsedUp.to_string()], 5);
    for row in &client.transfers {
        assert_eq!(row.link.flow.is_none(), row.failure == Some(Cause::PortsUsedUp), "{row:?}");
    }
}

pub(crate) fn strangers_are_counted_and_ignored() {
    let mut plan = plan(300, 60_000);
    plan.transfers.push(transfer(1, 200, 5000));
    let (server, client) = with_server(&plan, || {
        let mut stranger = TcpStream::connect(plan.server_address()).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n").unwrap();
        drop(TcpStream::connect(plan.server_address()).unwrap());
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.send_to(b"?", plan.server_address()).unwrap();
        run_client(&plan, || {}).unwrap()
    });
    assert_eq!(client.transfers[0].failure, None);
    assert_eq!(server.failures, Failures::from([(Cause::NoRequest.to_string(), 2)]));
}

pub(crate) fn a_role_that_cannot_begin_says_why() {
    let nobody_listens = plan(100, 200);
    let error = run_client(&nobody_listens, || panic!("ready")).unwrap_err();
    assert!(error.to_string().starts_with("cannot reach the server at 127.0.0.1:5000"), "{error}");

    let mut late = plan(100, 200);
    late.epoch = monotonic() - 2000 * MS;
    let error = run_server(&late, || panic!("ready")).unwrap_err();
    assert!(matches!(error, Error::Late(us) if us >= 1_000_000), "{error}");
    assert!(matches!(run_client(&late, || panic!("ready")), Err(Error::Late(_))));

    let mut twice = plan(100, 200);
    twice.transfers = vec![transfer(7, 0, 1), transfer(7, 1, 1)];
    let error = run_server(&twice, || panic!("ready")).unwrap_err();
    assert_eq!(error.to_string(), "bad traffic plan: transfers: '7' occurs twice");

    let taken = std::net::TcpListener::bind("127.0.0.1:5000").unwrap();
    let error = run_server(&plan(100, 200), || panic!("ready")).unwrap_err();
    assert!(error.to_string().starts_with("cannot listen on 127.0.0.1:5000"), "{error}");
    drop(taken);
}
