//! A scenario, read and checked.

use std::path::Path;

use measure::{RunInfo, SCHEMA_VERSION};
use sched::{Amount, Nanos, Spec};

use crate::error::ScenarioError;
use crate::reader::{self, Source, Table};
use crate::sections::ROOT;
use crate::topology::{Files, Queue, Topology};
use crate::traffic::{self, Traffic};

/// An experiment.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: that of the file, without directory and ending.
    pub name: String,
    /// One line.
    pub title: String,
    /// Where it comes from, what was chosen and why.
    pub description: String,
    /// Simulated time of a run.
    pub duration: Nanos,
    /// The first part of a run, which does not count.
    pub warm_up: Nanos,
    /// One run of each scheduler per seed.
    pub seeds: Vec<u64>,
    /// Most open flows, and most packets on their way.
    pub bound: usize,
    /// The schedulers under test.
    pub schedulers: Vec<Spec>,
    /// Nodes and links.
    pub topology: Topology,
    /// What is sent.
    pub traffic: Vec<Traffic>,
    /// What is written.
    pub record: Record,
    /// The file it was read from, as errors call it.
    pub file: String,
    /// The text it was read from.
    pub text: String,
}

/// What is written beside blocks, links, flows and drops.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// How often tested links are sampled; never at [`Nanos::MAX`].
    pub samples: Nanos,
    /// Whether packets of constant-rate streams have rows.
    pub probes: bool,
    /// How many transfers have a row for every new byte that arrives.
    pub progress: usize,
    /// Least time between two of these rows of a transfer, from one multiple of it to the next.
    pub progress_every: Nanos,
}

/// What the command line sets instead of the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Instead of `schedulers.run`.
    pub schedulers: Option<Vec<Spec>>,
    /// Instead of `scenario.seeds`.
    pub seeds: Option<Vec<u64>>,
    /// Instead of `scenario.duration`.
    pub duration: Option<Nanos>,
}

impl Scenario {
    /// Reads a scenario. `file` names it in errors; files that it names are looked for from
    /// `directory` on.
    ///
    /// # Errors
    /// Names the first thing that is not accepted, where it stands, and what would be.
    pub fn parse(
        text: &str,
        file: &str,
        directory: Option<&Path>,
        overrides: &Overrides,
    ) -> Result<Self, ScenarioError> {
        let source = Source::new(file, text);
        let document = reader::parse(&source)?;
        let root = Table::root(&source, &ROOT, &document)?;
        let head = root.needed("scenario", root.table("scenario"))?;
        let duration = head.needed("duration", head.time("duration"))?;
        let duration = overrides.duration.unwrap_or(duration);
        let warm_up = head.needed("warm-up", head.time("warm-up"))?;
        if warm_up >= duration {
            return Err(head.refuse("warm-up", &format!("less than the duration, \"{duration}\"")));
        }
        let topology = Topology::read(&root, Files { directory, duration })?;
        let schedulers = schedulers(&root, &topology, overrides)?;
        let tcp = crate::tcp_keys::read_root(&root)?;
        let context = traffic::Context { topology: &topology, duration, tcp: &tcp, directory };
        let seeds = head.needed("seeds", head.seeds("seeds"))?;
        Ok(Self {
            name: name(file),
            title: head.needed("title", head.text("title"))?,
            description: head.needed("description", head.text("description"))?,
            duration,
            warm_up,
            seeds: overrides.seeds.clone().unwrap_or(seeds),
            bound: head.needed("bound", head.count("bound"))? as usize,
            schedulers,
            traffic: traffic::read(&root, &context)?,
            topology,
            record: record(&root)?,
            file: file.to_owned(),
            text: text.to_owned(),
        })
    }

    /// What was run, as `run.json` keeps it: the file, and what the command line changed.
    #[must_use]
    pub fn describe(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name,
            "title": self.title,
            "schedulers": self.schedulers.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "seeds": self.seeds,
            "duration_ns": self.duration.0,
            "warm_up_ns": self.warm_up.0,
            "file": self.text,
        })
    }

    /// What `run.json` says of the simulation. When, where and with what options about files it was
    /// run is not told: the same scenario and seeds give the same bytes.
    #[must_use]
    pub fn run_info(&self, ended_early: Option<String>) -> RunInfo {
        RunInfo {
            run: self.name.clone(),
            engine: Some("simulator".into()),
            schema: SCHEMA_VERSION,
            command: vec!["shortlane".into(), "sim".into(), self.name.clone()],
            version: env!("CARGO_PKG_VERSION").into(),
            started: None,
            machine: None,
            ended_early,
            seed: self.seeds.first().copied().unwrap_or_default(),
            scenario: self.describe(),
        }
    }

    /// Which scheduler the others are held against: the first `fifo`, or else the first.
    #[must_use]
    pub fn reference(&self) -> usize {
        self.schedulers.iter().position(|spec| spec.info().name == "fifo").unwrap_or(0)
    }
}

/// `efd-paper` for `scenarios/efd-paper.toml`.
fn name(file: &str) -> String {
    let stem = Path::new(file).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn schedulers(
    root: &Table<'_>,
    topology: &Topology,
    overrides: &Overrides,
) -> Result<Vec<Spec>, ScenarioError> {
    let table = root.needed("schedulers", root.table("schedulers"))?;
    let given = table.needed("run", table.schedulers("run"))?;
    let schedulers = overrides.schedulers.clone().unwrap_or(given);
    for (index, spec) in schedulers.iter().enumerate() {
        if schedulers[..index].iter().any(|other| other.to_string() == spec.to_string()) {
            return Err(table.wrong("run", &format!("has {spec} twice; each is run once")));
        }
        for (link, direction) in topology.tested() {
            let Queue::Tested(limit) = topology.links[link].queues[direction] else { continue };
            with_limit(spec, limit).map_err(|error| {
                let link = topology.links[link].direction_name(direction);
                table.wrong("run", &format!("does not go with the limit of {link}: {error}"))
            })?;
        }
    }
    Ok(schedulers)
}

/// The scheduler with the limit of a link, unless it has one of its own.
pub(crate) fn with_limit(spec: &Spec, limit: Amount) -> Result<Spec, sched::SpecError> {
    spec.clone().with_default("limit", &limit.to_string())
}

fn record(root: &Table<'_>) -> Result<Record, ScenarioError> {
    let table = root.table_or_defaults("record")?;
    Ok(Record {
        samples: table.needed("samples", table.time("samples"))?,
        probes: table.needed("probes", table.flag("probes"))?,
        progress: table.needed("progress", table.count("progress"))? as usize,
        progress_every: table.needed("progress-every", table.time("progress-every"))?,
    })
}
