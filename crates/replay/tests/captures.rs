//! Captures of every kind, whole and broken.

mod common;

use std::io::{self, Read};

use common::{Flavour, USUAL, block, config, enhanced, gzip, interface, pcap, section, udp};
use replay::capture::{Capture, CaptureError, Damage, Record};

/// Index, time, captured and original length.
type Seen = (u64, Option<i128>, usize, u32);

/// All that a capture gives, and its damage.
fn read(file: &[u8]) -> (Vec<Seen>, Option<String>) {
    let mut capture = Capture::open(file).unwrap();
    let mut records = Vec::new();
    while let Some(Record { index, time_ns, bytes, wire_length, .. }) = capture.next_record() {
        records.push((index, time_ns, bytes.len(), wire_length));
    }
    (records, capture.damage().map(ToString::to_string))
}

fn refusal(file: &[u8]) -> String {
    common::replay(&config(8_000_000, &["fifo"]), file).unwrap_err().to_string()
}

const ORDERS: [Flavour; 2] = [USUAL, Flavour { big_endian: true, nanoseconds: true }];

#[test]
fn pcap_of_both_byte_orders_and_units() {
    for big_endian in [false, true] {
        for nanoseconds in [false, true] {
            let flavour = Flavour { big_endian, nanoseconds };
            let mut file = flavour.header(1);
            file.extend(flavour.record(7_123_456_789, &udp(1, 60), 60));
            file.extend(flavour.record(4_000_000_000_000_001_000, &udp(1, 50), 1514));
            let first = if nanoseconds { 7_123_456_789 } else { 7_123_456_000 };
            let expected =
                vec![(0, Some(first), 60, 60), (1, Some(4_000_000_000_000_001_000), 50, 1514)];
            assert_eq!(read(&file), (expected, None), "{flavour:?}");
        }
    }
}

#[test]
fn pcap_with_the_longer_records_of_patched_libpcaps() {
    let mut file = USUAL.header(1);
    file[..4].copy_from_slice(&0xa1b2_cd34u32.to_le_bytes());
    let frame = udp(1, 60);
    let record = Flavour { nanoseconds: false, ..USUAL }.record(5_000, &frame, 60);
    file.extend(&record[..16]);
    file.extend([0; 8]);
    file.extend(&frame);
    assert_eq!(read(&file), (vec![(0, Some(5_000), 60, 60)], None));
}

#[test]
fn pcapng_interfaces_have_clocks_and_link_types_of_their_own() {
    for order in ORDERS {
        let offset = if order.big_endian { 10i64.to_be_bytes() } else { 10i64.to_le_bytes() };
        let frame = udp(1, 60);
        let file = [
            section(order),
            interface(order, 1, &[]),
            interface(order, 101, &[(9, &[9])]),
            interface(order, 1, &[(2, b"eth0"), (9, &[0x80 | 20]), (14, &offset)]),
            // Of a kind that nobody knows, and passed over.
            block(order, 0x0bad_cafe, &[1, 2, 3]),
            enhanced(order, 0, 5_000_001, &frame, 60),
            enhanced(order, 1, 6_000_000_001, &frame[14..], 46),
            enhanced(order, 2, 1 << 19, &frame, 900),
        ]
        .concat();
        let expected = vec![
            (0, Some(5_000_001_000), 60, 60),
            (1, Some(6_000_000_001), 46, 46),
            (2, Some(10_500_000_000), 60, 900),
        ];
        assert_eq!(read(&file), (expected, None), "{order:?}");
        let report = common::replay(&config(8_000_000, &["fifo"]), &file).unwrap();
        let types: Vec<u16> = report.capture.link_types.iter().map(|t| t.linktype).collect();
        assert_eq!(types, [1, 101]);
        assert_eq!((report.capture.flows, report.capture.non_ip_packets), (1, 0));
        assert_eq!(report.capture.cut_packets, 1);
    }
}

#[test]
fn a_section_begins_anew_whatever_its_byte_order() {
    let one = |order, ticks| {
        [section(order), interface(order, 1, &[]), enhanced(order, 0, ticks, &udp(1, 60), 60)]
            .concat()
    };
    let mut file = [one(ORDERS[0], 1), one(ORDERS[1], 2)].concat();
    file.extend(section(ORDERS[0]));
    // This section has described no interface.
    file.extend(enhanced(ORDERS[0], 0, 3, &udp(1, 60), 60));
    let expected = vec![(0, Some(1_000), 60, 60), (1, Some(2_000), 60, 60)];
    assert_eq!(read(&file), (expected, None));
}

