//! One connection a transfer.

use sched::Nanos;
use workload::{Random, TransferList};

use super::plan::{Due, FlowPlan, Pair, drawn, in_turn};
use crate::flow::{Connection, ENDLESS, TcpId};
use crate::network::NetworkError;
use crate::source::{Context, Source};

/// Who opens the connection of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opener {
    /// The sender: an upload.
    #[default]
    Sender,
    /// The receiver, which asks for the data: a download.
    Receiver {
        /// Bytes that it asks with; at least 1.
        request_bytes: u64,
    },
}

/// One connection a transfer: it is opened, carries the data, and is closed.
pub struct Transfers {
    due: Due,
    tcp: TcpId,
    opener: Opener,
}

impl Transfers {
    /// The transfers of `list`, each between a pair drawn from `random`; none if there are no
    /// pairs.
    #[must_use]
    pub fn new(list: TransferList, pairs: Vec<Pair>, tcp: TcpId, random: Random) -> Self {
        Self::planned(drawn(list, pairs, random), tcp)
    }

    /// Any transfers, in the order of their starts. They are not kept in memory.
    pub fn planned(plans: impl Iterator<Item = FlowPlan> + Send + 'static, tcp: TcpId) -> Self {
        Self { due: Due::new(plans), tcp, opener: Opener::default() }
    }

    /// `count` flows without end between the pairs in turn, the first starting at `from`, each of
    /// the others `spacing` after the one before.
    #[must_use]
    pub fn persistent(
        count: u64,
        from: Nanos,
        spacing: Nanos,
        pairs: Vec<Pair>,
        tcp: TcpId,
    ) -> Self {
        Self::planned(in_turn(TransferList::staggered(ENDLESS, count, spacing, from), pairs), tcp)
    }

    /// Says who opens the connections; the sender unless told otherwise.
    #[must_use]
    pub const fn opened_by(mut self, opener: Opener) -> Self {
        self.opener = opener;
        self
    }

    fn connection(&self, index: u64, plan: &FlowPlan) -> Connection {
        let Pair { sender, receiver } = plan.pair;
        let (client, server, request_bytes, response_bytes) = match self.opener {
            Opener::Sender => (sender, receiver, plan.bytes, 0),
            Opener::Receiver { request_bytes } => {
                (receiver, sender, request_bytes.max(1), plan.bytes)
            }
        };
        let (tcp, keep_open) = (self.tcp, false);
        Connection { client, server, tcp, request_bytes, response_bytes, keep_open, index }
    }
}

impl Source for Transfers {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        self.due.wait(context);
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        while let Some((index, plan)) = self.due.pop(context.now()) {
            context.connect(&self.connection(index, &plan))?;
        }
        self.due.wait(context);
        Ok(())
    }
}
