//! A constant-rate stream.

use sched::Nanos;
use workload::Cbr;

use super::plan::Pair;
use crate::flow_names::FlowName;
use crate::network::NetworkError;
use crate::source::{Context, Source};

/// Datagrams at equal distances, the fate of each recorded.
#[derive(Debug)]
pub struct CbrStream {
    cbr: Cbr,
    pair: Pair,
    from: Nanos,
    until: Nanos,
    flow: Option<FlowName>,
    sent: u64,
}

impl CbrStream {
    /// A stream that sends from `from` until before `until`.
    #[must_use]
    pub const fn new(cbr: Cbr, pair: Pair, from: Nanos, until: Nanos) -> Self {
        Self { cbr, pair, from, until, flow: None, sent: 0 }
    }
}

impl Source for CbrStream {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let Pair { sender, receiver } = self.pair;
        self.flow = Some(context.open_datagrams(sender, receiver, 0, true)?);
        context.wake_at(self.from);
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let Some(flow) = self.flow else { return Ok(()) };
        if context.now() >= self.until {
            context.close(flow);
            return Ok(());
        }
        context.datagram(flow, self.cbr.packet_bytes, None);
        self.sent += 1;
        context.wake_at(self.from + self.cbr.time(self.sent));
        Ok(())
    }
}
