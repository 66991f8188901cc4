//! Progress on standard error, rows into files.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, SystemTime};

use indicatif::{ProgressBar, ProgressStyle};
use lab::{Config, Progress, Rows};
use measure::{Machine, Results, RunInfo, SCHEMA_VERSION, WriteError};
use serde_json::Value;

use super::FileFormat;
use crate::{Failure, say};

/// The results files, if any were asked for. A write that fails does not end the lab: what was
/// measured is still shown, and the command fails at its end.
pub(super) struct Output {
    results: Option<Results>,
    failed: Option<WriteError>,
    started: String,
}

impl Output {
    pub(super) fn open(directory: Option<&Path>, format: FileFormat) -> Result<Self, Failure> {
        let results = directory.map(|directory| open_results(directory, format)).transpose()?;
        let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        Ok(Self { results, failed: None, started })
    }

    pub(super) fn add(&mut self, rows: &Rows) {
        let Some(results) = self.results.as_mut() else { return };
        if let Err(error) = push(results, rows) {
            self.failed = Some(error);
            self.results = None;
        }
    }

    pub(super) fn finish(
        self,
        config: &Config,
        command: Vec<String>,
        scenario: Value,
        ended_early: Option<String>,
    ) -> Result<(), Failure> {
        let failed = |error: WriteError| Failure::Failed(format!("results not written: {error}"));
        if let Some(error) = self.failed {
            return Err(failed(error));
        }
        // Files without a block would only look like results.
        let Some(results) = self.results.filter(|results| results.blocks.rows() > 0) else {
            return Ok(());
        };
        let info = RunInfo {
            run: config.link.engine.run().into(),
            engine: Some(config.link.engine.name().into()),
            schema: SCHEMA_VERSION,
            command,
            version: env!("CARGO_PKG_VERSION").into(),
            started: Some(self.started),
            machine: Some(Machine::here()),
            ended_early,
            seed: config.seed,
            scenario,
        };
        results.finish(&info).map_err(failed)
    }
}

/// The tables of a directory that is named by `--out`.
pub(crate) fn open_results(directory: &Path, format: FileFormat) -> Result<Results, Failure> {
    Results::create(directory, format.into()).map_err(|error| {
        let (found, why) = (error.path.display(), error.source);
        Failure::Usage(format!("--out {found} is not accepted: {why}; it takes a directory"))
    })
}

fn push(results: &mut Results, rows: &Rows) -> Result<(), WriteError> {
    results.blocks.push(&rows.block)?;
    rows.links.iter().try_for_each(|row| results.links.push(row))?;
    rows.flows.iter().try_for_each(|row| results.flows.push(row))?;
    rows.probes.iter().try_for_each(|row| results.probes.push(row))?;
    rows.samples.iter().try_for_each(|row| results.samples.push(row))?;
    rows.drops.iter().try_for_each(|row| results.drops.push(row))
}

/// A bar with the time left on a terminal, a line per block elsewhere.
pub(super) struct ProgressLine {
    bar: Option<ProgressBar>,
    /// Whether several labs follow each other, so that blocks are counted here.
    counting: bool,
}

impl ProgressLine {
    pub(super) fn new(blocks: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(blocks);
            let style =
                ProgressStyle::with_template("{bar:24} {pos}/{len} blocks, {eta} left  {msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style);
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Self { bar, counting: false }
    }

    /// For several labs in a row.
    pub(super) fn counting(mut self) -> Self {
        self.counting = true;
        self
    }

    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        match (&self.bar, progress) {
            (Some(bar), Progress::Idle) => bar.set_message("timing the idle link"),
            (Some(bar), Progress::Block { number, of, scheduler }) => {
                if !self.counting {
                    bar.set_length(*of);
                    bar.set_position(*number);
                }
                bar.set_message((*scheduler).to_owned());
            }
            (Some(bar), Progress::Void { scheduler, reason }) => {
                bar.println(format!("void, repeated: {scheduler}: {reason}"));
            }
            (Some(bar), Progress::Done(_)) => bar.inc(1),
            (None, Progress::Idle) => say("timing the idle link"),
            (None, Progress::Block { scheduler, .. }) if self.counting => say(scheduler),
            (None, Progress::Block { number, of, scheduler }) => {
                say(&format!("block {} of {of}: {scheduler}", number + 1));
            }
            (None, Progress::Void { scheduler, reason }) => {
                say(&format!("void, repeated: {scheduler}: {reason}"));
            }
            (None, Progress::Done(_)) => {}
        }
    }

    pub(super) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
