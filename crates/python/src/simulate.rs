//! A scenario through the simulator, its rows into tables.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use measure::AnyRow;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use scenario::{Input, Observer, Overrides, Progress, Row, Scenario, Summary, Wanted};
use sched::{Nanos, Spec};

use crate::columns::Columns;
use crate::errors::{InputError, ScenarioError};
use crate::table::Table;
use crate::watch::Watch;

/// Where a scenario is.
#[derive(FromPyObject)]
pub enum Source {
    /// A text that was made from values: the name of its runs, and the text.
    Values((String, String)),
    /// A file, or the name of a ready scenario.
    Path(PathBuf),
}

/// What came of it; texts in JSON are for `json.loads`.
#[pyclass(frozen, get_all, module = "shortlane._native")]
pub struct Finished {
    /// Content of `run.json`.
    info: String,
    /// The summary as JSON.
    summary: String,
    /// What the command prints.
    text: String,
    /// Why it ended before its time.
    ended_early: Option<String>,
    /// What should be known before the figures are believed.
    warnings: Vec<String>,
    /// The tables that were wanted and exist.
    tables: Py<PyDict>,
}

/// Runs a scenario. `tables` names the tables to keep; `None` keeps all.
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
    let kept = Kept::new(&tables);
    let wanted = kept.wanted();
    let stop = AtomicBool::new(false);
    let (kept, finished) = py.detach(|| {
        let mut collector = Collector { kept, watch: Watch::new(progress.as_ref(), &stop) };
        let finished = scenario::run(&scenario, threads, wanted, &stop, &mut collector)
            .map_err(InputError::new_err)?;
        let Collector { kept, watch } = collector;
        let done = if finished.ended_early.is_none() { 1.0 } else { 0.0 };
        watch.end((done, format!("{} runs", finished.runs())))?;
        Ok::<_, PyErr>((kept, finished))
    })?;
    let summary = Summary::of(&scenario, &finished);
    Ok(Finished {
        info: json(&scenario.run_info(finished.ended_early.clone()))?,
        summary: json(&summary)?,
        text: scenario::text::report(&scenario, &summary),
        ended_early: finished.ended_early,
        warnings: Vec::new(),
        tables: kept.into_tables(py)?,
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
    let duration_ns = duration.map(|text| {
        let time = sched::params::text::time(&text).filter(|t| *t > Nanos(0) && *t < Nanos::MAX);
        time.map(|time| time.0).ok_or_else(|| {
            let takes = "it takes a time above 0 with its unit, such as 20s or 2min";
            InputError::new_err(format!("duration {text} is not accepted: {takes}"))
        })
    });
    Ok(Overrides { schedulers, seeds: seeds.transpose()?, duration_ns: duration_ns.transpose()? })
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

/// The tables that are kept, each at its place in [`measure::tables`].
pub(crate) struct Kept(Vec<(&'static str, Option<Columns>)>);

impl Kept {
    pub(crate) fn new(wanted: &[String]) -> Self {
        let tables = measure::tables().into_iter().map(|table| {
            let is_wanted = wanted.iter().any(|name| name == table.name);
            (table.name, is_wanted.then(|| Columns::new(&table.columns)))
        });
        Self(tables.collect())
    }

    /// What runs are to hand out.
    fn wanted(&self) -> Wanted {
        let is_kept = |(name, columns): &(&str, Option<Columns>), events| {
            columns.is_some() && (*name == "events") == events
        };
        Wanted {
            tables: self.0.iter().any(|table| is_kept(table, false)),
            events: self.0.iter().any(|table| is_kept(table, true)),
        }
    }

    pub(crate) fn push(&mut self, row: AnyRow<'_>) {
        if let Some(columns) = &mut self.0[row.table()].1 {
            columns.push(|put| row.cells(put));
        }
    }

    pub(crate) fn into_tables(self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        let tables = PyDict::new(py);
        for (name, columns) in self.0 {
            if let Some(columns) = columns {
                tables.set_item(name, Py::new(py, Table::from(columns))?)?;
            }
        }
        Ok(tables.unbind())
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
            let Progress { passed_ns, total_ns, runs, total_runs } = *progress;
            let part = passed_ns as f64 / total_ns.max(1) as f64;
            (part.min(1.0), format!("{runs} of {total_runs} runs"))
        });
    }
}

pub(crate) fn json(document: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(document).map_err(|error| InputError::new_err(error.to_string()))
}
