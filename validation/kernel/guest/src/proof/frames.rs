//! Random frames: a population of flows of every kind, and damage.

use super::random::Random;

/// How far from everyday traffic frames stray.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variety {
    /// UDP over plain IPv4.
    Plain,
    /// Every kind of frame, some damaged.
    Any,
}

/// Room for any tags and extension headers on an interface with the usual MTU.
const MOST_BYTES: usize = 1514;
const LEAST_BYTES: usize = 14;

/// A frame, and through which of the device's doors it goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) door: Door,
    pub(crate) bytes: Vec<u8>,
    pub(crate) super_packet: Option<SuperPacket>,
}

/// A frame goes to the device itself, or to a VLAN interface above it, which leaves the tag to the
/// device: in the kernel's notes about the packet, not in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Device,
    Vlan,
    ServiceVlan,
}

impl Door {
    pub(crate) const ALL: [Self; 3] = [Self::Device, Self::Vlan, Self::ServiceVlan];

    /// The tag that the device is left to add.
    pub(crate) fn tag(self) -> Option<(u16, u16)> {
        match self {
            Self::Device => None,
            Self::Vlan => Some((0x8100, 10)),
            Self::ServiceVlan => Some((0x88a8, 20)),
        }
    }
}

/// A frame of several segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SuperPacket {
    /// All headers in front of the payload.
    pub(crate) headers: usize,
    /// Payload bytes of a segment.
    pub(crate) segment: usize,
    pub(crate) kind: SuperKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuperKind {
    TcpV4,
    TcpV6,
}

impl Frame {
    /// The frame as the link carries it, tags included.
    pub(crate) fn on_link(&self) -> Vec<u8> {
        let Some((kind, tag)) = self.door.tag() else { return self.bytes.clone() };
        let (addresses, rest) = self.bytes.split_at(12);
        [addresses, &kind.to_be_bytes(), &tag.to_be_bytes(), rest].concat()
    }

    /// Segments, and the bytes that qdiscs count: each segment with headers of its own. A tag
    /// that is left to the device is not in them.
    pub(crate) fn cost(&self) -> (u16, u32) {
        let bytes = self.bytes.len();
        let Some(SuperPacket { headers, segment, .. }) = self.super_packet else {
            return (1, bytes as u32);
        };
        let segments = (bytes - headers).div_ceil(segment).max(1);
        (segments as u16, (bytes + (segments - 1) * headers) as u32)
    }
}

/// Flows between a few hosts.
pub(crate) struct Population {
    seed: u64,
    flows: u64,
    variety: Variety,
}

impl Population {
    pub(crate) fn new(random: &mut Random, variety: Variety) -> Self {
        let flows = random.pick(&[1, 2, 3, 5, 10, 40, 1000]);
        Self { seed: random.next(), flows, variety }
    }

    /// A packet of a random flow; the first flows are the busiest.
    pub(crate) fn frame(&self, random: &mut Random) -> Frame {
        let flow = random.below(self.flows).min(random.below(self.flows));
        // What belongs to the flow follows from its number.
        let mut of_flow = Random::new(self.seed, flow);
        let plain = Frame { door: Door::Device, bytes: Vec::new(), super_packet: None };
        if self.variety == Variety::Plain {
            return Frame { bytes: plain_udp(&mut of_flow, random), ..plain };
        }
        let door = match of_flow.below(10) {
            0 => Door::Vlan,
            1 => Door::ServiceVlan,
            _ => Door::Device,
        };
        if random.chance(4) {
            return Frame { door, ..super_packet(&mut of_flow, random) };
        }
        let mut bytes = any_frame(&mut of_flow, random);
        damage(random, &mut bytes);
        Frame { door, bytes, super_packet: None }
    }
}

fn ethernet(of_flow: &mut Random, ethertype: u16) -> Vec<u8> {
    // Locally administered, and nobody's: the receiving stack takes no notice.
    let host = |random: &mut Random| [0x02, 0xaa, 0, 0, 0, random.below(4) as u8];
    let mut frame = [host(of_flow), host(of_flow)].concat();
    frame.extend(ethertype.to_be_bytes());
    frame
}

/// A size that is often the smallest, the largest, or 1000.
fn padding(random: &mut Random, used: usize) -> usize {
    let room = MOST_BYTES.saturating_sub(used) as u64;
    match random.below(6) {
        0 => 0,
        1 => room as usize,
        2 => 1000.min(room) as usize,
        _ => random.within(0..=room) as usize,
    }
}

fn plain_udp(of_flow: &mut Random, random: &mut Random) -> Vec<u8> {
    let mut frame = ethernet(of_flow, 0x0800);
    let mut payload = ports(of_flow);
    payload.extend([0; 4]);
    let more = padding(random, 14 + 20 + payload.len());
    payload.resize(payload.len() + more, 0);
    frame.extend(ipv4(of_flow, random, &Ipv4 { protocol: 17, ..Ipv4::default() }, &payload));
    frame
}

fn ports(of_flow: &mut Random) -> Vec<u8> {
    of_flow.bytes(4)
}

