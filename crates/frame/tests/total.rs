//! Every frame has a key, and none can make the parser panic.

use std::fs;
use std::path::Path;

use frame::{Fingerprinter, LinkType, mark_ce, set_dscp};
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use proptest::prelude::*;
use sched::Needs;

const ALL: Needs = Needs { flow_size: true, offset: true, hosts: true };

/// Reads a frame, whole and cut off everywhere, as every link type.
fn read_in_every_way(bytes: &[u8]) {
    let fingerprinter = Fingerprinter::from_seed(1);
    for link in LinkType::ALL {
        for length in (0..bytes.len().min(150)).chain([bytes.len()]) {
            let parsed = fingerprinter.packet(link, &bytes[..length], length as u32, ALL);
            let again = fingerprinter.packet(link, &bytes[..length], length as u32, ALL);
            assert_eq!(parsed, again);
            assert_eq!(fingerprinter.flow(&parsed.key), parsed.packet.flow);
            assert!(!parsed.key.to_string().is_empty());
        }
    }
    let mut marked = bytes.to_vec();
    let key = fingerprinter.packet(LinkType::Ethernet, bytes, 0, ALL).key;
    mark_ce(LinkType::Ethernet, &mut marked);
    let marked = fingerprinter.packet(LinkType::Ethernet, &marked, 0, ALL);
    assert_eq!(marked.key, key, "a mark does not change the flow");
    let mut tagged = bytes.to_vec();
    let has_room = set_dscp(LinkType::Ethernet, &mut tagged, 46);
    let tagged = fingerprinter.packet(LinkType::Ethernet, &tagged, 0, ALL);
    assert_eq!(tagged.key, key, "a tag does not change the flow");
    assert!(!has_room || tagged.packet.dscp == 46, "a tag is read as it was written");
}

/// A well-formed frame to begin with: tags, IP version, protocol, transport bytes.
fn well_formed() -> impl Strategy<Value = Vec<u8>> {
    let tags = prop::collection::vec((0..4usize, any::<u16>()), 0..6);
    let protocol = prop_oneof![
        Just(6u8),
        Just(17),
        Just(132),
        Just(1),
        Just(58),
        Just(47),
        Just(50),
        Just(51),
        Just(44),
        Just(0),
        Just(43),
        Just(60),
        any::<u8>()
    ];
    let payload = prop::collection::vec(any::<u8>(), 0..120);
    (tags, any::<bool>(), protocol, payload).prop_map(|(tags, v6, protocol, payload)| {
        let mut frame = vec![2; 12];
        for (kind, tag) in tags {
            frame.extend([[0x81, 0], [0x88, 0xa8], [0x91, 0], [0x92, 0]][kind]);
            frame.extend(tag.to_be_bytes());
        }
        if v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((payload.len() as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend([7; 32]);
        } else {
            frame.extend([0x08, 0, 0x45, 0]);
            frame.extend((20 + payload.len() as u16).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
            frame.extend([7; 8]);
        }
        frame.extend(payload);
        frame
    })
}

proptest! {
    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_in_every_way(&bytes);
    }

    #[test]
    fn mutated_frames(
        mut frame in well_formed(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        for (index, byte) in changes {
            let index = index.index(frame.len());
            frame[index] = byte;
        }
        read_in_every_way(&frame);
    }
}

/// Walks a folder of captures, if `SHORTLANE_CAPTURES` names one.
#[test]
fn captured_frames() {
    let Some(folder) = std::env::var_os("SHORTLANE_CAPTURES") else {
        eprintln!("SKIPPED: SHORTLANE_CAPTURES names no folder of captures");
        return;
    };
    let mut frames = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let is_capture = |ext: &std::ffi::OsStr| ext == "pcap" || ext == "pcapng";
        if path.extension().is_some_and(is_capture) {
            frames += walk(&path);
        }
    }
    assert!(frames > 0, "{} holds no captures", folder.display());
    println!("{frames} frames read");
}

/// Reads a capture as far as it is well-formed; returns its number of frames.
fn walk(path: &Path) -> usize {
    let mut frames = 0;
    let mut reader = create_reader(1 << 20, fs::File::open(path).unwrap()).unwrap();
    loop {
        match reader.next() {
            Ok((length, block)) => {
                let bytes = match &block {
                    PcapBlockOwned::Legacy(packet) => Some(packet.data),
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => Some(packet.data),
                    PcapBlockOwned::NG(Block::SimplePacket(packet)) => Some(packet.data),
                    _ => None,
                };
                if let Some(bytes) = bytes {
                    read_in_every_way(bytes);
                    frames += 1;
                }
                reader.consume(length);
            }
            Err(PcapError::Incomplete(_)) => {
                if reader.refill().is_err() {
                    return frames;
                }
            }
            Err(_) => return frames,
        }
    }
}
