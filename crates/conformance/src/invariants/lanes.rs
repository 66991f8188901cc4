//! The lanes family: who is long, who goes first, who is dropped.

use std::collections::{BTreeSet, HashMap};

use sched::interface::parts::{Accounting, Buffer, Parts, Service};
use sched::{Amount, Event, FlowId, Lane, Nanos, Packet, Params, Share, registry};

use super::{Check, Invariant, Of, Outcome, always};
use crate::ledger::{Ledger, hold};
use crate::run::{Call, Step};

pub(super) const ALL: &[Invariant] = &[
    Invariant { of: Of::Lanes, given: always, check: || Box::new(each_lane_is_fifo) },
    Invariant { of: Of::Lanes, given: is_strict, check: || Box::new(low_waits_for_high) },
    Invariant { of: Of::Lanes, given: always, check: || Box::new(room_decides) },
    Invariant { of: Of::Lanes, given: has_drop_tail, check: || Box::new(nobody_is_pushed_out) },
    Invariant { of: Of::Lanes, given: keeps_entries, check: || Box::new(long_iff_demoted) },
    Invariant { of: Of::Lanes, given: has_threshold, check: within_threshold },
    Invariant { of: Of::Named(&["auto"]), given: always, check: within_range_of_threshold },
    Invariant { of: Of::Named(&["efd"]), given: tracks_all, check: entry_iff_queued },
    Invariant {
        of: Of::Named(&["sb", "sb-ko", "sb-sh", "sift"]),
        given: is_fair,
        check: lanes_share,
    },
];

fn parts(params: &Params) -> Parts {
    let info = registry::find(params.discipline()).expect("a discipline of the registry");
    info.parts.expect("a discipline with lanes")(params)
}

/// Whether the long lane is served only when the short lane is empty.
fn is_strict(params: &Params) -> bool {
    match parts(params).service {
        Service::Strict => true,
        Service::Guaranteed => low_share(params) == Share::ZERO,
        Service::Weighted | Service::Adapted => params.share("weight") == Share::ONE,
    }
}

fn has_knockout(params: &Params) -> bool {
    parts(params).buffer == Buffer::Knockout
}

/// What the long lane is guaranteed.
fn low_share(params: &Params) -> Share {
    let guaranteed = parts(params).service == Service::Guaranteed;
    if guaranteed { params.share("low-share") } else { Share::ZERO }
}

fn has_drop_tail(params: &Params) -> bool {
    !has_knockout(params)
}

/// Whether a flow is long by its entry alone, not by what a packet carries.
fn keeps_entries(params: &Params) -> bool {
    !matches!(parts(params).accounting, Accounting::Offset | Accounting::Mark)
}

/// Whether a count against a threshold decides, and decides for every packet.
fn has_threshold(params: &Params) -> bool {
    let by_rule = !params.has("sampled-to") || params.word("sampled-to") == "rule";
    let counts_all = !params.has("count-sampled") || params.flag("count-sampled");
    let counts_all = counts_all && parts(params).accounting != Accounting::Retest;
    let never_resets = !params.has("interval") || params.time("interval") == Nanos::MAX;
    let is_fixed = parts(params).service != Service::Adapted;
    let count_decides = by_rule && counts_all && never_resets && is_fixed;
    params.has("threshold") && keeps_entries(params) && count_decides
}

/// Whether the flow table's bound is out of reach.
fn tracks_all(params: &Params) -> bool {
    params.number("flows") >= 1000
}

fn is_fair(params: &Params) -> bool {
    params.word("sharing") == "scfq" && params.share("weight") < Share::ONE
}

fn each_lane_is_fifo(before: &Ledger, step: &Step, _after: &Ledger) -> Outcome {
    let Some(packet) = step.departed() else { return Ok(()) };
    let (_, lane) = before.queued[&packet.id];
    let oldest = before.lane(lane).next().map(|packet| packet.id);
    hold!(oldest == Some(packet.id), "{packet:?} left before {oldest:?} of {lane:?}");
    Ok(())
}

fn low_waits_for_high(before: &Ledger, step: &Step, _after: &Ledger) -> Outcome {
    let Some(packet) = step.departed() else { return Ok(()) };
    let high = before.lane(Lane::SHORT).next();
    let is_low = before.queued[&packet.id].1 == Lane::LONG;
    hold!(!is_low || high.is_none(), "{packet:?} left the long lane before {high:?}");
    Ok(())
}

/// What a packet counts for.
fn cost(amount: Amount, packet: &Packet) -> u64 {
    u64::from(amount.cost(packet.segments, packet.size))
}