#[test]
fn packets_without_a_time_and_packets_that_contradict_themselves() {
    let frame = udp(1, 60);
    let mut lying = enhanced(USUAL, 0, 9, &frame, 60);
    lying[20..24].copy_from_slice(&USUAL.u32(4000));
    let file = [
        section(USUAL),
        interface(USUAL, 1, &[]),
        block(USUAL, 3, &[&USUAL.u32(60)[..], &frame].concat()),
        lying,
        enhanced(USUAL, 7, 9, &frame, 60),
        enhanced(USUAL, 0, 9, &frame, 60),
    ]
    .concat();
    let expected = vec![(0, None, 60, 60), (3, Some(9_000), 60, 60)];
    assert_eq!(read(&file), (expected, None));
    let report = common::replay(&config(8_000_000, &["fifo"]), &file).unwrap();
    assert_eq!((report.capture.untimed_packets, report.capture.skipped.malformed), (1, 2));
    assert_eq!(report.warnings.len(), 2, "{:?}", report.warnings);
}

#[test]
fn gzip_of_one_member_or_several() {
    let file = pcap(&[(1, udp(1, 60)), (2, udp(2, 70))]);
    let (head, tail) = file.split_at(50);
    let plain = read(&file);
    assert_eq!(plain.0.len(), 2);
    assert_eq!(read(&gzip(&file)), plain);
    assert_eq!(read(&[gzip(head), gzip(tail)].concat()), plain);
}

#[test]
fn what_is_there_of_a_cut_capture_is_read() {
    let whole = pcap(&[(1, udp(1, 60)), (2, udp(2, 70))]);
    for length in 101..whole.len() {
        let (records, damage) = read(&whole[..length]);
        assert_eq!(records.len(), 1);
        assert_eq!(damage.unwrap(), "it ends in the middle of a record");
    }
    let report = common::replay(&config(8_000_000, &["fifo"]), &whole[..150]).unwrap();
    let said = "damaged at byte 100: it ends in the middle of a record; replayed are the 1 packets";
    assert!(report.warnings[0].contains(said), "{:?}", report.warnings);
    let compressed = gzip(&whole);
    let (records, damage) = read(&compressed[..compressed.len() - 9]);
    assert!(records.len() <= 2 && damage.is_some());
}

#[test]
fn a_broken_stream_ends_the_capture_where_it_breaks() {
    let packets: Vec<_> =
        (0..4000u64).map(|n| (n, udp((n * n % 977) as u16, 60 + n as usize % 900))).collect();
    let mut compressed = gzip(&pcap(&packets));
    let middle = compressed.len() / 2;
    compressed[middle..middle + 20].fill(0xaa);
    let report = common::replay(&config(8_000_000, &["fifo"]), &compressed).unwrap();
    assert!(report.capture.damage.is_some());
    assert!((1..4000).contains(&report.capture.packets), "{}", report.capture.packets);
}

/// Gives a few bytes, then fails.
struct Failing<'b>(&'b [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self.0.read(to)? {
            0 => Err(io::Error::other("the disk is gone")),
            n => Ok(n),
        }
    }
}

#[test]
fn an_error_of_the_disk_is_told() {
    let file = pcap(&[(1, udp(1, 60))]);
    let mut capture = Capture::open(Failing(&file)).unwrap();
    assert!(capture.next_record().is_some());
    assert!(capture.next_record().is_none());
    assert!(matches!(capture.damage(), Some(Damage::Read(e)) if e.to_string().contains("gone")));
    for length in [0, 1, 10] {
        let error = Capture::open(Failing(&file[..length])).err().unwrap();
        assert!(matches!(error, CaptureError::Read(_)), "{error}");
    }
}

