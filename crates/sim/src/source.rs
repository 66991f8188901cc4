//! Traffic sources: a source opens flows and is told when they end.

use sched::Nanos;

use crate::flow::{Connection, FlowLabel, FlowReport, SourceId};
use crate::flow_names::FlowName;
use crate::network::{NetworkError, NodeId};
use crate::recorder::Exchange;
use crate::world::{Notice, World};

/// Traffic: called at the start, at the times it asks for, and when its flows get on.
pub trait Source: Send {
    /// The simulation starts.
    ///
    /// # Errors
    /// If its nodes are not connected.
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError>;

    /// A time it asked for has come.
    ///
    /// # Errors
    /// If its nodes are not connected.
    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError>;

    /// An exchange on a connection is over: the server has the request, the client the answer. A
    /// connection that does not stay open is being closed.
    ///
    /// # Errors
    /// If nodes that it opens a flow between are not connected.
    fn exchanged(
        &mut self,
        _flow: FlowName,
        _index: u64,
        _context: &mut Context<'_>,
    ) -> Result<(), NetworkError> {
        Ok(())
    }

    /// A flow is done with.
    ///
    /// # Errors
    /// If nodes that it opens a flow between are not connected.
    fn done(
        &mut self,
        _report: &FlowReport,
        _context: &mut Context<'_>,
    ) -> Result<(), NetworkError> {
        Ok(())
    }

    /// The run has ended: the time to report what is under way.
    fn finish(&mut self, _context: &mut Context<'_>) {}
}

/// What a source can do.
pub struct Context<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) source: SourceId,
}

impl Context<'_> {
    /// The time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.world.now()
    }

    /// Calls [`Source::wake`] at this time, or now if it has passed.
    pub fn wake_at(&mut self, time: Nanos) {
        self.world.wake_at(self.source, time);
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// If its nodes are not connected.
    pub fn connect(&mut self, connection: &Connection) -> Result<FlowName, NetworkError> {
        self.world.connect(self.source, connection)
    }

    /// Starts a further exchange on a connection that stays open and is idle. Ignored if it is
    /// gone or busy.
    pub fn exchange(&mut self, flow: FlowName, request_bytes: u64, response_bytes: u64) {
        self.world.exchange(flow, request_bytes, response_bytes);
    }

    /// Closes a connection that stays open, or ends a stream of datagrams.
    pub fn close(&mut self, flow: FlowName) {
        self.world.close(flow);
    }

    /// Tells the recorder of an exchange that is over, or will not be.
    pub fn report(&mut self, exchange: &Exchange) {
        self.world.notices.push(Notice::Exchange(*exchange));
    }

    /// Which source this is.
    #[must_use]
    pub const fn source(&self) -> SourceId {
        self.source
    }

    /// Labels the packets that answer the client of a connection, unless it is gone.
    #[must_use]
    pub fn label_of_answers(&self, flow: FlowName) -> Option<FlowLabel> {
        self.world.label_of_answers(flow)
    }

    /// Opens a stream of datagrams; the fate of each is told to the recorder if `probed`.
    ///
    /// # Errors
    /// If the nodes are not connected.
    pub fn open_datagrams(
        &mut self,
        from: NodeId,
        to: NodeId,
        index: u64,
        probed: bool,
    ) -> Result<FlowName, NetworkError> {
        self.world.open_datagrams(self.source, from, to, index, probed)
    }

    /// Sends a datagram of so many bytes on the wire. `flow_bytes` is the size of the whole flow,
    /// for disciplines that ask for it.
    pub fn datagram(&mut self, flow: FlowName, bytes: u32, flow_bytes: Option<u64>) {
        self.world.datagram(flow, bytes, flow_bytes);
    }
}
