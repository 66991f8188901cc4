//! FIFO, CoDel, FQ-CoDel and the RED family: order, and when and what an AQM drops.

use std::collections::{BTreeSet, HashMap};

use sched::{DropReason, Event, Lane, Nanos, Packet, Params};

use super::{Check, Invariant, Of, Outcome, always};
use crate::ledger::{Ledger, hold};
use crate::run::{Call, Step};

const RED: &[&str] = &["red", "fred", "rio", "rio-ps"];

pub(super) const ALL: &[Invariant] = &[
    Invariant {
        of: Of::Named(&["fifo", "codel"]),
        given: always,
        check: || Box::new(oldest_goes_first),
    },
    Invariant { of: Of::Named(RED), given: always, check: || Box::new(oldest_goes_first) },
    Invariant { of: Of::Named(RED), given: always, check: || Box::new(arrivals_alone_are_lost) },
    Invariant {
        of: Of::Named(&["red"]),
        given: always,
        check: || Box::new(a_short_queue_is_left_alone),
    },
    Invariant { of: Of::Named(&["fred"]), given: tracks_all, check: || Box::new(entry_iff_queued) },
    Invariant {
        of: Of::Named(&["fred"]),
        given: spares_two,
        check: || Box::new(nobody_is_shut_out),
    },
    Invariant { of: Of::Named(&["rio"]), given: always, check: || Box::new(lane_is_the_tag) },
    Invariant {
        of: Of::Named(&["fifo", "codel"]),
        given: always,
        check: || Box::new(room_decides),
    },
    Invariant { of: Of::Named(&["codel"]), given: always, check: patience },
    Invariant {
        of: Of::Named(&["codel", "fq-codel"]),
        given: always,
        check: || Box::new(marks_if_it_can),
    },
    Invariant {
        of: Of::Named(&["fq-codel"]),
        given: always,
        check: || Box::new(fattest_loses_its_head),
    },
];

/// Whatever leaves the queue at its head, sent or dropped there, is the oldest packet.
fn oldest_goes_first(before: &Ledger, step: &Step, after: &Ledger) -> Outcome {
    let Call::Dequeue(_) = step.call else { return Ok(()) };
    let gone = before.queued.len() - after.queued.len();
    let expected: Vec<_> = before.queued.keys().take(gone).collect();
    let dropped: Vec<_> = step.dropped().map(|(packet, _)| packet.id).collect();
    let found: Vec<_> = dropped.into_iter().chain(step.departed().map(|p| p.id)).collect();
    hold!(found.iter().eq(expected), "{found:?} left");
    Ok(())
}

fn room_decides(before: &Ledger, step: &Step, _after: &Ledger) -> Outcome {
    let Call::Enqueue(packet) = step.call else { return Ok(()) };
    let fits = before.backlog().has_room(step.params.amount("limit"), &packet);
    let lost = step.dropped().next();
    hold!(fits != lost.is_some(), "fits is {fits}, lost is {lost:?}");
    hold!(lost.is_none_or(|(_, drop)| drop.reason == DropReason::Full), "{lost:?}");
    Ok(())
}

/// An early dropper loses the arrival and no other: for want of room, or to signal congestion.
/// Marks are for who asked for them.
fn arrivals_alone_are_lost(before: &Ledger, step: &Step, _after: &Ledger) -> Outcome {
    let Call::Enqueue(packet) = step.call else {
        hold!(step.dropped().next().is_none(), "a loss in {:?}", step.call);
        return Ok(());
    };
    let fits = before.backlog().has_room(step.params.amount("limit"), &packet);
    match step.dropped().next() {
        None => hold!(fits, "accepted without room"),
        Some((_, drop)) if drop.reason == DropReason::Full => hold!(!fits, "there was room"),
        Some((_, drop)) => {
            hold!(drop.reason == DropReason::Congested, "{drop:?} of an arrival");
            hold!(fits || !step.params.has("ecn"), "{drop:?} without room");
        }
    }
    let marked = step.events().any(|event| matches!(event, Event::Marked { .. }));
    let may_mark = step.params.has("ecn") && step.params.flag("ecn") && packet.ecn().is_capable();
    hold!(!marked || may_mark, "marked {packet:?}");
    Ok(())
}

fn a_short_queue_is_left_alone(before: &Ledger, step: &Step, _after: &Ledger) -> Outcome {
    let early = step.dropped().any(|(_, drop)| drop.reason == DropReason::Congested)
        || step.events().any(|event| matches!(event, Event::Marked { .. }));
    hold!(!early || before.queued.len() > 1, "a signal with {} queued", before.queued.len());
    Ok(())
}

fn tracks_all(params: &Params) -> bool {
    params.number("flows") >= 1000
}

/// FRED remembers the flows that have a packet queued.
fn entry_iff_queued(_before: &Ledger, _step: &Step, after: &Ledger) -> Outcome {
    let queued: BTreeSet<_> = after.queued.values().map(|(packet, _)| packet.flow).collect();
    hold!(after.entries == queued, "entries {:?}, queued {queued:?}", after.entries);
    Ok(())
}

