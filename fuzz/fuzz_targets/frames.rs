//! Any bytes as a frame of any link type: a key for each, and never a panic.

#![forbid(unsafe_code)]
#![no_main]

use frame::{Fingerprinter, LinkType, mark_ce};
use libfuzzer_sys::fuzz_target;
use sched::Needs;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (choice, mut frame) = input;
    let link = LinkType::ALL[usize::from(choice) % LinkType::ALL.len()];
    let needs = Needs { hosts: true, offset: true, ..Needs::NOTHING };
    let fingerprinter = Fingerprinter::from_seed(1);
    let parsed = fingerprinter.packet(link, &frame, frame.len() as u32, needs);
    assert_eq!(fingerprinter.flow(&parsed.key), parsed.packet.flow);
    if mark_ce(link, &mut frame) {
        let marked = fingerprinter.packet(link, &frame, frame.len() as u32, needs);
        assert_eq!(marked.key, parsed.key, "a mark does not change the flow");
    }
});
