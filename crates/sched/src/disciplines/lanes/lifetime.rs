//! Accounting that remembers flows between their packets: Run2C, SB, X-Protect, SIFT, SB-SH.
//!
//! Which flows are taken up is the [`Sampler`]'s choice: every one, or one found by chance. A
//! flow that is not in the table is short. Entries of flows that have been idle for long are
//! swept out, never while a packet of the flow is queued, so that no flow is reordered by it.
//!
//! At the table's bound the longest idle of a few entries makes room; if all of these have
//! packets queued, the newcomer stays untracked and short.
//!
//! Memory: 24 bytes an entry, five to two cache lines.

use crate::interface::{
    Amount, Event, FlowId, Lane, Nanos, Packet, ParamError, Params, Sink, shared,
};
use crate::queues::flow_table::{Entry, FlowTable};

use super::accounting::{Accounting, Arrival, Queued, Rule};
use super::params::{COUNT_SAMPLED, EARLY_KEEP, INTERVAL, KEEP, SAMPLED_TO};
use super::queues::Position;
use super::sampler::Sampler;

/// Remembers the flows that `P` takes up.
#[derive(Hash)]
pub(crate) struct Lifetime<P> {
    sampler: P,
    rule: Rule,
    options: Options,
    flows: FlowTable<Flow, 5>,
    next_sweep: Nanos,
    next_interval: Nanos,
    /// The earlier of both.
    next_upkeep: Nanos,
}

/// A flow since its entry was made.
#[derive(Clone, Copy, Default, Hash)]
struct Flow {
    /// In the rule's unit.
    count: u32,
    queued: Queued,
    demoted_at: Position,
    last_seen: Tick,
}

#[derive(Clone, Copy, Hash)]
struct Options {
    /// Forget a flow after this time without an arrival...
    idle: Nanos,
    /// ... looked for this often.
    sweep: Nanos,
    /// Whether the packet that was sampled is in the count.
    count_sampled: bool,
    /// Where the packet that was sampled goes: by the rule, or to this lane.
    sampled_to: Option<Lane>,
    interval: Nanos,
    /// Least counts to be kept at the end of an interval, in the rule's unit.
    keep: u64,
    early_keep: u64,
}

impl Options {
    fn from_params(params: &Params) -> Self {
        let time = |param| params.find(param).unwrap_or(Nanos::MAX);
        Self {
            idle: time(shared::IDLE),
            sweep: time(shared::SWEEP),
            count_sampled: params.find(COUNT_SAMPLED).unwrap_or(true),
            sampled_to: match params.find(SAMPLED_TO) {
                Some("high") => Some(Lane::SHORT),
                Some("low") => Some(Lane::LONG),
                _ => None,
            },
            interval: time(INTERVAL),
            keep: params.find(KEEP).unwrap_or(0),
            early_keep: params.find(EARLY_KEEP).unwrap_or(0),
        }
    }
}

/// Time in steps of 2^20 ns (about 1 ms), modulo 2^32 steps (52 days).
#[derive(Clone, Copy, Default, Hash)]
struct Tick(u32);

impl Tick {
    #[inline]
    const fn at(now: Nanos) -> Self {
        Self((now.0 >> 20) as u32)
    }

    const fn age(self, now: Nanos) -> Nanos {
        Nanos((Self::at(now).0.wrapping_sub(self.0) as u64) << 20)
    }
}

impl<P: Sampler> Lifetime<P> {
    pub(super) fn new(sampler: P, params: &Params) -> Self {
        Self {
            sampler,
            rule: Rule::from_params(params),
            options: Options::from_params(params),
            flows: FlowTable::new(0, params.get(shared::FLOWS) as usize),
            next_sweep: Nanos::ZERO,
            next_interval: Nanos::ZERO,
            next_upkeep: Nanos::ZERO,
        }
    }

    /// Takes over another threshold in the same unit. Flows already demoted stay so.
    pub(super) fn set_threshold(&mut self, threshold: Amount) {
        self.rule = self.rule.with_threshold(threshold);
    }

    /// To be called at every arrival, of whatever flow: does the upkeep when it is time.
    #[inline]
    pub(super) fn keep_up<S: Sink>(&mut self, now: Nanos, sink: &mut S) {
        if now >= self.next_upkeep {
            self.upkeep(now, sink);
        }
    }

    /// Forgets idle flows and closes a measurement interval, when it is time.
    #[cold]
    fn upkeep<S: Sink>(&mut self, now: Nanos, sink: &mut S) {
        let Options { idle, sweep, interval, .. } = self.options;
        if now >= self.next_sweep {
            self.next_sweep = if idle == Nanos::MAX { Nanos::MAX } else { now + sweep };
            self.flows.retain(
                |flow| flow.queued.count() > 0 || flow.last_seen.age(now) <= idle,
                |flow| sink.event(Event::FlowRemoved { flow }),
            );
        }
        if now >= self.next_interval {
            // The first arrival opens the first interval.
            if self.next_interval != Nanos::ZERO {
                self.close_interval(sink);
            }
            self.next_interval = now + interval;
        }
        self.next_upkeep = self.next_sweep.min(self.next_interval);
    }

    /// Estan and Varghese 2002: keeps the flows that were counted to `keep`, or that are new in
    /// this interval and counted to `early-keep`; all counts start again, so flows are promoted.
    fn close_interval<S: Sink>(&mut self, sink: &mut S) {
        let Options { keep, early_keep, .. } = self.options;
        let keeps = |flow: &Flow| {
            let least = if flow.queued.is_fresh() { early_keep.min(keep) } else { keep };
            flow.queued.count() > 0 || u64::from(flow.count) >= least
        };
        self.flows.retain(|flow| keeps(flow), |flow| sink.event(Event::FlowRemoved { flow }));
        for (id, flow) in self.flows.iter_mut() {
            flow.count = 0;
            flow.queued.set_fresh(false);
            if flow.queued.is_demoted() {
                flow.queued.set_demoted(false);
                sink.event(Event::Promoted { flow: id });
            }
        }
    }

