//! Rows of a simulation into files.

use std::path::Path;

use measure::{EventWriter, Format, Results, RunInfo, SCHEMA_VERSION, WriteError};
use scenario::{Row, Scenario};

use crate::Failure;

/// The files that were asked for. A write that fails does not end the simulation: what was
/// measured is still shown, and the command fails at its end.
pub(super) struct Files {
    results: Option<Results>,
    events: Option<EventWriter>,
    failed: Option<WriteError>,
}

impl Files {
    pub(super) fn open(
        out: Option<&Path>,
        format: Format,
        events: Option<&Path>,
    ) -> Result<Self, Failure> {
        let refused = |option: &str, takes: &str, error: WriteError| {
            let (found, why) = (error.path.display(), error.source);
            Failure::Usage(format!("{option} {found} is not accepted: {why}; it takes {takes}"))
        };
        let takes = "a file in an existing directory, .csv or .parquet";
        let open_events = |path: &Path| match EventWriter::for_path(path) {
            Some(writer) => writer.map_err(|error| refused("--events", takes, error)),
            None => {
                let found = path.display();
                Err(Failure::Usage(format!("--events {found} is not accepted; it takes {takes}")))
            }
        };
        let open_results = |directory: &Path| {
            Results::create(directory, format)
                .map_err(|error| refused("--out", "a directory", error))
        };
        Ok(Self {
            events: events.map(open_events).transpose()?,
            results: out.map(open_results).transpose()?,
            failed: None,
        })
    }

    pub(super) fn add(&mut self, row: &Row) {
        if let Err(error) = self.push(row) {
            *self = Self { results: None, events: None, failed: Some(error) };
        }
    }

    fn push(&mut self, row: &Row) -> Result<(), WriteError> {
        if let (Row::Event(event), Some(events)) = (row, &mut self.events) {
            return events.push(event);
        }
        let Some(results) = &mut self.results else { return Ok(()) };
        match row {
            Row::Block(row) => results.blocks.push(row),
            Row::Link(row) => results.links.push(row),
            Row::Flow(row) => results.flows.push(row),
            Row::Advance(row) => results.progress.push(row),
            Row::Probe(row) => results.probes.push(row),
            Row::Sample(row) => results.samples.push(row),
            Row::Drop(row) => results.drops.push(row),
            Row::Event(_) => Ok(()),
        }
    }

    /// Gives the files their names. What depends on when, where and with what options about
    /// files it was run is in none of them: the same scenario and seeds give the same bytes.
    pub(super) fn finish(
        self,
        scenario: &Scenario,
        ended_early: Option<String>,
    ) -> Result<(), Failure> {
        let failed = |error: WriteError| Failure::Failed(format!("results not written: {error}"));
        if let Some(error) = self.failed {
            return Err(failed(error));
        }
        if let Some(events) = self.events {
            events.finish().map_err(failed)?;
        }
        // Files without a block would only look like results.
        let Some(results) = self.results.filter(|results| results.blocks.rows() > 0) else {
            return Ok(());
        };
        let info = RunInfo {
            run: scenario.name.clone(),
            schema: SCHEMA_VERSION,
            command: vec!["shortlane".into(), "sim".into(), scenario.name.clone()],
            version: env!("CARGO_PKG_VERSION").into(),
            started: None,
            machine: None,
            ended_early,
            seed: scenario.seeds.first().copied().unwrap_or_default(),
            scenario: scenario.describe(),
        };
        results.finish(&info).map_err(failed)
    }
}
