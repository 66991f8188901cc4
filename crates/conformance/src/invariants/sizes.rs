//! LAS, LARS and SRPT: the flow with the least number is served.

use std::collections::{HashMap, HashSet};

use sched::{Event, FlowId, Nanos, Params};

use super::{Check, Invariant, Of};
use crate::ledger::{Ledger, hold};
use crate::naive::is_near;
use crate::run::{Call, Step};

pub(super) const ALL: &[Invariant] = &[
    Invariant { of: Of::Named(&["las"]), given: counts_service, check: least_served_goes_first },
    Invariant {
        of: Of::Named(&["lars"]),
        given: tracks_all,
        check: least_recently_served_goes_first,
    },
    Invariant { of: Of::Named(&["srpt"]), given: tracks_all, check: least_remaining_goes_first },
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

/// Fades the volumes step by step, where the model sums over all that was served. A change of the
/// half-life ends the check: when the discipline last looked at the clock cannot be seen.
fn least_recently_served_goes_first() -> Check {
    let mut volumes: HashMap<FlowId, f64> = HashMap::new();
    let (mut last, mut half_life) = (Nanos::ZERO, None);
    Box::new(move |before, step, _after| {
        if *half_life.get_or_insert(step.params.time("half-life")) != step.params.time("half-life")
        {
            half_life = Some(Nanos::ZERO);
            return Ok(());
        }
        let half_lives = (step.now - last).0 as f64 / step.params.time("half-life").0 as f64;
        last = step.now;
        volumes.values_mut().for_each(|volume| *volume *= (-half_lives).exp2());
        for event in step.events() {
            if let Event::FlowRemoved { flow } = event {
                volumes.remove(&flow);
            }
        }
        if let Some(packet) = step.departed() {
            let volume = |flow| volumes.get(&flow).copied().unwrap_or_default();
            let least = backlogged(before).into_iter().map(volume).fold(f64::INFINITY, f64::min);
            let own = volume(packet.flow);
            hold!(is_near(own, least), "{packet:?}: a volume of {own}, somebody else {least}");
            *volumes.entry(packet.flow).or_default() += f64::from(packet.size);
        }
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
