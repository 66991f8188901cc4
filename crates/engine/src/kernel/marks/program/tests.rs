//! The program itself, run by the kernel on frames of a test's choice, against the rule.

use std::collections::{HashMap, HashSet};

use frame::{Fingerprinter, LinkType};
use libbpf_rs::{OpenObject, ProgramInput};
use sched::marks::{Mark, MarkedFlow, ShortShare};
use sched::{Needs, Rate};

use super::*;
use crate::kernel::marks::Marks;
use crate::kernel::skeleton::marks::MarksSkel;

const SEED: u64 = 7;
const CLASSES: Classes = Classes { short: 0x1_0010, long: 0x1_0020 };
/// Of `struct __sk_buff`.
const CONTEXT: usize = 192;
const PRIORITY: usize = 32;
const WIRE_LEN: usize = 160;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

fn load(storage: &mut MaybeUninit<OpenObject>) -> Option<MarksSkel<'_>> {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED, nothing was tested: BPF programs need root");
        return None;
    }
    let mut program = MarksSkelBuilder::default().open(storage).unwrap();
    let parts = &mut program.maps.rodata_data.as_mut().unwrap().parts;
    (parts.key, parts.ethernet, parts.tested) = ([SEED, 0], 1, 1);
    Some(program.load().unwrap())
}

fn configure(program: &MarksSkel<'_>, config: Config, now: u64) {
    let mut bytes = config.bytes();
    let at = bytes.len() - 8;
    bytes[at..].copy_from_slice(&now.to_ne_bytes());
    program.maps.sl_marks_config.update(&KEY, &bytes, MapFlags::ANY).unwrap();
}

/// The priority that a packet leaves with, which came with 5. `None` if the kernel does not play a
/// frame: since 6.18, one without a whole IP header where its type announces one.
fn priority(program: &MarksSkel<'_>, frame: &[u8], wire_len: u32) -> Option<u32> {
    let mut context = [0; CONTEXT];
    context[PRIORITY..PRIORITY + 4].copy_from_slice(&5_u32.to_ne_bytes());
    context[WIRE_LEN..WIRE_LEN + 4].copy_from_slice(&wire_len.to_ne_bytes());
    let mut out = [0; CONTEXT];
    let input = ProgramInput {
        context_in: Some(&mut context),
        context_out: Some(&mut out),
        data_in: Some(frame),
        ..ProgramInput::default()
    };
    let output = match program.progs.shortlane_marks.test_run(input) {
        Err(error) if frame.len() < 54 => {
            assert_eq!(error.kind(), libbpf_rs::ErrorKind::InvalidInput, "{error}");
            return None;
        }
        output => output.unwrap(),
    };
    assert_eq!(output.return_value.cast_signed(), -1, "the next program decides");
    Some(u32::from_ne_bytes(out[PRIORITY..PRIORITY + 4].try_into().unwrap()))
}

/// A frame of one of a few flows, whole or broken.
fn frame(random: &mut Random) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, random.below(2) as u8];
    for _ in 0..random.below(4).saturating_sub(1) {
        frame.extend([0x81, 0, 0, random.below(3) as u8]);
    }
    let is_v4 = random.one_in(2);
    match (random.below(8), is_v4) {
        (0, true) => frame.extend([0x88, 0x64, 0x11, 0, 0, 1, 0, 60, 0, 0x21]),
        (0, false) => frame.extend([0x88, 0x64, 0x11, 0, 0, 1, 0, 60, 0x57]),
        (1, _) => frame.extend([0x08, 0x06]),
        (_, true) => frame.extend([0x08, 0]),
        (_, false) => frame.extend([0x86, 0xdd]),
    }
    let protocol = [6, 6, 6, 17, 17, 1, 58, 47, 50, 132, 99][random.below(11) as usize];
    let (from, to) = (random.below(3) as u8, random.below(2) as u8);
    let mut transport = vec![0, random.below(3) as u8, 1, 0xbb];
    transport.extend((0..36).map(|_| random.below(4) as u8));
    if is_v4 {
        let options = if random.one_in(6) { 1 } else { 0 };
        let fragment = if random.one_in(8) { 0x20 } else { 0x40 };
        let total = 20 + options * 4 + transport.len() as u8;
        frame.extend([0x45 + options, 0, 0, total, 0, 1, fragment, 0, 64, protocol, 0, 0]);
        frame.extend([10, 0, 0, from, 10, 0, 1, to]);
        frame.extend(vec![1; usize::from(options) * 4]);
    } else {
        let extension = [None, None, Some(0), Some(60), Some(44)][random.below(5) as usize];
        let payload = transport.len() as u8 + extension.map_or(0, |_| 8);
        frame.extend([0x60, 0, 0, 0, 0, payload, extension.unwrap_or(protocol), 64]);
        for end in [from, to] {
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
        }
        if extension.is_some() {
            frame.extend([protocol, 0, 0, random.below(2) as u8, 0, 0, 0, 0]);
        }
    }
    frame.extend(transport);
    if random.one_in(10) {
        let at = random.below(frame.len() as u64) as usize;
        frame[at] = random.next() as u8;
    }
    if random.one_in(12) {
        frame.truncate(14 + random.below(frame.len() as u64 - 14) as usize);
    }
    frame
}

