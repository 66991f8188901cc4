//! DRR: nobody gets ahead of anybody by more than a turn.

use std::collections::{HashMap, HashSet};

use sched::FlowId;

use super::{Check, Invariant, always};
use crate::ledger::hold;
use crate::run::Call;

pub(super) const ALL: &[Invariant] =
    &[Invariant { of: &["drr"], given: always, check: nobody_gets_far_ahead }];

/// Of two flows that are both backlogged throughout an interval, the difference of bytes sent is
/// at most a quantum and two packets (Shreedhar and Varghese 1996, theorem 2).
fn nobody_gets_far_ahead() -> Check {
    let mut largest = 0;
    // Lead of the first over the second flow: now, least and most.
    let mut leads: HashMap<(FlowId, FlowId), (i64, i64, i64)> = HashMap::new();
    Box::new(move |before, step, after| {
        if let Call::Enqueue(packet) = step.call {
            largest = largest.max(i64::from(packet.size));
        }
        if matches!(step.call, Call::Change(..)) {
            leads.clear();
        }
        leads.retain(|(a, b), _| after.has_queued(*a) && after.has_queued(*b));
        let Some(sent) = step.departed().filter(|packet| after.has_queued(packet.flow)) else {
            return Ok(());
        };
        let bound = step.params.number("quantum") as i64 + 2 * largest;
        let others: HashSet<_> = after.queued.values().map(|(packet, _)| packet.flow).collect();
        for other in others {
            if other == sent.flow || !before.has_queued(other) {
                continue;
            }
            for (pair, bytes) in [
                ((sent.flow, other), i64::from(sent.size)),
                ((other, sent.flow), -i64::from(sent.size)),
            ] {
                let (now, least, most) = leads.entry(pair).or_default();
                *now += bytes;
                (*least, *most) = ((*least).min(*now), (*most).max(*now));
                hold!(
                    *most - *least <= bound,
                    "{pair:?} differ by {}, bound {bound}",
                    *most - *least
                );
            }
        }
        Ok(())
    })
}
