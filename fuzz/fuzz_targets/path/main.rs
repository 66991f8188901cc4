//! Any bytes as frames, with any virtio-net headers and VLAN tags, through a direction of the
//! engine: parsing, classification, edge, discipline, shaper, marks, delay line, and I/O that takes
//! what it likes.
//!
//! The format of an input is that of [`script`]; `cargo run --example seeds` writes the corpus.

#![forbid(unsafe_code)]
#![no_main]

mod check;
mod memory;
mod script;

use engine::buffers::Buffers;
use engine::harness::Harness;
use engine::live::Live;
use engine::observe::{Counters, Observe, Observer, Records};
use engine::{LinkConfig, LinkSettings, Rate};
use libfuzzer_sys::fuzz_target;
use sched::Nanos;

use self::memory::{Memory, Sink, Source};
use self::script::{Operation, Script};

/// Most bytes of a packet that the output takes, and of its frame with two VLAN tags.
const MTU: u32 = 1500;
const LARGEST: u32 = MTU + 22;
/// Few, so that they run out.
const BUFFERS: usize = 96;
const TAILS: usize = 4;
/// Looks at the queue after the last operation until it has to be empty.
const PATIENCE: usize = 10_000;

fuzz_target!(|bytes: &[u8]| {
    let Some(script) = Script::read(bytes) else { return };
    match script.observer % 3 {
        0 => run(&script, Counters::default()),
        1 => run(&script, Live::account(2)),
        _ => run(&script, Records::account(Observe::since(Nanos::ZERO))),
    }
});

fn run<O: Observer>(script: &Script, observer: O) {
    let memory = Memory::new();
    let source = Box::new(Source::new(memory.clone()));
    let sink = Box::new(Sink::new(memory.clone()));
    let buffers = Buffers::with_tails(LARGEST as usize, BUFFERS, TAILS).expect("memory");
    let mut harness = Harness::new(source, sink, buffers, &script.config, observer, MTU);
    let mut now = Nanos(1);
    for operation in &script.operations {
        match operation {
            Operation::Arrive(arrival) => memory.lock().arrive(arrival.clone()),
            Operation::Answer(answer) => memory.lock().answers.push_back(*answer),
            Operation::Pass(time) => {
                now += *time;
                turn(&mut harness, &memory, now);
            }
            Operation::Change(config) => {
                let answer = harness.change(config);
                turn(&mut harness, &memory, now);
                answer.try_recv().expect("an answer").expect("parameters that go together");
            }
        }
    }
    drain(&mut harness, &memory, script, now);
}

/// Everything that came leaves or is dropped once the link is fast and the output willing.
fn drain<O: Observer>(
    harness: &mut Harness<O>,
    memory: &memory::Shared,
    script: &Script,
    mut now: Nanos,
) {
    let link = LinkSettings { rate: Rate::UNLIMITED, ..script.last().link };
    let fast = LinkConfig { link, ..script.last().clone() };
    drop(harness.change(&fast));
    memory.lock().answers.clear();
    for _ in 0..PATIENCE {
        now += Nanos::from_millis(100);
        turn(harness, memory, now);
        if memory.lock().is_empty() && is_idle(harness) {
            return;
        }
    }
    panic!("not empty: {:#?}", harness.counted());
}

fn is_idle<O: Observer>(harness: &mut Harness<O>) -> bool {
    let counted = harness.counted();
    counted.queued.packets + counted.in_flight.packets == 0
}

fn turn<O: Observer>(harness: &mut Harness<O>, memory: &memory::Shared, now: Nanos) {
    harness.turn(now).expect("no fault was planted");
    let counted = harness.counted();
    let accounted = counted.sent + counted.dropped() + counted.queued + counted.in_flight;
    assert_eq!(counted.received, accounted, "conservation: {counted:#?}");
    let memory = memory.lock();
    assert_eq!(counted.received.packets, memory.handed_out);
    assert_eq!(counted.sent.packets, memory.taken);
    assert!(counted.marked >= memory.marked, "a mark that nobody counted");
    assert_eq!(counted.lost_in_kernel, 0);
}
