//! TCP through a line of links.

mod common;

use common::{add, discipline, line, plain};
use sched::{Amount, Nanos, Rate};
use sim::sources::{CbrStream, Pair, Transfers};
use sim::{Effort, FlowReport, Network, SimError, Simulation};
use tcp::Config;
use workload::{Cbr, Offered, Random, SizeLaw, TransferList};

const LONG: Nanos = Nanos::from_secs(100);

fn transfers(load: f64, seconds: u64) -> TransferList {
    let law: SizeLaw = "zipf:alpha=1.1,max=1000packets".parse().expect("a law");
    let offered = Offered { load, rate: Rate(10_000_000), duration: Nanos::from_secs(seconds) };
    TransferList::generate(&law, &offered, 1).expect("a list")
}

/// A packet takes no multiple of what it takes on another link. What happens at the same instant
/// happens in the order in which it was scheduled, and that depends on which links settle together.
const RATE: u64 = 9_999_991;

/// Runs the list over the line; reports, and what was sent on the bottleneck.
fn run(queue: &str, config: Config, load: f64, expect: bool) -> (Vec<FlowReport>, u64, Effort) {
    let line = line(RATE, discipline(queue));
    let mut simulation = Simulation::new(line.network, 1);
    let tcp = simulation.add_tcp(config).expect("a preset works");
    if expect {
        simulation.expect(line.there.sender, line.there.receiver).expect("connected");
    }
    let list = transfers(load, 20);
    simulation.add_source(Box::new(Transfers::new(list, vec![line.there], tcp, Random::new(2))));
    let mut reports = Vec::new();
    simulation.run_until(LONG, &mut reports).expect("it runs");
    let port = simulation.port(line.bottleneck).expect("a discipline");
    assert!(port.ledger().littles_law(LONG).holds());
    let sent = port.ledger().totals().sent().bytes;
    let effort = simulation.effort();
    simulation.finish(&mut reports);
    reports.sort_by_key(|report| report.index);
    (reports, sent, effort)
}

#[test]
fn a_transfer_on_an_idle_line_takes_its_round_trips() {
    let line = line(10_000_000, discipline("fifo"));
    let mut simulation = Simulation::new(line.network, 1);
    let config = Config { mss: 1460, ..Config::ns2() };
    let tcp = simulation.add_tcp(config).expect("a preset works");
    let one = workload::Transfer { start: Nanos(1000), size_bytes: 1460 };
    let list = TransferList::new(vec![one]);
    simulation.add_source(Box::new(Transfers::new(list, vec![line.there], tcp, Random::new(1))));
    let mut reports = Vec::new();
    simulation.run_until(LONG, &mut reports).expect("it runs");
    let [report] = reports.as_slice() else { panic!("one flow") };
    // 40 bytes take 3.2 us on an access link and 32 us on the bottleneck, 1500 bytes 120 and 1200.
    let ms = 1_000_000;
    let small = 3 * ms + 2 * 3_200 + 32_000;
    let large = 3 * ms + 2 * 120_000 + 1_200_000;
    assert_eq!(report.started, Nanos(1000));
    assert_eq!(report.connected, Some(Nanos(1000 + 2 * small)));
    // The acknowledgment of the handshake leaves just before the data, and delays it.
    assert_eq!(report.completed, Some(Nanos(1000 + 2 * small + large + 3_200)));
    assert_eq!((report.bytes, report.received), (1460, 1460));
    let stats = report.tcp.expect("TCP");
    assert_eq!((stats[0].retransmissions, stats[0].timeouts, stats[0].syn_timeouts), (0, 0, 0));
    assert_eq!(report.label.to_string(), "10.0.0.1:1024 > 10.0.0.4:80 tcp");
}

#[test]
fn every_transfer_completes_under_every_discipline_and_every_tcp() {
    for config in [Config::ns2(), Config::linux(), Config::ns3(), Config::default()] {
        for info in sched::registry::ALL {
            let queue = format!("{}:limit=50packets", info.name);
            let (reports, sent, _) = run(&queue, config.clone(), 0.9, true);
            assert_eq!(reports.len(), transfers(0.9, 20).transfers().len());
            let complete = reports.iter().filter(|report| report.completed.is_some()).count();
            assert_eq!(complete, reports.len(), "{queue}");
            assert!(reports.iter().all(|r| r.received == r.bytes && r.failure.is_none()));
            let bytes: u64 = reports.iter().map(|report| report.bytes).sum();
            assert!(sent > bytes && sent < bytes * 13 / 10, "{queue}: {sent} for {bytes}");
        }
    }
}

