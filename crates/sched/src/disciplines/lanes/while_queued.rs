//! EFD's accounting: a flow is remembered only while one of its packets is queued.
//!
//! The table never has more entries than the queue has packets. The count restarts with the
//! next episode, so a long connection is cut into fragments that each restart in the short lane:
//! that makes the discipline sensitive to rate, not to age. Source: EFD paper, section 3.
//!
//! Memory: 16 bytes an entry, three to a cache line. The counter and the mark share a word, since a flow needs its
//! counter only until it is demoted, and the mark only from then on.

use crate::interface::{Event, FlowId, Lane, Nanos, Packet, ParamError, Params, Sink, shared};
use crate::queues::flow_table::{Entry, FlowTable};

use super::accounting::{Accounting, Arrival, Queued, Rule};
use super::queues::Position;

/// Remembers flows with a packet queued.
#[derive(Hash)]
pub(crate) struct WhileQueued {
    rule: Rule,
    flows: FlowTable<Episode>,
}

/// A flow since it last had nothing queued.
#[derive(Clone, Copy, Default, Hash)]
struct Episode {
    progress: Progress,
    queued: Queued,
}

/// Until demotion the flow's count, in the rule's unit; after it the [`Position`].
#[derive(Clone, Copy, Default, Hash)]
struct Progress(u32);

impl WhileQueued {
    pub(super) fn new(params: &Params) -> Self {
        let expected = shared::ring_capacity(params.get(shared::LIMIT));
        let bound = params.get(shared::FLOWS) as usize;
        Self { rule: Rule::from_params(params), flows: FlowTable::new(expected, bound) }
    }
}

impl Accounting for WhileQueued {
    #[inline(always)]
    fn arrived<S: Sink>(
        &mut self,
        packet: &Packet,
        mark: Position,
        _now: Nanos,
        sink: &mut S,
    ) -> Arrival {
        let episode = match self.flows.entry(packet.flow) {
            Entry::Found(episode) => episode,
            Entry::Created(episode) => {
                sink.event(Event::FlowCreated { flow: packet.flow });
                episode
            }
            Entry::Full => {
                sink.event(Event::FlowUntracked { flow: packet.flow });
                return Arrival::untracked(Lane::SHORT);
            }
        };
        episode.queued.one_more();
        if episode.queued.is_demoted() {
            return Arrival::counted(Lane::LONG);
        }
        let cost = self.rule.cost(packet);
        if self.rule.is_short(episode.progress.0, cost) {
            episode.progress.0 = episode.progress.0.saturating_add(cost);
            return Arrival::counted(Lane::SHORT);
        }
        episode.queued.set_demoted(true);
        episode.progress = Progress(mark.0);
        sink.event(Event::Demoted { flow: packet.flow });
        Arrival::counted(Lane::LONG)
    }

    #[inline(always)]
    fn left<S: Sink>(&mut self, flow: FlowId, sink: &mut S) {
        if self.flows.update(flow, |episode| episode.queued.one_less()) {
            sink.event(Event::FlowRemoved { flow });
        }
    }

    fn demoted_at(&self, packet: &Packet) -> Option<Position> {
        let episode = self.flows.get(packet.flow)?;
        episode.queued.is_demoted().then_some(Position(episode.progress.0))
    }

    fn flows(&self) -> usize {
        self.flows.len()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        self.rule = self.rule.changed(params)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_entries_take_a_cache_line() {
        assert_eq!(size_of::<Episode>(), 8);
        assert_eq!(FlowTable::<Episode>::bucket_size(), 64);
    }
}
