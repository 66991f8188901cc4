//! A TCP segment as it is written into a frame.

use frame::{Endpoints, FlowKey, LinkType, Selector, TcpSegment};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const TCP: u8 = 6;
const HOP_BY_HOP: u8 = 0;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// The VLAN that a frame may be in.
const VLAN: u16 = 10;

/// Eight bytes of an input, and two for timestamps.
#[derive(Debug)]
pub(crate) struct Packet {
    is_ipv6: bool,
    /// IPv6 has a hop-by-hop header, IPv4 options.
    has_options: bool,
    /// An Ethernet frame has a VLAN tag.
    is_tagged: bool,
    /// The frame is as short as the engine in the kernel sees it.
    is_cut: bool,
    is_padded: bool,
    /// Which of a few connections, and whether it is their other direction.
    connection: u8,
    flags: u8,
    number: u32,
    acknowledged: u32,
    payload: u16,
    stamps: Option<(u32, u32)>,
    /// `NOP`s before the timestamps.
    before: usize,
    /// Bytes of it that are read for a comparison.
    pub(crate) cut: u8,
}

impl Packet {
    pub(crate) fn read(rest: &mut &[u8]) -> Option<Self> {
        let [how, connection, flags, number, acknowledged, low, high, cut] =
            *crate::take::<8>(rest)?;
        let is_stamped = how & 32 != 0;
        let stamps = if is_stamped { Some(*crate::take::<2>(rest)?) } else { None };
        Some(Self {
            is_ipv6: how & 1 != 0,
            has_options: how & 2 != 0,
            is_tagged: how & 4 != 0,
            is_cut: how & 8 != 0,
            is_padded: how & 16 != 0,
            connection,
            flags: flags & 31,
            // Near the end, so that numbers wrap around.
            number: (u32::MAX - 1_000).wrapping_add(8 * u32::from(number)),
            acknowledged: (u32::MAX - 1_000).wrapping_add(8 * u32::from(acknowledged)),
            payload: u16::from_le_bytes([low, high]) % 2_000,
            stamps: stamps.map(|[own, echoed]| (own.into(), echoed.into())),
            before: usize::from(how >> 6) + 2,
            cut,
        })
    }

    pub(crate) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// What a reader says of it.
    pub(crate) fn says(&self, link: LinkType) -> Option<TcpSegment> {
        let has = |flag| self.flags & flag != 0;
        let takes = u32::from(self.payload) + u32::from(has(SYN)) + u32::from(has(FIN));
        (!has(RST)).then(|| TcpSegment {
            key: self.key(link),
            end: (takes > 0).then(|| self.number.wrapping_add(takes)),
            acknowledges: has(ACK).then_some(self.acknowledged),
            stamps: self.stamps,
        })
    }

    fn key(&self, link: LinkType) -> FlowKey {
        let [from, to] = self.hosts();
        let endpoints = if self.is_ipv6 {
            let address = |host| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host];
            Endpoints::V6(address(from), address(to))
        } else {
            Endpoints::V4([10, 0, 0, from], [10, 0, 0, to])
        };
        let [from, to] = self.ports();
        let is_tagged = self.is_tagged && link == LinkType::Ethernet;
        let vlans = if is_tagged { u32::from(VLAN) } else { 0 };
        FlowKey { endpoints, selector: Selector::Ports(from, to), protocol: TCP.into(), vlans }
    }

    fn hosts(&self) -> [u8; 2] {
        if self.connection & 1 == 0 { [1, 2] } else { [2, 1] }
    }

    fn ports(&self) -> [u16; 2] {
        let ports = [1_000 + u16::from(self.connection >> 1 & 3), 80];
        if self.connection & 1 == 0 { ports } else { [ports[1], ports[0]] }
    }

    /// Bytes of all headers.
    pub(crate) fn headers(&self, link: LinkType) -> usize {
        self.link(link).len() + self.ip(0).len() + self.tcp().len()
    }

    pub(crate) fn frame(&self, link: LinkType) -> Vec<u8> {
        let tcp = [self.tcp(), vec![7; self.payload.into()]].concat();
        let mut frame = [self.link(link), self.ip(tcp.len()), tcp].concat();
        // Ethernet's shortest frame.
        if self.is_padded && frame.len() < 60 {
            frame.resize(60, 0);
        }
        frame
    }

    fn link(&self, link: LinkType) -> Vec<u8> {
        let kind = if self.is_ipv6 { IPV6 } else { IPV4 };
        let [high, low] = VLAN.to_be_bytes();
        match (link, self.is_tagged) {
            (LinkType::Ethernet, false) => [&[2; 12][..], &kind].concat(),
            (LinkType::Ethernet, true) => [&[2; 12][..], &[0x81, 0, high, low], &kind].concat(),
            _ => Vec::new(),
        }
    }

    fn ip(&self, payload: usize) -> Vec<u8> {
        let options = if self.has_options { 8 } else { 0 };
        let [from, to] = self.hosts();
        if self.is_ipv6 {
            let length = ((options + payload) as u16).to_be_bytes();
            let next = if self.has_options { HOP_BY_HOP } else { TCP };
            let address = |host| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host];
            let header = [0x60, 0, 0, 0, length[0], length[1], next, 64];
            // A header of padding.
            let extension = [TCP, 0, 1, 4, 0, 0, 0, 0];
            [&header[..], &address(from), &address(to), &extension[..options]].concat()
        } else {
            let length = ((20 + options + payload) as u16).to_be_bytes();
            let words = 5 + options as u8 / 4;
            let header = [0x40 | words, 0, length[0], length[1], 0, 0, 0x40, 0, 64, TCP, 0, 0];
            [&header[..], &[10, 0, 0, from, 10, 0, 0, to], &[1; 8][..options]].concat()
        }
    }

    fn tcp(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some((own, echoed)) = self.stamps {
            options.extend(vec![1; self.before]);
            options.extend([8, 10]);
            options.extend(own.to_be_bytes());
            options.extend(echoed.to_be_bytes());
            options.resize(options.len().next_multiple_of(4), 0);
        }
        let [from, to] = self.ports().map(u16::to_be_bytes);
        let words = 5 + options.len() as u8 / 4;
        [
            &from[..],
            &to,
            &self.number.to_be_bytes(),
            &self.acknowledged.to_be_bytes(),
            &[words << 4, self.flags, 255, 255, 0, 0, 0, 0],
            &options,
        ]
        .concat()
    }
}
