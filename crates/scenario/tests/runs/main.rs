//! Small scenarios whose results are known, and every ready scenario for a moment.

mod one_link;
mod shared_link;
mod tables;

use std::sync::atomic::AtomicBool;

use measure::{Advance, Block, Flow, FlowKind, LinkUse, Probe, Sample};
use scenario::{
    Observer, Overrides, Progress, Row, Scenario, Summary, TrafficKind, Wanted, library,
};
use sched::Nanos;

/// Keeps rows.
#[derive(Default)]
struct Rows {
    blocks: Vec<Block>,
    links: Vec<LinkUse>,
    flows: Vec<Flow>,
    probes: Vec<Probe>,
    samples: Vec<Sample>,
    advances: Vec<Advance>,
}

impl Observer for Rows {
    fn row(&mut self, row: Row) {
        match row {
            Row::Block(row) => self.blocks.push(*row),
            Row::Link(row) => self.links.push(*row),
            Row::Flow(row) => self.flows.push(*row),
            Row::Probe(row) => self.probes.push(row),
            Row::Sample(row) => self.samples.push(row),
            Row::Advance(row) => self.advances.push(row),
            Row::Drop(_) | Row::Event(_) => {}
        }
    }

    fn progress(&mut self, _: &Progress) {}
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "t.toml", None, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn run(scenario: &Scenario) -> (Rows, Summary) {
    let mut rows = Rows::default();
    let wanted = Wanted { tables: true, events: false };
    let stop = AtomicBool::new(false);
    let finished = scenario::run(scenario, 2, wanted, &stop, &mut rows).unwrap();
    assert_eq!(finished.ended_early, None);
    let summary = Summary::of(scenario, &finished);
    (rows, summary)
}

/// One link of 1 Mbit/s and 10 ms from `a` to `b`, and `more`.
fn link(duration: &str, more: &str) -> Scenario {
    parse(&format!(
        "[scenario]\ntitle = \"t\"\nduration = \"{duration}\"\nseeds = 1\n[schedulers]\n\
         run = [\"fifo\"]\n[topology]\nkind = \"free\"\nlinks = [{{ name = \"l\", a = \"a\", b = \"b\", \
         rate = \"1mbit\", delay = \"10ms\", limit = \"100packets\", scheduler = \"tested\" }}]\n\
         [[traffic]]\nfrom = \"a\"\nto = \"b\"\n{more}"
    ))
}

/// A dumbbell of 2 Mbit/s with 30 packets of buffer, for 60 s of which 10 s do not count.
fn dumbbell(schedulers: &str, more: &str) -> Scenario {
    parse(&format!(
        "[scenario]\ntitle = \"t\"\nduration = \"60s\"\nwarm-up = \"10s\"\nseeds = 1\n\
         [schedulers]\nrun = [{schedulers}]\n[topology]\nkind = \"dumbbell\"\npairs = 2\n\
         access = {{ rate = \"100mbit\", delay = \"1ms\" }}\n\
         bottleneck = {{ rate = \"2mbit\", delay = \"1ms\", limit = \"30packets\" }}\n{more}"
    ))
}

/// Each with its first and last scheduler for two seconds: something gets through each.
#[test]
fn every_ready_scenario_runs() {
    for ready in library::ALL {
        let mut scenario =
            Scenario::parse(ready.text, ready.name, None, &Overrides::default()).unwrap();
        scenario.duration = Nanos::from_secs(2);
        scenario.warm_up = Nanos::ZERO;
        for traffic in &mut scenario.traffic {
            traffic.start = Nanos::ZERO;
            traffic.stop = scenario.duration;
        }
        scenario.seeds.truncate(1);
        let last = scenario.schedulers.pop().unwrap();
        scenario.schedulers.truncate(1);
        scenario.schedulers.push(last);
        let (rows, summary) = run(&scenario);
        assert_eq!((rows.blocks.len(), summary.seeds), (2, 1), "{}", ready.name);
        assert!(rows.links[0].sent_packets > 0, "{}", ready.name);
        let report = scenario::text::report(&scenario, &summary);
        for line in report.lines() {
            assert!(line.chars().count() <= 100, "{}: {line}", ready.name);
        }
    }
}