    /// Makes room for a flow at the bound; returns whether it worked.
    #[cold]
    fn make_room<S: Sink>(&mut self, newcomer: FlowId, now: Nanos, sink: &mut S) -> bool {
        let idle =
            |flow: &Flow| (flow.queued.count() == 0).then(|| u64::MAX - flow.last_seen.age(now).0);
        let Some(oldest) = self.flows.least_near(newcomer, idle) else {
            sink.event(Event::FlowUntracked { flow: newcomer });
            return false;
        };
        self.flows.remove(oldest);
        sink.event(Event::FlowRemoved { flow: oldest });
        true
    }

    /// The lane of a packet whose flow is not in the table; takes the flow up if it is sampled
    /// and there is room.
    #[inline]
    fn unknown<S: Sink>(
        &mut self,
        packet: &Packet,
        mark: Position,
        now: Nanos,
        sink: &mut S,
    ) -> Arrival {
        if !self.sampler.takes_up(packet)
            || (self.flows.is_full() && !self.make_room(packet.flow, now, sink))
        {
            return Arrival::untracked(Lane::SHORT);
        }
        let (Entry::Created(flow) | Entry::Found(flow)) = self.flows.entry(packet.flow) else {
            return Arrival::untracked(Lane::SHORT);
        };
        sink.event(Event::FlowCreated { flow: packet.flow });
        flow.seen(now);
        flow.queued.set_fresh(true);
        if P::RETESTS {
            flow.queued.set_suspect(true);
            return Arrival::counted(Lane::SHORT);
        }
        Arrival::counted(flow.sampled(&self.rule, &self.options, packet, mark, sink))
    }

    /// The lane of a packet of a flow in the table.
    #[inline]
    fn known<S: Sink>(
        &mut self,
        packet: &Packet,
        mark: Position,
        now: Nanos,
        sink: &mut S,
    ) -> Option<Lane> {
        let flow = self.flows.get_mut(packet.flow)?;
        flow.seen(now);
        if P::RETESTS && flow.queued.is_suspect() {
            if !self.sampler.takes_up(packet) {
                return Some(Lane::SHORT);
            }
            flow.queued.set_suspect(false);
            return Some(flow.sampled(&self.rule, &self.options, packet, mark, sink));
        }
        Some(flow.arrived(&self.rule, packet, mark, sink))
    }
}

impl Flow {
    #[inline]
    fn seen(&mut self, now: Nanos) {
        self.queued.one_more();
        self.last_seen = Tick::at(now);
    }

    /// The lane of the packet that was sampled: its flow is counted from here on.
    #[inline]
    fn sampled<S: Sink>(
        &mut self,
        rule: &Rule,
        options: &Options,
        packet: &Packet,
        mark: Position,
        sink: &mut S,
    ) -> Lane {
        let cost = rule.cost(packet);
        if options.count_sampled {
            self.count = cost;
        }
        let lane = match options.sampled_to {
            Some(lane) => lane,
            None if rule.is_short(0, cost) => Lane::SHORT,
            None => Lane::LONG,
        };
        if lane == Lane::LONG {
            self.demote(packet.flow, mark, sink);
        }
        lane
    }

    /// Counts a packet of a flow in the table, and says which lane it joins.
    #[inline]
    fn arrived<S: Sink>(
        &mut self,
        rule: &Rule,
        packet: &Packet,
        mark: Position,
        sink: &mut S,
    ) -> Lane {
        let cost = rule.cost(packet);
        let before = self.count;
        self.count = before.saturating_add(cost);
        if self.queued.is_demoted() {
            return Lane::LONG;
        }
        if rule.is_short(before, cost) {
            return Lane::SHORT;
        }
        self.demote(packet.flow, mark, sink);
        Lane::LONG
    }

    #[inline]
    fn demote<S: Sink>(&mut self, flow: FlowId, mark: Position, sink: &mut S) {
        self.queued.set_demoted(true);
        self.demoted_at = mark;
        sink.event(Event::Demoted { flow });
    }
}

impl<P: Sampler> Accounting for Lifetime<P> {
    #[inline(always)]
    fn arrived<S: Sink>(
        &mut self,
        packet: &Packet,
        mark: Position,
        now: Nanos,
        sink: &mut S,
    ) -> Arrival {
        self.keep_up(now, sink);
        match self.known(packet, mark, now, sink) {
            Some(lane) => Arrival::counted(lane),
            None => self.unknown(packet, mark, now, sink),
        }
    }

    #[inline(always)]
    fn left<S: Sink>(&mut self, flow: FlowId, _sink: &mut S) {
        if let Some(flow) = self.flows.get_mut(flow) {
            flow.queued.one_less();
        }
    }

    fn demoted_at(&self, packet: &Packet) -> Option<Position> {
        let flow = self.flows.get(packet.flow)?;
        flow.queued.is_demoted().then_some(flow.demoted_at)
    }

    fn flows(&self) -> usize {
        self.flows.len()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.rule = self.rule.changed(params)?;
        self.options = Options::from_params(params);
        self.sampler.change(params);
        // The next arrival sets all by the new spans.
        self.next_sweep = Nanos::ZERO;
        self.next_interval = Nanos::ZERO;
        self.next_upkeep = Nanos::ZERO;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_entries_take_two_cache_lines() {
        assert_eq!(size_of::<Flow>(), 16);
        assert_eq!(FlowTable::<Flow, 5>::bucket_size(), 128);
    }
}
