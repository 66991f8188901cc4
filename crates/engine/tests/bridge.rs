//! The engine on real interfaces: what goes in comes out, and what does not is accounted for.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use common::{A4, A6, B4, B6, Lab, ip, link};
use engine::buffers::{Buffers, Offload};
use engine::io::FrameIo;
use engine::packet_socket::PacketSocket;
use engine::report::DirectionReport;
use engine::{Rate, Report};
use netdev::link::Links;
use netdev::netns::Namespace;

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

/// A socket at `b` that gives up after a while, so that a failing test ends.
fn udp_sink(lab: &Lab) -> UdpSocket {
    let sink = lab.b.run(|| UdpSocket::bind((ip(B4), 0))).unwrap().unwrap();
    sink.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    sink
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
    adds_up(&report.directions[0]);
    adds_up(&report.directions[1]);
}

#[test]
fn tcp_passes_over_ipv4_and_ipv6() {
    for lab in Lab::each() {
        for (from, to) in [(A4, B4), (A6, B6)] {
            let server = SocketAddr::new(ip(to), 0);
            let (sums, report) =
                lab.while_bridged(link("fifo", AMPLE), link("fifo", AMPLE), || {
                    transfer(&lab, server, 300_000)
                });
            assert_eq!(sums.0, sums.1);
            both_add_up(&report);
            let observed = report.directions[0].observed.as_ref().unwrap();
            let prefix = match ip(from) {
                std::net::IpAddr::V4(_) => format!("{from}:"),
                std::net::IpAddr::V6(_) => format!("[{from}]:"),
            };
            let flow = observed.flows.iter().find(|flow| flow.flow.starts_with(&prefix)).unwrap();
            assert!(flow.flow.ends_with(" tcp"), "{}", flow.flow);
            assert!(flow.departed.bytes > 300_000, "{flow:?}");
        }
    }
}

#[test]
fn an_unlimited_link_passes_all() {
    for lab in Lab::each() {
        let free = || link("fifo:limit=10000packets", Rate::UNLIMITED.0);
        let server = SocketAddr::new(ip(B4), 0);
        let (sums, report) =
            lab.while_bridged(free(), free(), || transfer(&lab, server, 2_000_000));
        assert_eq!(sums.0, sums.1);
        both_add_up(&report);
    }
}

#[test]
fn frames_pass_bit_by_bit_whatever_their_tags_are() {
    for lab in Lab::each() {
        // As raw frames, since not every kernel has VLAN interfaces.
        let open = |host: &Namespace, socket: fn(u32) -> std::io::Result<PacketSocket>| {
            let open = || socket(Links::open().unwrap().get("eth0").unwrap().index).unwrap();
            host.run(open).unwrap()
        };
        let mut source = open(&lab.a, PacketSocket::sender);
        let mut sink = open(&lab.b, PacketSocket::receiver);
        let tags: [&[u8]; 4] =
            [&[], &[0x81, 0, 0x60, 7], &[0x88, 0xa8, 0, 20, 0x81, 0, 0, 7], &[0x81, 0, 0, 0]];
        let frames: Vec<Vec<u8>> = tags.iter().map(|tags| tagged_udp(tags)).collect();
        let (received, report) = lab.while_bridged(link("efd", AMPLE), link("efd", AMPLE), || {
            let mut buffers = Buffers::new(1600, 200).unwrap();
            for frame in &frames {
                let buffer = buffers.take().unwrap();
                buffers.space(buffer)[..frame.len()].copy_from_slice(frame);
                buffers.received(buffer, frame.len() as u32, Offload::default());
                assert_eq!(source.send(&mut buffers, &[buffer]).unwrap(), 1);
            }
            let mut received = Vec::new();
            let mut arrived = Vec::new();
            while received.len() < frames.len() {
                sink.receive(&mut buffers, &mut arrived).unwrap();
                for buffer in arrived.drain(..) {
                    if buffers.frame(buffer).ends_with(MARK) {
                        received.push(buffers.frame(buffer).to_vec());
                    }
                    buffers.give(buffer);
                }
                std::thread::yield_now();
            }
            received
        });
        assert_eq!(received, frames);
        both_add_up(&report);
        let flows = &report.directions[0].observed.as_ref().unwrap().flows;
        let ledger = |text: &str| flows.iter().find(|flow| flow.flow == text).unwrap().departed;
        let udp = "10.0.0.1:1 > 10.0.0.2:2 udp";
        // The tag with VLAN id 0 carries a priority, and makes no other flow.
        assert_eq!(ledger(udp).packets, 2);
        assert_eq!(ledger(&format!("{udp} vlan 7")).packets, 1);
        assert_eq!(ledger(&format!("{udp} vlan 20.7")).packets, 1);
    }
}

const MARK: &[u8] = b"the end of a frame that this test has sent";

fn tagged_udp(tags: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(tags);
    frame.extend([0x08, 0, 0x45, 0, 0, 28 + MARK.len() as u8, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 8 + MARK.len() as u8, 0, 0]);
    frame.extend(MARK);
    frame
}

