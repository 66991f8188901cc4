//! The fate of every packet, written in the order of arrival.
//!
//! A row is written once the packet's fate is settled under every scheduler, and so are the rows
//! before it. That can take long: a packet that others keep passing holds up all rows behind it.
//! So of the rows that wait only the latest are in memory; those before are in a file without a
//! name beside the one that is written, in which fates are filled in as they are settled.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use measure::{AnyRow, EventWriter, PacketEvent, PacketOutcome, Text, WriteError};
use sched::{DropReason, Lane, Nanos};
use sim::{Outcome, PacketRecord};

use crate::spool::Spool;
use crate::trial::Trial;

/// Rows in memory that make half of them move to the file.
const WINDOW: usize = 1 << 16;

/// Takes rows as they come.
pub(crate) type RowTaker<'t> = Box<dyn FnMut(AnyRow<'_>) + 't>;

/// Where rows go that are complete.
pub(crate) enum EventSink<'t> {
    /// A file, opened for this path.
    File(Box<EventWriter>, PathBuf),
    /// Whoever called.
    Caller(RowTaker<'t>),
}

/// Where packet events go, and the rows that are not there yet.
pub(crate) struct EventLog<'t> {
    sink: EventSink<'t>,
    names: Names,
    /// The packets behind those in the spool, in the order of arrival.
    arrivals: VecDeque<Arrival>,
    /// Place of the first of them among all arrivals.
    first: u64,
    /// Per scheduler the fates of the first of them.
    fates: Vec<VecDeque<Fate>>,
    spool: Option<Spool>,
    window: usize,
}

/// A packet that reached the bottleneck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Its place in the capture.
    pub(crate) index: u64,
    pub(crate) time: Nanos,
    pub(crate) size: u32,
    pub(crate) flow: Text,
}

/// What became of a packet under one scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) lane: Lane,
    pub(crate) outcome: Outcome,
}

/// What rows share.
struct Names {
    schedulers: Vec<Text>,
    reasons: [Text; DropReason::ALL.len()],
}

impl EventSink<'_> {
    fn push(&mut self, event: &PacketEvent) -> Result<(), WriteError> {
        match self {
            Self::File(writer, _) => writer.push(event),
            Self::Caller(take) => {
                take(AnyRow::PacketEvent(event));
                Ok(())
            }
        }
    }

    /// Where the spool is to lie: beside the file, for there is room for such files.
    fn directory(&self) -> PathBuf {
        match self {
            Self::File(_, path) => match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
                _ => PathBuf::from("."),
            },
            Self::Caller(_) => std::env::temp_dir(),
        }
    }

    fn error(&self, source: io::Error) -> WriteError {
        let path = match self {
            Self::File(_, path) => path.clone(),
            Self::Caller(_) => self.directory(),
        };
        WriteError { path, source }
    }
}

impl<'t> EventLog<'t> {
    pub(crate) fn new(sink: EventSink<'t>) -> Self {
        Self {
            sink,
            names: Names {
                schedulers: Vec::new(),
                reasons: DropReason::ALL.map(|reason| reason.name().into()),
            },
            arrivals: VecDeque::new(),
            first: 0,
            fates: Vec::new(),
            spool: None,
            window: WINDOW,
        }
    }

    #[cfg(test)]
    pub(crate) fn set_window(&mut self, window: usize) {
        self.window = window;
    }

    pub(crate) fn add_scheduler(&mut self, name: Text) {
        self.names.schedulers.push(name);
        self.fates.push(VecDeque::new());
    }

    /// The packet `index` of the capture has arrived, at every scheduler.
    pub(crate) fn arrived(&mut self, index: u64, time: Nanos, size: u32, flow: Text) {
        self.arrivals.push_back(Arrival { index, time, size, flow });
    }

