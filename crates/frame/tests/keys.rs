//! Which packets share a flow, and which do not.

use etherparse::{IpNumber, Ipv4Header, PacketBuilder};
use frame::{Endpoints, Fingerprinter, FlowKey, LinkType, Parsed, Selector};
use sched::{Ecn, HostId, Needs};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const HOSTS: Needs = Needs { flow_size: false, offset: false, hosts: true };

fn parse(link: LinkType, bytes: &[u8]) -> Parsed {
    Fingerprinter::from_seed(1).packet(link, bytes, bytes.len() as u32, Needs::NOTHING)
}

fn key(frame: &[u8]) -> FlowKey {
    parse(LinkType::Ethernet, frame).key
}

fn text(frame: &[u8]) -> String {
    key(frame).to_string()
}

/// An Ethernet frame around an IPv4 packet.
fn ipv4(protocol: u8, payload: &[u8], change: impl Fn(&mut Ipv4Header)) -> Vec<u8> {
    let mut header = Ipv4Header::new(payload.len() as u16, 64, IpNumber(protocol), A, B).unwrap();
    change(&mut header);
    header.set_payload_len(payload.len()).unwrap();
    header.header_checksum = header.calc_header_checksum();
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0];
    header.write(&mut frame).unwrap();
    frame.extend(payload);
    frame
}

