//! One run of one discipline over one list of jobs.

use sched::{Nanos, Rate, Spec};
use sim::sources::{Bursts, Pair, in_turn};
use sim::{FlowReport, Impairments, LinkConfig, Network, Queue, Recorder, Simulation};
use workload::TransferList;

/// Bytes per nanosecond are 8 Gbit/s: times are sizes.
pub(crate) const RATE: Rate = Rate(8_000_000_000);

/// Sum of response times by class.
struct Sums<'a> {
    /// The class of each job; none if it is not counted.
    class_of: &'a [Option<usize>],
    sums: Vec<f64>,
    complete: usize,
}

impl Recorder for Sums<'_> {
    fn flow(&mut self, report: &FlowReport) {
        let Some(completed) = report.completed else { return };
        self.complete += 1;
        if let Some(class) = self.class_of[report.index as usize] {
            self.sums[class] += completed.since(report.started).0 as f64;
        }
    }
}

/// Sends the jobs through the discipline, and sums up their response times by class.
pub(crate) fn run(
    list: &TransferList,
    class_of: &[Option<usize>],
    classes: usize,
    spec: &Spec,
    packet_bytes: u32,
) -> Result<Vec<f64>, String> {
    let mut network = Network::new();
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let from = network.node("from").map_err(|e| failed(&e))?;
    let to = network.node("to").map_err(|e| failed(&e))?;
    let queue = Queue::Discipline { spec: spec.clone(), log: false };
    let (name, delay) = ("link".to_string(), Nanos::ZERO);
    let impairments = Impairments::default();
    let link = LinkConfig {
        name,
        from,
        to,
        rate: RATE,
        delay,
        overhead: 0,
        queue,
        impairments,
        edge: None,
        varying: None,
    };
    let link = network.link(link).map_err(|e| failed(&e))?;
    let mut simulation = Simulation::new(network, 1);
    simulation.bound(100_000_000);
    let pair = Pair { sender: from, receiver: to };
    let jobs = in_turn(list.clone(), vec![pair]);
    simulation.add_source(Box::new(Bursts::new(jobs, packet_bytes)));
    let mut sums = Sums { class_of, sums: vec![0.0; classes], complete: 0 };
    // The link works all the time that there is work: all is done long before this.
    let end = u128::from(list.transfers().last().map_or(0, |job| job.start.0)) + list.bytes() + 1;
    simulation.run_until(Nanos(end as u64), &mut sums).map_err(|e| failed(&e))?;
    let Some(port) = simulation.port(link) else { return Err("the link has no port".into()) };
    let law = port.ledger().littles_law(simulation.now());
    if sums.complete != list.transfers().len() || !law.holds() {
        let jobs = list.transfers().len();
        return Err(format!("{spec}: {} of {jobs} jobs complete, {law:?}", sums.complete));
    }
    Ok(sums.sums)
}