#[test]
fn settling_links_together_changes_nothing() {
    for queue in ["fifo:limit=30packets", "efd:limit=30packets", "fq-codel"] {
        let together = run(queue, Config::linux(), 1.2, true);
        let apart = run(queue, Config::linux(), 1.2, false);
        assert_eq!(format!("{:?}", together.0), format!("{:?}", apart.0), "{queue}");
        assert_eq!(together.2.packet_hops, apart.2.packet_hops);
        assert!(together.2.events < apart.2.events * 3 / 4, "that is what it is for");
    }
}

#[test]
fn two_feeders_of_a_plain_link_are_not_settled_ahead() {
    // Streams of two hosts meet at a slow plain link: without care, the far host's packets would
    // be queued before those of the near one that arrive earlier.
    let run = |expect: bool| {
        let mut network = Network::new();
        let [far, near, hub, end] =
            ["far", "near", "hub", "end"].map(|name| network.node(name).expect("a new node"));
        let free = || plain(Amount::UNLIMITED);
        add(&mut network, (far, hub), 100_000_000, Nanos::from_millis(70), free());
        add(&mut network, (near, hub), 100_000_000, Nanos::from_millis(1), free());
        add(&mut network, (hub, end), 1_100_000, Nanos::from_millis(1), plain(Amount::Packets(3)));
        add(&mut network, (end, hub), 1_000_000, Nanos::from_millis(1), free());
        add(&mut network, (hub, far), 1_000_000, Nanos::from_millis(1), free());
        add(&mut network, (hub, near), 1_000_000, Nanos::from_millis(1), free());
        let mut simulation = Simulation::new(network, 1);
        for (at, sender) in [(3, far), (5, near)] {
            let pair = Pair { sender, receiver: end };
            if expect {
                simulation.expect(sender, end).expect("connected");
            }
            let cbr = Cbr { rate: Rate(600_000), packet_bytes: 1000 };
            simulation.add_source(Box::new(CbrStream::new(cbr, pair, Nanos(at), LONG)));
        }
        let mut reports: Vec<FlowReport> = Vec::new();
        simulation.run_until(Nanos::from_secs(101), &mut reports).expect("it runs");
        format!("{reports:?}")
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn a_load_without_bound_ends_at_the_bound_and_says_so() {
    let line = line(1_000_000, discipline("fifo"));
    let mut simulation = Simulation::new(line.network, 1);
    simulation.bound(500);
    let tcp = simulation.add_tcp(Config::default()).expect("the default works");
    let list = transfers(5.0, 300);
    simulation.add_source(Box::new(Transfers::new(list, vec![line.there], tcp, Random::new(2))));
    let mut reports: Vec<FlowReport> = Vec::new();
    let error = simulation.run_until(LONG, &mut reports).expect_err("it cannot carry that");
    assert!(matches!(error, SimError::Overload { bound: 500, .. }), "{error}");
    assert!(error.to_string().contains("the load is more than the network carries"));
    assert!(!reports.is_empty(), "what was complete is told");
}

#[test]
fn a_transfer_over_a_link_that_loses_and_reorders_completes() {
    let mut network = Network::new();
    let [a, b] = ["a", "b"].map(|name| network.node(name).expect("a new node"));
    for (from, to) in [(a, b), (b, a)] {
        network
            .link(sim::LinkConfig {
                name: format!("{}-{}", from.index(), to.index()),
                from,
                to,
                rate: Rate(10_000_000),
                varying: None,
                delay: Nanos::from_millis(5),
                overhead: 0,
                queue: discipline("fifo"),
                edge: None,
                impairments: sim::Impairments {
                    loss: 0.03,
                    jitter: Nanos::from_millis(1),
                    reorder: 0.02,
                    reorder_delay: Nanos::from_millis(4),
                },
            })
            .expect("a good link");
    }
    let mut simulation = Simulation::new(network, 5);
    let tcp = simulation.add_tcp(Config::default()).expect("the default works");
    let pair = Pair { sender: a, receiver: b };
    simulation.add_source(Box::new(Transfers::new(
        transfers(0.2, 20),
        vec![pair],
        tcp,
        Random::new(2),
    )));
    let mut reports: Vec<FlowReport> = Vec::new();
    simulation.run_until(Nanos::from_secs(400), &mut reports).expect("it runs");
    let link = simulation.network().find_link("0-1").expect("it is there");
    assert!(simulation.lost_on_link(link) > 50);
    assert_eq!(simulation.open_flows(), 0);
    assert!(reports.iter().all(|report| report.completed.is_some()));
    let retransmissions: u32 =
        reports.iter().filter_map(|r| r.tcp).map(|[client, _]| client.retransmissions).sum();
    assert!(retransmissions > 50);
}
