//! Setting "congestion experienced" (RFC 3168).

use crate::link::LinkType;
use crate::traffic_class::rewrite;

const CE: u8 = 3;

/// Sets "congestion experienced" in the IP header of a frame, and corrects the IPv4 header
/// checksum. Returns false, with the frame untouched, if it is no IP packet of an ECN-capable
/// transport.
pub fn mark_ce(link: LinkType, frame: &mut [u8]) -> bool {
    rewrite(link, frame, |class| (class & CE != 0).then_some(class | CE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpEcn, Ipv4Header, Ipv6Header, PacketBuilder};

    fn ipv4(ecn: u8, id: u16, vlan: bool) -> Vec<u8> {
        let mut header =
            Ipv4Header::new(8, 64, etherparse::IpNumber(17), [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
        header.ecn = IpEcn::try_new(ecn).unwrap();
        header.identification = id;
        header.header_checksum = header.calc_header_checksum();
        let mut frame = vec![2; 12];
        if vlan {
            frame.extend([0x81, 0, 0, 10]);
        }
        frame.extend([0x08, 0]);
        header.write(&mut frame).unwrap();
        frame.extend([0; 8]);
        frame
    }

    #[test]
    fn an_ipv4_mark_keeps_the_checksum_right_whatever_the_header_is() {
        for id in 0..=u16::MAX {
            for (ecn, vlan) in [(1, false), (2, true), (3, false)] {
                let mut frame = ipv4(ecn, id, vlan);
                assert!(mark_ce(LinkType::Ethernet, &mut frame));
                let at = if vlan { 18 } else { 14 };
                let (header, _) = Ipv4Header::from_slice(&frame[at..]).unwrap();
                assert_eq!(header.ecn.value(), 3);
                assert_eq!(header.header_checksum, header.calc_header_checksum());
            }
        }
    }

    #[test]
    fn an_ipv6_mark_changes_two_bits() {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv6([1; 16], [2; 16], 64)
            .udp(1, 2)
            .write(&mut frame, &[0; 9])
            .unwrap();
        assert!(!mark_ce(LinkType::Ethernet, &mut frame), "not ECN-capable");
        frame[15] |= 2 << 4;
        let before = frame.clone();
        assert!(mark_ce(LinkType::Ethernet, &mut frame));
        let (header, _) = Ipv6Header::from_slice(&frame[14..]).unwrap();
        assert_eq!(header.traffic_class, 3);
        frame[15] ^= 1 << 4;
        assert_eq!(frame, before);
    }

    #[test]
    fn what_cannot_carry_the_mark_is_left_alone() {
        let arp = {
            let mut frame = vec![0xff; 60];
            frame[12..14].copy_from_slice(&[0x08, 0x06]);
            frame
        };
        let truncated = ipv4(2, 1, false)[..30].to_vec();
        for frame in [arp, ipv4(0, 7, false), truncated, Vec::new()] {
            let mut marked = frame.clone();
            assert!(!mark_ce(LinkType::Ethernet, &mut marked));
            assert_eq!(marked, frame);
        }
    }
}
