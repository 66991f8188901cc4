//! Little's law at a port, for every discipline, with drops and after a restart of the totals.

mod common;

use common::{discipline, line};
use sched::{Nanos, Rate, registry};
use sim::sources::{Bursts, CbrStream, drawn};
use sim::{FlowReport, Simulation};
use workload::{Cbr, Offered, Random, TransferList};

#[test]
fn the_length_of_every_queue_is_what_its_packets_waited() {
    let mut pushed_out = 0;
    for info in registry::ALL {
        let line = line(1_000_000, discipline(&format!("{}:limit=20packets", info.name)));
        let mut simulation = Simulation::new(line.network, 1);
        for start in 0..3 {
            let from = Nanos::from_millis(start);
            let stream = CbrStream::new(Cbr::VIDEO, line.there, from, Nanos::from_secs(8));
            simulation.add_source(Box::new(stream));
        }
        let law = "exponential:mean=8000b".parse().expect("a law");
        let offered = Offered { load: 0.5, rate: Rate(1_000_000), duration: Nanos::from_secs(8) };
        let list = TransferList::poisson(&law, &offered, &mut Random::new(4)).expect("a list");
        let plans = drawn(list, vec![line.there], Random::new(5));
        simulation.add_source(Box::new(Bursts::new(plans, 1000)));
        let mut reports: Vec<FlowReport> = Vec::new();
        let port = |simulation: &Simulation, at: Nanos| {
            let ledger = simulation.port(line.bottleneck).expect("a discipline").ledger();
            let law = ledger.littles_law(at);
            assert!(law.holds(), "{} at {at:?}: {law:?}", info.name);
            (law.length, ledger.totals().clone())
        };
        for millis in [1, 777, 2500] {
            let at = Nanos::from_millis(millis);
            simulation.run_until(at, &mut reports).expect("it runs");
            port(&simulation, at);
        }
        // What waited before does not count, of packets that are queued still neither.
        simulation.restart_totals();
        assert_eq!(port(&simulation, simulation.now()).0, 0, "{}", info.name);
        simulation.run_until(Nanos::from_secs(3), &mut reports).expect("it runs");
        let (length, totals) = port(&simulation, Nanos::from_secs(3));
        assert!(length > 0 && totals.drops.total().packets > 0, "{}", info.name);
        pushed_out += u32::from(totals.dropped_sojourn_ns > 0);
        // When all is over, nothing is queued, and the mean length is that of the waits.
        simulation.run_until(Nanos::from_secs(20), &mut reports).expect("it runs");
        let (length, totals) = port(&simulation, Nanos::from_secs(20));
        let since = Nanos::from_millis(2500);
        let mean = simulation.port(line.bottleneck).expect("a discipline").ledger().backlog();
        let span = Nanos::from_secs(20).since(since).0 as f64;
        assert!((mean.mean(Nanos::from_secs(20)) - length as f64 / span).abs() < 1e-9);
        assert!(totals.sojourn_ns + totals.dropped_sojourn_ns >= length, "{}", info.name);
    }
    assert!(pushed_out >= 5, "packets that wait and are dropped then are part of the law");
}
