//! What a packet costs: enqueue + dequeue through `Box<dyn Qdisc>`, as an engine calls it.
//!
//! *steady*: N flows in turn, 2N packets resident, so every flow always has packets queued.
//! *churn*: 10N flows in turn, N packets resident, so nearly every packet makes and removes an
//! entry. `harness` is the same loop around nothing, `call` around a discipline that does nothing,
//! `vecdeque` around a bare `VecDeque`, `map-las` around LAS by a `BTreeMap`. After the run a table
//! shows the least of each one's samples net of the harness, and its ratio to the bare queue.
//! `DISCIPLINES=efd,fq-codel:buckets=65536` in the environment chooses; arguments are those of
//! criterion.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;
use sched::{
    Backlog, Dequeue, Ecn, FlowId, HostId, Nanos, Packet, ParamError, Params, Sink, Spec, registry,
};

const FLOWS: [u64; 4] = [300, 10_000, 100_000, 1_000_000];
const PATTERNS: [Pattern; 2] = [
    Pattern { name: "steady", flows_per_n: 1, resident_per_n: 2 },
    Pattern { name: "churn", flows_per_n: 10, resident_per_n: 1 },
];

/// The hosts that flows go to, for disciplines that tell them apart.
const HOSTS: u32 = 64;

/// Packets come in batches, as an engine reads them: parsed first, then enqueued one by one.
const BATCH: usize = 32;

struct Pattern {
    name: &'static str,
    flows_per_n: u64,
    resident_per_n: u64,
}

/// Something that is fed one packet and gives one back.
trait Subject {
    fn put(&mut self, packet: Packet, now: Nanos);
    /// The id of the packet: an engine needs it to find its frame.
    fn take(&mut self, now: Nanos) -> Option<u64>;
}

/// Nothing: what the loop itself costs.
struct Harness(Option<u64>);

impl Subject for Harness {
    fn put(&mut self, packet: Packet, _: Nanos) {
        self.0 = Some(black_box(&packet).id);
    }
    fn take(&mut self, _: Nanos) -> Option<u64> {
        self.0.take()
    }
}

impl Subject for VecDeque<Packet> {
    fn put(&mut self, packet: Packet, _: Nanos) {
        self.push_back(packet);
    }
    fn take(&mut self, _: Nanos) -> Option<u64> {
        self.pop_front().map(|packet| packet.id)
    }
}

/// A discipline that does nothing: what the call through `Box<dyn Qdisc>` and moving the packet
/// cost, which the others are not to blame for.
#[derive(Default)]
struct Null {
    slots: [Option<Packet>; 8],
    next: usize,
}

impl<S: Sink> sched::Qdisc<S> for Null {
    fn enqueue(&mut self, packet: Packet, _: Nanos, _: &mut S) {
        self.slots[self.next] = Some(packet);
        self.next = (self.next + 1) % self.slots.len();
    }
    fn dequeue(&mut self, _: Nanos, _: &mut S) -> Dequeue {
        self.slots[self.next].map_or(Dequeue::Empty, Dequeue::unmarked)
    }
}

impl sched::Queue for Null {
    fn backlog(&self) -> Backlog {
        Backlog::default()
    }

    fn change(&mut self, _: &Params) -> Result<(), ParamError> {
        Ok(())
    }
}

/// LAS the obvious way: one sorted map of packets by (attained service, arrival).
#[derive(Default)]
struct MapLas {
    attained: HashMap<FlowId, u64>,
    queue: BTreeMap<(u64, u64), Packet>,
    arrivals: u64,
}

impl Subject for MapLas {
    fn put(&mut self, packet: Packet, _: Nanos) {
        let attained = self.attained.entry(packet.flow).or_default();
        self.queue.insert((*attained, self.arrivals), packet);
        *attained += u64::from(packet.size);
        self.arrivals += 1;
    }
    fn take(&mut self, _: Nanos) -> Option<u64> {
        self.queue.pop_first().map(|(_, packet)| packet.id)
    }
}

type Drops = Vec<(Packet, sched::Drop)>;

struct Discipline(Box<dyn sched::Qdisc<Drops>>, Drops);

impl Subject for Discipline {
    fn put(&mut self, packet: Packet, now: Nanos) {
        self.0.enqueue(packet, now, &mut self.1);
    }
    fn take(&mut self, now: Nanos) -> Option<u64> {
        match self.0.dequeue(now, &mut self.1) {
            Dequeue::Packet { packet, .. } => Some(packet.id),
            _ => None,
        }
    }
}

/// Feeds flows in turn; the clock moves as on a link of 10 Gbit/s.
struct Feed {
    flows: u64,
    next: u64,
    now: u64,
}

