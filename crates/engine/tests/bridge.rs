//! The engine on real interfaces: what goes in comes out, and what does not is accounted for.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use common::{A4, A6, B4, B6, Lab, ip, link};
use engine::report::DirectionReport;
use engine::{Rate, Report};

const AMPLE: u64 = 200_000_000;

/// Sends `bytes` from `a` to `b` over TCP; returns the checksums of what was sent and received.
fn transfer(lab: &Lab, server: SocketAddr, bytes: usize) -> (u64, u64) {
    let listener = lab.b.run(|| TcpListener::bind(server)).unwrap().unwrap();
    let server = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            checksum(&received)
        });
        let data: Vec<u8> = (0..bytes).map(|i| (i * i / 251) as u8).collect();
        let mut stream = lab.a.run(|| TcpStream::connect(server)).unwrap().unwrap();
        stream.write_all(&data).unwrap();
        drop(stream);
        (checksum(&data), receiving.join().unwrap())
    })
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(bytes.len() as u64, |sum, byte| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte))
}

fn adds_up(report: &DirectionReport) {
    let accounted = report.sent + report.dropped() + report.queued + report.in_flight;
    assert_eq!(report.received, accounted, "{report:#?}");
}

fn both_add_up(report: &Report) {
    assert_eq!(report.fault, None);
    adds_up(&report.left_to_right);
    adds_up(&report.right_to_left);
}

#[test]
fn tcp_passes_over_ipv4_and_ipv6() {
    let Some(lab) = Lab::new() else { return };
    for (from, to) in [(A4, B4), (A6, B6)] {
        let server = SocketAddr::new(ip(to), 0);
        let (sums, report) = lab.while_bridged(link("fifo", AMPLE), link("fifo", AMPLE), || {
            transfer(&lab, server, 300_000)
        });
        assert_eq!(sums.0, sums.1);
        both_add_up(&report);
        let observed = report.left_to_right.observed.unwrap();
        let prefix = match ip(from) {
            std::net::IpAddr::V4(_) => format!("{from}:"),
            std::net::IpAddr::V6(_) => format!("[{from}]:"),
        };
        let flow = observed.flows.iter().find(|flow| flow.flow.starts_with(&prefix)).unwrap();
        assert!(flow.flow.ends_with(" tcp"), "{}", flow.flow);
        assert!(flow.departed.bytes > 300_000, "{flow:?}");
    }
}

#[test]
fn an_unlimited_link_passes_all() {
    let Some(lab) = Lab::new() else { return };
    let free = || link("fifo:limit=10000packets", Rate::UNLIMITED.0);
    let server = SocketAddr::new(ip(B4), 0);
    let (sums, report) = lab.while_bridged(free(), free(), || transfer(&lab, server, 2_000_000));
    assert_eq!(sums.0, sums.1);
    both_add_up(&report);
}
