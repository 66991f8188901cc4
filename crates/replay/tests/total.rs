//! No bytes make a replay panic, hang or lose count.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Flavour, USUAL, config, enhanced, gzip, interface, pcap, section, udp};
use proptest::prelude::*;
use proptest::sample::Index;

fn survives(file: &[u8]) {
    let config = config(10_000_000, &["fifo", "efd:threshold=2packets", "fq-codel", "las"]);
    match common::replay(&config, file) {
        Ok(report) => {
            for scheduler in &report.schedulers {
                let arrived = scheduler.arrived_packets;
                assert_eq!(arrived, report.capture.packets);
                assert_eq!(arrived, scheduler.sent_packets + scheduler.dropped_packets);
                let of_classes: u64 = scheduler.classes.iter().map(|class| class.packets).sum();
                assert_eq!(of_classes, arrived);
            }
            assert!(!replay::text::report(&config, &report).is_empty());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn well_formed() -> impl Strategy<Value = Vec<u8>> {
    let packets = proptest::collection::vec((0u64..10_000_000_000, 0u16..4, 30usize..200), 1..12);
    (packets, 0..5usize, any::<bool>()).prop_map(|(packets, kind, big_endian)| {
        let order = Flavour { big_endian, nanoseconds: true };
        let packets: Vec<_> = packets.into_iter().map(|(t, f, n)| (t, udp(f, n))).collect();
        match kind {
            0 => pcap(&packets),
            1 => gzip(&pcap(&packets)),
            2 => {
                let records = packets.iter().map(|(t, b)| order.record(*t, b, b.len() as u32));
                [order.header(1)].into_iter().chain(records).collect::<Vec<_>>().concat()
            }
            _ => {
                let mut file = [
                    section(order),
                    interface(order, 1, &[(9, &[9])]),
                    interface(order, 101, &[(9, &[0x8a]), (14, &[1, 0, 0, 0, 0, 0, 0, 0])]),
                ]
                .concat();
                for (number, (t, b)) in (0..).zip(&packets) {
                    file.extend(enhanced(order, number % 3, *t, b, b.len() as u32));
                }
                file
            }
        }
    })
}

proptest! {
    #[test]
    fn mutated_captures(
        mut file in well_formed(),
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 0..10),
        cut in proptest::option::of(any::<Index>()),
    ) {
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        survives(&file);
    }

    #[test]
    fn random_bytes_behind_any_beginning(
        beginning in 0..4usize,
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let beginning = match beginning {
            0 => Vec::new(),
            1 => USUAL.header(1),
            2 => [section(USUAL), interface(USUAL, 1, &[])].concat(),
            _ => vec![0x1f, 0x8b, 8, 0],
        };
        survives(&[beginning, bytes].concat());
    }
}

/// Where captures of real networks may be: not part of the project.
fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    std::env::var_os("SHORTLANE_CAPTURES")
        .map(PathBuf::from)
        .or(Some(beside))
        .filter(|p| p.is_dir())
}

#[test]
fn captures_of_real_networks() {
    let Some(folder) = folder() else {
        eprintln!("SKIPPED: SHORTLANE_CAPTURES names no folder of captures");
        return;
    };
    let mut packets = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.contains(".pcap") {
            continue;
        }
        let file = fs::read(&path).unwrap();
        survives(&file);
        let report = common::replay(&config(1_000_000, &["fifo", "efd"]), &file);
        packets += report.unwrap_or_else(|error| panic!("{name}: {error}")).capture.packets;
        // Broken in one place after the other.
        for part in 1..10 {
            let mut broken = file[..(file.len() * part / 10).min(200_000)].to_vec();
            survives(&broken);
            let at = broken.len() / 2;
            broken[at..]
                .iter_mut()
                .step_by(97)
                .for_each(|byte| *byte = byte.wrapping_add(part as u8));
            survives(&broken);
        }
    }
    assert!(packets > 0, "{} holds no captures", folder.display());
}
