//! The global invariants, G1 to G8, on any discipline in the registry.
//!
//! | | | |
//! |---|---|---|
//! | G1 | conservation | arrivals = departures + drops + backlog, per flow as well ([`Ledger`]) |
//! | G2 | no inventions | a packet leaves or is lost at most once, never both ([`Ledger`]) |
//! | G3 | capacity | no call leaves more behind than the limit, or than was there before |
//! | G4 | work conservation | with a backlog, a packet is returned; or, shaped, by when it said |
//! | G5 | order | packets of one flow leave in order of arrival, where the discipline says so |
//! | G6 | reclaim | without traffic for long enough, the flow table is empty |
//! | G7 | determinism | same sequence, same seed: the same reports |
//! | G8 | counters | `backlog()` and `flows()` agree with the reports ([`Ledger`]) |

use std::collections::HashMap;

use sched::params::Kind;
use sched::{Amount, Backlog, Dequeue, Event, Nanos, ParamError, Params, Spec};

use crate::invariants;
use crate::ledger::{Ledger, Violation, hold};
use crate::operation::{Operation, flow_id};
use crate::run::{Call, Step, run};

/// Runs `spec` through `operations` and checks everything that must hold for it: the global
/// invariants and the discipline's own.
///
/// # Errors
/// The first violation, with the step at which it showed.
pub fn check(spec: &Spec, operations: &[Operation], seed: u64) -> Result<(), Violation> {
    let steps = run(spec, operations, seed);
    hold!(steps == run(spec, operations, seed), "{spec}: two runs differ");
    let context = |violation| format!("{spec} seed {seed}: {violation}");
    check_steps(spec, &steps).map_err(context)?;
    invariants::check(spec, &steps).map_err(context)?;
    check_reclaim(spec, operations, seed).map_err(context)
}

/// G1 to G5 and G8, over the steps of one run.
fn check_steps(spec: &Spec, steps: &[Step]) -> Result<(), Violation> {
    let mut ledger = Ledger::default();
    let mut before = Backlog::default();
    let mut params = spec.params();
    let mut last_departed = HashMap::new();
    let mut promised = None;
    let keeps_order = steps.iter().all(|step| (spec.info().keeps_order)(&step.params));
    for (index, step) in steps.iter().enumerate() {
        let here = |violation| format!("step {index}, {:?}: {violation}", step.call);
        ledger.enter(step).map_err(here)?;
        check_capacity(step, before).map_err(here)?;
        check_work_conservation(spec, step, before).map_err(here)?;
        check_wait(&mut promised, step).map_err(here)?;
        check_change(params, step).map_err(here)?;
        check_bound(step).map_err(here)?;
        if let Some(packet) = step.departed().filter(|_| keeps_order) {
            let last = last_departed.insert(packet.flow, packet.id);
            if last.is_some_and(|last| last > packet.id) {
                return Err(here(format!("{packet:?} left after {last:?} of its flow")));
            }
        }
        before = step.backlog;
        params = &step.params;
    }
    Ok(())
}

/// G3. Nothing is dropped by a change of limit, so above a lowered limit the backlog may only
/// shrink.
fn check_capacity(step: &Step, before: Backlog) -> Result<(), Violation> {
    for def in step.params.iter().map(|(def, _)| def) {
        let limit = match (def.name, def.kind) {
            ("limit", _) => step.params.amount("limit"),
            ("memory", Kind::Bytes { .. }) => Amount::Bytes(step.params.number("memory")),
            _ => continue,
        };
        let (was, is) = (before.in_unit_of(limit), step.backlog.in_unit_of(limit));
        hold!(is <= limit.value().max(was), "{}={limit}: {was} became {is}", def.name);
    }
    Ok(())
}

/// G4.
fn check_work_conservation(spec: &Spec, step: &Step, before: Backlog) -> Result<(), Violation> {
    if let Call::Dequeue(answer) = step.call
        && (spec.info().work_conserving)(&step.params)
    {
        let expected = before.packets > 0;
        let found = matches!(answer, Dequeue::Packet { .. });
        hold!(found == expected, "{answer:?} with a backlog of {before:?}");
    }
    Ok(())
}

