//! Any bytes as a capture: pcap, pcapng, gzip of either. Every record ends, and none lies outside.

#![forbid(unsafe_code)]
#![no_main]

use libfuzzer_sys::fuzz_target;
use replay::capture::Capture;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut capture) = Capture::open(bytes) else { return };
    let is_compressed = bytes.starts_with(&[0x1f, 0x8b]);
    let mut packets = 0;
    let mut total = 0_usize;
    while let Some(record) = capture.next_record() {
        packets += 1;
        total += record.bytes.len();
        assert!(record.bytes.len() <= record.wire_length as usize);
        assert!(is_compressed || total <= bytes.len(), "more packets than the file has bytes for");
    }
    let told: u64 = capture.link_types().iter().map(|(_, packets)| packets).sum();
    assert!(packets <= told, "{packets} packets, {told} by link type");
    assert!(capture.next_record().is_none(), "it goes on after its end");
});
