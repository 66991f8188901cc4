//! What an order of flows says to the discipline that keeps it.

use crate::interface::{Nanos, Packet, Params};
use crate::queues::per_flow::{FlowQueue, Node};

/// What flows are sorted by, and what an order keeps per flow.
///
/// Keys are compared as (first, second) number. While a flow is backlogged its key may fall
/// only by a departure of its own packet, or when all fall together by [`Order::rebase`].
pub(crate) trait Order: Send + Sized {
    /// State per flow.
    type Flow: Copy + Default + Send;

    /// The order that `params` describe.
    fn new(params: &Params) -> Self;

    /// Takes over live parameters.
    fn change(&mut self, params: &Params);

    /// A new flow: `packet`, the `index`-th arrival, is its first.
    fn created(&mut self, flow: &mut Self::Flow, packet: &Packet, index: u64);

    /// A packet of the flow joins its queue as `node`, at the head if `first`.
    fn joined(&mut self, flow: &mut Self::Flow, packet: &Packet, node: u32, first: bool);

    /// The flow's head departs; `next` is the node of the new head, if there is one.
    fn departed(&mut self, flow: &mut Self::Flow, packet: &Packet, next: u32, now: Nanos);

    /// The flow's newest packet is pushed out.
    fn pushed_out(&mut self, flow: &mut Self::Flow, packet: &Packet);

    /// An arrival of the flow is refused: it could never fit, or the limit was lowered.
    fn refused(&mut self, flow: &mut Self::Flow, packet: &Packet);

    /// The least key is served next.
    fn key(&self, flow: &Self::Flow, head: &Node) -> (u64, u64);

    /// The largest rank loses its tail when the buffer is full.
    fn rank(&self, flow: &Self::Flow, queue: &FlowQueue, tail: &Node) -> (u64, u64);

    /// It is `now`; called before departures and push-outs. Returns whether the numbers that are
    /// kept have grown so far that they must be brought down first.
    #[inline(always)]
    fn tick(&mut self, _now: Nanos) -> bool {
        false
    }

    /// Brings the numbers of all flows down together, in the same order.
    fn rebase<'a>(&mut self, _flows: impl Iterator<Item = &'a mut Self::Flow>)
    where
        Self::Flow: 'a,
    {
    }

    /// Whether numbers must be brought down before these parameters are taken over.
    fn rescales(&self, _params: &Params) -> bool {
        false
    }

    /// Whether ranks change as time passes: a ranking is then good for one push-out.
    fn ranks_age(&self) -> bool {
        false
    }
}