#[test]
fn checksums_that_the_sender_left_to_its_interface_are_completed() {
    for lab in Lab::each() {
        // Transmit checksums on again: the kernel hands the engine packets without them. The
        // receiver, as any real one, takes none that is wrong.
        for host in [&lab.a, &lab.b] {
            let on = || Links::open().unwrap().set_transmit_checksums("eth0", true);
            host.run(on).unwrap().unwrap();
        }
        let server = SocketAddr::new(ip(B4), 0);
        let (sums, report) = lab.while_bridged(link("fifo", AMPLE), link("fifo", AMPLE), || {
            transfer(&lab, server, 300_000)
        });
        assert_eq!(sums.0, sums.1);
        both_add_up(&report);
    }
}

#[test]
fn a_flood_is_dropped_by_the_discipline_and_every_packet_is_accounted_for() {
    for lab in Lab::each() {
        for spec in ["fifo:limit=20packets", "efd:limit=20packets,threshold=5packets"] {
            let sink = udp_sink(&lab);
            let source = lab.a.run(|| UdpSocket::bind((ip(A4), 0))).unwrap().unwrap();
            let slow = || link(spec, 1_000_000);
            let ((), report) = lab.while_bridged(slow(), slow(), || {
                source.connect(sink.local_addr().unwrap()).unwrap();
                // The first packet makes the hosts find each other.
                source.send(&[0; 1000]).unwrap();
                sink.recv(&mut [0; 1000]).unwrap();
                for _ in 0..2000 {
                    source.send(&[0; 1000]).unwrap();
                }
                // When half a queue has arrived, the flood is long past the senders.
                for _ in 0..10 {
                    sink.recv(&mut [0; 1000]).unwrap();
                }
            });
            both_add_up(&report);
            let forth = &report.directions[0];
            assert!(forth.dropped().packets > 0, "{forth:#?}");
            assert!(forth.drops.iter().all(|drop| drop.lane.is_some()), "{:?}", forth.drops);
            // Each packet is also in the ledger.
            let observed = forth.observed.as_ref().unwrap();
            let arrived: u64 = observed.flows.iter().map(|flow| flow.arrived.packets).sum();
            assert_eq!(arrived, forth.received.packets);
            let ledger = observed.flows.iter().flat_map(|flow| &flow.drops);
            let dropped: u64 = ledger.map(|drop| drop.count.packets).sum();
            let total: u64 = forth.drops.iter().map(|drop| drop.count.packets).sum();
            assert_eq!(dropped, total);
        }
    }
}

#[test]
fn a_frame_above_the_mtu_is_counted_and_the_rest_passes() {
    let Some(lab) = Lab::new() else { return };
    // Jumbo frames on the left, none on the right.
    lab.middle.run(|| Links::open().unwrap().set_mtu("left", 9000)).unwrap().unwrap();
    lab.a.run(|| Links::open().unwrap().set_mtu("eth0", 9000)).unwrap().unwrap();
    let sink = udp_sink(&lab);
    let source = lab.a.run(|| UdpSocket::bind((ip(A4), 0))).unwrap().unwrap();
    let (received, report) = lab.while_bridged(link("fifo", AMPLE), link("fifo", AMPLE), || {
        source.connect(sink.local_addr().unwrap()).unwrap();
        source.send(&[1; 8000]).unwrap();
        source.send(&[2; 100]).unwrap();
        let mut packet = [0; 9000];
        let length = sink.recv(&mut packet).unwrap();
        (length, packet[0])
    });
    assert_eq!(received, (100, 2));
    both_add_up(&report);
    let drops = &report.directions[0].drops;
    assert_eq!((drops[0].reason.as_str(), drops[0].count.packets), ("oversize", 1), "{drops:?}");
    assert_eq!(drops[0].count.bytes, 8000 + 8 + 20 + 14, "its real size is known");
}

#[test]
fn super_packets_are_refused_and_say_so() {
    let Some(lab) = Lab::new() else { return };
    let (_, report) = lab.while_bridged(link("fifo", 10_000_000), link("fifo", AMPLE), || {
        let listener = lab.b.run(|| TcpListener::bind((ip(B4), 0))).unwrap().unwrap();
        let server = listener.local_addr().unwrap();
        // Offloads on: TCP hands the interface several segments at a time.
        lab.a.run(|| Links::open().unwrap().offloads("eth0", true)).unwrap().unwrap();
        let mut stream = lab.a.run(|| TcpStream::connect(server)).unwrap().unwrap();
        stream.write_all(&[0; 100_000]).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        // What is too large for one packet comes again in single ones, after a timeout.
        receiver.read_exact(&mut [0; 1000]).unwrap();
    });
    both_add_up(&report);
    let drops = &report.directions[0].drops;
    assert!(drops.iter().any(|drop| drop.reason == "super-packet"), "{drops:?}");
}

#[test]
fn an_interface_that_disappears_ends_the_engine_with_its_counters() {
    for lab in Lab::each() {
        for (change, expected) in [("down", "left: the interface went down"), ("gone", "left: ")] {
            let ((), report) = lab.until_fault(link("fifo", AMPLE), link("fifo", AMPLE), || {
                let mut links = lab.middle.run(|| Links::open().unwrap()).unwrap();
                match change {
                    "down" => links.set_down("left").unwrap(),
                    _ => links.remove("left").unwrap(),
                }
            });
            let fault = report.fault.expect("it ended by itself");
            assert!(fault.starts_with(expected), "{fault}");
            adds_up(&report.directions[0]);
            adds_up(&report.directions[1]);
            if change == "down" {
                lab.middle.run(|| Links::open().unwrap().set_up("left")).unwrap().unwrap();
            }
        }
    }
}
