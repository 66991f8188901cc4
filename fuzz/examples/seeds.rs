//! Writes the corpora of the targets `path` and `captures`: well-formed frames of every kind, in
//! scripts that pass them through each discipline, and in captures of every format; and those of
//! `probes` and `segments`: what is answered in time, late, twice and never. `cargo run --example
//! seeds`, in this directory.

use std::fs;
use std::path::Path;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
const GRE: u8 = 47;
const ESP: u8 = 50;
/// Disciplines that a live link can have.
const DISCIPLINES: u8 = 24;

fn main() -> std::io::Result<()> {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let captures = corpora.join("captures");
    fs::create_dir_all(&captures)?;
    for (name, capture) in captures_of_every_format() {
        fs::write(captures.join(name), capture)?;
    }
    let corpus = corpora.join("path");
    fs::create_dir_all(&corpus)?;
    for discipline in 0..DISCIPLINES {
        fs::write(corpus.join(format!("mix-{discipline}")), mix(discipline))?;
    }
    for (name, frame) in frames() {
        let script = [header(1, 3), arrive(&frame, None, None), pass(10)].concat();
        fs::write(corpus.join(name), script)?;
    }
    fs::write(corpus.join("tags"), tags())?;
    fs::write(corpus.join("offloads"), offloads())?;
    fs::write(corpus.join("answers"), answers())?;
    fs::write(corpus.join("burst"), burst())?;
    for (target, scripts) in [("probes", probes()), ("segments", segments())] {
        let corpus = corpora.join(target);
        fs::create_dir_all(&corpus)?;
        for (name, script) in scripts {
            fs::write(corpus.join(name), script)?;
        }
    }
    Ok(())
}

