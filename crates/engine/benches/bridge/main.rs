//! The engine beside the kernel's own bridge and `tbf`, between two namespaces, interleaved.
//!
//! `cargo bench -p shortlane-engine --bench bridge` prints, for this machine: packets of 64 bytes
//! per second, TCP goodput of packets of 1500 bytes and of super-packets, idle round trips, how
//! exactly rates are held, and the processor time all of it takes. Needs root and iproute2.
//! Absolute figures of a shared machine drift: read the ratios. `ROUNDS` says how often everything
//! is measured, `PARTS` which parts (`packets,tcp,offloads,gigabit,attached,trips,rates`).

mod hosts;
mod loads;

use std::time::Duration;

use engine::Io::{Packet, Xdp};

use self::hosts::{Hosts, Middle, Offloads, mbit};
use self::loads::Outcome;

const MEGABIT: u64 = 1_000_000;
const GIGABIT: u64 = 1_000 * MEGABIT;
/// As fast as `tbf` is asked to be where it shall not be what limits.
const TEN: u64 = 10 * GIGABIT;
const RUN: Duration = Duration::from_millis(1500);
/// Segments in a super-packet of 64 KB.
const SEGMENTS: usize = 44;

/// What can be measured: its name, and how, in so many rounds.
type Part = (&'static str, fn(usize));

fn main() {
    // `cargo test --benches` runs this as well; it has nothing to test.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let rounds = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(7);
    if let Err(error) = Hosts::new(Offloads::Off) {
        eprintln!("nothing was measured: {error}");
        std::process::exit(1);
    }
    let parts = std::env::var("PARTS").unwrap_or_default();
    let wanted = |part: &str| parts.is_empty() || parts.split(',').any(|wanted| wanted == part);
    let all: [Part; 7] = [
        ("packets", packets),
        ("tcp", tcp),
        ("offloads", offloads),
        ("gigabit", gigabit),
        ("attached", attached),
        ("trips", round_trips),
        ("rates", |_| rates()),
    ];
    all.into_iter().filter(|(part, _)| wanted(part)).for_each(|(_, run)| run(rounds));
}

fn packets(rounds: usize) {
    println!("Packets of 64 bytes, thousands a second, {rounds} interleaved rounds:");
    let middles = [
        Middle::KernelTbf(TEN),
        Middle::KernelBridge,
        Middle::Engine(Xdp, "efd", TEN),
        Middle::Engine(Xdp, "efd", u64::MAX),
        Middle::Engine(Packet, "efd", TEN),
    ];
    compare(rounds, Offloads::Off, &middles, "Mpacket", 1e3, |hosts| {
        loads::small_packets(hosts, RUN)
    });
}

fn tcp(rounds: usize) {
    println!("TCP goodput, packets of 1500 bytes, Mbit/s, {rounds} interleaved rounds:");
    let middles = [
        Middle::KernelTbf(TEN),
        Middle::KernelBridge,
        Middle::Engine(Xdp, "efd", TEN),
        Middle::Engine(Xdp, "fifo:limit=1000packets", u64::MAX),
        Middle::Engine(Packet, "efd", TEN),
    ];
    compare(rounds, Offloads::Off, &middles, "Gbit", 1e3, |hosts| loads::tcp(hosts, RUN));
}

fn offloads(rounds: usize) {
    println!("TCP goodput, super-packets of 64 KB, Mbit/s, {rounds} interleaved rounds:");
    let middles = [
        Middle::KernelTbf(TEN),
        Middle::KernelTbf(5 * GIGABIT),
        Middle::Engine(Packet, "efd", TEN),
        Middle::Engine(Packet, "efd", 5 * GIGABIT),
    ];
    compare(rounds, Offloads::On, &middles, "Gbit", 1e3, |hosts| loads::tcp(hosts, RUN));
}

/// On one interface: with the feature `kernel`.
fn attached(rounds: usize) {
    #[cfg(feature = "kernel")]
    for rate in [10 * GIGABIT, 5 * GIGABIT, GIGABIT, 400 * MEGABIT] {
        let rate_text = mbit(rate);
        println!("TCP goodput at {rate_text} on one interface, Mbit/s, {rounds} rounds:");
        let middles = [Middle::KernelTbf(rate), Middle::Attached("efd", rate)];
        compare(rounds, Offloads::On, &middles, "Gbit", 1e3, |hosts| loads::tcp(hosts, RUN));
    }
    #[cfg(not(feature = "kernel"))]
    println!("not measured in {rounds} rounds: one interface, which takes the feature `kernel`");
}

fn gigabit(rounds: usize) {
    println!("TCP goodput at 1 Gbit/s, Mbit/s, {rounds} interleaved rounds:");
    let middles = [
        Middle::KernelTbf(GIGABIT),
        Middle::Engine(Xdp, "efd", GIGABIT),
        Middle::Engine(Packet, "efd", GIGABIT),
    ];
    compare(rounds, Offloads::Off, &middles, "Gbit", 1e3, |hosts| loads::tcp(hosts, RUN));
}

fn round_trips(rounds: usize) {
    println!("Idle UDP round trip, us, median of 5000 a run, {rounds} interleaved rounds:");
    let middles = [
        Middle::KernelBridge,
        Middle::KernelTbf(GIGABIT),
        Middle::Engine(Xdp, "efd", GIGABIT),
        Middle::Engine(Packet, "efd", GIGABIT),
    ];
    compare(rounds, Offloads::Off, &middles, "", 0.0, |hosts| Outcome {
        per_second: loads::round_trip(hosts, 5000),
        busy: 0.0,
    });
}

/// Runs every middle once a round and prints medians with the least and the most, the ratio to
/// the first middle, and the processor time (in ms) of `unit`, which is `size` of what is counted.
fn compare(
    rounds: usize,
    offloads: Offloads,
    middles: &[Middle],
    unit: &str,
    size: f64,
    measure: impl Fn(&Hosts) -> Outcome,
) {
    let mut results: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); middles.len()];
    for _ in 0..rounds {
        for (middle, (counts, costs)) in middles.iter().zip(&mut results) {
            let hosts = Hosts::new(offloads).expect("namespaces could be made before");
            let outcome = hosts.joined_by(*middle, || measure(&hosts)).0;
            counts.push(outcome.per_second);
            costs.push(outcome.busy * 1e3 / (outcome.per_second / size));
        }
    }
    let first = median(&mut results[0].0);
    for (middle, (counts, costs)) in middles.iter().zip(&mut results) {
        let median_count = median(counts);
        let (least, most) = (counts[0], counts[counts.len() - 1]);
        let (name, ratio) = (middle.name(), median_count / first);
        print!("  {name:44} {median_count:9.1}  ({least:.1} to {most:.1})  x {ratio:.2}");
        let cost = if unit.is_empty() {
            String::new()
        } else {
            format!("  {:.0} ms CPU/{unit}", median(costs))
        };
        println!("{cost}");
    }
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A queue deep enough to bridge the moments when the sender gets no processor.
const DEEP: &str = "fifo:limit=20000packets";

