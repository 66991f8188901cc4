//! Flows to come.

use std::iter::Peekable;

use sched::Nanos;
use workload::{Random, TransferList};

use crate::network::NodeId;
use crate::source::Context;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The sender of the data.
    pub sender: NodeId,
    /// The receiver.
    pub receiver: NodeId,
}

/// A flow to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    /// When it starts.
    pub start: Nanos,
    /// How much it carries.
    pub bytes: u64,
    /// Between whom.
    pub pair: Pair,
}

/// The transfers of `list`, each between a pair drawn from `random`; none if there are no pairs.
pub fn drawn(
    list: TransferList,
    pairs: Vec<Pair>,
    mut random: Random,
) -> impl Iterator<Item = FlowPlan> + Send {
    planned(list, pairs, move |_, pairs| random.below(pairs))
}

/// The transfers of `list`, between the pairs in turn; none if there are no pairs.
pub fn in_turn(list: TransferList, pairs: Vec<Pair>) -> impl Iterator<Item = FlowPlan> + Send {
    planned(list, pairs, |index, pairs| index % pairs)
}

fn planned(
    list: TransferList,
    pairs: Vec<Pair>,
    mut pick: impl FnMut(u64, u64) -> u64 + Send,
) -> impl Iterator<Item = FlowPlan> + Send {
    let count = if pairs.is_empty() { 0 } else { list.transfers().len() };
    (0..count).map(move |index| {
        let transfer = list.transfers()[index];
        let pair = pairs[pick(index as u64, pairs.len() as u64) as usize];
        FlowPlan { start: transfer.start, bytes: transfer.size_bytes, pair }
    })
}

/// Hands out plans when they are due.
pub(super) struct Due {
    plans: Peekable<Box<dyn Iterator<Item = FlowPlan> + Send>>,
    next: u64,
}

impl Due {
    pub(super) fn new(plans: impl Iterator<Item = FlowPlan> + Send + 'static) -> Self {
        let plans: Box<dyn Iterator<Item = FlowPlan> + Send> = Box::new(plans);
        Self { plans: plans.peekable(), next: 0 }
    }

    /// The next plan that is due, and its number.
    pub(super) fn pop(&mut self, now: Nanos) -> Option<(u64, FlowPlan)> {
        let plan = self.plans.next_if(|plan| plan.start <= now)?;
        let index = self.next;
        self.next += 1;
        Some((index, plan))
    }

    /// Asks to be woken for the next one.
    pub(super) fn wait(&mut self, context: &mut Context<'_>) {
        if let Some(plan) = self.plans.peek() {
            context.wake_at(plan.start);
        }
    }
}