type Scripts = Vec<(&'static str, Vec<u8>)>;

/// Probes and their answers, for the target of that name.
fn probes() -> Scripts {
    const SENT: &[u8] = &[8, 1];
    const LATER: &[u8] = &[0, 1];
    const LEAVES: &[u8] = &[1, 0];
    const PASSES: &[u8] = &[21, 0x10, 0x27];
    const ANSWERED: &[u8] = &[2, 0];
    const UNSEEN: &[u8] = &[18, 0];
    const LATE: &[u8] = &[82, 0];
    const TOO_EARLY: &[u8] = &[10, 0];
    let path = |version, trips: &[&[u8]]| [&[version], trips.concat().as_slice()].concat();
    let trip = [SENT, PASSES, ANSWERED].concat();
    vec![
        ("v4", path(0, &[&trip.repeat(8)])),
        ("v6", path(1, &[&trip.repeat(8)])),
        ("unseen", path(0, &[SENT, PASSES, UNSEEN, SENT, PASSES, LATE])),
        ("waits", path(1, &[LATER, PASSES, LEAVES, PASSES, ANSWERED, ANSWERED])),
        ("early", path(0, &[TOO_EARLY, &trip])),
        ("silent", path(0, &[&trip, &[8, 10], PASSES, &[2, 9], &[2, 3]])),
        ("broken", path(1, &[SENT, PASSES, &[3, 0, 60, 1], &[3, 0, 40, 8]])),
        ("bytes", path(0, &[SENT, &[4, 8], b"a secret", PASSES, ANSWERED])),
    ]
}

/// Segments and what acknowledges them, for the target of that name.
fn segments() -> Scripts {
    const LEAVES: u8 = 0;
    const COMES: u8 = 1;
    const PASSES: &[u8] = &[4, 0x10, 0x27];
    const STAMPED: u8 = 32;
    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    // Payloads are of 8 bytes, in steps of which numbers are told.
    let data = |how: u8, number| vec![LEAVES, how, 0, ACK, number, 0, 8, 0, 90];
    let answer = |how: u8, number| vec![COMES, how, 1, ACK, 0, number, 0, 0, 60];
    let stamped = |how: u8, mut segment: Vec<u8>, stamps: [u8; 2]| {
        segment[1] = how | STAMPED;
        segment.extend(stamps);
        segment
    };
    let mut scripts = Scripts::new();
    for (name, link, how) in [
        ("v4", 0, 0),
        ("v6", 1, 1),
        ("options", 0, 2),
        ("extension", 0, 3),
        ("tag", 0, 4),
        ("cut", 1, 8),
        ("padded", 0, 16),
    ] {
        let trip = [&data(how, 4)[..], PASSES, &answer(how, 5), PASSES].concat();
        let out = stamped(how, data(how, 5), [50, 1]);
        let back = stamped(how, answer(how, 6), [9, 50]);
        scripts.push((name, [&[link], &trip[..], &out, &out, PASSES, &back, &back].concat()));
    }
    let opens = [LEAVES, 0, 0, SYN, 0, 0, 0, 0, 0];
    let ends = [LEAVES, 0, 0, FIN | ACK, 9, 9, 0xd0, 5, 128];
    let raw = [2, 4, 1, 2, 3, 4, 3, 2, 5, 6];
    scripts.push(("flags", [&[1], &opens[..], &ends, &raw, &[7, 1, 0]].concat()));
    scripts
}

/// Discipline and rate, a limit of 32 packets, and observer and edge that go with the discipline's
/// number.
fn header(discipline: u8, rate: u8) -> Vec<u8> {
    vec![discipline, 31, rate, discipline % 3, 24, discipline % 4, discipline, 100]
}

fn arrive(frame: &[u8], offload: Option<[u8; 10]>, tag: Option<[u8; 4]>) -> Vec<u8> {
    let kind = u8::from(offload.is_some()) << 3 | u8::from(tag.is_some()) << 4;
    let length = (frame.len() as u16).to_le_bytes();
    let (offload, tag) = (offload.map(Vec::from), tag.map(Vec::from));
    [&[kind], &length[..], &offload.unwrap_or_default(), &tag.unwrap_or_default(), frame].concat()
}

fn pass(microseconds: u16) -> Vec<u8> {
    [&[4], &microseconds.to_le_bytes()[..]].concat()
}

/// Every kind of frame, time, a change, and every kind again.
fn mix(discipline: u8) -> Vec<u8> {
    let mut script = header(discipline, discipline);
    for change in [false, true] {
        if change {
            script.extend([7, 10, discipline + 1]);
        }
        for (_, frame) in frames() {
            script.extend(arrive(&frame, None, None));
            script.extend(pass(700));
        }
    }
    script
}

/// More packets of few flows than the limit, marked where they can be.
fn burst() -> Vec<u8> {
    let mut script = header(0, 3);
    for number in 0..200u16 {
        let flow = [40_000, 40_001, 40_000 + number][usize::from(number % 3)];
        script.extend(arrive(&ipv4(UDP, &ports(flow, 53, 400)), None, None));
        if number % 20 == 0 {
            script.extend(pass(5000));
        }
    }
    script
}

fn tags() -> Vec<u8> {
    let mut script = header(1, 4);
    for (_, frame) in frames() {
        script.extend(arrive(&frame, None, Some([0x81, 0, 0, 10])));
        script.extend(arrive(&frame, Some(checksum(34, 16)), Some([0x88, 0xa8, 0x20, 0x14])));
        script.extend(pass(100));
    }
    script
}

fn offloads() -> Vec<u8> {
    let long = ipv4(TCP, &tcp(1000, 80, 8000));
    let mut script = header(1, 6);
    script.extend(arrive(&ipv4(UDP, &ports(1, 2, 100)), Some(checksum(34, 6)), None));
    script.extend(arrive(&long, Some(super_packet(1, 54, 1448)), None));
    script.extend(arrive(&ipv6(TCP, &tcp(1, 2, 5000)), Some(super_packet(4, 74, 1428)), None));
    script.extend(arrive(&ipv4(UDP, &ports(1, 2, 9000)), Some(super_packet(5, 42, 1472)), None));
    script.extend(arrive(&long, None, None));
    script.extend(pass(1000));
    script
}

fn answers() -> Vec<u8> {
    let mut script = header(1, 7);
    for answer in [0, 3, 255, 254, 1, 0, 64] {
        script.extend([6, answer]);
    }
    for (_, frame) in frames() {
        script.extend(arrive(&frame, None, None));
    }
    for _ in 0..10 {
        script.extend(pass(100));
    }
    script
}

/// `struct virtio_net_hdr`: a checksum to complete.
fn checksum(start: u16, offset: u16) -> [u8; 10] {
    let [start, offset] = [start, offset].map(u16::to_le_bytes);
    [1, 0, 0, 0, 0, 0, start[0], start[1], offset[0], offset[1]]
}

/// And segments of this size to make of it, behind headers of this length.
fn super_packet(kind: u8, header: u16, segment: u16) -> [u8; 10] {
    let [header, segment] = [header, segment].map(u16::to_le_bytes);
    [1, kind, header[0], header[1], segment[0], segment[1], 34, 0, 16, 0]
}

/// One of each kind, with a name.
fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let tagged = |tags: &[u8], frame: &[u8]| [&frame[..12], tags, &frame[12..]].concat();
    let udp = ipv4(UDP, &ports(40_000, 53, 40));
    let mut fragment = udp.clone();
    fragment[20..22].copy_from_slice(&[0x20, 0xb9]);
    let mut options = ipv4(TCP, &[&[1u8; 8][..], &tcp(1, 2, 40)].concat());
    options[14] = 0x47;
    vec![
        ("ipv4-udp", udp.clone()),
        ("ipv4-tcp", ipv4(TCP, &tcp(50_000, 443, 1400))),
        ("ipv4-icmp", ipv4(ICMP, &[8, 0, 0, 0, 0x12, 0x34, 0, 1])),
        ("ipv4-icmp-error", ipv4(ICMP, &[&[3, 4, 0, 0, 0, 0, 5, 0][..], &udp[14..]].concat())),
        ("ipv4-esp", ipv4(ESP, &[0, 0, 1, 2, 0, 0, 0, 9])),
        ("ipv4-gre", ipv4(GRE, &[0x20, 0, 8, 0, 0, 0, 0, 7, 0x45])),
        ("ipv4-fragment", fragment),
        ("ipv4-options", options),
        ("ipv6-udp", ipv6(UDP, &ports(40_000, 53, 40))),
        ("ipv6-tcp", ipv6(TCP, &tcp(50_000, 443, 1300))),
        ("ipv6-icmp", ipv6(ICMP6, &[128, 0, 0, 0, 0x12, 0x34, 0, 1])),
        (
            "ipv6-extended",
            ipv6(
                0,
                &[&[44, 0, 5, 2, 0, 0, 1, 0][..], &[17, 0, 0, 1, 0, 0, 0, 5], &ports(1, 2, 8)]
                    .concat(),
            ),
        ),
        ("vlan", tagged(&[0x81, 0, 0, 10], &udp)),
        ("qinq", tagged(&[0x88, 0xa8, 0, 20, 0x81, 0, 0x60, 10], &ipv6(TCP, &tcp(1, 2, 0)))),
        ("arp", ethernet(0x0806, &[0, 1, 8, 0, 6, 4, 0, 1, 2, 2, 2, 2, 2, 2, 10, 0, 0, 1])),
        ("pppoe", ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 0x2a, 0, 0x21][..], &udp[14..]].concat())),
        ("mpls", ethernet(0x8847, &[&[0, 1, 1, 64][..], &udp[14..]].concat())),
        ("llc", ethernet(38, &[0x42, 0x42, 3, 0, 0, 0])),
        ("empty", vec![]),
    ]
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], &ethertype.to_be_bytes()[..], payload].concat()
}