    /// Takes up what was settled, and writes the rows that can be written.
    pub(crate) fn write(&mut self, trials: &mut [Trial]) -> Result<(), WriteError> {
        for (fates, trial) in self.fates.iter_mut().zip(trials.iter_mut()) {
            fates.extend(trial.port.records().map(|record| Fate::of(&record)));
        }
        self.fill_in(trials).map_err(|source| self.error(source))?;
        if self.spool.is_some() {
            self.write_spooled(false)?;
        }
        if self.spool.is_none() {
            self.write_settled()?;
        }
        if self.arrivals.len() > self.window {
            self.make_room(trials).map_err(|source| self.error(source))?;
        }
        Ok(())
    }

    /// Writes all rows, whatever is still queued.
    pub(crate) fn write_last(&mut self, trials: &mut [Trial]) -> Result<(), WriteError> {
        self.write(trials)?;
        for (fates, trial) in self.fates.iter_mut().zip(trials) {
            fates.extend(trial.port.last_records().map(|record| Fate::of(&record)));
        }
        self.write_spooled(true)?;
        self.write_settled()
    }

    pub(crate) fn finish(self, is_partial: bool) -> Result<(), WriteError> {
        match self.sink {
            EventSink::File(writer, _) if is_partial => writer.finish_as(partial_name),
            EventSink::File(writer, _) => writer.finish(),
            EventSink::Caller(_) => Ok(()),
        }
    }

    /// Fates of packets whose rows are in the spool.
    fn fill_in(&mut self, trials: &mut [Trial]) -> io::Result<()> {
        let Some(spool) = &mut self.spool else { return Ok(()) };
        for (scheduler, trial) in trials.iter_mut().enumerate() {
            for record in trial.port.late_records() {
                spool.fill_in(record.index, scheduler, Fate::of(&record))?;
            }
        }
        Ok(())
    }

    fn write_settled(&mut self) -> Result<(), WriteError> {
        while self.fates.iter().all(|fates| !fates.is_empty()) {
            let Some(arrival) = self.arrivals.pop_front() else { break };
            self.first += 1;
            for (scheduler, fates) in self.fates.iter_mut().enumerate() {
                let fate = fates.pop_front().expect("none is empty");
                let row = self.names.event(scheduler, &arrival, fate);
                self.sink.push(&row)?;
            }
        }
        Ok(())
    }

    /// Writes the rows of the spool before the first one that is not settled, or all.
    fn write_spooled(&mut self, all: bool) -> Result<(), WriteError> {
        let Some(mut spool) = self.spool.take() else { return Ok(()) };
        while let Some((arrival, fates)) =
            spool.next_row(all).map_err(|source| self.error(source))?
        {
            for (scheduler, fate) in fates.into_iter().enumerate() {
                self.sink.push(&self.names.event(scheduler, &arrival, fate))?;
            }
        }
        if !spool.is_empty() {
            self.spool = Some(spool);
        }
        Ok(())
    }

    /// Moves the older half of the rows in memory to the spool, settled or not.
    fn make_room(&mut self, trials: &mut [Trial]) -> io::Result<()> {
        let keep = self.window / 2;
        for (fates, trial) in self.fates.iter_mut().zip(trials) {
            fates.extend(trial.port.early_records(keep).map(|record| Fate::of(&record)));
        }
        let spool = match &mut self.spool {
            Some(spool) => spool,
            none => none.insert(Spool::in_directory(&self.sink.directory(), self.fates.len())?),
        };
        for arrival in self.arrivals.drain(..self.arrivals.len() - keep) {
            let fates =
                self.fates.iter_mut().map(|fates| fates.pop_front().expect("all are there"));
            spool.append(self.first, &arrival, fates);
            self.first += 1;
        }
        spool.flush()
    }

    fn error(&self, source: io::Error) -> WriteError {
        self.sink.error(source)
    }
}

impl Fate {
    fn of(record: &PacketRecord) -> Self {
        Self { lane: record.lane, outcome: record.outcome }
    }
}

