//! The recorder, which takes results while a simulation runs.

use sched::{Backlog, Nanos};

use crate::flow::{FlowLabel, FlowReport, SourceId};
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

/// The receiver of a watched connection's data got new bytes in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// The source that the connection belongs to.
    pub source: SourceId,
    /// The source's own name for it.
    pub index: u64,
    /// When.
    pub at: Nanos,
    /// What it has received since the connection stood.
    pub received: u64,
    /// Packets of this direction that had arrived at a port on the way: the most of any.
    pub packets: u64,
    /// Those that all ports had dropped.
    pub dropped: u64,
}

/// What a user waits for, if it is not one whole flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExchangeKind {
    /// A request on a connection that stays open, and the answer.
    Request,
    /// An object of a web page that was fetched over a connection that stays open.
    Object,
    /// A web page with all its objects.
    Page,
}

/// A request and its answer, or a web page: told when it is over, or at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The source that asked.
    pub source: SourceId,
    /// What was asked for.
    pub kind: ExchangeKind,
    /// The source's own name for it.
    pub index: u64,
    /// The packets of the answer; `None` for a page, which has several connections.
    pub label: Option<FlowLabel>,
    /// Bytes of the answer.
    pub bytes: u64,
    /// When it was to be sent.
    pub due: Nanos,
    /// When it was sent: later if it had to wait for one before it. `None` if it never was.
    pub sent: Option<Nanos>,
    /// When all of the answer was received; `None` if the connection failed or the run ended.
    pub completed: Option<Nanos>,
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
    /// Packets of these in the short lane.
    pub short_lane: u64,
    /// Entries in the flow table.
    pub flows: u64,
}

/// Takes results as they come, so that a simulation's memory does not grow with its length.
pub trait Recorder {
    /// A flow is done with, or the run has ended.
    fn flow(&mut self, report: &FlowReport);
    /// A user has got what it waited for, or will not get it.
    fn exchange(&mut self, _exchange: &Exchange) {}
    /// A probed datagram arrived, or was lost.
    fn probe(&mut self, _probe: &Probe) {}
    /// A watched connection got on.
    fn advance(&mut self, _advance: &Advance) {}
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
