//! The flow key, which packets of one flow share.
//!
//! A TCP, UDP, UDP-Lite, DCCP or SCTP packet is keyed by its 5-tuple; where a protocol has no
//! ports, by what comes nearest: the id of an ICMP echo, the SPI of ESP, the key (or PPTP call
//! id) of GRE. A frame that carries no readable IP packet is keyed by its MAC addresses and its
//! ethertype. VLAN ids belong to the key, since addresses may repeat from VLAN to VLAN.
//!
//! **Fragments.** Only the first fragment of a datagram has ports, and a datagram must not be
//! split over two flows. So a fragment, the first included, is keyed by addresses and protocol
//! alone: all fragments between two hosts are one flow. (With the datagram's id in the key each
//! datagram would be a new, short flow, and fragmenting a way past any size-based scheduler.)
//!
//! **AH** is passed over, as what it protects is in the clear. **Tunnels** (IP in IP, GRE, ESP)
//! are one flow each: their inside is not looked at.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{Ipv6ExtensionSlice, LaxIpv4Slice, LaxIpv6Slice};
use sched::Ecn;

use crate::link::{LinkType, Located, ethertype, read_u16, read_u32};

/// What identifies a flow. Its text is the 5-tuple: `10.0.0.1:1234 > 10.0.0.2:80 tcp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// Between whom.
    pub endpoints: Endpoints,
    /// What tells flows between them apart.
    pub selector: Selector,
    /// The IP protocol, or the ethertype between MAC addresses (0 where there is none).
    pub protocol: u16,
    /// VLAN ids, innermost in the low half, the one around it in the high half; 0 is none.
    pub vlans: u32,
}

/// The two ends of a flow, sender first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoints {
    /// IPv4 addresses.
    V4([u8; 4], [u8; 4]),
    /// IPv6 addresses.
    V6([u8; 16], [u8; 16]),
    /// MAC addresses; zero on links that have none.
    Mac([u8; 6], [u8; 6]),
}

impl FlowKey {
    /// The key of what is answered.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let endpoints = match self.endpoints {
            Endpoints::V4(from, to) => Endpoints::V4(to, from),
            Endpoints::V6(from, to) => Endpoints::V6(to, from),
            Endpoints::Mac(from, to) => Endpoints::Mac(to, from),
        };
        let selector = match self.selector {
            Selector::Ports(from, to) => Selector::Ports(to, from),
            other => other,
        };
        Self { endpoints, selector, ..*self }
    }
}

impl Endpoints {
    /// One of them in words: the destination, or the source.
    #[must_use]
    pub fn name(&self, of_destination: bool) -> String {
        let pick = |ends: [String; 2]| ends[usize::from(of_destination)].clone();
        match *self {
            Self::V4(from, to) => pick([from, to].map(|end| Ipv4Addr::from(end).to_string())),
            Self::V6(from, to) => pick([from, to].map(|end| Ipv6Addr::from(end).to_string())),
            Self::Mac(from, to) => pick([from, to].map(|end| Mac(end).to_string())),
        }
    }
}

/// What tells apart the flows of one protocol between two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Selector {
    /// Nothing, or nothing that can be read.
    None,
    /// Ports, of the sender first.
    Ports(u16, u16),
    /// ICMP echo id, ESP or AH SPI, or GRE key.
    Id(u32),
    /// The packet is a fragment, the first or a later one.
    Fragment,
}

/// IP protocol numbers that the key knows.
mod protocol {
    pub(super) const ICMP: u16 = 1;
    pub(super) const TCP: u16 = 6;
    pub(super) const UDP: u16 = 17;
    pub(super) const DCCP: u16 = 33;
    pub(super) const GRE: u16 = 47;
    pub(super) const ESP: u16 = 50;
    pub(super) const AH: u16 = 51;
    pub(super) const ICMPV6: u16 = 58;
    pub(super) const SCTP: u16 = 132;
    pub(super) const UDPLITE: u16 = 136;
}

/// Where a TCP segment stands in its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSequence {
    /// Its sequence number.
    pub number: u32,
    /// Whether it opens the connection, so that the first byte has the number after its own.
    pub syn: bool,
}