/// An arrival is lost iff it does not fit; under knockout, a short one iff it would not even fit
/// into an empty long lane. Only the long lane's tail is pushed out, and no more than needed. What the
/// long lane is guaranteed is never taken from it, but for the one packet of an empty short lane.
fn room_decides(before: &Ledger, step: &Step, after: &Ledger) -> Outcome {
    let Call::Enqueue(arrival) = step.call else { return Ok(()) };
    let limit = step.params.amount("limit");
    let sum = |ledger: &Ledger, lane| ledger.lane(lane).map(|p| cost(limit, p)).sum::<u64>();
    let (high, low) = (sum(before, Lane::SHORT), sum(before, Lane::LONG));
    let needed = cost(limit, &arrival);
    let fits = high + low + needed <= limit.value();
    let low_part = limit.part(low_share(&step.params));
    let fits_high = high == 0 || high + needed <= limit.value() - low_part;
    if let Some((_, drop)) = step.dropped().find(|(packet, _)| packet.id == arrival.id) {
        let may_push_out = has_knockout(&step.params) && drop.lane == Lane::SHORT;
        let is_high = drop.lane == Lane::SHORT;
        hold!(!fits || is_high && !fits_high, "lost, and {high}+{low}+{needed} fit into {limit}");
        let no_room = !fits_high || high + needed > limit.value();
        hold!(!may_push_out || no_room, "lost, and the long lane is not");
        hold!(step.dropped().count() == 1, "lost, and others for nothing");
        return Ok(());
    }
    let joined_high = after.queued[&arrival.id].1 == Lane::SHORT;
    hold!(!joined_high || fits_high, "{arrival:?} has taken the long lane's part of {low_part}");
    let mut used = high + low;
    for (victim, drop) in step.dropped() {
        hold!(drop.lane == Lane::LONG, "{victim:?} had been accepted to the short lane");
        hold!(after.queued[&arrival.id].1 == Lane::SHORT, "pushed {victim:?} out for a long flow");
        hold!(used + needed > limit.value(), "{victim:?} was pushed out for nothing");
        let newest = after.lane(Lane::LONG).last().map_or(0, |packet| packet.id);
        hold!(victim.id >= newest, "{victim:?} was not at the tail");
        used -= cost(limit, victim);
    }
    Ok(())
}

fn nobody_is_pushed_out(_before: &Ledger, step: &Step, _after: &Ledger) -> Outcome {
    let Call::Enqueue(arrival) = step.call else { return Ok(()) };
    let victim = step.dropped().find(|(packet, _)| packet.id != arrival.id);
    hold!(victim.is_none(), "{victim:?} was pushed out");
    Ok(())
}

/// The lane that an arrival joined, or would have joined.
fn lane_of_arrival(step: &Step) -> Option<(Packet, Lane)> {
    let Call::Enqueue(arrival) = step.call else { return None };
    let joined = step.events().find_map(|event| match event {
        Event::Enqueued { lane, .. } => Some(lane),
        _ => None,
    });
    let lost = step.dropped().find(|(packet, _)| packet.id == arrival.id);
    Some((arrival, joined.or(lost.map(|(_, drop)| drop.lane))?))
}

/// Packets of a flow join the long lane from the time it is demoted, while its entry lives.
fn long_iff_demoted(before: &Ledger, step: &Step, _after: &Ledger) -> Outcome {
    let Some((arrival, lane)) = lane_of_arrival(step) else { return Ok(()) };
    let mut demoted = before.demoted.contains(&arrival.flow);
    for event in step.events() {
        match event {
            Event::Enqueued { .. } => break,
            Event::Demoted { flow } if flow == arrival.flow => demoted = true,
            Event::Promoted { flow } if flow == arrival.flow => demoted = false,
            // An entry that is made and lost in one step was lost after the decision.
            Event::FlowRemoved { flow } if flow == arrival.flow => {
                demoted &= !before.entries.contains(&flow);
            }
            _ => {}
        }
    }
    hold!((lane == Lane::LONG) == demoted, "{lane:?}, and demoted is {demoted}");
    Ok(())
}

