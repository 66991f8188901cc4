//! The headers in front of the network header.

/// How a frame begins; the link types that captures of IP traffic come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet, with any number of VLAN tags.
    #[default]
    Ethernet,
    /// An IP packet and nothing else.
    RawIp,
    /// BSD loopback: the address family, in either byte order.
    Loopback,
    /// Linux "cooked" capture.
    LinuxSll,
    /// Linux "cooked" capture, version 2.
    LinuxSll2,
    /// PPP, with or without its HDLC address and control bytes.
    Ppp,
    /// Cisco HDLC.
    CiscoHdlc,
}

impl LinkType {
    /// Every link type there is.
    pub const ALL: [Self; 7] = [
        Self::Ethernet,
        Self::RawIp,
        Self::Loopback,
        Self::LinuxSll,
        Self::LinuxSll2,
        Self::Ppp,
        Self::CiscoHdlc,
    ];

    /// From the `LINKTYPE_` value of a capture file; `None` for one that is not supported.
    #[must_use]
    pub const fn from_linktype(value: u16) -> Option<Self> {
        match value {
            0 | 108 => Some(Self::Loopback),
            1 => Some(Self::Ethernet),
            9 | 50 => Some(Self::Ppp),
            // 12 and 14 are what some systems wrote for raw IP; 228 and 229 fix the version.
            12 | 14 | 101 | 228 | 229 => Some(Self::RawIp),
            104 => Some(Self::CiscoHdlc),
            113 => Some(Self::LinuxSll),
            276 => Some(Self::LinuxSll2),
            _ => None,
        }
    }

    /// Its `LINKTYPE_` value in capture files; the first where there are several.
    #[must_use]
    pub const fn linktype(self) -> u16 {
        match self {
            Self::Ethernet => 1,
            Self::RawIp => 101,
            Self::Loopback => 0,
            Self::LinuxSll => 113,
            Self::LinuxSll2 => 276,
            Self::Ppp => 9,
            Self::CiscoHdlc => 104,
        }
    }

    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::RawIp => "raw IP",
            Self::Loopback => "loopback",
            Self::LinuxSll => "Linux cooked",
            Self::LinuxSll2 => "Linux cooked v2",
            Self::Ppp => "PPP",
            Self::CiscoHdlc => "Cisco HDLC",
        }
    }

    /// Finds the network header.
    pub(crate) fn locate(self, frame: &[u8]) -> Located {
        let found = match self {
            Self::Ethernet => return ethernet(frame),
            Self::RawIp => raw_ip(frame, 0),
            Self::Loopback => raw_ip(frame, 4),
            Self::LinuxSll => read_u16(frame, 14).map(|ethertype| (ethertype, 16)),
            Self::LinuxSll2 => read_u16(frame, 0).map(|ethertype| (ethertype, 20)),
            Self::Ppp => ppp(frame, if frame.starts_with(&[0xff, 0x03]) { 2 } else { 0 }),
            Self::CiscoHdlc => read_u16(frame, 2).map(|ethertype| (ethertype, 4)),
        };
        let (ethertype, offset) = found.unwrap_or((0, 0));
        behind_tags(frame, ethertype, offset)
    }
}

pub(crate) mod ethertype {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const IPV6: u16 = 0x86dd;
    pub(crate) const PPPOE_SESSION: u16 = 0x8864;
    /// Below this, the field is the length of an 802.3 frame.
    pub(crate) const FIRST: u16 = 0x0600;
}

/// Where a frame's network header lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    /// What it is; 0 where the frame does not say (802.3 with a length, or truncated).
    pub(crate) ethertype: u16,
    /// Its offset; at most the length of the frame.
    pub(crate) offset: usize,
    /// VLAN ids, innermost in the low half, the one around it in the high half. 0 is none:
    /// a tag with id 0 only carries a priority.
    pub(crate) vlans: u32,
}

const TAG_TYPES: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];

fn ethernet(frame: &[u8]) -> Located {
    match read_u16(frame, 12) {
        Some(ethertype) => behind_tags(frame, ethertype, 14),
        None => Located { ethertype: 0, offset: frame.len(), vlans: 0 },
    }
}