/// What a frame says about itself.
pub(crate) struct Read<'f> {
    pub(crate) key: FlowKey,
    /// DSCP and ECN; 0 without an IP header.
    pub(crate) traffic_class: u8,
    /// What follows the network headers; empty where there is nothing to read.
    transport: &'f [u8],
    /// Bytes of it that the IP header announces and the frame does not hold.
    missing: u32,
}

impl Read<'_> {
    pub(crate) fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    pub(crate) fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.traffic_class)
    }

    /// A TCP header and what follows it; none of a fragment.
    pub(crate) fn tcp(&self) -> Option<&[u8]> {
        let is_whole = matches!(self.key.selector, Selector::Ports(..));
        (is_whole && self.key.protocol == protocol::TCP).then_some(self.transport)
    }

    /// Bytes of the transport that the frame was cut off in front of.
    pub(crate) fn missing(&self) -> u32 {
        self.missing
    }

    pub(crate) fn tcp_sequence(&self) -> Option<TcpSequence> {
        const SYN: u8 = 2;
        let transport = self.tcp()?;
        let syn = transport.get(13)? & SYN != 0;
        read_u32(transport, 4).map(|number| TcpSequence { number, syn })
    }
}

/// Reads the key of a frame. Total: every sequence of bytes has one.
#[inline]
pub(crate) fn read(link: LinkType, frame: &[u8]) -> Read<'_> {
    let located = link.locate(frame);
    let packet = &frame[located.offset..];
    let ip = match located.ethertype {
        ethertype::IPV4 => ipv4(packet, located.vlans),
        ethertype::IPV6 => ipv6(packet, located.vlans),
        _ => None,
    };
    ip.unwrap_or_else(|| Read {
        key: unreadable(link, frame, located),
        traffic_class: 0,
        transport: &[],
        missing: 0,
    })
}

fn ipv4(packet: &[u8], vlans: u32) -> Option<Read<'_>> {
    let (ip, _) = LaxIpv4Slice::from_slice(packet).ok()?;
    let header = ip.header();
    let transport = ip.payload().payload;
    let (protocol, selector) = if ip.is_payload_fragmented() {
        (u16::from(header.protocol().0), Selector::Fragment)
    } else {
        let payload = ip.payload();
        let protocol = u16::from(payload.ip_number.0);
        (protocol, select(protocol, payload.payload))
    };
    let endpoints = Endpoints::V4(header.source(), header.destination());
    let key = FlowKey { endpoints, selector, protocol, vlans };
    let missing = missing(packet, header.total_len().into());
    Some(Read { key, traffic_class: packet[1], transport, missing })
}

fn ipv6(packet: &[u8], vlans: u32) -> Option<Read<'_>> {
    let (ip, _) = LaxIpv6Slice::from_slice(packet).ok()?;
    let header = ip.header();
    let payload = ip.payload();
    let (protocol, selector) = if payload.fragmented {
        (fragmented_protocol(&ip), Selector::Fragment)
    } else {
        let protocol = u16::from(payload.ip_number.0);
        (protocol, select(protocol, payload.payload))
    };
    let endpoints = Endpoints::V6(header.source(), header.destination());
    let key = FlowKey { endpoints, selector, protocol, vlans };
    let traffic_class = packet[0] << 4 | packet[1] >> 4;
    let missing = missing(packet, 40 + u32::from(header.payload_length()));
    Some(Read { key, traffic_class, transport: payload.payload, missing })
}

/// Bytes that a packet should have and has not.
fn missing(packet: &[u8], announced: u32) -> u32 {
    announced.saturating_sub(packet.len() as u32)
}

/// What the fragment header announces: the same in every fragment of a datagram, whatever
/// further headers the first one holds.
#[cold]
fn fragmented_protocol(ip: &LaxIpv6Slice<'_>) -> u16 {
    ip.extensions()
        .clone()
        .into_iter()
        .find_map(|extension| match extension {
            Ipv6ExtensionSlice::Fragment(fragment) => Some(u16::from(fragment.next_header().0)),
            _ => None,
        })
        .unwrap_or_default()
}

