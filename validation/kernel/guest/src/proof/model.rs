//! The same sequence in crate `sched`, and where the kernel's records differ from it.

use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use engine::kernel::testing::Event as Record;
use frame::{Fingerprinter, LinkType};
use sched::{Dequeue, Drop, DropReason, Event, Nanos, Needs, Packet, Qdisc, Sink, Spec};

use super::frames::Frame;
use super::plan::Step;

const ARRIVED: u32 = 0;
const SENT: u32 = 1;
const FULL: u32 = 2;
const PUSHED_OUT: u32 = 3;
const CONGESTED: u32 = 4;

/// What both sides tell of an event, but for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    kind: u32,
    /// Number of its arrival.
    packet: u64,
    lane: u8,
    /// Fingerprint, where the packet is the arrival itself.
    flow: u64,
    size: u32,
    segments: u16,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = ["arrived", "sent", "full", "pushed out", "congested"]
            .get(self.kind as usize)
            .unwrap_or(&"?");
        let Self { packet, lane, flow, size, segments, .. } = self;
        write!(f, "{kind} {packet} lane {lane} flow {flow:016x} {size}b x{segments}")
    }
}

impl Told {
    fn of_record(record: &Record, base: u64) -> Self {
        Self {
            kind: record.kind,
            packet: u64::from(record.packet.wrapping_sub(base as u32)),
            lane: record.lane as u8,
            flow: record.flow,
            size: record.size,
            segments: record.segments as u16,
        }
    }

    fn of_packet(kind: u32, packet: &Packet, lane: u8) -> Self {
        let is_arrival = kind == ARRIVED || kind == FULL;
        Self {
            kind,
            packet: packet.id,
            lane,
            flow: if is_arrival { packet.flow.get() } else { 0 },
            size: packet.size,
            segments: packet.segments,
        }
    }
}

/// What the core tells, in order, with the entries of the flow table after it.
#[derive(Default)]
struct Log {
    told: Vec<(Told, i64)>,
    flows: i64,
    /// The packet that arrives.
    arrival: Option<Packet>,
    /// The lane that a packet has left last.
    left: u8,
}

impl Sink for Log {
    fn dropped(&mut self, packet: Packet, drop: Drop, _now: Nanos) {
        let kind = match drop.reason {
            DropReason::PushedOut => PUSHED_OUT,
            DropReason::Congested => CONGESTED,
            _ => FULL,
        };
        self.told.push((Told::of_packet(kind, &packet, drop.lane.0), self.flows));
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::FlowCreated { .. } => self.flows += 1,
            Event::FlowRemoved { .. } => self.flows -= 1,
            Event::Dequeued { lane, .. } => self.left = lane.0,
            Event::Enqueued { lane, .. } => {
                if let Some(packet) = self.arrival {
                    self.told.push((Told::of_packet(ARRIVED, &packet, lane.0), self.flows));
                }
            }
            _ => {}
        }
    }
}

/// When the flow tables of both can be compared: the kernel removes idle entries bit by bit.
struct Upkeep {
    idle: Nanos,
    sweep: Nanos,
    next: Nanos,
    arrivals_since: u64,
    created: u64,
}

impl Upkeep {
    fn new(spec: &Spec) -> Self {
        let mut this = Self {
            idle: Nanos::MAX,
            sweep: Nanos::MAX,
            next: Nanos::ZERO,
            arrivals_since: 0,
            created: 0,
        };
        this.change(spec);
        this
    }

    fn change(&mut self, spec: &Spec) {
        let params = spec.params();
        let time = |name| if params.has(name) { params.time(name) } else { Nanos::MAX };
        (self.idle, self.sweep, self.next) = (time("idle"), time("sweep"), Nanos::ZERO);
    }

    fn arrived(&mut self, now: Nanos) {
        if self.idle != Nanos::MAX && now >= self.next {
            self.next = now + self.sweep;
            self.arrivals_since = 0;
        }
        self.arrivals_since += 1;
        self.created += 1;
    }

    /// Whether the kernel has looked at all entries since the last sweep, two at each arrival.
    fn is_through(&self) -> bool {
        self.arrivals_since * 2 >= self.created
    }
}

/// The core's side of a sequence.
pub(crate) struct Model {
    qdisc: Box<dyn Qdisc<Log>>,
    log: Log,
    fingerprinter: Fingerprinter,
    needs: Needs,
    upkeep: Upkeep,
    /// Whether the discipline tells how many flows it knows.
    counts_flows: bool,
    /// Whether entries of flows with nothing queued stay.
    remembers: bool,
}

/// What the kernel has recorded of a sequence.
pub(crate) struct Records<'r> {
    /// Arrivals before the sequence.
    pub(crate) base: u64,
    pub(crate) records: &'r [Record],
}