/// ECN-capable, with a correct checksum.
fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let mut header =
        [0x45, 2, high, low, 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
    let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    ethernet(0x0800, &[&header, payload].concat())
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let mut header = vec![0x60, 0x20, 0, 7, high, low, next, 64];
    for host in [1, 2] {
        header.extend([0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    ethernet(0x86dd, &[&header, payload].concat())
}

/// A UDP header, and so many bytes.
fn ports(from: u16, to: u16, payload: usize) -> Vec<u8> {
    let length = (8 + payload as u16).to_be_bytes();
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &length, &[0, 0], &vec![0; payload]].concat()
}

/// A TCP header with timestamps, and so many bytes.
fn tcp(from: u16, to: u16, payload: usize) -> Vec<u8> {
    let mut header = [&from.to_be_bytes()[..], &to.to_be_bytes()].concat();
    header.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x80, 0x10, 1, 0, 0, 0, 0, 0]);
    header.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    header.extend(vec![0; payload]);
    header
}

fn captures_of_every_format() -> [(&'static str, Vec<u8>); 6] {
    let little = pcap(0xa1b2_c3d4, u32::to_le_bytes);
    [
        ("pcap", little.clone()),
        ("pcap-nanoseconds", pcap(0xa1b2_3c4d, u32::to_le_bytes)),
        ("pcap-big-endian", pcap(0xa1b2_c3d4, u32::to_be_bytes)),
        ("pcapng", pcapng(u32::to_le_bytes)),
        ("pcapng-big-endian", pcapng(u32::to_be_bytes)),
        ("gzip", gzip(&little)),
    ]
}

/// Ethernet frames, one of them cut short.
fn pcap(magic: u32, word: fn(u32) -> [u8; 4]) -> Vec<u8> {
    // In big-endian order the major version comes first, too.
    let version = if word(1)[0] == 1 { 4 << 16 | 2 } else { 2 << 16 | 4 };
    let mut file = [magic, version, 0, 0, 65_535, 1].map(word).concat();
    for (number, (_, frame)) in (0..).zip(frames()) {
        let length = frame.len() as u32;
        let kept = if number == 3 { length / 2 } else { length };
        file.extend([1_000_000_000 + number, 250_000, kept, length].map(word).concat());
        file.extend(&frame[..kept as usize]);
    }
    file
}

/// A section, two interfaces (Ethernet with nanoseconds, raw IP), enhanced and simple packets, and
/// a block that no reader knows.
fn pcapng(word: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let half = |high: u16, low: u16| {
        let (high, low) = if word(1)[0] == 1 { (low, high) } else { (high, low) };
        word(u32::from(high) << 16 | u32::from(low))
    };
    let block = |kind: u32, body: &[u8]| {
        let padded = body.len().next_multiple_of(4);
        let mut padding = body.to_vec();
        padding.resize(padded, 0);
        let length = word(padded as u32 + 12);
        [&word(kind)[..], &length, &padding, &length].concat()
    };
    let section = [&word(0x1a2b_3c4d)[..], &half(1, 0), &word(u32::MAX), &word(u32::MAX)].concat();
    let resolution = [&half(9, 1)[..], &[9, 0, 0, 0], &word(0)].concat();
    let mut file = block(0x0a0d_0d0a, &section);
    file.extend(block(1, &[&half(1, 0)[..], &word(0), &resolution].concat()));
    file.extend(block(1, &[&half(101, 0)[..], &word(0)].concat()));
    file.extend(block(0x0bad, b"nobody knows"));
    for (number, (_, frame)) in (0..).zip(frames()) {
        let length = word(frame.len() as u32);
        file.extend(match number % 4 {
            3 => block(3, &[&length[..], &frame].concat()),
            _ => {
                let raw = u32::from(number % 4 == 2 && frame.len() > 14);
                let bytes = &frame[14 * raw as usize..];
                let length = word(bytes.len() as u32);
                let times = [word(raw), word(0), word(1_000 * number), length, length].concat();
                block(6, &[&times, bytes].concat())
            }
        });
    }
    file
}

/// What is stored, not compressed, so that no library is needed.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u16;
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let stored = [&length.to_le_bytes()[..], &(!length).to_le_bytes(), bytes].concat();
    [&head[..], &stored, &crc32(bytes).to_le_bytes(), &u32::from(length).to_le_bytes()].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}