/// What is special about an IPv4 header.
#[derive(Default)]
struct Ipv4 {
    protocol: u8,
    /// Flags and offset.
    fragment: u16,
    option_words: usize,
    /// Instead of the right one.
    total_length: Option<u16>,
}

fn ipv4(of_flow: &mut Random, random: &mut Random, what: &Ipv4, payload: &[u8]) -> Vec<u8> {
    let words = 5 + what.option_words;
    let length = what.total_length.unwrap_or((words * 4 + payload.len()) as u16);
    let mut packet = vec![0x40 | words as u8, random.byte()];
    packet.extend(length.to_be_bytes());
    packet.extend(random.bytes(2));
    packet.extend(what.fragment.to_be_bytes());
    packet.extend([64, what.protocol, 0, 0]);
    packet.extend([10, 0, 0, of_flow.below(3) as u8, 10, 0, 1, of_flow.below(3) as u8]);
    packet.extend(random.bytes(what.option_words * 4));
    packet.extend(payload);
    packet
}

/// The protocol number and the header of a random transport, with what tells flows apart.
fn transport(of_flow: &mut Random, random: &mut Random, v6: bool) -> (u8, Vec<u8>) {
    let (icmp, echo) = if v6 { (58, [128, 129]) } else { (1, [8, 0]) };
    match of_flow.below(14) {
        0..=3 => (17, [ports(of_flow), random.bytes(4)].concat()),
        4..=6 => {
            let mut tcp = [ports(of_flow), random.bytes(16)].concat();
            tcp[12] = 0x50;
            (6, tcp)
        }
        7 => (of_flow.pick(&[33, 132, 136]), [ports(of_flow), random.bytes(8)].concat()),
        8 => {
            let kind = random.pick(&[echo[0], echo[1], 3, 135]);
            let id = of_flow.bytes(2);
            (icmp, [&[kind, 0, 0, 0], &id[..], &random.bytes(2)].concat())
        }
        9 => (50, [of_flow.bytes(4), random.bytes(4)].concat()),
        10 => (47, gre(of_flow, random)),
        11 => (51, auth(of_flow, random, &[59, 51, 17][..])),
        12 => (of_flow.pick(&[2, 4, 41, 89, 103, 59]), random.bytes(8)),
        _ => (of_flow.byte(), random.bytes(12)),
    }
}

fn gre(of_flow: &mut Random, random: &mut Random) -> Vec<u8> {
    let flags = of_flow.pick(&[0u16, 0x2000, 0xa000, 0x2001, 0x3001, 0xb000]);
    let mut header = flags.to_be_bytes().to_vec();
    header.extend([0x08, 0x00]);
    if flags & 0x8000 != 0 {
        header.extend(random.bytes(4));
    }
    let key = of_flow.bytes(4);
    let length_of_payload = random.bytes(2);
    header.extend(if flags & 7 == 1 { &length_of_payload } else { &key[..2] });
    header.extend(&key[2..]);
    header.extend(random.bytes(4));
    header
}

/// An authentication header over nothing, or over UDP; its length is sometimes wrong.
fn auth(of_flow: &mut Random, random: &mut Random, next: &[u8]) -> Vec<u8> {
    let words = if random.chance(80) { 4 } else { random.pick(&[0, 1, 2, 200]) };
    let mut header = vec![of_flow.pick(next), words, 0, 0];
    header.extend(of_flow.bytes(4));
    header.extend(random.bytes(16));
    header.extend(ports(of_flow));
    header.extend(random.bytes(4));
    header
}

fn any_frame(of_flow: &mut Random, random: &mut Random) -> Vec<u8> {
    let mut frame = ethernet(of_flow, 0);
    frame.truncate(12);
    for _ in 0..of_flow.pick(&[0, 0, 0, 0, 0, 0, 1, 1, 2, 3]) {
        frame.extend(of_flow.pick(&[0x8100u16, 0x88a8, 0x9100, 0x9200]).to_be_bytes());
        let id = of_flow.pick(&[0, 1, 10, 4095]);
        frame.extend((id | (random.below(8) as u16) << 13).to_be_bytes());
    }
    let v6 = of_flow.chance(35);
    let ethertype: u16 = if v6 { 0x86dd } else { 0x0800 };
    match of_flow.below(20) {
        0 => {
            frame.extend(0x8864u16.to_be_bytes());
            frame.extend([0x11, 0, 0, 1, 0, 0]);
            let protocol: u16 = if v6 { 0x57 } else { 0x21 };
            match of_flow.below(3) {
                0 => frame.push(protocol as u8),
                1 => frame.extend(0xc021u16.to_be_bytes()),
                _ => frame.extend(protocol.to_be_bytes()),
            }
        }
        1 => {
            frame.extend(of_flow.pick(&[0x0806u16, 0x88cc, 0x0026, 0x8847, 0x05ff]).to_be_bytes());
            let more = padding(random, frame.len());
            frame.extend(random.bytes(more));
            return frame;
        }
        _ => frame.extend(ethertype.to_be_bytes()),
    }
    let (protocol, mut payload) = transport(of_flow, random, v6);
    let more = padding(random, frame.len() + 100 + payload.len());
    payload.resize(payload.len() + more, random.byte());
    let packet = if v6 {
        ipv6(of_flow, random, protocol, payload)
    } else {
        any_ipv4(of_flow, random, protocol, &payload)
    };
    frame.extend(packet);
    frame.truncate(MOST_BYTES);
    frame
}