/// Passes over VLAN tags and a PPPoE session header.
fn behind_tags(frame: &[u8], mut ethertype: u16, mut offset: usize) -> Located {
    let mut vlans = 0u32;
    while TAG_TYPES.contains(&ethertype) {
        let (Some(tag), Some(next)) = (read_u16(frame, offset), read_u16(frame, offset + 2)) else {
            break;
        };
        match u32::from(tag & 0x0fff) {
            0 => {}
            id => vlans = vlans << 16 | id,
        }
        ethertype = next;
        offset += 4;
    }
    if ethertype == ethertype::PPPOE_SESSION
        && let Some((inner, at)) = ppp(frame, offset + 6)
    {
        (ethertype, offset) = (inner, at);
    }
    if ethertype < ethertype::FIRST {
        ethertype = 0;
    }
    Located { ethertype, offset: offset.min(frame.len()), vlans }
}

/// A PPP protocol field (one byte if compressed) that announces IP.
fn ppp(frame: &[u8], offset: usize) -> Option<(u16, usize)> {
    let (protocol, length) = match *frame.get(offset)? {
        byte if byte & 1 == 1 => (u16::from(byte), 1),
        _ => (read_u16(frame, offset)?, 2),
    };
    let ethertype = match protocol {
        0x0021 => ethertype::IPV4,
        0x0057 => ethertype::IPV6,
        _ => return None,
    };
    Some((ethertype, offset + length))
}

/// An IP packet that names its version itself.
fn raw_ip(frame: &[u8], offset: usize) -> Option<(u16, usize)> {
    match frame.get(offset)? >> 4 {
        4 => Some((ethertype::IPV4, offset)),
        6 => Some((ethertype::IPV6, offset)),
        _ => None,
    }
}

pub(crate) fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_be_bytes(*chunk))
}

pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_be_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet_with(tags: &[(u16, u16)], ethertype: u16) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for (tag_type, tag) in tags {
            frame.extend(tag_type.to_be_bytes());
            frame.extend(tag.to_be_bytes());
        }
        frame.extend(ethertype.to_be_bytes());
        frame.extend([0; 46]);
        frame
    }

    #[test]
    fn vlan_tags_of_any_depth_are_passed_over() {
        for depth in 0..8 {
            let tags: Vec<_> = (0..depth).map(|i| (TAG_TYPES[i % 4], 0x2000 | i as u16)).collect();
            let located = LinkType::Ethernet.locate(&ethernet_with(&tags, ethertype::IPV4));
            assert_eq!(located.ethertype, ethertype::IPV4);
            assert_eq!(located.offset, 14 + 4 * depth);
        }
    }

    #[test]
    fn vlan_ids_are_kept_and_priorities_are_not() {
        let located =
            |tags: &[_]| LinkType::Ethernet.locate(&ethernet_with(tags, ethertype::IPV6)).vlans;
        assert_eq!(located(&[(0x8100, 0xe00a)]), 10);
        assert_eq!(located(&[(0x88a8, 20), (0x8100, 10)]), 20 << 16 | 10);
        assert_eq!(located(&[(0x8100, 0xe000)]), 0, "a priority tag is no VLAN");
    }

    #[test]
    fn pppoe_sessions_are_looked_into_and_802_3_lengths_are_no_ethertype() {
        let mut frame = ethernet_with(&[], ethertype::PPPOE_SESSION);
        frame[20..22].copy_from_slice(&[0x00, 0x57]);
        let located = LinkType::Ethernet.locate(&frame);
        assert_eq!((located.ethertype, located.offset), (ethertype::IPV6, 22));
        let spanning_tree = ethernet_with(&[], 38);
        assert_eq!(LinkType::Ethernet.locate(&spanning_tree).ethertype, 0);
    }

    #[test]
    fn every_link_type_finds_the_packet() {
        let ipv4 = [0x45u8; 20];
        let prefixes: [(u16, &[u8]); 9] = [
            (0, &[2, 0, 0, 0]),
            (108, &[0, 0, 0, 2]),
            (101, &[]),
            (228, &[]),
            (9, &[0xff, 0x03, 0x00, 0x21]),
            (9, &[0x21]),
            (104, &[0x0f, 0, 0x08, 0]),
            (113, &[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0x08, 0]),
            (276, &[0x08, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0]),
        ];
        for (linktype, prefix) in prefixes {
            let frame = [prefix, &ipv4].concat();
            let link = LinkType::from_linktype(linktype).unwrap();
            let expected = Located { ethertype: ethertype::IPV4, offset: prefix.len(), vlans: 0 };
            assert_eq!(link.locate(&frame), expected, "{link:?}");
        }
        assert_eq!(LinkType::from_linktype(147), None);
        for link in LinkType::ALL {
            assert_eq!(LinkType::from_linktype(link.linktype()), Some(link));
        }
    }
}
