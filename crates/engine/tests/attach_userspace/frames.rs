//! Frames of every kind: super-packets, floods, rubbish.

use std::time::{Duration, Instant};

use engine::buffers::{Buffers, Offload};
use engine::io::FrameIo;
use engine::packet_socket::PacketSocket;
use engine::userspace::HookKind;
use netdev::link::Links;
use netdev::netns::Namespace;

use super::hosts::{A4, B4, Hosts, adds_up, link, server};
use super::process::Process;

/// Packets and bytes that an interface has received, and packets that its kernel had no room for.
fn received(host: &Namespace) -> [u64; 3] {
    let json = Hosts::says(host, "ip -j -s link show dev eth0");
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    ["packets", "bytes", "dropped"].map(|what| value[0]["stats64"]["rx"][what].as_u64().unwrap())
}

#[test]
fn super_packets_pass_whole_where_the_rate_allows_and_count_as_on_the_wire() {
    let Some(hosts) = Hosts::new() else { return };
    for (rate, whole) in [(2_000_000_000, true), (100_000_000, false)] {
        // The cable carries what it can: the device has no segmentation of its own.
        hosts.a.run(|| Links::open().unwrap().offloads("eth0", false)).unwrap().unwrap();
        // TCP makes super-packets all the same, above the device.
        Hosts::says(&hosts.a, "ethtool -K eth0 sg on tx on tso off gso on");
        let before = received(&hosts.b);
        let config = || link("fifo:limit=20000packets", rate);
        let ((), report) = hosts.while_attached(config(), None, HookKind::Auto, || {
            hosts.transfer(&hosts.a, server(&hosts.b, B4), 5_000_000);
        });
        let after = received(&hosts.b);
        let direction = &report.directions[0];
        let (sent, passed) = (direction.sent, direction.passed);
        adds_up(direction);
        // What the engine counts is what the far end has received, headers of segments and all,
        // but for a packet or two that the hosts have exchanged before or after, for what a slow
        // machine has lost on the way, and for what has passed an engine that was late.
        let [segments, bytes, lost] = [0, 1, 2].map(|at| after[at] - before[at]);
        let (at_least, at_most) = (sent.bytes, bytes + lost * (1 << 16));
        assert!(at_least <= at_most, "{at_least} of {bytes}, {lost} lost");
        if passed.packets > 0 {
            println!("{passed:?} passed a late engine: segments cannot be told");
            continue;
        }
        assert!(bytes < sent.bytes + 1000, "{} of {bytes}", sent.bytes);
        if whole {
            assert!(sent.packets < segments / 2, "{} for {segments}", sent.packets);
        } else {
            let few = segments - sent.packets;
            assert!(few < 10, "{} of {segments}", sent.packets);
        }
        assert_eq!(report.directions[0].dropped().packets, 0);
    }
}

#[test]
fn arriving_super_packets_come_back_whole_or_in_pieces_and_right() {
    let Some(hosts) = Hosts::new() else { return };
    for rate in [2_000_000_000, 100_000_000] {
        let config = || link("fifo:limit=20000packets", rate);
        let ((), report) = hosts.while_attached(None, config(), HookKind::Auto, || {
            hosts.transfer(&hosts.b, server(&hosts.a, A4), 5_000_000);
        });
        adds_up(&report.directions[0]);
        let [direction, ..] = &report.directions[..] else { panic!("{report:#?}") };
        // What passes an engine that is late does so whole, with headers of its own.
        let bytes = direction.sent.bytes + direction.passed.bytes * 11 / 10;
        assert!(bytes > 5_000_000, "{direction:#?}");
    }
}

/// Frames that nobody would send, from a generator that repeats.
fn rubbish() -> Vec<Vec<u8>> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let types: [[u8; 2]; 8] = [
        [0x08, 0x00],
        [0x86, 0xdd],
        [0x81, 0x00],
        [0x88, 0xa8],
        [0x88, 0x64],
        [0x08, 0x06],
        [0x00, 0x20],
        [0xff, 0xff],
    ];
    let frame = |n: usize| {
        let length = 14 + (random() % 1400) as usize;
        let mut frame: Vec<u8> = (0..length).map(|_| random() as u8).collect();
        frame[12..14].copy_from_slice(&types[n % types.len()]);
        if let Some(first) = frame.get_mut(14).filter(|_| n.is_multiple_of(3)) {
            *first = [0x45, 0x60, 0x4f, 0x40][n % 4];
        }
        // Nobody's, and everybody's.
        frame[0] = if n.is_multiple_of(2) { 0x02 } else { 0xff };
        frame
    };
    (0..4000).map(frame).collect()
}

#[test]
fn rubbish_in_both_directions_does_no_harm() {
    let Some(hosts) = Hosts::new() else { return };
    let config = || link("efd", 500_000_000);
    let ((), report) = hosts.while_attached(config(), config(), HookKind::Auto, || {
        for host in [&hosts.a, &hosts.b] {
            let open = || PacketSocket::sender(Links::open().unwrap().get("eth0").unwrap().index);
            let mut source = host.run(open).unwrap().unwrap();
            let mut buffers = Buffers::new(1600, 10).unwrap();
            for frame in rubbish() {
                let buffer = buffers.take().unwrap();
                buffers.space(buffer)[..frame.len()].copy_from_slice(&frame);
                buffers.received(buffer, frame.len() as u32, Offload::default());
                match source.send(&mut buffers, &[buffer]) {
                    Ok(1) => {}
                    // Full for now, or refused by the kernel.
                    _ => buffers.give(buffer),
                }
            }
        }
        hosts.transfer(&hosts.a, server(&hosts.b, B4), 300_000);
        hosts.transfer(&hosts.b, server(&hosts.a, A4), 300_000);
    });
    assert_eq!(report.fault, None);
    for direction in &report.directions {
        adds_up(direction);
        assert!(direction.received.packets > 1000, "{direction:#?}");
    }
}

#[test]
fn a_flood_takes_bounded_memory() {
    let Some(hosts) = Hosts::new() else { return };
    let process = Process::start(&hosts.a, "efd:limit=500packets", 1_000_000, HookKind::Auto);
    let sink = Hosts::udp(&hosts.b, B4);
    let source = Hosts::udp(&hosts.a, A4);
    source.connect(sink.local_addr().unwrap()).unwrap();
    let flood = |packets: usize| {
        for n in 0..packets {
            let _ = source.send(&[0; 1400][..100 + n % 1300]);
        }
    };
    flood(20_000);
    let before = process.memory();
    let end = Instant::now() + Duration::from_secs(60);
    for _ in 0..20 {
        flood(20_000);
        assert!(Instant::now() < end, "the flood does not get through");
    }
    let after = process.memory();
    assert!(after < before + (4 << 20), "from {before} to {after} bytes");
    let report = process.end();
    let direction = &report.directions[0];
    adds_up(direction);
    assert!(direction.dropped().packets > 10_000, "{direction:#?}");
}