fn any_ipv4(of_flow: &mut Random, random: &mut Random, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let fragment = if random.chance(85) {
        random.pick(&[0, 0x4000])
    } else {
        random.pick(&[0x2000, 0x0001, 0x2100, 0x1fff, 0x8000])
    };
    let option_words = if random.chance(85) { 0 } else { random.within(1..=10) as usize };
    let total_length = random.chance(8).then(|| {
        let header = 20 + 4 * option_words as u64;
        random.pick(&[0, header - 1, header, header + 2, header + 3, header + 4, header + 8, 65535])
            as u16
    });
    ipv4(of_flow, random, &Ipv4 { protocol, fragment, option_words, total_length }, payload)
}

fn ipv6(of_flow: &mut Random, random: &mut Random, protocol: u8, transport: Vec<u8>) -> Vec<u8> {
    let (mut protocol, mut payload) = (protocol, transport);
    // Extension headers, from the innermost to the outermost one.
    let extensions = if random.chance(60) { 0 } else { random.within(1..=5) };
    for _ in 0..extensions {
        let kind = random.pick(&[0u8, 43, 44, 44, 51, 60, 60, 135, 139, 140]);
        let mut header = match kind {
            44 => {
                let offset = random.pick(&[0u16, 0, 0, 0x0001, 0x0008, 0xfff9, 0x0006]);
                [&[protocol, random.byte()], &offset.to_be_bytes()[..], &random.bytes(4)].concat()
            }
            51 => {
                let words = random.within(1..=6) as usize;
                [vec![protocol, words as u8, 0, 0], random.bytes((words + 2) * 4 - 4)].concat()
            }
            _ => {
                let length = random.pick(&[0usize, 0, 1, 3]);
                [vec![protocol, length as u8], random.bytes(length * 8 + 6)].concat()
            }
        };
        header.extend(payload);
        (protocol, payload) = (kind, header);
    }
    let right = payload.len() as u64;
    let length = if random.chance(92) {
        right
    } else {
        random.pick(&[0, 1, 3, 4, 7, 8, 16, right.saturating_sub(1), right + 1, 65535])
    };
    let mut packet = vec![0x60 | random.byte() >> 4, random.byte(), random.byte(), random.byte()];
    packet.extend((length as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    for _ in 0..2 {
        packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, of_flow.below(3) as u8]);
    }
    packet.extend(payload);
    packet
}

/// A few frames are cut off, changed in a place or two, or nothing but noise.
fn damage(random: &mut Random, frame: &mut Vec<u8>) {
    match random.below(30) {
        0 => frame.truncate(random.within(LEAST_BYTES as u64..=frame.len() as u64) as usize),
        1 => frame.truncate(frame.len().min(random.within(14..=80) as usize)),
        2 | 3 => {
            let headers = frame.len().min(80) as u64;
            for _ in 0..random.within(1..=3) {
                // Not the addresses: nobody is to be meant by the frame.
                let at = random.within(12..=headers - 1) as usize;
                frame[at] = random.byte();
            }
        }
        4 => {
            frame.truncate(12);
            let more = random.within(2..=MOST_BYTES as u64 - 12) as usize;
            frame.extend(random.bytes(more));
        }
        _ => {}
    }
}

/// A TCP super-packet as a guest of a virtual machine, or any local sender, hands it over.
fn super_packet(of_flow: &mut Random, random: &mut Random) -> Frame {
    let v6 = of_flow.chance(30);
    let mut tcp = [ports(of_flow), random.bytes(16)].concat();
    tcp[12] = 0x50;
    tcp[13] = 0x10;
    let segment = of_flow.pick(&[100usize, 536, 1448]);
    let payload = random.within(segment as u64 + 1..=(segment * 12) as u64) as usize;
    tcp.resize(tcp.len() + payload, 0);
    let mut bytes = ethernet(of_flow, if v6 { 0x86dd } else { 0x0800 });
    let headers = if v6 {
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((tcp.len() as u16).to_be_bytes());
        packet.extend([6, 64]);
        packet.extend([0xfd; 16]);
        packet.extend([0xfe; 16]);
        packet.extend(&tcp);
        bytes.extend(packet);
        14 + 40 + 20
    } else {
        let what = Ipv4 { protocol: 6, ..Ipv4::default() };
        bytes.extend(ipv4(of_flow, random, &what, &tcp));
        14 + 20 + 20
    };
    let kind = if v6 { SuperKind::TcpV6 } else { SuperKind::TcpV4 };
    let super_packet = Some(SuperPacket { headers, segment, kind });
    Frame { door: Door::Device, bytes, super_packet }
}