#[test]
fn it_marks_what_the_rule_marks() {
    let mut storage = MaybeUninit::uninit();
    let Some(program) = load(&mut storage) else { return };
    let keys = Fingerprinter::from_seed(SEED);
    let (mut longs, mut ids) = (0, HashSet::new());
    for sequence in 0..200 {
        let random = &mut Random(sequence);
        let rate = Rate(10_u64.pow(5 + random.below(5) as u32));
        let threshold = 500 + random.below(60_000);
        let config = Config {
            rule: Marks::with_threshold(rate, threshold),
            classes: CLASSES,
            mark_short: random.one_in(2),
        };
        // Flows of earlier sequences have been idle by then.
        let mut now = (sequence + 1) << 40;
        let mut share = ShortShare::default();
        let mut flows: HashMap<_, MarkedFlow> = HashMap::new();
        for n in 0..100 {
            now += [1_000, 100_000, 3_000_000, 400_000_000][random.below(4) as usize];
            now += random.below(1_000);
            let frame = frame(random);
            let size = if random.one_in(6) { 20_000 } else { frame.len() as u32 };
            configure(&program, config, now);
            let Some(found) = priority(&program, &frame, size) else { continue };
            let needs = Needs::default();
            let id = keys.packet(LinkType::Ethernet, &frame, size, needs).packet.flow;
            let flow = flows.entry(id).or_default();
            let mark = config.rule.mark(flow, &mut share, size.into(), Nanos(now));
            let wanted = match mark {
                Mark::Long => CLASSES.long,
                Mark::Short if config.mark_short => CLASSES.short,
                Mark::Short => 5,
            };
            assert_eq!(found, wanted, "sequence {sequence}, packet {n}, {id:?}: {frame:02x?}");
            longs += u32::from(mark == Mark::Long);
            ids.insert(id);
        }
    }
    assert!((500..19_000).contains(&longs), "{longs} of 20000 were long");
    let keys: HashSet<Vec<u8>> = program.maps.sl_marked.keys().collect();
    let ids: HashSet<Vec<u8>> = ids.into_iter().map(|id| id.get().to_ne_bytes().into()).collect();
    assert_eq!(keys, ids, "the table has the flows of these keys, and no others");
}

#[test]
fn a_flood_of_flows_leaves_the_table_bounded_and_flows_short() {
    let mut storage = MaybeUninit::uninit();
    let Some(program) = load(&mut storage) else { return };
    let rule = Marks::for_rate(Rate(10_000_000));
    configure(&program, Config { rule, classes: CLASSES, mark_short: false }, 1 << 40);
    let mut frame = frame(&mut Random(0));
    frame[12..14].copy_from_slice(&[0x12, 0x34]);
    for n in 0..2 * FLOWS as u32 {
        frame[8..12].copy_from_slice(&n.to_be_bytes());
        assert_eq!(priority(&program, &frame, 200), Some(5));
    }
    let there = program.maps.sl_marked.keys().count() as u64;
    assert!((FLOWS / 2..=FLOWS).contains(&there), "{there} flows");
}