fn spares_two(params: &Params) -> bool {
    tracks_all(params) && params.flag("two-packets")
}

/// With two packets for everybody, a flow with nothing queued is not refused early.
fn nobody_is_shut_out(before: &Ledger, step: &Step, _after: &Ledger) -> Outcome {
    let early = step.dropped().find(|(_, drop)| drop.reason == DropReason::Congested);
    hold!(early.is_none_or(|(packet, _)| before.has_queued(packet.flow)), "{early:?} was refused");
    Ok(())
}

/// In packets are told of in the short lane, Out packets in the low one.
fn lane_is_the_tag(_before: &Ledger, step: &Step, after: &Ledger) -> Outcome {
    let Call::Enqueue(packet) = step.call else { return Ok(()) };
    let tagged = u64::from(packet.dscp) == step.params.number("in-dscp");
    let expected = if tagged { Lane::SHORT } else { Lane::LONG };
    let queued = after.queued.get(&packet.id).map(|(_, lane)| *lane);
    let found = queued.or(step.dropped().next().map(|(_, drop)| drop.lane));
    hold!(found == Some(expected), "{packet:?} in {found:?}");
    Ok(())
}

/// CoDel signals only after packets have been late for an interval, and never the last ones.
fn patience() -> Check {
    let mut arrived: HashMap<u64, Nanos> = HashMap::new();
    let mut late_since = None;
    let mut changed = false;
    Box::new(move |before, step, _after| {
        match step.call {
            Call::Enqueue(packet) => drop(arrived.insert(packet.id, step.now)),
            // The law goes by the parameters that were in force when packets became late.
            Call::Change(..) => changed = true,
            _ => {}
        }
        let Call::Dequeue(answer) = step.call else { return Ok(()) };
        let (target, interval) = (step.params.time("target"), step.params.time("interval"));
        let mut behind = before.backlog().bytes;
        let mut is_late = |packet: &Packet| {
            behind -= u64::from(packet.size);
            let sojourn = step.now - arrived[&packet.id];
            sojourn >= target && behind > step.params.number("mtu")
        };
        for (packet, drop) in step.dropped() {
            hold!(drop.reason == DropReason::Congested, "{drop:?} in dequeue");
            hold!(changed || is_late(packet), "{packet:?} is not late, or one of the last");
            let patient = late_since.is_some_and(|since| step.now - since >= interval);
            hold!(changed || patient, "{packet:?} dropped, late since {late_since:?}");
        }
        let late = answer.packet().is_some_and(|packet| is_late(&packet));
        if let sched::Dequeue::Packet { packet, mark: true } = answer {
            let patient = late_since.is_some_and(|since| step.now - since >= interval);
            hold!(changed || patient, "{packet:?} marked, late since {late_since:?}");
        }
        late_since = if late { late_since.or(Some(step.now)) } else { None };
        Ok(())
    })
}

fn marks_if_it_can(_before: &Ledger, step: &Step, _after: &Ledger) -> Outcome {
    let marked = matches!(step.call, Call::Dequeue(sched::Dequeue::Packet { mark: true, .. }));
    let may_mark = step.params.flag("ecn");
    hold!(!marked || may_mark, "marked, and ecn is off");
    let lost = step.dropped().find(|(packet, drop)| {
        may_mark && drop.reason == DropReason::Congested && packet.ecn().is_capable()
    });
    hold!(lost.is_none(), "{lost:?} could have been marked");
    Ok(())
}

/// An overflow takes packets from the head of the bucket with most bytes.
fn fattest_loses_its_head(before: &Ledger, step: &Step, _after: &Ledger) -> Outcome {
    let Call::Enqueue(arrival) = step.call else { return Ok(()) };
    let buckets = step.params.number("buckets");
    let bucket = |packet: &Packet| packet.flow.get() as u32 % buckets as u32;
    let there = || before.queued.values().map(|(packet, _)| packet).chain([&arrival]);
    let bytes =
        |index| there().filter(|p| bucket(p) == index).map(|p| u64::from(p.size)).sum::<u64>();
    let mut lost = step.dropped();
    let Some((first, drop)) = lost.next() else { return Ok(()) };
    if drop.reason == DropReason::Full && lost.next().is_none() {
        return Ok(());
    }
    let fattest = there().map(|packet| bytes(bucket(packet))).max();
    let index = bucket(first);
    hold!(Some(bytes(index)) == fattest, "{first:?} was not in the fattest bucket");
    let mut left: Vec<_> = there().collect();
    for (lost, _) in step.dropped() {
        let oldest = left.iter().position(|packet| bucket(packet) == bucket(lost));
        let oldest = left.remove(oldest.expect("the books have it"));
        hold!(oldest.id == lost.id, "{lost:?} was lost, and {oldest:?} is its bucket's head");
    }
    Ok(())
}
