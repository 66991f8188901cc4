//! Transfers from a list.

use sched::Nanos;
use workload::{Random, TransferList};

use crate::flow::{Connection, TcpId};
use crate::network::{NetworkError, NodeId};
use crate::source::{Context, Source};

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The sender of the data, which opens the connection.
    pub sender: NodeId,
    /// The receiver.
    pub receiver: NodeId,
}

/// One connection a transfer: the sender opens it, sends, and closes it.
#[derive(Debug)]
pub struct Transfers {
    list: TransferList,
    tcp: TcpId,
    pairs: Vec<Pair>,
    random: Random,
    next: usize,
}

impl Transfers {
    /// The transfers of `list`, each between a pair drawn from `random`; none if there are no
    /// pairs.
    #[must_use]
    pub fn new(list: TransferList, pairs: Vec<Pair>, tcp: TcpId, random: Random) -> Self {
        Self { list, tcp, pairs, random, next: 0 }
    }

    fn wait(&self, context: &mut Context<'_>) {
        if let Some(next) = self.list.transfers().get(self.next) {
            context.wake_at(Nanos(next.start_ns));
        }
    }
}

impl Source for Transfers {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        if !self.pairs.is_empty() {
            self.wait(context);
        }
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let now = context.now().0;
        while let Some(transfer) = self.list.transfers().get(self.next) {
            if transfer.start_ns > now {
                break;
            }
            let pair = self.pairs[self.random.below(self.pairs.len() as u64) as usize];
            context.connect(&Connection {
                client: pair.sender,
                server: pair.receiver,
                tcp: self.tcp,
                request_bytes: transfer.size_bytes,
                response_bytes: 0,
                keep_open: false,
                index: self.next as u64,
            })?;
            self.next += 1;
        }
        self.wait(context);
        Ok(())
    }
}
