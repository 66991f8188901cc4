//! Writing a DSCP (RFC 2474): how an edge tags a packet for those behind it.

use crate::link::LinkType;
use crate::traffic_class::rewrite;

const ECN: u8 = 3;

/// Writes the six DSCP bits into the IP header of a frame, leaves the ECN bits as they
/// are, and corrects the IPv4 header checksum. Returns false, with the frame untouched, if it is
/// no IP packet and so has no room for them.
pub fn set_dscp(link: LinkType, frame: &mut [u8], dscp: u8) -> bool {
    rewrite(link, frame, |class| Some(dscp << 2 | class & ECN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpNumber, Ipv4Header, Ipv6Header, PacketBuilder};

    fn ipv4(class: u8, id: u16, vlan: bool) -> Vec<u8> {
        let mut header =
            Ipv4Header::new(8, 64, IpNumber(17), [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
        header.dscp = (class >> 2).try_into().unwrap();
        header.ecn = (class & ECN).try_into().unwrap();
        header.identification = id;
        header.header_checksum = header.calc_header_checksum();
        let mut frame = vec![2; 12];
        if vlan {
            frame.extend([0x81, 0, 0, 10]);
        }
        frame.extend([0x08, 0]);
        header.write(&mut frame).unwrap();
        frame.extend([7; 8]);
        frame
    }

    #[test]
    fn an_ipv4_tag_keeps_checksum_and_ecn_whatever_the_header_is() {
        for id in (0..=u16::MAX).step_by(17) {
            for class in [0, 1, 0xb8, 0xff] {
                let vlan = id % 2 == 0;
                let dscp = (id % 64) as u8;
                let mut frame = ipv4(class, id, vlan);
                assert!(set_dscp(LinkType::Ethernet, &mut frame, dscp));
                let at = if vlan { 18 } else { 14 };
                let (header, payload) = Ipv4Header::from_slice(&frame[at..]).unwrap();
                assert_eq!((header.dscp.value(), header.ecn.value()), (dscp, class & ECN));
                assert_eq!(header.header_checksum, header.calc_header_checksum());
                // The tag taken off again gives the frame that there was.
                assert_eq!(payload, [7; 8]);
                assert!(set_dscp(LinkType::Ethernet, &mut frame, class >> 2));
                assert_eq!(frame, ipv4(class, id, vlan));
            }
        }
    }

    #[test]
    fn an_ipv6_tag_changes_six_bits() {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv6([1; 16], [2; 16], 64)
            .udp(1, 2)
            .write(&mut frame, &[0; 9])
            .unwrap();
        // A flow label and ECN beside it.
        frame[15] = 0x2a;
        for dscp in 0..64 {
            let before = frame.clone();
            assert!(set_dscp(LinkType::Ethernet, &mut frame, dscp));
            let (header, _) = Ipv6Header::from_slice(&frame[14..]).unwrap();
            assert_eq!(header.traffic_class, dscp << 2 | 2);
            assert_eq!(header.flow_label.value() >> 16, 0xa);
            assert_eq!((&frame[..14], &frame[16..]), (&before[..14], &before[16..]));
        }
    }

    #[test]
    fn what_has_no_room_for_a_tag_is_left_alone() {
        let arp = {
            let mut frame = vec![0xff; 60];
            frame[12..14].copy_from_slice(&[0x08, 0x06]);
            frame
        };
        let not_ipv4 = {
            let mut frame = ipv4(0, 7, false);
            frame[14] = 0x65;
            frame
        };
        let truncated = ipv4(2, 1, false)[..30].to_vec();
        let [short_header, long_header] = [0x44, 0x4f].map(|first| {
            let mut frame = ipv4(0, 7, false);
            frame[14] = first;
            frame
        });
        let none = [arp, not_ipv4, truncated, short_header, long_header, vec![1; 13], Vec::new()];
        for frame in none {
            let mut tagged = frame.clone();
            assert!(!set_dscp(LinkType::Ethernet, &mut tagged, 10));
            assert_eq!(tagged, frame);
        }
    }
}
