//! Accounting by a mark that an edge has put into the packet: no flow table at all.
//!
//! The DSCP says whether the packet is short, as in RIO-PS; see [`crate::disciplines::early::edge`] for who writes
//! it. An edge that takes an idle flow for a new one tags packets as short behind long ones
//! that may still be queued, so a flow can be reordered.

use crate::disciplines::early::edge;
use crate::interface::{FlowId, Nanos, Packet, ParamError, Params, Sink, shared};

use super::accounting::{Accounting, Arrival};
use super::queues::Position;

/// Reads marks.
#[derive(Hash)]
pub(crate) struct Mark {
    short_dscp: u8,
}

impl Mark {
    pub(super) fn new(params: &Params) -> Self {
        Self { short_dscp: params.get(shared::SHORT_DSCP) as u8 }
    }
}

impl Accounting for Mark {
    #[inline]
    fn arrived<S: Sink>(
        &mut self,
        packet: &Packet,
        _mark: Position,
        _now: Nanos,
        _sink: &mut S,
    ) -> Arrival {
        Arrival::untracked(edge::lane(packet, self.short_dscp))
    }

    fn left<S: Sink>(&mut self, _flow: FlowId, _sink: &mut S) {}

    fn demoted_at(&self, _packet: &Packet) -> Option<Position> {
        None
    }

    fn flows(&self) -> usize {
        0
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.short_dscp = params.get(shared::SHORT_DSCP) as u8;
        Ok(())
    }
}