impl Names {
    fn event(&self, scheduler: usize, arrival: &Arrival, fate: Fate) -> PacketEvent {
        let (outcome, reason, departure) = match fate.outcome {
            Outcome::Departed(at) => (PacketOutcome::Departed, None, Some(at.0)),
            Outcome::Dropped(reason) => {
                let name = Text::clone(&self.reasons[reason as usize]);
                (PacketOutcome::Dropped, Some(name), None)
            }
            Outcome::Queued => (PacketOutcome::Queued, None, None),
        };
        PacketEvent {
            scheduler: Text::clone(&self.schedulers[scheduler]),
            index: arrival.index,
            arrival_ns: arrival.time.0,
            size_bytes: arrival.size.into(),
            flow: Text::clone(&arrival.flow),
            lane: Some(fate.lane.0.into()),
            outcome,
            reason,
            departure_ns: departure,
        }
    }
}

/// `x.partial.csv` for `x.csv`.
fn partial_name(path: &Path) -> PathBuf {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_extension(format!("partial.{extension}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::AtomicBool;

    use sched::Amount;

    use super::*;
    use crate::capture::Capture;
    use crate::{Config, Tables, run};

    /// Five packets of one flow at once, then packets of a flow each, every one taking 100 us of
    /// the link: for long faster than it sends them, then slower.
    fn capture() -> Vec<u8> {
        let mut file = [0xa1b2_3c4du32, 2 | 4 << 16, 0, 0, 65535, 1].map(u32::to_le_bytes).concat();
        let mut time = 0;
        for number in 0..400u32 {
            let flow = if number < 5 { 0 } else { number as u16 };
            time += match number {
                0..5 => 0,
                5..300 => 90_000,
                _ => 110_000,
            };
            file.extend([0, time, 60, 100].map(u32::to_le_bytes).concat());
            file.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 86, 0, 0, 0, 0, 64]);
            file.extend([17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            file.extend(flow.to_be_bytes());
            file.extend([0; 24]);
        }
        file
    }

    /// The file of events.
    fn events(window: usize, schedulers: &[&str]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("e.csv");
        let writer = EventWriter::for_path(&path).unwrap().unwrap();
        let mut tables = Tables::new().with_events(writer, &path);
        tables.events().unwrap().set_window(window);
        let config = Config {
            schedulers: schedulers.iter().map(|spec| spec.parse().unwrap()).collect(),
            rate: sched::Rate(8_000_000),
            limit: Amount::Packets(300),
            seed: 1,
            idle: Nanos::from_secs(60),
        };
        let file = capture();
        let capture = Capture::open(&file[..]).unwrap();
        run(&config, capture, &mut tables, &AtomicBool::new(false), &mut |_| {}).unwrap();
        let info = measure::RunInfo {
            run: String::new(),
            engine: None,
            schema: 1,
            command: Vec::new(),
            version: String::new(),
            started: None,
            machine: None,
            ended_early: None,
            seed: 1,
            scenario: serde_json::Value::Null,
        };
        tables.finish(&info, false).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "the spool has no name");
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn rows_are_the_same_whether_they_waited_in_memory_or_on_disk() {
        let schedulers = ["fifo", "efd:threshold=1packets", "las", "run2c:threshold=2packets"];
        let in_memory = events(1 << 20, &schedulers);
        assert_eq!(in_memory.lines().count(), 1 + 4 * 400);
        for window in [2, 3, 16, 100] {
            assert_eq!(events(window, &schedulers), in_memory, "{window}");
        }
        // The packets of the first flow waited for longer than any of these windows.
        let waited = |line: &str| -> Option<u64> {
            let cells: Vec<&str> = line.split(',').collect();
            Some(cells[8].parse::<u64>().ok()? - cells[2].parse::<u64>().ok()?)
        };
        let longest = in_memory.lines().skip(1).filter_map(waited).max().unwrap();
        assert!(longest > 200 * 100_000, "{longest}");
    }
}