fn rates() {
    println!("Rate held, UDP offered at 1.5 x rate, arrivals at the far interface, by the second:");
    let cases = [
        (Xdp, MEGABIT, Offloads::Off),
        (Xdp, 100 * MEGABIT, Offloads::Off),
        (Xdp, GIGABIT, Offloads::Off),
        (Packet, MEGABIT, Offloads::Off),
        (Packet, 100 * MEGABIT, Offloads::Off),
        (Packet, GIGABIT, Offloads::Off),
        (Packet, 5 * GIGABIT, Offloads::On),
    ];
    for (io, rate, offloads) in cases {
        let hosts = Hosts::new(offloads).expect("namespaces could be made before");
        // Without offloads the kernel splits what is sent before it leaves the host.
        let segments = if rate > MEGABIT { SEGMENTS } else { 1 };
        let (windows, report) = hosts
            .joined_by(Middle::Engine(io, DEEP, rate), || loads::flood(&hosts, rate, segments, 5));
        let ratios: Vec<_> = windows
            .iter()
            .map(|bytes| format!("{:.4}", *bytes as f64 * 8.0 / rate as f64))
            .collect();
        let report = report.expect("the engine ran");
        let forth = &report.directions[0];
        let seen = forth.punctuality;
        println!(
            "  {io:7} {:13} {}  (latest {} us, lost {:.3} %, largest burst {} packets)",
            mbit(rate),
            ratios.join(" "),
            seen.max_late.0 / 1000,
            seen.lost.0 as f64 / forth.duration.0 as f64 * 100.0,
            seen.largest_burst_packets,
        );
    }
}
