//! Datagrams through a line of links: delays, losses and records by hand calculation.

mod common;

use common::{discipline, line};
use sched::{DropReason, Nanos};
use sim::sources::CbrStream;
use sim::{FlowReport, LinkId, Outcome, PacketRecord, Probe, Queue, Recorder, Simulation};
use workload::Cbr;

#[derive(Default)]
struct Everything {
    flows: Vec<FlowReport>,
    probes: Vec<Probe>,
    packets: Vec<PacketRecord>,
}

impl Recorder for Everything {
    fn flow(&mut self, report: &FlowReport) {
        self.flows.push(report.clone());
    }
    fn probe(&mut self, probe: &Probe) {
        self.probes.push(*probe);
    }
    fn packet(&mut self, _link: LinkId, record: &PacketRecord) {
        self.packets.push(*record);
    }
}

const SECOND: Nanos = Nanos::from_secs(1);

#[test]
fn an_idle_line_delays_by_its_links() {
    let line = line(10_000_000, discipline("fifo"));
    let mut simulation = Simulation::new(line.network, 1);
    let stream = CbrStream::new(Cbr::VIDEO, line.there, Nanos(5), SECOND);
    simulation.add_source(Box::new(stream));
    let mut seen = Everything::default();
    simulation.run_until(Nanos::from_secs(2), &mut seen).expect("it runs");
    // 1250 bytes take 0.1 ms on each access link and 1 ms on the bottleneck.
    let delay = Nanos(3_000_000 + 2 * 100_000 + 1_000_000);
    assert_eq!(seen.probes.len(), 50);
    for (seq, probe) in (0..).zip(&seen.probes) {
        assert_eq!((probe.seq, probe.sent), (seq, Nanos(5 + seq * 20_000_000)));
        assert_eq!(probe.arrived, Some(probe.sent + delay));
    }
    assert_eq!(simulation.packets_on_their_way(), 0);
    let [report] = seen.flows.as_slice() else { panic!("one flow") };
    assert_eq!((report.received, report.bytes), (50 * 1250, 50 * 1250));
    assert_eq!(report.label.to_string(), "10.0.0.1:1024 > 10.0.0.4:80 udp");
    assert_eq!(report.ports[0].1.arrived_packets, 50);
}

#[test]
fn a_line_that_is_too_slow_drops_what_its_queue_cannot_hold() {
    let queue =
        Queue::Discipline { spec: "fifo:limit=3packets".parse().expect("a discipline"), log: true };
    let line = line(250_000, queue);
    let bottleneck = line.bottleneck;
    let mut simulation = Simulation::new(line.network, 1);
    simulation.add_source(Box::new(CbrStream::new(Cbr::VIDEO, line.there, Nanos(0), SECOND)));
    let mut seen = Everything::default();
    simulation.run_until(Nanos::from_millis(990), &mut seen).expect("it runs");
    let port = simulation.port(bottleneck).expect("a discipline");
    let totals = port.ledger().totals().clone();
    let queued = port.backlog().packets;
    // A packet takes 40 ms, and one comes every 20 ms.
    assert_eq!((totals.arrived.packets, totals.sent().packets, queued), (50, 25, 3));
    assert_eq!(totals.drops.total().packets, 22);
    simulation.finish(&mut seen);
    assert_eq!(seen.packets.len(), 50);
    assert!(seen.packets.iter().enumerate().all(|(at, record)| record.index == at as u64));
    let count = |outcome: fn(&Outcome) -> bool| {
        seen.packets.iter().filter(|record| outcome(&record.outcome)).count()
    };
    assert_eq!(count(|o| matches!(o, Outcome::Departed(_))), 25);
    assert_eq!(count(|o| *o == Outcome::Dropped(DropReason::Full)), 22);
    assert_eq!(count(|o| *o == Outcome::Queued), 3);
    let lost = seen.probes.iter().filter(|probe| probe.arrived.is_none()).count();
    assert_eq!(lost, 22);
}

#[test]
fn the_same_run_twice_is_the_same_and_in_pieces_too() {
    let run = |steps: u64| {
        let line = line(400_000, discipline("sb-sh:limit=20packets"));
        let mut simulation = Simulation::new(line.network, 3);
        for _ in 0..3 {
            let stream = CbrStream::new(Cbr::VIDEO, line.there, Nanos(7), SECOND);
            simulation.add_source(Box::new(stream));
        }
        let mut seen = Everything::default();
        for step in 1..=steps {
            simulation.run_until(Nanos(3_000_000_000 / steps * step), &mut seen).expect("it runs");
        }
        (seen.probes, simulation.effort())
    };
    assert_eq!(run(1), run(1));
    assert_eq!(run(1), run(30));
}
