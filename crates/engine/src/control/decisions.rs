//! The decisions on a direction's rate that are remembered, for `show` and the page.

use std::collections::{BTreeMap, VecDeque};

use autorate::Decision;
use sched::Nanos;

use crate::status::Decided;

/// How many decisions are remembered.
const REMEMBERED: usize = 32;
/// Of these the newest, whatever they are. What is older makes room for newer ones in its order, but
/// those for `room` first: there are several a second of them, and each tells little.
const NEWEST: usize = 16;

/// The decisions of a direction.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// How many there were, by their reason.
    by_reason: BTreeMap<&'static str, u64>,
    /// With their numbers, from 1, the oldest first.
    latest: VecDeque<(u64, Decision)>,
    total: u64,
}

impl Decisions {
    pub(super) fn note(&mut self, decision: Decision) {
        self.total += 1;
        *self.by_reason.entry(decision.reason.name()).or_default() += 1;
        self.latest.push_back((self.total, decision));
        if self.latest.len() > REMEMBERED {
            let is_room = |(_, decision): &(u64, Decision)| decision.reason.name() == "room";
            let old = self.latest.iter().take(REMEMBERED - NEWEST);
            let least = old.clone().position(is_room).unwrap_or(0);
            self.latest.remove(least);
        }
    }

    /// The last one.
    pub(super) fn last(&self) -> Option<&Decision> {
        self.latest.back().map(|(_, decision)| decision)
    }

    /// How many there were for this reason.
    pub(super) fn count(&self, reason: &str) -> u64 {
        self.by_reason.get(reason).copied().unwrap_or(0)
    }

    /// How many there were for each reason.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.by_reason.iter().map(|(why, times)| ((*why).into(), *times)).collect()
    }

    /// Those that are remembered, the oldest first.
    pub(super) fn told(&self, now: Nanos) -> Vec<Decided> {
        let decided = |(number, decision): &(u64, Decision)| Decided {
            number: *number,
            ns_ago: (now - decision.at).0,
            from_bps: decision.from.0,
            to_bps: decision.to.0,
            reason: decision.reason.name().to_owned(),
            text: decision.to_string(),
        };
        self.latest.iter().map(decided).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autorate::Reason;
    use sched::Rate;

    fn decision(at: u64, reason: Reason) -> Decision {
        Decision { at: Nanos(at), from: Rate(2), to: Rate(1), reason }
    }

    #[test]
    fn what_there_is_much_of_does_not_push_out_the_rest() {
        let mut decisions = Decisions::default();
        let room = Reason::Room { extra: Nanos::ZERO, sent: Rate(1) };
        for at in 1..=1000 {
            decisions.note(decision(at, if at % 100 == 50 { Reason::Blind } else { room }));
        }
        let told = decisions.told(Nanos(1000));
        let blind: Vec<u64> =
            told.iter().filter(|told| told.reason == "blind").map(|told| told.number).collect();
        assert_eq!(blind, (0..10).map(|hundred| hundred * 100 + 50).collect::<Vec<u64>>());
        assert_eq!(told.len(), REMEMBERED);
        assert!(told.is_sorted_by_key(|told| told.number));
        // The newest are all there.
        assert_eq!(told[NEWEST..].iter().map(|told| told.number).min(), Some(985));
        assert_eq!((decisions.count("room"), decisions.count("blind")), (990, 10));
        assert_eq!(decisions.last().map(|last| last.at), Some(Nanos(1000)));
    }

    #[test]
    fn without_any_for_room_the_oldest_goes() {
        let mut decisions = Decisions::default();
        (1..=100).for_each(|at| decisions.note(decision(at, Reason::Blind)));
        let told = decisions.told(Nanos(100));
        assert_eq!(told.first().map(|told| told.number), Some(100 - REMEMBERED as u64 + 1));
    }
}