/// A queue that says "wait until" has a packet by then, unless a parameter changes meanwhile.
fn check_wait(promised: &mut Option<Nanos>, step: &Step) -> Result<(), Violation> {
    match step.call {
        Call::Dequeue(Dequeue::Wait(until)) => {
            hold!(until > step.now, "at {:?}: wait until {until:?}", step.now);
            hold!(promised.is_none_or(|then| step.now < then), "promised for {promised:?}");
            *promised = Some(until);
        }
        Call::Dequeue(_) | Call::Change(..) => *promised = None,
        Call::Enqueue(_) | Call::Advance => {}
    }
    Ok(())
}

/// A parameter that is not live is refused by name; one that is live is refused only for another
/// unit than what has been counted.
fn check_change(before: &Params, step: &Step) -> Result<(), Violation> {
    let Call::Change(name, answer) = &step.call else {
        return Ok(());
    };
    let (def, value) = before.iter().find(|(def, _)| def.name == *name).expect("a known parameter");
    match answer {
        Ok(()) => {
            let unchanged = step.params.iter().any(|(d, v)| d.name == *name && v == value);
            hold!(def.live || unchanged, "{name} changed, and is not live");
        }
        Err(ParamError::NotLive { param, .. }) => {
            hold!(param == name, "{param} was refused, not {name}");
            let unit = matches!(def.kind, Kind::Amount { .. });
            hold!(!def.live || unit, "{name} is live, and was refused");
        }
        Err(ParamError::Conflict { param, other, .. }) => {
            hold!(before.has(param) && before.has(other), "no parameters {param} and {other}");
        }
        Err(other) => return Err(format!("{other:?}")),
    }
    Ok(())
}

/// The flow table's hard bound, and that a flow goes untracked only there.
fn check_bound(step: &Step) -> Result<(), Violation> {
    let count = |which: fn(&Event) -> bool| step.events().filter(which).count();
    let untracked = count(|event| matches!(event, Event::FlowUntracked { .. })) > 0;
    if !step.params.has("flows") {
        hold!(!untracked, "a flow is untracked without a bound");
        return Ok(());
    }
    let bound = step.params.number("flows");
    hold!(step.flows as u64 <= bound, "{} flows, bound {bound}", step.flows);
    let most = step.flows + count(|event| matches!(event, Event::FlowRemoved { .. }));
    hold!(!untracked || most as u64 >= bound, "untracked at {most} of {bound}");
    Ok(())
}

/// Whose idle flows stay until another one needs their place: what they are remembered for (their
/// age) matters when they come back, and the table's bound is all the memory there is.
const REMEMBER_IDLE_FLOWS: &[&str] = &["fq-lanes", "marked"];

/// G6: after the queue has drained and every timeout has passed, only the flow that was used to
/// look at it can have an entry.
fn check_reclaim(spec: &Spec, operations: &[Operation], seed: u64) -> Result<(), Violation> {
    let steps = run(spec, operations, seed);
    let Some(last) = steps.last() else {
        return Ok(());
    };
    let time = |name| {
        if last.params.has(name) { last.params.time(name) } else { Nanos::ZERO }
    };
    let (idle, sweep) = (time("idle"), time("sweep"));
    if idle == Nanos::MAX || REMEMBER_IDLE_FLOWS.contains(&spec.info().name) {
        return Ok(());
    }
    let probe = u8::MAX;
    let wait = Operation::Advance(Nanos(idle.0.max(sweep.0).saturating_add(1)));
    let mut operations = operations.to_vec();
    // A shaped queue lets one packet go at a time; no rate makes one take longer than this.
    let slowest = if last.params.has("rate") { 600_000 } else { 600 };
    let (packet_time, drain) =
        (Operation::Advance(Nanos::from_secs(slowest)), last.backlog.packets + 3);
    operations.extend((0..drain).flat_map(|_| [packet_time.clone(), Operation::Dequeue]));
    for _ in 0..4 {
        operations.extend([wait.clone(), Operation::arrival(probe, 40), Operation::Dequeue]);
        operations.push(Operation::Dequeue);
    }
    let steps = run(spec, &operations, seed);
    let mut ledger = Ledger::default();
    steps.iter().try_for_each(|step| ledger.enter(step))?;
    ledger.entries.remove(&flow_id(probe));
    hold!(ledger.entries.is_empty(), "never forgotten: {:?}", ledger.entries);
    Ok(())
}
