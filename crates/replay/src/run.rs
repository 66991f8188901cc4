//! One pass over a capture, through all disciplines side by side.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use frame::{Fingerprinter, Parsed};
use measure::{AnyRow, Sample};
use sched::{Nanos, Needs};
use sim::FlowNames;

use crate::capture::{Capture, CaptureError, Record};
use crate::config::Config;
use crate::facts::{CaptureFacts, Counts};
use crate::flows::Flows;
use crate::report::Report;
use crate::rows;
use crate::tables::Tables;
use crate::timeline::Timeline;
use crate::trial::Trial;

/// Flows followed at the same time.
const MOST_FLOWS: usize = 1 << 18;
/// How often the queues are looked at.
const SAMPLE_EVERY: Nanos = Nanos::from_millis(100);
/// Packets from one look at the clock on the wall to the next.
const BATCH: u64 = 4096;

/// How far a replay has got.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Packets replayed.
    pub packets: u64,
    /// Capture time replayed.
    pub time: Nanos,
}

/// Replays a capture: every packet arrives when it was captured, at each discipline, whatever
/// became of the ones before. Ends with the capture, or soon after `stop` is set; what is queued
/// then is still sent.
///
/// # Errors
/// If the capture has no packets of a supported link type.
pub fn run<R: Read>(
    config: &Config,
    mut capture: Capture<R>,
    tables: &mut Tables<'_>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, CaptureError> {
    let mut replay = Replay::new(config, tables);
    let mut interrupted = false;
    while let Some(record) = capture.next_record() {
        replay.packet(&record);
        if replay.counts.packets.is_multiple_of(BATCH) {
            progress(Progress { packets: replay.counts.packets, time: replay.timeline.now() });
            if stop.load(Ordering::Relaxed) {
                interrupted = true;
                break;
            }
        }
    }
    interrupted |= stop.load(Ordering::Relaxed);
    if replay.counts.packets == 0 {
        let error = if interrupted { CaptureError::Interrupted } else { capture.without_packets() };
        return Err(error);
    }
    replay.drain();
    Ok(replay.report(&capture, interrupted))
}

/// The state of a replay.
struct Replay<'r, 't> {
    config: &'r Config,
    needs: Needs,
    fingerprinter: Fingerprinter,
    names: FlowNames,
    timeline: Timeline,
    flows: Flows,
    trials: Vec<Trial>,
    counts: Counts,
    tables: &'r mut Tables<'t>,
    /// Whether flows are to be named in a file.
    named: bool,
    next_sample: Nanos,
}

impl<'r, 't> Replay<'r, 't> {
    fn new(config: &'r Config, tables: &'r mut Tables<'t>) -> Self {
        let names = FlowNames::new(config.seed);
        let log = tables.events().is_some();
        let trial = |spec| Trial::new(spec, config.rate, config.seed, names, log);
        let trials: Vec<Trial> = config.schedulers.iter().map(trial).collect();
        if let Some(events) = tables.events() {
            trials.iter().for_each(|trial| events.add_scheduler(trial.name.clone()));
        }
        let named = log || tables.has_results();
        Self {
            config,
            needs: config.needs(),
            fingerprinter: Fingerprinter::from_seed(config.seed),
            names,
            timeline: Timeline::default(),
            flows: Flows::new(config.idle, MOST_FLOWS),
            trials,
            counts: Counts::default(),
            tables,
            named,
            next_sample: Nanos::ZERO,
        }
    }

    fn packet(&mut self, record: &Record<'_>) {
        let length = record.wire_length;
        let now = self.timeline.arrival(record.time_ns, length);
        let parsed = self.fingerprinter.packet(record.link, record.bytes, length, self.needs);
        self.counts.count(record, &parsed);
        if self.tables.has_results() {
            self.sample_until(now);
        }
        let slot = self.flow_of(&parsed, now);
        if let Some(events) = self.tables.events() {
            let name = self.flows.get(slot).text.clone().expect("flows have names for events");
            events.arrived(record.index, now, length, name);
        }
        let mut packet = parsed.packet;
        packet.flow = self.names.id(self.flows.name(slot));
        if let Some(segment) = parsed.sequence {
            packet = packet.with_offset(self.flows.offset(slot, segment));
        }
        for trial in &mut self.trials {
            trial.advance(now, &mut self.flows);
            trial.arrive(packet, slot, now, &mut self.flows);
        }
        self.tables.write_events(&mut self.trials, false);
        self.finish_flows();
    }

    #[inline]
    fn flow_of(&mut self, parsed: &Parsed, now: Nanos) -> u32 {
        let named = self.named;
        let text = || named.then(|| parsed.key.to_string().into());
        self.flows.arrived(parsed.packet.flow, parsed.packet.size, now, text)
    }

    /// Notes the state of the queues at every instant of sampling up to `now`.
    fn sample_until(&mut self, now: Nanos) {
        while self.next_sample <= now {
            let at = self.next_sample;
            let mut is_idle = true;
            for (block, trial) in (0..).zip(&mut self.trials) {
                trial.advance(at, &mut self.flows);
                let backlog = trial.port.backlog();
                is_idle &= backlog.packets == 0;
                let sample = Sample {
                    key: rows::key(self.config, &trial.name, block),
                    link: rows::link(),
                    t_ns: at.0,
                    backlog_packets: backlog.packets,
                    backlog_bytes: backlog.bytes,
                    short_lane_packets: Some(trial.port.ledger().short_lane()),
                    flow_entries: Some(trial.port.flows() as u64),
                };
                self.tables.push(AnyRow::Sample(&sample));
            }
            // Nothing changes in empty queues until a packet arrives.
            let steps = if is_idle { now.since(at).0 / SAMPLE_EVERY.0 } else { 0 };
            self.next_sample = at + Nanos(SAMPLE_EVERY.0 * steps.max(1));
        }
    }

    #[inline]
    fn finish_flows(&mut self) {
        while let Some(slot) = self.flows.next_finished() {
            self.finish_flow(slot);
            self.flows.release(slot);
        }
    }

    fn finish_flow(&mut self, slot: u32) {
        for (block, trial) in (0..).zip(&mut self.trials) {
            let outcome = trial.finish_flow(slot, &self.flows);
            if self.tables.has_results() {
                let key = rows::key(self.config, &trial.name, block);
                let row = rows::flow(key, self.flows.get(slot), &outcome);
                self.tables.push(AnyRow::Flow(&row));
            }
        }
    }

    /// After the last packet: sends what is queued, ends all flows.
    fn drain(&mut self) {
        for trial in &mut self.trials {
            trial.advance(Nanos(u64::MAX - 1), &mut self.flows);
        }
        self.tables.write_events(&mut self.trials, true);
        self.flows.end_all();
        self.finish_flows();
        // Of what a discipline never let go.
        for slot in self.flows.stuck() {
            self.finish_flow(slot);
        }
    }

    fn report<R: Read>(self, capture: &Capture<R>, interrupted: bool) -> Report {
        let facts =
            CaptureFacts::new(capture, &self.timeline, &self.counts, &self.flows, self.config.rate);
        let report = Report::new(self.config, facts, &self.trials, interrupted);
        rows::write_totals(self.config, &report, &self.trials, self.tables);
        report
    }
}
