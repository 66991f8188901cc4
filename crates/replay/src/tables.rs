//! Where rows go: the tables of a directory, and the file of packet events.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use measure::{EventWriter, PacketEvent, PacketOutcome, Results, RunInfo, Text, WriteError};
use sched::DropReason;
use sim::{Outcome, PacketRecord};

/// What a replay writes, if anything. A file that cannot be written is given up and reported at
/// the end; the replay goes on.
#[derive(Default)]
pub struct Tables {
    results: Option<Results>,
    events: Option<EventLog>,
    failed: Vec<WriteError>,
}

impl Tables {
    /// Rows go into what is given.
    #[must_use]
    pub fn new(results: Option<Results>, events: Option<EventWriter>) -> Self {
        Self { results, events: events.map(EventLog::new), failed: Vec::new() }
    }

    pub(crate) fn has_results(&self) -> bool {
        self.results.is_some()
    }

    pub(crate) fn events(&mut self) -> Option<&mut EventLog> {
        self.events.as_mut()
    }

    pub(crate) fn push(&mut self, push: impl FnOnce(&mut Results) -> Result<(), WriteError>) {
        if let Some(results) = &mut self.results
            && let Err(error) = push(results)
        {
            self.failed.push(error);
            self.results = None;
        }
    }

    /// Writes the events that are complete.
    pub(crate) fn write_events(&mut self) {
        if let Some(events) = &mut self.events
            && let Err(error) = events.write()
        {
            self.failed.push(error);
            self.events = None;
        }
    }

    /// Completes all files. A partial file of events (`x.csv`) says so in its name
    /// (`x.partial.csv`); of tables, `run.json` is to say it.
    ///
    /// # Errors
    /// All that could not be written.
    pub fn finish(mut self, info: &RunInfo, partial: bool) -> Result<(), Vec<WriteError>> {
        let events = self.events.take().map(|events| match partial {
            true => events.writer.finish_as(partial_name),
            false => events.writer.finish(),
        });
        let results = self.results.take().map(|results| results.finish(info));
        self.failed.extend([events, results].into_iter().flatten().filter_map(Result::err));
        if self.failed.is_empty() { Ok(()) } else { Err(self.failed) }
    }
}

fn partial_name(path: &Path) -> PathBuf {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_extension(format!("partial.{extension}"))
}

/// Packet events in the order of arrival; those of one packet in the order of the schedulers.
pub(crate) struct EventLog {
    writer: EventWriter,
    schedulers: Vec<Scheduler>,
    /// The flows of the packets not yet written.
    flows: VecDeque<Text>,
    reasons: [Text; DropReason::ALL.len()],
}

/// What is settled under one scheduler, and not yet under all.
struct Scheduler {
    name: Text,
    settled: VecDeque<PacketRecord>,
}

impl EventLog {
    fn new(writer: EventWriter) -> Self {
        let reasons = DropReason::ALL.map(|reason| Arc::from(reason.name()));
        Self { writer, schedulers: Vec::new(), flows: VecDeque::new(), reasons }
    }

    pub(crate) fn add_scheduler(&mut self, name: Text) {
        self.schedulers.push(Scheduler { name, settled: VecDeque::new() });
    }

    /// The next packet, a packet of this flow, has arrived.
    pub(crate) fn arrived(&mut self, flow: Text) {
        self.flows.push_back(flow);
    }

    pub(crate) fn settled(
        &mut self,
        scheduler: usize,
        records: impl Iterator<Item = PacketRecord>,
    ) {
        self.schedulers[scheduler].settled.extend(records);
    }

    fn write(&mut self) -> Result<(), WriteError> {
        while self.schedulers.iter().all(|scheduler| !scheduler.settled.is_empty()) {
            let flow = self.flows.pop_front().expect("every record is of a packet that arrived");
            for scheduler in &mut self.schedulers {
                let record = scheduler.settled.pop_front().expect("none is empty");
                let event = event(&scheduler.name, &flow, &self.reasons, &record);
                self.writer.push(&event)?;
            }
        }
        Ok(())
    }
}

fn event(
    scheduler: &Text,
    flow: &Text,
    reasons: &[Text; DropReason::ALL.len()],
    record: &PacketRecord,
) -> PacketEvent {
    let (outcome, reason, departure) = match record.outcome {
        Outcome::Departed(at) => (PacketOutcome::Departed, None, Some(at.0)),
        Outcome::Dropped(reason) => {
            (PacketOutcome::Dropped, Some(Text::clone(&reasons[reason as usize])), None)
        }
        Outcome::Queued => (PacketOutcome::Queued, None, None),
    };
    PacketEvent {
        scheduler: Text::clone(scheduler),
        index: record.tag,
        arrival_ns: record.arrival.0,
        size_bytes: record.size.into(),
        flow: Text::clone(flow),
        lane: Some(record.lane.0.into()),
        outcome,
        reason,
        departure_ns: departure,
    }
}
