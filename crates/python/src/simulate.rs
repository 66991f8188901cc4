//! A scenario through the simulator, its rows into tables.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use scenario::{Input, Observer, Overrides, Progress, Row, Scenario, Summary, Wanted};
use sched::{Nanos, Spec};

use crate::errors::{InputError, ScenarioError};
use crate::finished::{Done, Finished, Kept, json};
use crate::watch::Watch;

/// Where a scenario is.
#[derive(FromPyObject)]
pub enum Source {
    /// A text that was made from values: the name of its runs, and the text.
    Values((String, String)),
    /// A file, or the name of a ready scenario.
    Path(PathBuf),
}

/// Runs a scenario. `tables` names the tables to keep.
#[pyfunction]
#[pyo3(signature = (source, *, schedulers, seeds, duration, jobs, tables, progress))]
#[allow(clippy::too_many_arguments)]
pub fn simulate(
    py: Python<'_>,
    source: Source,
    schedulers: Option<Vec<String>>,
    seeds: Option<String>,
    duration: Option<String>,
    jobs: Option<usize>,
    tables: Vec<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Finished> {
    let overrides = overrides(schedulers, seeds, duration)?;
    let scenario = read(source, &overrides)?;
    let threads = jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let done = py.detach(|| run(&scenario, threads, &tables, progress.as_ref()))?;
    done.into_finished(py)
}

fn run(
    scenario: &Scenario,
    threads: usize,
    tables: &[String],
    progress: Option<&Py<PyAny>>,
) -> PyResult<Done> {
    let kept = Kept::new(tables);
    let wanted = Wanted { tables: kept.has_tables(), events: kept.has_events() };
    let stop = AtomicBool::new(false);
    let mut collector = Collector { kept, watch: Watch::new(progress, &stop) };
    let finished = scenario::run(scenario, threads, wanted, &stop, &mut collector)
        .map_err(InputError::new_err)?;
    let Collector { kept, watch } = collector;
    watch.end(finished.ended_early.is_none().then(|| format!("{} runs", finished.runs())))?;
    let summary = Summary::of(scenario, &finished);
    Ok(Done {
        kept,
        info: json(&scenario.run_info(finished.ended_early.clone()))?,
        summary: json(&summary)?,
        text: scenario::text::report(scenario, &summary),
        ended_early: finished.ended_early,
        warnings: Vec::new(),
    })
}

/// What is set instead of what the scenario has; errors name the argument.
fn overrides(
    schedulers: Option<Vec<String>>,
    seeds: Option<String>,
    duration: Option<String>,
) -> PyResult<Overrides> {
    let spec = |text: &String| {
        text.parse::<Spec>().map_err(|error| InputError::new_err(format!("schedulers: {error}")))
    };
    let schedulers =
        schedulers.map(|texts| texts.iter().map(spec).collect::<PyResult<Vec<_>>>()).transpose()?;
    let seeds = seeds.map(|text| {
        scenario::seeds::parse(&text).ok_or_else(|| {
            let takes = scenario::seeds::ACCEPTED;
            InputError::new_err(format!("seeds {text} is not accepted: it takes {takes}"))
        })
    });
    let duration = duration.map(|text| time("duration", &text));
    Ok(Overrides { schedulers, seeds: seeds.transpose()?, duration: duration.transpose()? })
}

/// A time above 0, as on the command line.
pub(crate) fn time(name: &str, text: &str) -> PyResult<Nanos> {
    cli::quantity::positive_time(text).map_err(|takes| refused(name, text, &takes))
}

/// The refusal of an argument, as on the command line.
pub(crate) fn refused(name: &str, found: &str, takes: &str) -> PyErr {
    InputError::new_err(format!("{name} {found} is not accepted: {takes}"))
}

fn read(source: Source, overrides: &Overrides) -> PyResult<Scenario> {
    match source {
        Source::Path(path) => {
            let input = Input::read(&path).map_err(ScenarioError::new_err)?;
            let scenario = input.scenario(overrides);
            scenario.map_err(|error| ScenarioError::new_err(error.to_string()))
        }
        Source::Values((name, text)) => {
            let scenario = Scenario::parse(&text, "<dict>", None, overrides)
                .map_err(|error| ScenarioError::new_err(error.without_line().to_string()))?;
            Ok(Scenario { name, ..scenario })
        }
    }
}

struct Collector<'a> {
    kept: Kept,
    watch: Watch<'a>,
}

impl Observer for Collector<'_> {
    fn row(&mut self, row: Row) {
        self.kept.push(row.any());
    }

    fn progress(&mut self, progress: &Progress) {
        self.watch.look(|| {
            let Progress { passed, total, runs, total_runs } = *progress;
            let part = passed.0 as f64 / total.0.max(1) as f64;
            (part.min(1.0), format!("{runs} of {total_runs} runs"))
        });
    }
}
