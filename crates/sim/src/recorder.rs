//! Where results go while a simulation runs.

use sched::{Backlog, Nanos};

use crate::flow::{FlowReport, SourceId};
use crate::network::LinkId;
use crate::packet_log::PacketRecord;

/// A datagram whose fate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The source that sent it.
    pub source: SourceId,
    /// The source's own name for the stream.
    pub index: u64,
    /// Its place in the stream, from 0.
    pub seq: u64,
    /// When it was sent.
    pub sent: Nanos,
    /// When it arrived; `None` if it was lost.
    pub arrived: Option<Nanos>,
}

/// A look at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The link behind the port.
    pub link: LinkId,
    /// When.
    pub at: Nanos,
    /// What was queued.
    pub backlog: Backlog,
    /// Entries in the flow table.
    pub flows: u64,
}

/// Takes results as they come, so that a simulation's memory does not grow with its length.
pub trait Recorder {
    /// A flow is done with, or the run has ended.
    fn flow(&mut self, report: &FlowReport);
    /// A probed datagram arrived, or was lost.
    fn probe(&mut self, _probe: &Probe) {}
    /// A port was looked at.
    fn sample(&mut self, _sample: &Sample) {}
    /// A packet's fate at a port with a log, in the order of arrivals.
    fn packet(&mut self, _link: LinkId, _record: &PacketRecord) {}
}

/// Keeps the reports of flows.
impl Recorder for Vec<FlowReport> {
    fn flow(&mut self, report: &FlowReport) {
        self.push(report.clone());
    }
}