/// Reads what tells flows apart from the first bytes of the transport header.
fn select(protocol: u16, payload: &[u8]) -> Selector {
    let found = match protocol {
        protocol::TCP | protocol::UDP | protocol::SCTP | protocol::DCCP | protocol::UDPLITE => {
            payload.first_chunk().map(|&[a, b, c, d]| {
                Selector::Ports(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
            })
        }
        protocol::ICMP => echo_id(payload, [0, 8]),
        protocol::ICMPV6 => echo_id(payload, [128, 129]),
        protocol::ESP => read_u32(payload, 0).map(Selector::Id),
        // Reached only if the authentication header is cut off.
        protocol::AH => read_u32(payload, 4).map(Selector::Id),
        protocol::GRE => gre_key(payload),
        _ => None,
    };
    found.unwrap_or(Selector::None)
}

fn echo_id(payload: &[u8], types: [u8; 2]) -> Option<Selector> {
    let is_echo = types.contains(payload.first()?);
    is_echo.then(|| read_u16(payload, 4).map(|id| Selector::Id(id.into())))?
}

/// The key of GRE (RFC 2890); in the enhanced GRE of PPTP (RFC 2637) its low half, the call id,
/// as the high half is the length of the payload.
fn gre_key(payload: &[u8]) -> Option<Selector> {
    const CHECKSUM: u16 = 0x8000;
    const KEY: u16 = 0x2000;
    const VERSION: u16 = 0x0007;
    let flags = read_u16(payload, 0)?;
    if flags & KEY == 0 {
        return None;
    }
    let at = if flags & CHECKSUM != 0 { 8 } else { 4 };
    let key = read_u32(payload, at)?;
    Some(Selector::Id(if flags & VERSION == 1 { key & 0xffff } else { key }))
}

/// The key of a frame without a readable IP packet.
fn unreadable(link: LinkType, frame: &[u8], located: Located) -> FlowKey {
    let mac = |at: usize| match link {
        LinkType::Ethernet => {
            frame.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
        }
        _ => [0; 6],
    };
    FlowKey {
        endpoints: Endpoints::Mac(mac(6), mac(0)),
        selector: Selector::None,
        protocol: located.ethertype,
        vlans: located.vlans,
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = match self.selector {
            Selector::Ports(source, destination) => Some((source, destination)),
            _ => None,
        };
        match self.endpoints {
            Endpoints::V4(source, destination) => {
                let (source, destination) = (Ipv4Addr::from(source), Ipv4Addr::from(destination));
                match ports {
                    Some((from, to)) => write!(f, "{source}:{from} > {destination}:{to} ")?,
                    None => write!(f, "{source} > {destination} ")?,
                }
            }
            Endpoints::V6(source, destination) => {
                let (source, destination) = (Ipv6Addr::from(source), Ipv6Addr::from(destination));
                match ports {
                    Some((from, to)) => write!(f, "[{source}]:{from} > [{destination}]:{to} ")?,
                    None => write!(f, "{source} > {destination} ")?,
                }
            }
            Endpoints::Mac(source, destination) => {
                write!(f, "{} > {} ", Mac(source), Mac(destination))?;
            }
        }
        self.write_protocol(f)?;
        match self.selector {
            Selector::Id(id) => write!(f, " {id:#x}")?,
            Selector::Fragment => f.write_str(" fragment")?,
            Selector::None | Selector::Ports(..) => {}
        }
        match (self.vlans >> 16, self.vlans & 0xffff) {
            (0, 0) => Ok(()),
            (0, inner) => write!(f, " vlan {inner}"),
            (outer, inner) => write!(f, " vlan {outer}.{inner}"),
        }
    }
}

impl FlowKey {
    fn write_protocol(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_mac = matches!(self.endpoints, Endpoints::Mac(..));
        let name = match (is_mac, self.protocol) {
            (true, 0) => "802.3",
            (true, 0x0806) => "arp",
            (true, ethertype::IPV4) => "malformed-ipv4",
            (true, ethertype::IPV6) => "malformed-ipv6",
            (true, other) => return write!(f, "ethertype {other:#06x}"),
            (false, protocol::ICMP) => "icmp",
            (false, protocol::TCP) => "tcp",
            (false, protocol::UDP) => "udp",
            (false, protocol::DCCP) => "dccp",
            (false, protocol::GRE) => "gre",
            (false, protocol::ESP) => "esp",
            (false, protocol::AH) => "ah",
            (false, protocol::ICMPV6) => "icmpv6",
            (false, protocol::SCTP) => "sctp",
            (false, protocol::UDPLITE) => "udplite",
            (false, other) => return write!(f, "protocol {other}"),
        };
        f.write_str(name)
    }
}

struct Mac([u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
