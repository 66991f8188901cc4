//! Packet-hops per second: TCP flows without end over a dumbbell of three links.
//!
//! `cargo bench -p shortlane-sim --bench dumbbell -- [FLOWS [DISCIPLINE [MILLION_HOPS]]]`
//!
//! Each flow has a pair of its own and 1 Mbit/s of the bottleneck; the round trip takes 46 ms,
//! the buffer holds one bandwidth-delay product. Set-up and the first two seconds do not count.

use std::time::Instant;

use sched::{Amount, Nanos};
use sim::sources::Pair;
use sim::{
    Connection, Context, ENDLESS, Impairments, LinkConfig, Network, NetworkError, NodeId, Queue,
    Recorder, Simulation, Source, TcpId,
};
use tcp::Config;

/// One flow without end for each pair, started one after another within the first second.
struct Flows {
    pairs: Vec<Pair>,
    tcp: TcpId,
    opened: usize,
}

impl Source for Flows {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        self.wake(context)
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let Some(pair) = self.pairs.get(self.opened) else { return Ok(()) };
        context.connect(&Connection {
            client: pair.sender,
            server: pair.receiver,
            tcp: self.tcp,
            request_bytes: ENDLESS,
            response_bytes: 0,
            keep_open: false,
            index: self.opened as u64,
        })?;
        self.opened += 1;
        context.wake_at(Nanos(1_000_000_000 / self.pairs.len() as u64 * self.opened as u64));
        Ok(())
    }
}

struct Nothing;

impl Recorder for Nothing {
    fn flow(&mut self, _: &sim::FlowReport) {}
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let number = |at: usize| args.get(at).and_then(|arg| arg.parse().ok());
    let million_hops = number(2).unwrap_or(20);
    let disciplines = args.get(1).map_or("plain", String::as_str);
    let counts = number(0).map_or(vec![10, 300, 3000], |count| vec![count as usize]);
    println!(
        "{:>6} {:>10} {:>12} {:>10} {:>12}",
        "flows", "queue", "Mhops/s", "ns/event", "events/hop"
    );
    for flows in counts {
        for discipline in disciplines.split(',') {
            measure(flows, discipline, million_hops * 1_000_000);
        }
    }
}

fn measure(flows: usize, discipline: &str, hops: u64) {
    let (mut simulation, pairs) = dumbbell(flows, discipline);
    let tcp = simulation.add_tcp(Config::ns2()).expect("a preset works");
    for pair in &pairs {
        simulation.expect(pair.sender, pair.receiver).expect("connected");
    }
    simulation.add_source(Box::new(Flows { pairs, tcp, opened: 0 }));
    let mut now = Nanos::from_secs(2);
    simulation.run_until(now, &mut Nothing).expect("it runs");
    let before = simulation.effort();
    let start = Instant::now();
    while simulation.effort().packet_hops - before.packet_hops < hops {
        now = now + Nanos::from_millis(100);
        simulation.run_until(now, &mut Nothing).expect("it runs");
    }
    let seconds = start.elapsed().as_secs_f64();
    let after = simulation.effort();
    let (hops, events) = (after.packet_hops - before.packet_hops, after.events - before.events);
    println!(
        "{flows:>6} {discipline:>10} {:>12.2} {:>10.1} {:>12.2}",
        hops as f64 / seconds / 1e6,
        seconds * 1e9 / events as f64,
        events as f64 / hops as f64
    );
}

fn dumbbell(flows: usize, discipline: &str) -> (Simulation, Vec<Pair>) {
    let rate_bps = 1_000_000 * flows as u64;
    let buffer = rate_bps as f64 * 0.046 / 8.0 / 1040.0;
    let limit = Amount::Packets(buffer as u64);
    let queue = match discipline {
        "plain" => Queue::Fifo { limit },
        name => Queue::Discipline {
            spec: format!("{name}:limit={limit}").parse().expect("a discipline"),
            log: false,
        },
    };
    let mut network = Network::new();
    let add = |network: &mut Network, from: NodeId, to: NodeId, rate_bps, delay, queue| {
        let name = format!("{}-{}", from.index(), to.index());
        let impairments = Impairments::default();
        network
            .link(LinkConfig { name, from, to, rate_bps, delay, queue, impairments })
            .expect("a good link");
    };
    let free = || Queue::Fifo { limit: Amount::UNLIMITED };
    let [left, right] = ["left", "right"].map(|name| network.node(name).expect("a new node"));
    let middle = Nanos::from_millis(20);
    add(&mut network, left, right, rate_bps, middle, queue);
    add(&mut network, right, left, rate_bps, middle, free());
    let pairs = (0..flows).map(|flow| {
        let [sender, receiver] =
            ["s", "r"].map(|side| network.node(&format!("{side}{flow}")).expect("a new node"));
        for (host, router) in [(sender, left), (receiver, right)] {
            let (rate, delay) = (100_000_000, Nanos::from_millis(1) + Nanos(500_000));
            add(&mut network, host, router, rate, delay, free());
            add(&mut network, router, host, rate, delay, free());
        }
        Pair { sender, receiver }
    });
    let pairs = pairs.collect();
    (Simulation::new(network, 1), pairs)
}
