//! Rows of a simulation into files.

use std::path::Path;

use measure::{EventWriter, Format, Results, WriteError};
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
        self.results.as_mut().map_or(Ok(()), |results| results.push(row.any()))
    }

    /// Gives the files their names.
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
        results.finish(&scenario.run_info(ended_early)).map_err(failed)
    }
}
