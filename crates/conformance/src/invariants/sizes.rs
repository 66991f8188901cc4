//! LAS and SRPT: the flow with the least number is served.

use std::collections::{HashMap, HashSet};

use sched::{Event, FlowId, Params};

use super::{Check, Invariant};
use crate::ledger::{Ledger, hold};
use crate::run::{Call, Step};

pub(super) const ALL: &[Invariant] = &[
    Invariant { of: &["las"], given: counts_service, check: least_served_goes_first },
    Invariant { of: &["srpt"], given: tracks_all, check: least_remaining_goes_first },
];

fn tracks_all(params: &Params) -> bool {
    params.number("flows") >= 1000
}

fn counts_service(params: &Params) -> bool {
    tracks_all(params) && !params.flag("charge-drops")
}

/// Bytes sent of each flow since it came into the table.
#[derive(Default)]
struct Served(HashMap<FlowId, u64>);

impl Served {
    fn of(&self, flow: FlowId) -> u64 {
        self.0.get(&flow).copied().unwrap_or_default()
    }

    /// Forgets with the table. Call before [`Served::count`].
    fn forget(&mut self, step: &Step) {
        for event in step.events() {
            if let Event::FlowRemoved { flow } = event {
                self.0.remove(&flow);
            }
        }
    }

    fn count(&mut self, step: &Step) {
        if let Some(packet) = step.departed() {
            *self.0.entry(packet.flow).or_default() += u64::from(packet.size);
        }
    }
}

fn backlogged(ledger: &Ledger) -> HashSet<FlowId> {
    ledger.queued.values().map(|(packet, _)| packet.flow).collect()
}

fn least_served_goes_first() -> Check {
    let mut served = Served::default();
    Box::new(move |before, step, _after| {
        served.forget(step);
        if let Some(packet) = step.departed() {
            let least = backlogged(before).into_iter().map(|flow| served.of(flow)).min();
            let own = served.of(packet.flow);
            hold!(least == Some(own), "{packet:?}: served {own}, somebody else {least:?}");
        }
        served.count(step);
        Ok(())
    })
}

/// Compares flows whose packets all came in order, each with its offset: of those, what is left
/// is the size less what has departed.
fn least_remaining_goes_first() -> Check {
    let mut served = Served::default();
    let mut offered: HashMap<FlowId, u64> = HashMap::new();
    let mut odd = HashSet::new();
    Box::new(move |before, step, _after| {
        served.forget(step);
        if let Call::Enqueue(packet) = step.call {
            let next = offered.entry(packet.flow).or_default();
            if packet.offset() != Some(*next) {
                odd.insert(packet.flow);
            }
            *next += u64::from(packet.size);
        }
        if let Some(packet) = step.departed().filter(|packet| !odd.contains(&packet.flow)) {
            let size: HashMap<_, _> =
                before.queued.values().map(|(p, _)| (p.flow, p.flow_size())).collect();
            let left = |flow| Some(size.get(&flow)?.as_ref()? - served.of(flow));
            let even = backlogged(before).into_iter().filter(|flow| !odd.contains(flow));
            let least = even.filter_map(left).min();
            let own = left(packet.flow);
            hold!(own == least, "{packet:?}: {own:?} left, of somebody else {least:?}");
        }
        served.count(step);
        Ok(())
    })
}
