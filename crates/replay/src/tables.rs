//! Destinations of rows: the tables of a directory, the file of packet events, or the caller.

use std::path::Path;

use measure::{AnyRow, EventWriter, Results, RunInfo, WriteError};

use crate::events::{EventLog, EventSink, RowTaker};
use crate::trial::Trial;

/// What a replay writes or hands out, if anything. A file that cannot be written is given up and
/// reported at the end; the replay goes on.
#[derive(Default)]
pub struct Tables<'t> {
    results: Option<Rows<'t>>,
    events: Option<EventLog<'t>>,
    failed: Vec<WriteError>,
}

/// Where rows of the results schema go.
enum Rows<'t> {
    Files(Box<Results>),
    Caller(RowTaker<'t>),
}

impl<'t> Tables<'t> {
    /// Tables that go nowhere.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Rows of the results schema go into these tables.
    #[must_use]
    pub fn with_results(mut self, results: Results) -> Self {
        self.results = Some(Rows::Files(Box::new(results)));
        self
    }

    /// Rows of the results schema are handed to `take`.
    #[must_use]
    pub fn with_rows(mut self, take: impl FnMut(AnyRow<'_>) + 't) -> Self {
        self.results = Some(Rows::Caller(Box::new(take)));
        self
    }

    /// A row per packet and discipline goes to this file, which `writer` was opened for.
    #[must_use]
    pub fn with_events(mut self, writer: EventWriter, path: &Path) -> Self {
        self.events = Some(EventLog::new(EventSink::File(Box::new(writer), path.into())));
        self
    }

    /// A row per packet and discipline is handed to `take`.
    #[must_use]
    pub fn with_event_rows(mut self, take: impl FnMut(AnyRow<'_>) + 't) -> Self {
        self.events = Some(EventLog::new(EventSink::Caller(Box::new(take))));
        self
    }

    pub(crate) fn has_results(&self) -> bool {
        self.results.is_some()
    }

    pub(crate) fn events(&mut self) -> Option<&mut EventLog<'t>> {
        self.events.as_mut()
    }

    pub(crate) fn push(&mut self, row: AnyRow<'_>) {
        let pushed = match &mut self.results {
            None => Ok(()),
            Some(Rows::Files(results)) => results.push(row),
            Some(Rows::Caller(take)) => {
                take(row);
                Ok(())
            }
        };
        if let Err(error) = pushed {
            self.failed.push(error);
            self.results = None;
        }
    }

    /// Writes the events that are complete, or all of them.
    pub(crate) fn write_events(&mut self, trials: &mut [Trial], all: bool) {
        let Some(events) = &mut self.events else { return };
        let written = if all { events.write_last(trials) } else { events.write(trials) };
        if let Err(error) = written {
            self.failed.push(error);
            self.events = None;
            // What is logged from here on is for nobody.
            trials.iter_mut().for_each(|trial| trial.port.stop_log());
        }
    }

    /// Completes all files. A partial file of events (`x.csv`) says so in its name
    /// (`x.partial.csv`); of tables, `run.json` is to say it.
    ///
    /// # Errors
    /// All that could not be written.
    pub fn finish(mut self, info: &RunInfo, is_partial: bool) -> Result<(), Vec<WriteError>> {
        let events = self.events.take().map(|events| events.finish(is_partial));
        let results = self.results.take().map(|results| match results {
            Rows::Files(results) => results.finish(info),
            Rows::Caller(_) => Ok(()),
        });
        self.failed.extend([events, results].into_iter().flatten().filter_map(Result::err));
        if self.failed.is_empty() { Ok(()) } else { Err(self.failed) }
    }
}
