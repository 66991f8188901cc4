//! What a packet takes on the link: the qdisc charges to the byte what [`engine::Framing`] says,
//! super-packets included, and CAKE says the same of its own keywords.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use engine::kernel::testing::TestHooks;
use engine::kernel::{Registered, Shaping, compose, load};
use engine::overhead::{ETHERNET_HEADER, KEYWORDS};
use engine::segments::Segments;
use engine::{Framing, LinkSettings, Overhead};
use sched::Rate;
use serde_json::Value;

use super::device::{Device, run_command};
use super::frames::{Door, Frame, SuperKind, SuperPacket};

const KIND: &str = "slframing";
/// A byte takes a nanosecond.
const RATE: u64 = 8_000_000_000;
/// At the edges of cells, of least sizes and of what an interface takes, and in between.
const SIZES: [usize; 20] =
    [14, 33, 34, 35, 46, 47, 48, 49, 60, 61, 64, 65, 77, 78, 98, 500, 1000, 1498, 1513, 1514];
/// Of these.
const BY_CAKE: [usize; 7] = [34, 48, 62, 63, 98, 1000, 1514];
/// Payload of super-packets: full segments, and what the last one has.
const SUPER: [(usize, usize, usize); 4] = [(1, 1448, 1), (2, 1448, 1448), (11, 536, 7), (3, 8, 8)];

/// Ours, and what says the same to CAKE.
fn written() -> Vec<(String, Option<String>)> {
    let mut all: Vec<(String, Option<String>)> = KEYWORDS
        .iter()
        .map(|keyword| (keyword.name.to_owned(), Some(keyword.name.to_owned())))
        .collect();
    for (ours, cake) in [
        ("0", Some("raw")),
        ("24", Some("raw overhead 24")),
        ("44,atm,mpu=64", Some("raw overhead 44 atm mpu 64")),
        ("-14,ptm", Some("raw overhead -14 ptm")),
        ("ip+44,atm,mpu=64", Some("overhead 44 atm mpu 64")),
        ("ip+0", Some("overhead 0")),
        ("ether-vlan", Some("ether-vlan")),
        ("pppoe-ptm,ether-vlan,ether-vlan", Some("pppoe-ptm ether-vlan ether-vlan")),
        ("docsis,mpu=200", Some("docsis mpu 200")),
        ("conservative,noatm", Some("conservative noatm")),
        // CAKE wraps around below zero.
        ("-64", None),
        ("1024,atm,mpu=1024", None),
    ] {
        all.push((ours.to_owned(), cake.map(str::to_owned)));
    }
    all
}

pub(crate) fn run(_: &[String]) -> Result<()> {
    let mut device = Device::new(0)?;
    let (mut ours, mut cakes) = (0, 0);
    for (text, cake) in written() {
        let overhead: Overhead = text.parse()?;
        let framing = overhead.framing(ETHERNET_HEADER);
        println!("framing: {text}");
        ours += charged(&mut device, overhead, framing).with_context(|| text.clone())?;
        if let Some(cake) = cake {
            cakes += by_cake(&mut device, &cake, framing).with_context(|| text.clone())?;
        }
    }
    println!("framing: {ours} frames charged as outside the kernel, {cakes} as CAKE does");
    Ok(())
}

fn charged(device: &mut Device, overhead: Overhead, framing: Framing) -> Result<u64> {
    let link = LinkSettings { rate: Rate(RATE), overhead, ..LinkSettings::default() };
    let shaping = Shaping { link, link_header: ETHERNET_HEADER as u8 };
    let hooks = TestHooks { key_seed: 1, seed: 1, only_slow_parser: false, recorded: true };
    let registered = load(KIND, &compose(&"efd".parse()?, &shaping)?, 1, Some(hooks))?;
    device.attach(KIND)?;
    let mut arrivals = 0;
    let mut events = 0;
    for size in SIZES {
        let found = charge(device, &registered, &frame(size), (&mut arrivals, &mut events))?;
        let expected = u64::from(framing.on_link(size as u32));
        ensure!(found == expected, "a frame of {size} bytes takes {found}, not {expected}");
    }
    for (full, segment, last) in SUPER {
        let frame = super_packet(full, segment, last);
        let found = charge(device, &registered, &frame, (&mut arrivals, &mut events))?;
        let of = |payload| (HEADERS + payload) as u32;
        let segments = Segments { count: full as u16 + 1, each: of(segment), last: of(last) };
        let expected = u64::from(framing.segments_on_link(segments));
        ensure!(
            found == expected,
            "{full} segments of {segment} and one of {last} take {found}, not {expected}"
        );
    }
    device.detach()?;
    Ok(arrivals)
}

/// Bytes that the link is busy with after a frame.
fn charge(
    device: &mut Device,
    registered: &Registered,
    frame: &Frame,
    (arrivals, events): (&mut u64, &mut u64),
) -> Result<u64> {
    registered.let_out(0, *arrivals, 1)?;
    ensure!(device.send(frame)?, "the device takes no such frame");
    *arrivals += 1;
    // It arrives, and is sent.
    *events += 2;
    let begin = Instant::now();
    while registered.progress(0).1 < *events {
        ensure!(begin.elapsed() < Duration::from_secs(5), "a frame was not sent");
        thread::sleep(Duration::from_micros(200));
    }
    let sent = registered.record(0, *events - 1)?;
    Ok(registered.link_free_at(0) - sent.now)
}

/// CAKE tells the largest size that it has seen: that of the latest frame, as each is larger.
fn by_cake(device: &mut Device, options: &str, framing: Framing) -> Result<u64> {
    let name = device.name().to_owned();
    run_command(&format!("tc qdisc add dev {name} root cake bandwidth 1gbit {options}"))?;
    for size in BY_CAKE {
        ensure!(device.send(&frame(size))?, "the device takes no such frame");
        let shown: Value =
            serde_json::from_str(&run_command(&format!("tc -s -j qdisc show dev {name} root"))?)?;
        let found = shown[0]["max_adj_size"].as_u64().context("CAKE tells no adjusted size")?;
        let expected = u64::from(framing.on_link(size as u32));
        ensure!(found == expected, "CAKE: a frame of {size} bytes takes {found}, not {expected}");
    }
    device.detach()?;
    Ok(BY_CAKE.len() as u64)
}

/// Ethernet, IPv4 and TCP.
const HEADERS: usize = 14 + 20 + 20;

/// An IPv4 packet in a frame of `size` bytes.
fn frame(size: usize) -> Frame {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00, 0x45, 0];
    bytes.extend(((size.max(34) - 14) as u16).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    bytes.resize(size, 0);
    Frame { door: Door::Device, bytes, super_packet: None }
}

fn super_packet(full: usize, segment: usize, last: usize) -> Frame {
    let mut frame = frame(HEADERS + full * segment + last);
    // TCP, with a header of 20 bytes.
    frame.bytes[23] = 6;
    frame.bytes[46] = 0x50;
    frame.super_packet = Some(SuperPacket { headers: HEADERS, segment, kind: SuperKind::TcpV4 });
    frame
}