impl Model {
    pub(crate) fn new(spec: &Spec, seed: u64, key_seed: u64) -> Self {
        let params = spec.params();
        let is_efd = spec.info().name == "efd"
            || params.has("accounting") && params.word("accounting") == "while-queued";
        Self {
            qdisc: spec.build(seed),
            log: Log::default(),
            fingerprinter: Fingerprinter::from_seed(key_seed),
            needs: spec.info().needs,
            upkeep: Upkeep::new(spec),
            counts_flows: spec.info().name != "fifo",
            remembers: !is_efd,
        }
    }

    /// Replays the steps that arrived at the kernel's times. An error says where they part.
    pub(crate) fn compare(mut self, steps: &[Step], kernel: &Records<'_>) -> Result<()> {
        let mut rest = kernel.records;
        let mut last = Nanos::ZERO;
        for (n, step) in steps.iter().enumerate() {
            if let Some(spec) = &step.change {
                self.qdisc.change(spec.params()).map_err(|error| anyhow::anyhow!("{error}"))?;
                self.upkeep.change(spec);
            }
            let at = || format!("arrival {n} of {}", steps.len());
            let record = rest.first().with_context(|| format!("{}: no record", at()))?;
            last = Nanos(record.now);
            self.arrive(n as u64, &step.frame, last);
            rest = self.check(rest, kernel.base).with_context(|| {
                let frame = step.frame.on_link();
                let parsed =
                    self.fingerprinter.packet(LinkType::Ethernet, &frame, 0, Needs::NOTHING);
                format!("{}: {} ({:?}): {}", at(), parsed.key, step.frame.door, hex(&frame))
            })?;
            rest = self.release(step.release, rest, kernel.base, last).with_context(at)?;
        }
        ensure!(rest.is_empty(), "{} records are left at {last:?}", rest.len());
        Ok(())
    }

    fn arrive(&mut self, n: u64, frame: &Frame, now: Nanos) {
        let on_link = frame.on_link();
        let (segments, size) = frame.cost();
        let parsed = self.fingerprinter.packet(LinkType::Ethernet, &on_link, size, self.needs);
        let packet = parsed.packet.with_id(n).with_segments(segments);
        self.log.arrival = Some(packet);
        self.upkeep.arrived(now);
        self.qdisc.enqueue(packet, now, &mut self.log);
    }

    /// Compares what the core has told since the last call with the records, and passes over
    /// these.
    fn check<'r>(&mut self, mut rest: &'r [Record], base: u64) -> Result<&'r [Record]> {
        let told = std::mem::take(&mut self.log.told);
        for (n, (core, flows)) in told.iter().enumerate() {
            let Some((record, others)) = rest.split_first() else {
                bail!("core: {core}; kernel: nothing");
            };
            let kernel = Told::of_record(record, base);
            ensure!(kernel == *core, "kernel: {kernel}; core: {core}");
            self.check_flows(record, *flows, n + 1 == told.len())?;
            rest = others;
        }
        Ok(rest)
    }

    fn check_flows(&self, record: &Record, core: i64, is_last: bool) -> Result<()> {
        let kernel = i64::from(record.flows);
        if !self.counts_flows {
            return Ok(());
        }
        let lags = self.remembers && !(self.upkeep.is_through() && is_last);
        let fits = if lags { kernel >= core } else { kernel == core };
        ensure!(fits, "flow entries: kernel {kernel}, core {core}, lags {lags}");
        let flows = self.qdisc.flows() as i64;
        ensure!(!is_last || flows == core, "the core says {flows} flows and has told of {core}");
        Ok(())
    }

    /// Lets out what the kernel let out, which must be all that it was allowed to.
    fn release<'r>(
        &mut self,
        mut credit: u32,
        mut rest: &'r [Record],
        base: u64,
        mut last: Nanos,
    ) -> Result<&'r [Record]> {
        // What CoDel drops comes before what it lets out.
        let is_departure = |record: &&Record| record.kind == SENT || record.kind == CONGESTED;
        while let Some(record) = rest.first().filter(is_departure) {
            ensure!(credit > 0, "kernel: {}, beyond what may leave", Told::of_record(record, base));
            credit -= 1;
            last = Nanos(record.now);
            match self.qdisc.dequeue(last, &mut self.log) {
                Dequeue::Packet { packet, .. } => {
                    let told = Told::of_packet(SENT, &packet, self.log.left);
                    self.log.told.push((told, self.log.flows));
                }
                other => bail!("kernel: {}; core: {other:?}", Told::of_record(record, base)),
            }
            rest = self.check(rest, base)?;
        }
        // An empty qdisc is not asked.
        if credit > 0
            && self.qdisc.backlog().packets > 0
            && let Dequeue::Packet { packet, .. } = self.qdisc.dequeue(last, &mut self.log)
        {
            bail!("the kernel lets out nothing though it may; core: packet {}", packet.id);
        }
        Ok(rest)
    }
}

/// The bytes that headers may be in.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(120)];
    let text: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} of {} bytes: {}", shown.len(), bytes.len(), text.concat())
}
