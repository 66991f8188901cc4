//! Whose packet is "long"?

use core::hash::Hash;
use core::mem::discriminant;

use crate::interface::{Amount, FlowId, Lane, Nanos, Packet, ParamError, Params, Sink};

use super::params::{BOUNDARY, THRESHOLD};
use super::queues::Position;

/// What an accounting says of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The lane that it joins.
    pub lane: Lane,
    /// Whether its flow is in the table, which is to be told when the packet has left.
    pub counted: bool,
}

impl Arrival {
    /// Of a flow in the table.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn counted(lane: Lane) -> Self {
        Self { lane, counted: true }
    }

    /// Of a flow that the table does not know.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn untracked(lane: Lane) -> Self {
        Self { lane, counted: false }
    }
}

/// Decides which lane a packet joins, from what its flow has sent so far.
pub(crate) trait Accounting: Hash + Send + 'static {
    /// Counts an arrival, whether the buffer will accept it or not, and says which lane it
    /// joins. `mark` is the short lane as it stands before the arrival.
    fn arrived<S: Sink>(
        &mut self,
        packet: &Packet,
        mark: Position,
        now: Nanos,
        sink: &mut S,
    ) -> Arrival;

    /// A packet of `flow` that was counted is no longer queued: sent, pushed out, or never
    /// accepted.
    fn left<S: Sink>(&mut self, flow: FlowId, sink: &mut S);

    /// The short lane as it stood when the packet's flow was demoted; once all that was in it
    /// has left, nothing of the flow is in the short lane. `None` for a flow without an entry.
    fn demoted_at(&self, packet: &Packet) -> Option<Position>;

    /// Entries in the flow table.
    fn flows(&self) -> usize;

    /// Takes over live parameters. Flows already demoted stay so while their entry lives.
    ///
    /// # Errors
    /// If the threshold comes in another unit than the flows have been counted in.
    fn change(&mut self, params: &Params) -> Result<(), ParamError>;
}

/// When a flow's count makes a packet long.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Rule {
    /// A threshold, for its unit.
    pub unit: Amount,
    /// Short iff the count that is looked at is below this.
    pub bound: u64,
    /// What the bound is beyond the threshold.
    pub one_more: u64,
    /// Whether the arrival itself is in the count that is looked at.
    pub inclusive: bool,
}

impl Rule {
    /// From `threshold` and `boundary`; a discipline without a threshold finds every packet of a
    /// known flow long.
    #[must_use]
    pub fn from_params(params: &Params) -> Self {
        if !params.has(THRESHOLD.name) {
            return Self { unit: Amount::Packets(0), bound: 0, one_more: 0, inclusive: false };
        }
        let threshold = params.get(THRESHOLD);
        let (inclusive, one_more) = match params.get(BOUNDARY) {
            "before" => (false, 0),
            "after" => (true, 1),
            _ => (false, 1),
        };
        let rule = Self { unit: threshold, bound: 0, one_more, inclusive };
        rule.with_threshold(threshold)
    }

    /// The same rule with another threshold, in the same unit.
    pub(super) const fn with_threshold(mut self, threshold: Amount) -> Self {
        self.bound = threshold.value().saturating_add(self.one_more);
        self
    }

    /// The rule of other parameters, if it counts in the same unit.
    pub(super) fn changed(&self, params: &Params) -> Result<Self, ParamError> {
        let rule = Self::from_params(params);
        let same_unit = discriminant(&rule.unit) == discriminant(&self.unit);
        same_unit.then_some(rule).ok_or_else(|| params.not_live(THRESHOLD.name))
    }

    /// What a packet adds to its flow's count.
    #[inline]
    #[must_use]
    pub(crate) const fn cost(&self, packet: &Packet) -> u32 {
        self.unit.cost(packet.segments, packet.size)
    }

    /// Whether a packet that adds `cost` to `count` is short.
    #[inline]
    #[must_use]
    pub(crate) const fn is_short(&self, count: u32, cost: u32) -> bool {
        let seen = count as u64 + if self.inclusive { cost as u64 } else { 0 };
        // A count that has reached the end of its range is beyond any finite threshold.
        seen < self.bound
    }
}

/// How many packets of a flow are queued, and three facts about the flow, in 32 bits.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Queued(u32);

const DEMOTED: u32 = 1 << 31;
const FRESH: u32 = 1 << 30;
const SUSPECT: u32 = 1 << 29;

impl Queued {
    #[inline]
    pub(super) const fn count(self) -> u32 {
        self.0 & !(DEMOTED | FRESH | SUSPECT)
    }

    #[inline]
    pub(super) const fn one_more(&mut self) {
        self.0 += 1;
    }

    /// One fewer; returns whether any is left.
    #[inline]
    pub(super) const fn one_less(&mut self) -> bool {
        debug_assert!(self.count() > 0);
        self.0 -= 1;
        self.count() > 0
    }

    /// Whether the flow's packets join the long lane.
    #[inline]
    pub(super) const fn is_demoted(self) -> bool {
        self.0 & DEMOTED != 0
    }

    #[inline]
    pub(super) const fn set_demoted(&mut self, demoted: bool) {
        self.0 = if demoted { self.0 | DEMOTED } else { self.0 & !DEMOTED };
    }

    /// Whether the entry was made in the current measurement interval.
    pub(super) const fn is_fresh(self) -> bool {
        self.0 & FRESH != 0
    }

    pub(super) const fn set_fresh(&mut self, fresh: bool) {
        self.0 = if fresh { self.0 | FRESH } else { self.0 & !FRESH };
    }

    /// Whether the flow has been sampled, and is to be sampled again before it counts.
    #[inline]
    pub(super) const fn is_suspect(self) -> bool {
        self.0 & SUSPECT != 0
    }

    #[inline]
    pub(super) const fn set_suspect(&mut self, suspect: bool) {
        self.0 = if suspect { self.0 | SUSPECT } else { self.0 & !SUSPECT };
    }
}