/// A flow is short up to its threshold, counted since it came into the table, and not beyond.
fn within_threshold() -> Check {
    let mut counts: HashMap<FlowId, u64> = HashMap::new();
    let mut unit = None;
    Box::new(move |before, step, after| {
        let threshold = step.params.amount("threshold");
        let Some((arrival, lane)) = lane_of_arrival(step) else { return Ok(()) };
        // Counts are in the unit of the threshold that a run begins with.
        if *unit.get_or_insert(std::mem::discriminant(&threshold))
            != std::mem::discriminant(&threshold)
        {
            return Ok(());
        }
        let created = step.events().any(|event| event == Event::FlowCreated { flow: arrival.flow });
        let removed = step.events().any(|event| event == Event::FlowRemoved { flow: arrival.flow });
        let known = created || (before.entries.contains(&arrival.flow) && !removed);
        if !known {
            hold!(removed || lane == Lane::SHORT, "a flow without an entry is long");
            counts.remove(&arrival.flow);
            return Ok(());
        }
        if created {
            counts.insert(arrival.flow, 0);
        }
        let count = counts.entry(arrival.flow).or_default();
        let seen = *count;
        *count += cost(threshold, &arrival);
        let short = match step.params.word("boundary") {
            "before" => seen < threshold.value(),
            "after" => *count <= threshold.value(),
            _ => seen <= threshold.value(),
        };
        let was_long = !created && before.demoted.contains(&arrival.flow);
        let expected = if short && !was_long { Lane::SHORT } else { Lane::LONG };
        hold!(lane == expected, "{lane:?} with {seen} before it, threshold {threshold}");
        counts.retain(|flow, _| after.entries.contains(flow));
        Ok(())
    })
}

/// Whatever the queue has been, a threshold is within `range` of the one that was given: a flow
/// becomes long no earlier and no later, counted since it came into the table.
fn within_range_of_threshold() -> Check {
    let mut counts: HashMap<FlowId, u64> = HashMap::new();
    Box::new(move |before, step, after| {
        let threshold = step.params.amount("threshold");
        let Some((arrival, lane)) = lane_of_arrival(step) else { return Ok(()) };
        let (created, removed) = (
            step.events().any(|event| event == Event::FlowCreated { flow: arrival.flow }),
            step.events().any(|event| event == Event::FlowRemoved { flow: arrival.flow }),
        );
        if created || removed || !before.entries.contains(&arrival.flow) {
            counts.insert(arrival.flow, 0);
        }
        let count = counts.entry(arrival.flow).or_default();
        *count += cost(threshold, &arrival);
        let (given, range) = (u128::from(threshold.value()), step.params.number("range"));
        // A packet that begins within the threshold may be short whole; rounding is down.
        let most = given * u128::from(range) / 1000 + u128::from(cost(threshold, &arrival));
        let least = (given * 999 / u128::from(range)).saturating_sub(1);
        let (seen, is_long) = (u128::from(*count), lane == Lane::LONG);
        let was_long = !created && before.demoted.contains(&arrival.flow);
        hold!(is_long || seen <= most, "short after {seen}, at most {most} are");
        hold!(!is_long || was_long || seen >= least, "long after {seen}, at least {least} are not");
        counts.retain(|flow, _| after.entries.contains(flow));
        Ok(())
    })
}

/// A flow has an entry iff one of its packets is queued (or on the wire, where that counts).
fn entry_iff_queued() -> Check {
    let mut holds_on_wire = false;
    Box::new(move |_before, step, after| {
        if let Call::Dequeue(_) = step.call {
            holds_on_wire = step.params.flag("hold-on-wire");
        }
        let mut expected: BTreeSet<_> = after.queued.values().map(|(p, _)| p.flow).collect();
        if let Some((packet, _)) = after.on_wire.filter(|_| holds_on_wire) {
            expected.insert(packet.flow);
        }
        hold!(after.entries == expected, "entries {:?}, queued {expected:?}", after.entries);
        Ok(())
    })
}

/// While both lanes are backlogged, W1/w - W2/(1-w) moves by no more than L/w + L/(1-w).
fn lanes_share() -> Check {
    let mut largest = 0;
    let (mut lead, mut least, mut most) = (0i128, 0i128, 0i128);
    Box::new(move |before, step, after| {
        if let Call::Enqueue(packet) = step.call {
            largest = largest.max(i128::from(packet.size));
        }
        if let Some(packet) = step.departed() {
            let weight = i128::from(step.params.share("weight").ppb());
            let size = i128::from(packet.size);
            // In units of w(1-w).
            lead += match before.queued[&packet.id].1 {
                Lane::SHORT => size * (1_000_000_000 - weight),
                _ => -size * weight,
            };
            (least, most) = (least.min(lead), most.max(lead));
            hold!(most - least <= largest * 1_000_000_000, "shares differ by {}", most - least);
        }
        let one_is_empty =
            [Lane::SHORT, Lane::LONG].iter().any(|l| after.lane(*l).next().is_none());
        if one_is_empty || matches!(step.call, Call::Change(..)) {
            (lead, least, most) = (0, 0, 0);
        }
        Ok(())
    })
}
