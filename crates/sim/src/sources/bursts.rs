//! Open loop: a flow's bytes are all there at its start.

use super::plan::{Due, FlowPlan};
use crate::network::NetworkError;
use crate::source::{Context, Source};

/// Flows of datagrams that are all sent at the flow's start, as queueing theory has it.
///
/// A flow's size is what its datagrams have on the wire. It is complete when the last of them has
/// arrived, and never if one is lost.
pub struct Bursts {
    due: Due,
    packet_bytes: u32,
}

impl Bursts {
    /// Flows in the order of their starts, cut into datagrams of `packet_bytes` and a rest.
    pub fn new(plans: impl Iterator<Item = FlowPlan> + Send + 'static, packet_bytes: u32) -> Self {
        Self { due: Due::new(plans), packet_bytes: packet_bytes.max(1) }
    }
}

impl Source for Bursts {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        self.due.wait(context);
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        while let Some((index, plan)) = self.due.pop(context.now()) {
            let flow =
                context.open_datagrams(plan.pair.sender, plan.pair.receiver, index, false)?;
            let mut left = plan.bytes;
            while left > 0 {
                let bytes = left.min(u64::from(self.packet_bytes));
                context.datagram(flow, bytes as u32, Some(plan.bytes));
                left -= bytes;
            }
            context.close(flow);
        }
        self.due.wait(context);
        Ok(())
    }
}
