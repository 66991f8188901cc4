//! `shortlane sim`: a scenario through the simulator.

mod files;

use std::path::{Path, PathBuf};

use clap::Args;
use scenario::{
    Finished, Input, Observer, Overrides, Progress, Row, Scenario, ScenarioError, Summary, Wanted,
    library,
};
use sched::{Nanos, Spec};
use serde_json::json;

use crate::progress::ProgressLine;
use crate::{Failure, print, quantity, signals};
use files::Files;

/// The options of `shortlane sim`.
#[derive(Args)]
pub(crate) struct Options {
    /// Simulate this scenario file, or the ready scenario of this name
    #[arg(value_name = "SCENARIO", required_unless_present = "list")]
    scenario: Option<PathBuf>,
    /// Run this discipline instead of those of the scenario; may be repeated
    #[arg(long = "scheduler", value_name = "SPEC", value_parser = spec)]
    schedulers: Vec<Spec>,
    /// Use these seeds instead of the scenario's: 7, 1..10 or 1,2,5
    #[arg(long, value_name = "SEEDS", allow_hyphen_values = true, value_parser = seeds)]
    seeds: Option<Seeds>,
    /// Simulate this time instead of the scenario's
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = quantity::positive_time)]
    duration: Option<Nanos>,
    /// Run this many at a time; by default one for each processor
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = quantity::number(1..=1024usize))]
    jobs: Option<usize>,
    /// Write every flow, probe and queue sample to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write files of this kind
    #[arg(long, value_enum, default_value_t = crate::lab::FileFormat::Parquet)]
    format: crate::lab::FileFormat,
    /// Write the fate of every packet at the first bottleneck, of the first seed, to this file,
    /// .csv or .parquet
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// List the ready scenarios
    #[arg(long)]
    list: bool,
    /// Print the scenario instead of running it
    #[arg(long, conflicts_with = "list")]
    show: bool,
}

fn spec(text: &str) -> Result<Spec, String> {
    text.parse().map_err(|error: sched::SpecError| error.to_string())
}

/// A type of its own: the parser would take a list of numbers for several values.
#[derive(Clone)]
pub(crate) struct Seeds(pub(crate) Vec<u64>);

pub(crate) fn seeds(text: &str) -> Result<Seeds, String> {
    let found = scenario::seeds::parse(text).map(Seeds);
    found.ok_or_else(|| format!("it takes {}", scenario::seeds::ACCEPTED))
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.list {
        return print(&list()?);
    }
    let input = Input::read(options.scenario.as_deref().unwrap_or(Path::new("")))
        .map_err(Failure::Usage)?;
    if options.show {
        return print(&input.text);
    }
    let overrides = Overrides {
        schedulers: (!options.schedulers.is_empty()).then(|| options.schedulers.clone()),
        seeds: options.seeds.clone().map(|seeds| seeds.0),
        duration: options.duration,
    };
    let scenario = input.scenario(&overrides).map_err(refused)?;
    let mut watch = Watch {
        files: Files::open(
            options.out.as_deref(),
            options.format.into(),
            options.events.as_deref(),
        )?,
        line: ProgressLine::new(),
    };
    let stop = signals::stop_flag()?;
    let threads = options
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let wanted = Wanted { tables: options.out.is_some(), events: options.events.is_some() };
    let finished =
        scenario::run(&scenario, threads, wanted, &stop, &mut watch).map_err(Failure::Usage)?;
    watch.line.end();
    let summary = Summary::of(&scenario, &finished);
    let shown = show(options, &scenario, &summary, &finished);
    let written = watch.files.finish(&scenario, finished.ended_early.clone());
    let ended = finished.ended_early.map_or(Ok(()), |reason| {
        let basis = match summary.seeds {
            0 => "no seed is complete, so there is nothing to show".to_owned(),
            1 => "what is shown rests on 1 complete seed".to_owned(),
            seeds => format!("what is shown rests on {seeds} complete seeds"),
        };
        Err(Failure::Failed(format!("{reason}; {basis}")))
    });
    crate::all([ended, shown, written])
}

fn show(
    options: &Options,
    scenario: &Scenario,
    summary: &Summary,
    finished: &Finished,
) -> Result<(), Failure> {
    if options.json {
        let document = json!({
            "scenario": scenario.describe(),
            "summary": summary,
            "ended_early": finished.ended_early,
        });
        return print(&format!("{document:#}\n"));
    }
    print(&scenario::text::report(scenario, summary))
}

fn refused(error: ScenarioError) -> Failure {
    Failure::Usage(error.to_string())
}

fn list() -> Result<String, Failure> {
    let mut text = String::new();
    for ready in library::ALL {
        let scenario = Input::from(ready).scenario(&Overrides::default()).map_err(refused)?;
        text += &format!("{:24} {}\n", ready.name, scenario.title);
    }
    Ok(text)
}

/// Takes what a scenario has to say while it runs.
struct Watch {
    files: Files,
    line: ProgressLine,
}

impl Observer for Watch {
    fn row(&mut self, row: Row) {
        self.files.add(&row);
    }

    fn progress(&mut self, progress: &Progress) {
        let Progress { passed, total, runs, total_runs } = *progress;
        self.line.show(passed.0, total.0, format!("{runs} of {total_runs} runs"));
    }
}
