//! A capture through each discipline, its rows into tables.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use ::replay::capture::{Capture, CaptureError, open_file};
use ::replay::{Config, Progress, Tables};
use cli::{quantity, specs};
use pyo3::prelude::*;

use crate::errors::InputError;
use crate::finished::{Done, Finished, Kept, json};
use crate::simulate::{refused, time};
use crate::watch::Watch;

/// Replays a capture. `tables` names the tables to keep, `command` is the one that does the same.
#[pyfunction]
#[pyo3(signature = (capture, *, rate, limit, schedulers, seed, idle, tables, progress, command))]
#[allow(clippy::too_many_arguments)]
pub fn replay(
    py: Python<'_>,
    capture: PathBuf,
    rate: &str,
    limit: &str,
    schedulers: Vec<String>,
    seed: u64,
    idle: &str,
    tables: Vec<String>,
    progress: Option<Py<PyAny>>,
    command: Vec<String>,
) -> PyResult<Finished> {
    let limit = quantity::amount(limit).map_err(|takes| refused("limit", limit, &takes))?;
    let schedulers = specs::parse(&schedulers, &specs::DEFAULT, limit);
    let config = Config {
        schedulers: schedulers
            .map_err(|error| InputError::new_err(format!("schedulers: {error}")))?,
        rate: quantity::rate(rate).map_err(|takes| refused("rate", rate, &takes))?,
        limit,
        seed,
        idle: time("idle", idle)?,
    };
    config.check().map_err(|error| InputError::new_err(error.to_string()))?;
    let done = py.detach(|| run(&config, &capture, &tables, progress.as_ref(), command))?;
    done.into_finished(py)
}

fn run(
    config: &Config,
    path: &Path,
    tables: &[String],
    progress: Option<&Py<PyAny>>,
    command: Vec<String>,
) -> PyResult<Done> {
    let bad_input =
        |error: CaptureError| InputError::new_err(format!("capture {}: {error}", path.display()));
    let file = open_file(path).map_err(InputError::new_err)?;
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let read = Rc::new(Cell::new(0));
    let counted = Counted { reader: file, read: Rc::clone(&read) };
    let capture = Capture::open(counted).map_err(bad_input)?;
    let kept = RefCell::new(Kept::new(tables));
    let mut rows = Tables::new();
    if kept.borrow().has_tables() {
        rows = rows.with_rows(|row| kept.borrow_mut().push(row));
    }
    if kept.borrow().has_events() {
        rows = rows.with_event_rows(|row| kept.borrow_mut().push(row));
    }
    let stop = AtomicBool::new(false);
    let mut watch = Watch::new(progress, &stop);
    let mut tell = |progress: Progress| {
        let part = read.get() as f64 / length.max(1) as f64;
        watch.look(|| (part.min(1.0), format!("{} packets", progress.packets)));
    };
    let report = ::replay::run(config, capture, &mut rows, &stop, &mut tell);
    // What Python has raised is why a replay was interrupted.
    let whole = report.as_ref().ok().filter(|report| !report.partial);
    watch.end(whole.map(|report| format!("{} packets", report.capture.packets)))?;
    let report = report.map_err(bad_input)?;
    let info = report.run_info(config, &path.display().to_string(), command);
    let written = rows.finish(&info, report.partial);
    written.map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        crate::errors::RunError::new_err(errors.join("; "))
    })?;
    Ok(Done {
        kept: kept.into_inner(),
        info: json(&info)?,
        summary: json(&report.schedulers)?,
        text: ::replay::text::report(config, &report),
        ended_early: info.ended_early,
        warnings: report.warnings,
    })
}

/// Counts the bytes that are read.
struct Counted<R> {
    reader: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.read.set(self.read.get() + length as u64);
        Ok(length)
    }
}