/// An Ethernet frame around an IPv6 packet; `chain` begins with what `next` names.
fn ipv6(next: u8, chain: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend((chain.len() as u16).to_be_bytes());
    frame.extend([next, 64]);
    for last in [1, 2] {
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    frame.extend(chain);
    frame
}

fn tcp(source: u16, destination: u16) -> Vec<u8> {
    let mut header = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    header.extend([0; 16]);
    header
}

#[test]
fn transports_are_keyed_by_the_5_tuple() {
    for (protocol, name) in [(6, "tcp"), (17, "udp"), (132, "sctp"), (33, "dccp"), (136, "udplite")]
    {
        let v4 = text(&ipv4(protocol, &tcp(1234, 80), |_| {}));
        assert_eq!(v4, format!("10.0.0.1:1234 > 10.0.0.2:80 {name}"));
        let v6 = text(&ipv6(protocol, &tcp(1234, 80)));
        assert_eq!(v6, format!("[fd00::1]:1234 > [fd00::2]:80 {name}"));
    }
}

#[test]
fn every_part_of_the_5_tuple_tells_flows_apart() {
    let flow = |frame: &[u8]| parse(LinkType::Ethernet, frame).packet.flow;
    let mut flows = vec![
        flow(&ipv4(6, &tcp(1, 2), |_| {})),
        flow(&ipv4(17, &tcp(1, 2), |_| {})),
        flow(&ipv4(6, &tcp(2, 1), |_| {})),
        flow(&ipv4(6, &tcp(1, 3), |_| {})),
        flow(&ipv4(6, &tcp(1, 2), |header| header.source = B)),
        flow(&ipv4(6, &tcp(1, 2), |header| header.destination = A)),
        flow(&ipv6(6, &tcp(1, 2))),
    ];
    flows.sort_unstable();
    flows.dedup();
    assert_eq!(flows.len(), 7);
}

#[test]
fn a_flow_stays_one_whatever_else_its_packets_carry() {
    let plain = key(&ipv4(6, &tcp(1234, 80), |_| {}));
    let with_options = ipv4(6, &tcp(1234, 80), |header| {
        header.options = [148, 4, 0, 0].as_slice().try_into().unwrap();
        header.identification = 77;
        header.time_to_live = 3;
    });
    assert_eq!(key(&with_options), plain);

    let plain = key(&ipv6(6, &tcp(1234, 80)));
    // Hop-by-hop, destination options, routing, an atomic fragment, authentication.
    let chain: Vec<u8> = [
        &[60, 0, 1, 4, 0, 0, 0, 0][..],
        &[43, 0, 1, 4, 0, 0, 0, 0],
        &[44, 0, 0, 0, 0, 0, 0, 0],
        &[51, 0, 0, 0, 0, 0, 0, 9],
        &[6, 4, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
        &tcp(1234, 80),
    ]
    .concat();
    assert_eq!(key(&ipv6(0, &chain)), plain);
}

#[test]
fn all_fragments_of_a_datagram_are_one_flow() {
    let fragment = |offset: u16, more: bool, payload: &[u8]| {
        key(&ipv4(17, payload, |header| {
            header.fragment_offset = offset.try_into().unwrap();
            header.more_fragments = more;
            header.identification = 9;
        }))
    };
    let first = fragment(0, true, &tcp(1234, 53));
    assert_eq!(first.selector, Selector::Fragment);
    assert_eq!(first.to_string(), "10.0.0.1 > 10.0.0.2 udp fragment");
    assert_eq!(fragment(1, true, &[0xab; 40]), first);
    assert_eq!(fragment(6, false, &[0xcd; 3]), first);
    assert_ne!(key(&ipv4(17, &tcp(1234, 53), |_| {})), first);

    // In IPv6 the first fragment holds headers that the later ones do not show.
    let options = [&[17, 0, 1, 4, 0, 0, 0, 0][..], &tcp(1234, 53)].concat();
    let fragment = |offset_and_more: u8, payload: &[u8]| {
        let header = [60, 0, 0, offset_and_more, 0, 0, 0, 9];
        key(&ipv6(44, &[&header[..], payload].concat()))
    };
    let first = fragment(1, &options);
    assert_eq!(first.selector, Selector::Fragment);
    assert_eq!(fragment(0x11, &[0xab; 40]), first);
    assert_eq!(fragment(0x20, &[0xcd; 5]), first);
}

#[test]
fn protocols_without_ports_are_keyed_by_what_comes_nearest() {
    let v4 = |protocol, payload: &[u8]| text(&ipv4(protocol, payload, |_| {}));
    assert_eq!(v4(1, &[8, 0, 0, 0, 0x12, 0x34, 0, 1]), "10.0.0.1 > 10.0.0.2 icmp 0x1234");
    assert_eq!(v4(1, &[3, 1, 0, 0, 0x12, 0x34, 0, 1]), "10.0.0.1 > 10.0.0.2 icmp");
    assert_eq!(v4(50, &[0, 0, 1, 0, 0, 0, 0, 1]), "10.0.0.1 > 10.0.0.2 esp 0x100");
    assert_eq!(v4(47, &[0x20, 0, 8, 0, 0, 0, 0, 7]), "10.0.0.1 > 10.0.0.2 gre 0x7");
    let checksummed = [0xa0, 0, 8, 0, 9, 9, 9, 9, 0, 0, 0, 7];
    assert_eq!(v4(47, &checksummed), "10.0.0.1 > 10.0.0.2 gre 0x7");
    assert_eq!(v4(47, &[0, 0, 8, 0, 0, 0, 0, 7]), "10.0.0.1 > 10.0.0.2 gre");
    // PPTP: the upper half is a length, which changes from packet to packet.
    assert_eq!(v4(47, &[0x30, 1, 0x88, 0xb, 5, 6, 0, 7]), "10.0.0.1 > 10.0.0.2 gre 0x7");
    assert_eq!(v4(51, &[6, 4, 0, 0, 0, 0, 0, 5]), "10.0.0.1 > 10.0.0.2 ah 0x5");
    assert_eq!(v4(89, &[0; 8]), "10.0.0.1 > 10.0.0.2 protocol 89");
    let echo = ipv6(58, &[128, 0, 0, 0, 0, 5, 0, 1]);
    assert_eq!(text(&echo), "fd00::1 > fd00::2 icmpv6 0x5");
}

#[test]
fn frames_without_ip_are_keyed_by_mac_and_ethertype() {
    let mut arp = vec![0xff; 6];
    arp.extend([2, 0, 0, 0, 0, 1, 0x08, 0x06]);
    arp.extend([0; 28]);
    assert_eq!(text(&arp), "02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff arp");
    arp[12..14].copy_from_slice(&[0x88, 0xcc]);
    assert_eq!(text(&arp), "02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff ethertype 0x88cc");
    arp[12..14].copy_from_slice(&[0, 38]);
    assert_eq!(text(&arp), "02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff 802.3");
    let malformed = &ipv4(6, &tcp(1, 2), |_| {})[..30];
    assert_eq!(text(malformed), "02:00:00:00:00:01 > 02:00:00:00:00:02 malformed-ipv4");
    let none = Endpoints::Mac([0; 6], [0; 6]);
    assert_eq!(key(&[]).endpoints, none);
    assert_eq!(parse(LinkType::RawIp, &[0; 40]).key.endpoints, none);
}

#[test]
fn vlans_are_part_of_the_flow() {
    let frame = ipv4(6, &tcp(1234, 80), |_| {});
    let tagged = |tags: &[u8]| text(&[&frame[..12], tags, &frame[12..]].concat());
    assert_eq!(tagged(&[0x81, 0, 0x60, 10]), "10.0.0.1:1234 > 10.0.0.2:80 tcp vlan 10");
    let double = [0x88, 0xa8, 0, 20, 0x81, 0, 0, 10];
    assert_eq!(tagged(&double), "10.0.0.1:1234 > 10.0.0.2:80 tcp vlan 20.10");
    let five = [0x81, 0, 0, 1].repeat(5);
    assert_eq!(tagged(&five), "10.0.0.1:1234 > 10.0.0.2:80 tcp vlan 1.1");
}

#[test]
fn a_short_capture_length_still_shows_the_ports() {
    let frame = ipv4(6, &tcp(1234, 80), |_| {});
    assert_eq!(key(&frame[..38]), key(&frame));
    let parsed =
        Fingerprinter::from_seed(1).packet(LinkType::Ethernet, &frame[..38], 1514, Needs::NOTHING);
    assert_eq!(parsed.packet.size, 1514);
}

#[test]
fn the_traffic_class_is_read() {
    let v4 = ipv4(6, &tcp(1, 2), |header| {
        header.dscp = 46.try_into().unwrap();
        header.ecn = 1.try_into().unwrap();
    });
    let packet = parse(LinkType::Ethernet, &v4).packet;
    assert_eq!((packet.dscp, packet.ecn()), (46, Ecn::Ect1));
    let mut v6 = ipv6(6, &tcp(1, 2));
    // The traffic class, DSCP 46 and ECT(0), lies across two bytes.
    let traffic_class = 46 << 2 | 2;
    v6[14] |= traffic_class >> 4;
    v6[15] |= traffic_class << 4;
    let packet = parse(LinkType::Ethernet, &v6).packet;
    assert_eq!((packet.dscp, packet.ecn()), (46, Ecn::Ect0));
}

#[test]
fn hosts_have_fingerprints_only_where_needed_and_the_same_in_all_their_flows() {
    let there = ipv4(6, &tcp(1, 2), |_| {});
    let back = ipv4(17, &tcp(5, 6), |header| (header.source, header.destination) = (B, A));
    let fingerprinter = Fingerprinter::from_seed(1);
    let hosts = |frame: &[u8], needs| {
        let packet = fingerprinter.packet(LinkType::Ethernet, frame, 60, needs).packet;
        (packet.source, packet.destination)
    };
    assert_eq!(hosts(&there, Needs::NOTHING), (HostId(0), HostId(0)));
    let (a, b) = hosts(&there, HOSTS);
    assert_ne!(a, b);
    assert_eq!(hosts(&back, HOSTS), (b, a));
}

#[test]
fn fingerprints_depend_on_the_key_alone() {
    let frame = ipv4(6, &tcp(1234, 80), |_| {});
    let flow = |fingerprinter: &Fingerprinter| {
        fingerprinter.packet(LinkType::Ethernet, &frame, 60, HOSTS).packet
    };
    let one = flow(&Fingerprinter::from_seed(1));
    assert_eq!(flow(&Fingerprinter::from_seed(1)), one);
    assert_ne!(flow(&Fingerprinter::from_seed(2)).flow, one.flow);
    let (first, second) = (Fingerprinter::random().unwrap(), Fingerprinter::random().unwrap());
    assert_ne!(flow(&first).flow, flow(&second).flow);
    assert_ne!(flow(&first).source, flow(&second).source);
}

#[test]
fn built_packets_of_another_library_read_the_same() {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .double_vlan(20.try_into().unwrap(), 10.try_into().unwrap())
        .ipv6([1; 16], [2; 16], 64)
        .udp(7, 8)
        .write(&mut frame, &[0; 100])
        .unwrap();
    let expected = FlowKey {
        endpoints: Endpoints::V6([1; 16], [2; 16]),
        selector: Selector::Ports(7, 8),
        protocol: 17,
        vlans: 20 << 16 | 10,
    };
    assert_eq!(key(&frame), expected);
}
