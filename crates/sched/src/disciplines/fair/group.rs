//! Flows that share what they get by fair service curves.
//!
//! The backlogged flow with the least virtual time is served; of equals the one whose head arrived
//! first. A flow that becomes backlogged starts at the clock of the group, and is given back as much
//! of its burst as it has waited for. It is remembered until it is as good as new (looked at in the
//! order in which flows became idle, so some a little longer), and no longer than something is
//! queued.

use alloc::collections::VecDeque;

use super::curve::{Clock, Curve, Position};
use super::{Joined, Queues};
use crate::interface::{FlowId, Sink};
use crate::queues::runs::Heads;

/// A remembered flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Member {
    flow: Option<FlowId>,
    position: Position,
    /// Which curve it has.
    curve: u8,
    /// Which group it is in.
    pub(crate) group: u8,
    /// Whether it has an entry among those that recover.
    is_listed: bool,
}

/// A group of flows.
#[derive(Debug, Default)]
pub(crate) struct Group {
    clock: Clock,
    /// Backlogged flows, by their virtual time.
    heads: Heads,
    backlogged: usize,
    /// Idle flows, and some that have been idle, with a time before which they are not as good as
    /// new.
    recovering: VecDeque<(u64, u32)>,
}

#[inline]
fn entry(queues: &Queues<Member>, slot: u32) -> Option<u128> {
    queues.entry(slot, queues.get(slot).position.time())
}

#[inline]
fn recovery(queues: &Queues<Member>, curves: &[Curve], slot: u32) -> u64 {
    let member = queues.get(slot);
    member.position.recovers(&curves[usize::from(member.curve)])
}

impl Group {
    /// Drops flows whose burst is fully restored.
    #[inline]
    fn tidy<S: Sink>(&mut self, queues: &mut Queues<Member>, curves: &[Curve], sink: &mut S) {
        let now = self.clock.now();
        while let Some((_, slot)) = self.recovering.front().filter(|(time, _)| *time <= now) {
            let slot = *slot;
            self.recovering.pop_front();
            queues.of(slot).is_listed = false;
            if queues.is_idle(slot) {
                self.remember_or_forget(queues, curves, slot, sink);
            }
        }
    }

    /// A packet has joined the queue of a flow.
    #[inline]
    pub(crate) fn joined(
        &mut self,
        queues: &mut Queues<Member>,
        curves: &[Curve],
        joined: &Joined<'_>,
        (curve, group): (u8, u8),
    ) {
        if joined.is_head {
            let member = queues.of(joined.slot);
            if joined.is_new {
                (member.flow, member.curve, member.group) =
                    (Some(joined.packet.flow), curve, group);
            }
            member.position.restart(&curves[usize::from(member.curve)], self.clock.now());
            self.clock.reaches(member.position.time());
            self.backlogged += 1;
            if let Some(entry) = entry(queues, joined.slot) {
                self.heads.push(entry);
            }
        }
        if let Some(slot) = self.heads.hint() {
            queues.warm(slot);
        }
    }

    /// The flow that is served next.
    #[inline]
    pub(crate) fn next(&mut self, queues: &Queues<Member>) -> Option<u32> {
        self.heads.next(|slot| entry(queues, slot))
    }

    /// So many bytes of that flow are sent.
    #[inline]
    pub(crate) fn served<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        curves: &[Curve],
        slot: u32,
        bytes: u32,
        sink: &mut S,
    ) {
        let member = queues.of(slot);
        self.clock.serves(member.position.time());
        member.position.serve(&curves[usize::from(member.curve)], bytes);
        self.clock.reaches(member.position.time());
        self.heads.served(entry(queues, slot));
        if queues.is_idle(slot) {
            self.left(queues, curves, slot, sink);
        }
        self.tidy(queues, curves, sink);
    }

    /// The last packet of a flow has been pushed out.
    pub(crate) fn emptied<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        curves: &[Curve],
        slot: u32,
        sink: &mut S,
    ) {
        self.left(queues, curves, slot, sink);
        self.heads.pushed_out(self.backlogged, |slot| entry(queues, slot));
    }

    /// Whether nothing is queued in it.
    pub(crate) const fn is_idle(&self) -> bool {
        self.backlogged == 0
    }

    /// A flow has become idle.
    #[inline]
    fn left<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        curves: &[Curve],
        slot: u32,
        sink: &mut S,
    ) {
        self.backlogged -= 1;
        if self.backlogged == 0 {
            self.clock.rest();
        }
        if !queues.get(slot).is_listed {
            self.remember_or_forget(queues, curves, slot, sink);
        }
    }

    #[inline]
    fn remember_or_forget<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        curves: &[Curve],
        slot: u32,
        sink: &mut S,
    ) {
        let recovery = recovery(queues, curves, slot);
        let member = queues.of(slot);
        if recovery > self.clock.now() {
            member.is_listed = true;
            self.recovering.push_back((recovery, slot));
        } else if let Some(flow) = member.flow {
            queues.forget(flow, sink);
        }
    }

    /// Nothing is queued anywhere: all are forgotten, and virtual time starts again.
    pub(crate) fn restart<S: Sink>(&mut self, queues: &mut Queues<Member>, sink: &mut S) {
        while let Some((_, slot)) = self.recovering.pop_front() {
            if let Some(flow) = queues.get(slot).flow {
                queues.forget(flow, sink);
            }
        }
        self.heads.clear();
        self.clock = Clock::default();
    }

    /// Curves have changed, and with them who recovers when.
    pub(crate) fn change(&mut self, queues: &Queues<Member>, curves: &[Curve]) {
        for (time, slot) in &mut self.recovering {
            *time = recovery(queues, curves, *slot);
        }
    }

    /// Lowers all numbers of this group once they are large.
    #[inline]
    pub(crate) fn lower_if_due(&mut self, queues: &mut Queues<Member>, group: u8) {
        if let Some(base) = self.clock.excess() {
            self.lower(queues, group, base);
        }
    }

    #[cold]
    fn lower(&mut self, queues: &mut Queues<Member>, group: u8, base: u64) {
        self.clock.lower(base);
        for member in queues.all().filter(|member| member.group == group) {
            member.position.lower(base);
        }
        self.heads.rebase(base);
        self.recovering.iter_mut().for_each(|(time, _)| *time -= base);
    }
}
