//! Accounting by the packet's own byte offset in its flow: no table for who carries one.
//!
//! Source: Run2C (Avrachenkov, Ayesta, Brown, Nyberg, INFOCOM 2004) puts the offset into TCP
//! sequence numbers by restricting their initial values. A retransmission of an early byte is
//! short again, which may reorder the flow. Packets without an offset (UDP) are counted.

use crate::interface::{Amount, FlowId, Lane, Nanos, Packet, ParamError, Params, Sink};

use super::accounting::{Accounting, Arrival};
use super::lifetime::Lifetime;
use super::params::{SEGMENT, THRESHOLD};
use super::queues::Position;
use super::sampler::EveryFlow;

/// Reads offsets, and counts where there is none.
#[derive(Hash)]
pub(crate) struct Offset {
    /// Short iff the packet begins below this byte.
    bound: u64,
    counted: Lifetime<EveryFlow>,
}

impl Offset {
    pub(super) fn new(params: &Params) -> Self {
        Self { bound: bound(params), counted: Lifetime::new(EveryFlow, params) }
    }
}

/// The threshold in bytes; one in packets is converted by `segment`.
fn bound(params: &Params) -> u64 {
    match params.get(THRESHOLD) {
        Amount::Bytes(n) => n,
        Amount::Packets(n) => n.saturating_mul(params.get(SEGMENT)),
    }
}

impl Accounting for Offset {
    #[inline]
    fn arrived<S: Sink>(
        &mut self,
        packet: &Packet,
        mark: Position,
        now: Nanos,
        sink: &mut S,
    ) -> Arrival {
        match packet.offset() {
            Some(offset) => {
                self.counted.keep_up(now, sink);
                let lane = if offset < self.bound { Lane::SHORT } else { Lane::LONG };
                Arrival::untracked(lane)
            }
            None => self.counted.arrived(packet, mark, now, sink),
        }
    }

    fn left<S: Sink>(&mut self, flow: FlowId, sink: &mut S) {
        self.counted.left(flow, sink);
    }

    fn demoted_at(&self, packet: &Packet) -> Option<Position> {
        packet.is_counted().then(|| self.counted.demoted_at(packet)).flatten()
    }

    fn flows(&self) -> usize {
        self.counted.flows()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.counted.change(params)?;
        self.bound = bound(params);
        Ok(())
    }
}
