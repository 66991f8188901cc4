//! Entries in flow tables over time, and against what is queued.

mod common;

use common::{discipline, line};
use sched::{Nanos, Rate, registry};
use sim::sources::Transfers;
use sim::{FlowReport, Recorder, Sample, Simulation};
use tcp::Config;
use workload::{Offered, Random, TransferList};

/// Entries at every sample.
#[derive(Default)]
struct Samples(Vec<u64>);

impl Recorder for Samples {
    fn flow(&mut self, _: &FlowReport) {}

    fn sample(&mut self, sample: &Sample) {
        self.0.push(sample.flows);
    }
}

const END: Nanos = Nanos::from_secs(20);

/// An overload through a bottleneck of 2 Mbit/s, sampled every 10 ms.
/// The samples, mean, 99th percentile and peak of the table; packets dropped; times that there were
/// more entries than packets.
fn run(spec: &str) -> (Samples, [f64; 3], u64, u64) {
    let line = line(2_000_000, discipline(spec));
    let mut simulation = Simulation::new(line.network, 1);
    let tcp = simulation.add_tcp(Config::ns2()).expect("a preset works");
    let law = "zipf:alpha=1.1,max=200packets".parse().expect("a law");
    let offered = Offered { load: 1.4, rate: Rate(2_000_000), duration: END };
    let list = TransferList::generate(&law, &offered, 1).expect("a list");
    simulation.add_source(Box::new(Transfers::new(list, vec![line.there], tcp, Random::new(2))));
    simulation.sample_every(Nanos::from_millis(10));
    let mut samples = Samples::default();
    simulation.run_until(END, &mut samples).expect("it runs");
    let ledger = simulation.port(line.bottleneck).expect("a discipline").ledger();
    let table = ledger.table();
    let p99 = table.quantile(0.99, END).expect("time has passed");
    let dropped = ledger.totals().drops.total().packets;
    let table = [table.mean(END), p99 as f64, table.peak() as f64];
    (samples, table, dropped, ledger.entries_beyond_backlog())
}

/// EFD remembers a flow only while it has a packet queued; so do those that share its accounting.
#[test]
fn efd_never_has_more_entries_than_packets_queued() {
    for spec in ["efd", "efd:limit=50packets", "efd:flows=8", "lanes", "lanes:buffer=drop-tail"] {
        let (_, [mean, _, peak], dropped, beyond) = run(spec);
        assert!(mean > 0.5 && peak > 5.0, "{spec}: {mean}, {peak}");
        assert!(dropped > 0 || !spec.contains("limit"), "{spec}");
        assert_eq!(beyond, 0, "{spec}");
    }
    // LAS remembers flows that have nothing queued.
    assert!(run("las").3 > 0);
    // What is on the wire counts for its flow here, and is not queued.
    assert!(run("efd:hold-on-wire=yes").3 > 0);
}

#[test]
fn samples_show_the_table_that_the_ledger_counts() {
    let mut with_table = 0;
    for info in registry::ALL {
        let (Samples(mut samples), [mean, p99, peak], ..) = run(info.name);
        assert_eq!(samples.len(), 2001);
        samples.sort_unstable();
        let sampled = samples.iter().sum::<u64>() as f64 / samples.len() as f64;
        let close = |a: f64, b: f64| (a - b).abs() <= 0.05 * b + 0.5;
        assert!(close(sampled, mean), "{}: {sampled}, {mean}", info.name);
        assert!(close(samples[1980] as f64, p99), "{}: {}, {p99}", info.name, samples[1980]);
        assert!(samples[2000] as f64 <= peak && p99 <= peak, "{}", info.name);
        with_table += u32::from(mean > 0.5);
    }
    assert!(with_table > 8, "{with_table}");
}