impl Feed {
    #[inline(always)]
    fn packet(&mut self) -> (Packet, Nanos) {
        let index = self.next;
        self.next = if index + 1 == self.flows { 0 } else { index + 1 };
        self.now += 1200;
        // A bijection that scatters, as a keyed hash does.
        let fingerprint = (index ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let fingerprint = fingerprint ^ (fingerprint >> 32);
        let packet = Packet::new(FlowId::new(fingerprint), 1500)
            .with_flow_size(1 << 40)
            .with_ecn(Ecn::Ect0)
            .with_offset(0)
            .with_hosts(HostId(1), HostId(index as u32 % HOSTS + 2))
            .with_id(index);
        (packet, Nanos(self.now))
    }
}

fn run(
    criterion: &mut Criterion,
    n: u64,
    pattern: &Pattern,
    name: &str,
    mut subject: impl Subject,
) {
    let mut feed = Feed { flows: n * pattern.flows_per_n, next: 0, now: 0 };
    let mut filled = false;
    criterion.bench_function(&format!("{}/{n}/{name}", pattern.name), |bencher| {
        if !filled {
            for _ in 0..n * pattern.resident_per_n {
                let (packet, now) = feed.packet();
                subject.put(packet, now);
            }
            filled = true;
        }
        let mut batch = [feed.packet(); BATCH];
        bencher.iter_custom(|iterations| {
            let start = Instant::now();
            for _ in 0..iterations / BATCH as u64 {
                for slot in &mut batch {
                    *slot = feed.packet();
                }
                for (packet, now) in black_box(&batch) {
                    subject.put(*packet, *now);
                    black_box(subject.take(*now));
                }
            }
            for _ in 0..iterations % BATCH as u64 {
                let (packet, now) = feed.packet();
                subject.put(packet, now);
                black_box(subject.take(now));
            }
            start.elapsed()
        });
    });
}

fn discipline(name: &str, n: u64) -> Discipline {
    let spec = name
        .parse::<Spec>()
        .and_then(|spec| spec.with_default("limit", &format!("{}packets", 4 * n)))
        .and_then(|spec| spec.with_default("flows", &format!("{}", 10 * n)))
        .and_then(|spec| spec.with_default("memory", "64gb"))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    // CoDel's queues stand above their target here by design: let them. The target of `auto` is no time.
    let spec = spec.clone().with_default("target", "1s").unwrap_or(spec);
    let spec = spec.with_default("rtt", "20s").expect("its 20th part is CAKE's target");
    Discipline(spec.build(1), Vec::with_capacity(16))
}

fn names() -> Vec<String> {
    let all = registry::ALL.iter().map(|info| info.name.to_string());
    match std::env::var("DISCIPLINES") {
        Ok(list) => list.split(',').map(str::to_string).collect(),
        Err(_) => all.collect(),
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1000))
        .sample_size(15)
        .nresamples(1000)
        .configure_from_args();
    for pattern in &PATTERNS {
        for n in FLOWS {
            run(&mut criterion, n, pattern, "harness", Harness(None));
            run(
                &mut criterion,
                n,
                pattern,
                "call",
                Discipline(Box::new(Null::default()), Vec::new()),
            );
            run(&mut criterion, n, pattern, "vecdeque", VecDeque::with_capacity(4 * n as usize));
            run(&mut criterion, n, pattern, "map-las", MapLas::default());
            for name in names() {
                run(&mut criterion, n, pattern, &name, discipline(&name, n));
            }
        }
    }
    criterion.final_summary();
    print_table();
}

/// Least ns per packet of a finished benchmark's samples: what else runs on a machine, or on the
/// machine below it, only adds.
fn least(pattern: &Pattern, n: u64, name: &str) -> Option<f64> {
    // As criterion names the directory.
    let name = name.replace(':', "_");
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "../../target".into());
    let path = format!("{target}/criterion/{}_{n}_{name}/new/sample.json", pattern.name);
    let text = std::fs::read_to_string(path).ok()?;
    let json: serde_json::Value = serde_json::from_str(&text).ok()?;
    let numbers = |key: &str| -> Option<Vec<f64>> {
        json[key].as_array()?.iter().map(serde_json::Value::as_f64).collect()
    };
    let (iterations, times) = (numbers("iters")?, numbers("times")?);
    let per_packet = times.iter().zip(iterations).map(|(time, count)| time / count);
    per_packet.min_by(f64::total_cmp)
}

fn print_table() {
    println!("\nns per packet net of the harness (ratio to a bare VecDeque), least of the samples");
    for pattern in &PATTERNS {
        println!("\n| {} | {} |", pattern.name, FLOWS.map(|n| n.to_string()).join(" | "));
        println!("|---|{}", "---:|".repeat(FLOWS.len()));
        let rows = ["harness", "call", "vecdeque", "map-las"].map(str::to_string);
        let rows = rows.into_iter().chain(names());
        for name in rows {
            let cells = FLOWS.map(|n| cell(pattern, n, &name).unwrap_or_else(|| "-".into()));
            println!("| {name} | {} |", cells.join(" | "));
        }
    }
}

fn cell(pattern: &Pattern, n: u64, name: &str) -> Option<String> {
    let harness = least(pattern, n, "harness")?;
    let own = least(pattern, n, name)?;
    if name == "harness" {
        return Some(format!("{own:.1} gross"));
    }
    let queue = least(pattern, n, "vecdeque")? - harness;
    Some(format!("{:.1} ({:.1})", own - harness, (own - harness) / queue))
}
