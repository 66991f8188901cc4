//! What a segment costs: one endless transfer through a network without bandwidth, its
//! propagation delay and loss apart. Prints nanoseconds per segment, data and acknowledgments
//! alike, of both ends together: sending, receiving, and the queue of this program.
//!
//!     cargo bench -p shortlane-tcp

use std::collections::VecDeque;
use std::time::Instant;

use tcp::{Config, Congestion, Endpoint, Nanos, Pacing, Recovery, Segment};

const DELAY: Nanos = Nanos::from_millis(10);
const RUNS: usize = 7;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|part| name.contains(part));
    println!("{:34} {:>10} {:>12} {:>10}", "", "segments", "ns/segment", "lost");
    let window = |config: Config| Config { receive_window: 200 * config.mss, ..config };
    let reno = Config { congestion: Congestion::Reno, ..Config::default() };
    if wanted("this program alone") {
        let mut costs: Vec<f64> = (0..RUNS).map(|_| program_alone(2_000_000)).collect();
        costs.sort_by(f64::total_cmp);
        println!("{:34} {:>10} {:>12.1}", "this program alone", 2_000_000, costs[RUNS / 2]);
    }
    let cases = [
        ("cubic, sack, timestamps", window(Config::default())),
        ("linux", window(Config::linux())),
        ("linux, no rack", window(Config { rack: false, ..Config::linux() })),
        ("ns-3", window(Config::ns3())),
        ("ns-2 (every segment acknowledged)", window(Config::ns2())),
        ("cubic, paced", window(Config { pacing: Some(Pacing::LINUX), ..Config::default() })),
    ];
    for (name, config) in cases {
        if wanted(name) {
            report(name, &config, u64::MAX, 2_000_000);
        }
    }
    let rack = Config { rack: true, ..reno.clone() };
    let new_reno = Config { recovery: Recovery::NewReno, ..reno.clone() };
    let lossy = [
        ("reno + sack, 1 % lost", reno.clone(), 100),
        ("reno + sack, 0.1 % lost", reno, 1000),
        ("reno + sack, rack, 1 % lost", rack.clone(), 100),
        ("reno + sack, rack, 0.1 % lost", rack, 1000),
        ("new reno, 0.1 % lost", new_reno, 1000),
    ];
    for (name, config, loss) in lossy {
        if wanted(name) {
            report(name, &window(config), loss, 1_000_000);
        }
    }
}

/// The median of some runs; one data segment in `loss` is lost.
fn report(name: &str, config: &Config, loss: u64, segments: u64) {
    config.check().expect("a configuration that can work");
    let mut runs: Vec<(f64, u64, u64)> =
        (0..RUNS).map(|_| transfer(config, loss, segments)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (cost, total, lost) = runs[RUNS / 2];
    println!("{name:34} {total:>10} {cost:>12.1} {lost:>10}");
}

/// Nanoseconds per segment, segments sent, segments lost.
fn transfer(config: &Config, loss: u64, segments: u64) -> (f64, u64, u64) {
    let mut ends = [Endpoint::client(config), Endpoint::server(config)];
    let mut wire: VecDeque<(Nanos, usize, Segment)> = VecDeque::new();
    let (mut now, mut sent, mut lost) = (Nanos::ZERO, 0, 0);
    let mut random = 1u64;
    ends[0].connect(config, now);
    ends[0].write(u64::MAX / 2);
    let mut flush = |ends: &mut [Endpoint; 2], wire: &mut VecDeque<_>, end: usize, now| {
        while let Some(segment) = ends[end].poll_transmit(config, now) {
            sent += 1;
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if segment.len > 0 && (random >> 32).is_multiple_of(loss) {
                lost += 1;
            } else {
                wire.push_back((now + DELAY, 1 - end, segment));
            }
        }
        sent
    };
    let clock = Clock::start();
    let mut total = flush(&mut ends, &mut wire, 0, now);
    while total < segments {
        let arrival = wire.front().map_or(Nanos::MAX, |front| front.0);
        // Timers, as a simulator would: only where nothing arrives before.
        let timer = ends[0].next_timer().into_iter().chain(ends[1].next_timer()).min();
        if timer.is_some_and(|timer| timer < arrival) {
            now = timer.unwrap_or(now);
            for end in 0..2 {
                ends[end].on_timer(config, now);
                total = flush(&mut ends, &mut wire, end, now);
            }
            continue;
        }
        let Some((at, to, segment)) = wire.pop_front() else { break };
        now = at;
        ends[to].on_segment(config, &segment, false, now);
        total = flush(&mut ends, &mut wire, to, now);
    }
    (clock.nanoseconds() / total as f64, total, lost)
}

/// The same queue and loop around ends that only count: what to subtract.
fn program_alone(segments: u64) -> f64 {
    let mut wire: VecDeque<(Nanos, usize, Segment)> = VecDeque::new();
    let mut total = 200;
    for number in 0..total {
        wire.push_back((DELAY, 1, Segment { seq: number, len: 1, ..Segment::default() }));
    }
    let (mut now, mut next) = (Nanos::ZERO, total);
    let clock = Clock::start();
    while total < segments {
        let Some((at, to, segment)) = std::hint::black_box(&mut wire).pop_front() else { break };
        now = now.max(at);
        // Every second segment is answered, an answer makes room for two.
        let answers = if to == 1 { segment.seq % 2 } else { 2 };
        for _ in 0..answers {
            next += 1 - to as u64;
            let seq = if to == 1 { segment.seq } else { next };
            wire.push_back((now + DELAY, 1 - to, Segment { seq, ..segment }));
            total += 1;
        }
    }
    clock.nanoseconds() / total as f64
}

/// Processor time where Linux tells it, else wall time.
struct Clock {
    processor: Option<u64>,
    wall: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { processor: Self::processor(), wall: Instant::now() }
    }

    fn processor() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok()
    }

    fn nanoseconds(&self) -> f64 {
        match (self.processor, Self::processor()) {
            (Some(start), Some(end)) if end > start => (end - start) as f64,
            _ => self.wall.elapsed().as_secs_f64() * 1e9,
        }
    }
}
