//! Packets per second through one port, without TCP: flows whose packets all arrive at once, at a
//! load of 0.8, through every discipline.
//!
//! `cargo bench -p shortlane-sim --bench open_loop -- [MILLION_PACKETS]`

use std::time::Instant;

use sched::{Nanos, Rate, registry};
use sim::sources::{Bursts, Pair, drawn};
use sim::{FlowReport, Impairments, LinkConfig, Network, Queue, Recorder, Simulation};
use workload::{Offered, Random, SizeLaw, TransferList};

struct Nothing;

impl Recorder for Nothing {
    fn flow(&mut self, _: &FlowReport) {}
}

const PACKET_BYTES: u32 = 1500;
const RATE: Rate = Rate(1_000_000_000);

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let million: u64 = args.next().and_then(|arg| arg.parse().ok()).unwrap_or(3);
    let law: SizeLaw =
        "bounded-pareto:shape=1.2,min=1500b,max=15000000b".parse().expect("a size law");
    let load = 0.8;
    let bits = million as f64 * 1e6 * f64::from(PACKET_BYTES) * 8.0;
    let duration = Nanos((bits / (load * RATE.0 as f64) * 1e9) as u64);
    let offered = Offered { load, rate: RATE, duration };
    let list = TransferList::poisson(&law, &offered, &mut Random::new(1)).expect("a list");
    println!("{} flows of {law}", list.transfers().len());
    println!("{:>12} {:>14} {:>12}", "discipline", "million/s", "ns a packet");
    for info in registry::ALL {
        let mut network = Network::new();
        let [from, to] = ["a", "b"].map(|name| network.node(name).expect("a node"));
        let spec = format!("{}:limit=1000000packets", info.name).parse().expect("a discipline");
        let link = network.link(LinkConfig {
            name: "link".into(),
            from,
            to,
            rate: RATE,
            varying: None,
            delay: Nanos::from_millis(1),
            overhead: 0,
            queue: Queue::Discipline { spec, log: false },
            edge: None,
            impairments: Impairments::default(),
        });
        let link = link.expect("a link");
        let mut simulation = Simulation::new(network, 1);
        let plans = drawn(list.clone(), vec![Pair { sender: from, receiver: to }], Random::new(1));
        simulation.add_source(Box::new(Bursts::new(plans, PACKET_BYTES)));
        let start = Instant::now();
        simulation.run_until(2 * duration, &mut Nothing).expect("it runs");
        let seconds = start.elapsed().as_secs_f64();
        let port = simulation.port(link).expect("a discipline");
        let packets = port.ledger().totals().arrived.packets as f64;
        println!(
            "{:>12} {:>14.2} {:>12.0}",
            info.name,
            packets / seconds / 1e6,
            seconds / packets * 1e9
        );
    }
}
