//! What the observer of an attached engine costs for each packet.
//!
//! `cargo bench -p shortlane-engine --bench live` lets packets through a discipline under the
//! observer that only counts drops and under the live one, in turns, and prints the medians. The
//! parsing of frames, their I/O and the clock are not in it.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use engine::live::Live;
use engine::observe::{Counters, Observer};
use frame::{Endpoints, FlowKey, Selector};
use sched::{FlowId, Nanos, Packet, Spec};

const ROUNDS: usize = 15;
const PACKETS: u64 = 1_000_000;
/// Packets that are queued at a time.
const QUEUED: u64 = 128;

fn main() {
    println!("ns per packet through efd, median of {ROUNDS} rounds of {PACKETS} packets:");
    println!("{:>10} {:>10} {:>10} {:>10}", "flows", "counters", "live", "more");
    for flows in [1, 300, 10_000, 1_000_000] {
        let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for _ in 0..ROUNDS {
            times.entry("counters").or_default().push(round(Counters::default(), flows));
            times.entry("live").or_default().push(round(Live::account(2), flows));
        }
        let median = |name| {
            let mut all = times.get(name).cloned().unwrap_or_default();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let (counters, live) = (median("counters"), median("live"));
        println!("{flows:>10} {counters:>10.1} {live:>10.1} {:>10.1}", live - counters);
    }
}

/// Nanoseconds for a packet, with packets of so many flows in turns that look random.
fn round<O: Observer>(mut observer: O, flows: u64) -> f64 {
    let spec: Spec = "efd:limit=1000packets".parse().expect("it is a discipline");
    let mut qdisc = spec.build::<O>(1);
    let begin = Instant::now();
    for n in 0..PACKETS {
        let now = Nanos(n * 1000);
        let flow = mix(n) % flows;
        let key = FlowKey {
            endpoints: Endpoints::V4((flow as u32).to_be_bytes(), [10, 0, 0, 1]),
            selector: Selector::Ports(1, 2),
            protocol: 17,
            vlans: 0,
        };
        let packet = Packet::new(FlowId::new(mix(flow)), 1000).with_id(n % (2 * QUEUED));
        observer.arriving(&packet, &key, now);
        qdisc.enqueue(packet, now, &mut observer);
        if n >= QUEUED {
            black_box(qdisc.dequeue(now, &mut observer));
        }
    }
    begin.elapsed().as_nanos() as f64 / PACKETS as f64
}

/// The output function of SplitMix64.
fn mix(n: u64) -> u64 {
    let z = (n.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