#[test]
fn records_of_incredible_length_are_not_believed() {
    let mut file = pcap(&[(1, udp(1, 60))]);
    file.extend(USUAL.record(2, &[0; 8], 8));
    let at = file.len() - 16;
    file[at..at + 4].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    let (records, damage) = read(&file);
    assert_eq!(records.len(), 1);
    assert!(damage.unwrap().contains("claims 2147483647 bytes, at most 262144"));

    let mut file = [section(USUAL), interface(USUAL, 1, &[])].concat();
    file.extend(enhanced(USUAL, 0, 1, &udp(1, 60), 60));
    file.extend([USUAL.u32(6), USUAL.u32(0xffff_fff0), USUAL.u32(0)].concat());
    let (records, damage) = read(&file);
    assert_eq!(records.len(), 1);
    assert!(damage.unwrap().contains("claims 4294967280 bytes"));
}

#[test]
fn what_is_no_capture_is_refused() {
    assert!(refusal(b"").contains("it is empty; accepted are pcap and pcapng"));
    assert!(refusal(b"GET / HTTP/1.1\r\n\r\n").contains("begins with 47 45 54 20; accepted are"));
    assert!(refusal(&gzip(b"")).contains("it is empty"));
    assert!(refusal(&gzip(b"hello, world")).contains("begins with 68 65 6c 6c"));
    assert!(refusal(&USUAL.header(1)[..20]).contains("header is cut off after 20 bytes"));
    assert!(refusal(&USUAL.header(1)).contains("it has no packets"));
    assert!(refusal(&section(USUAL)).contains("it has no packets"));
    let mut cut = USUAL.header(1);
    cut.extend([0; 5]);
    assert!(refusal(&cut).contains("it has no packets: it ends in the middle of a record"));
    // Half a gzip header.
    assert!(!refusal(&gzip(b"x")[..5]).is_empty());
}

#[test]
fn link_types_that_are_not_supported_are_named() {
    let mut file = USUAL.header(147);
    file.extend(USUAL.record(1, &[0; 40], 40));
    let said = refusal(&file);
    assert!(said.contains("link type is 147; accepted are 1 (Ethernet), 101 (raw IP)"), "{said}");

    let of = |number| enhanced(USUAL, number, 5, &udp(1, 60), 60);
    let head = [section(USUAL), interface(USUAL, 147, &[]), interface(USUAL, 1, &[])].concat();
    let none = [&head[..], &of(0)].concat();
    assert!(refusal(&none).contains("link type is 147"));
    let some = [&head[..], &of(0), &of(1), &of(0)].concat();
    assert_eq!(read(&some).0, [(1, Some(5_000), 60, 60)], "indices count what is left out");
    let report = common::replay(&config(8_000_000, &["fifo"]), &some).unwrap();
    assert_eq!(report.capture.skipped.unsupported_link_type, 2);
    assert!(report.warnings[0].contains("2 packets are left out: their link type"));
}

#[test]
fn times_that_go_back_are_counted_and_clamped() {
    let times = [1_000, 5_000, 3_000, 4_000, 6_000];
    let file = pcap(&times.map(|time| (time * 1_000_000_000, udp(1, 100))));
    let (report, rows) = common::events(&config(8_000_000, &["fifo"]), &file);
    let arrivals: Vec<u64> = rows[0].iter().map(|row| row.arrival / 1_000_000_000).collect();
    assert_eq!(arrivals, [0, 4_000, 4_000, 4_000, 5_000]);
    assert_eq!(report.capture.out_of_order_packets, 2);
    assert!(report.warnings[0].starts_with("2 of 5 packets were captured before their pred"));
}

#[test]
fn a_capture_without_ip_is_replayed_with_a_warning() {
    let mut arp = vec![0xff; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    let report =
        common::replay(&config(8_000_000, &["efd"]), &pcap(&[(1, arp.clone()), (2, arp)])).unwrap();
    assert_eq!((report.capture.non_ip_packets, report.capture.flows), (2, 1));
    assert!(report.warnings[0].contains("no packet is IP"));
}

#[test]
fn original_lengths_count_and_super_packets_are_told() {
    let mut file = USUAL.header(1);
    file.extend(USUAL.record(0, &udp(1, 96)[..96], 64_000));
    let (report, rows) = common::events(&config(8_000_000, &["fifo"]), &file);
    assert_eq!((rows[0][0].size, rows[0][0].departure), (64_000, Some(64_000_000)));
    assert_eq!((report.capture.bytes, report.capture.cut_packets), (64_000, 1));
    assert!(report.warnings[0].contains("largest packet has 64000 bytes"));
}
