//! One look, as the page gets it: what happened since the one before.

use engine::status::{Auto, Histogram, Status};
use serde::Serialize;

use crate::attach::link;
use crate::attach::text::{counts_long, lane_name};
use crate::top::view::{View, Way};

/// What a page draws of one moment.
#[derive(Serialize)]
pub(super) struct Sample {
    /// Unix time, in milliseconds.
    pub(super) at_ms: u64,
    /// Why there is nothing to be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    gone: Option<String>,
    ways: Vec<WaySample>,
}

/// One direction, or one queue of a device with many. Without a look before, or attached anew, it has
/// what it is and not what it did.
#[derive(Serialize)]
struct WaySample {
    way: String,
    limit_bps: Option<u64>,
    flows: u64,
    /// How long it did this for; 0 if that is not known.
    nanos: u64,
    lanes: Vec<LaneSample>,
    /// Reason, lane, packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drops: Vec<(String, Option<u8>, u64)>,
    marked: u64,
    /// Flows that became long, if that is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    became_long: Option<u64>,
    /// How its rate follows the link, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    auto: Option<AutoSample>,
    /// What of its settings has changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<String>,
}

#[derive(Serialize)]
struct AutoSample {
    floor_bps: u64,
    ceiling_bps: u64,
    extra_ns: Option<u64>,
    /// Those since the look before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decisions: Vec<DecisionSample>,
}

#[derive(Serialize)]
struct DecisionSample {
    at_ms: u64,
    to_bps: u64,
    reason: String,
    text: String,
}

#[derive(Serialize)]
struct LaneSample {
    name: String,
    backlog_bytes: u64,
    backlog_packets: u64,
    sent_bytes: u64,
    sent_packets: u64,
    /// Waits of what was sent: bucket of the histogram, packets.
    waits: Vec<(usize, u64)>,
}

impl Sample {
    pub(super) fn of(view: &View, at_ms: u64) -> Self {
        Self { at_ms, gone: None, ways: view.ways().iter().map(|one| way(one, at_ms)).collect() }
    }

    pub(super) fn gone(why: &str, at_ms: u64) -> Self {
        Self { at_ms, gone: Some(why.to_owned()), ways: Vec::new() }
    }
}

fn way(way: &Way, at_ms: u64) -> WaySample {
    let now = &way.now;
    let drops = now.drops.iter().filter_map(|drop| {
        let same = |status: &Status| {
            let of =
                status.drops.iter().filter(|of| (&of.reason, of.lane) == (&drop.reason, drop.lane));
            of.map(|drop| drop.packets).sum()
        };
        let packets = way.grown(same);
        (packets > 0).then(|| (drop.reason.clone(), drop.lane, packets))
    });
    WaySample {
        way: name(now),
        limit_bps: now.link.rate.limit(),
        flows: now.flows,
        nanos: way.elapsed().0,
        lanes: (0..now.lanes.len()).map(|at| lane(way, at)).collect(),
        drops: drops.collect(),
        marked: way.grown(|status| status.marked),
        became_long: counts_long(now).then(|| way.grown(|status| status.demoted)),
        auto: auto(now).map(|auto| follows(auto, way.before(), at_ms)),
        changes: way.before().map_or_else(Vec::new, |before| changes(before, now)),
    }
}

fn auto(status: &Status) -> Option<&Auto> {
    status.auto.as_ref()
}

fn follows(now: &Auto, before: Option<&Status>, at_ms: u64) -> AutoSample {
    // Nothing is told twice, nor what was before anybody looked.
    let told = match before {
        None => u64::MAX,
        Some(before) => {
            let last = auto(before).and_then(|before| before.decisions.last());
            last.map_or(0, |decision| decision.number)
        }
    };
    let new = now.decisions.iter().filter(|decision| decision.number > told);
    let decisions = new.map(|decision| DecisionSample {
        at_ms: at_ms.saturating_sub(decision.ns_ago / 1_000_000),
        to_bps: decision.to_bps,
        reason: decision.reason.clone(),
        text: decision.text.clone(),
    });
    AutoSample {
        floor_bps: now.floor_bps,
        ceiling_bps: now.ceiling_bps,
        extra_ns: now.extra_delay_ns.filter(|_| !now.blind),
        decisions: decisions.collect(),
    }
}

/// The direction, and the place of a qdisc that is one of several.
fn name(status: &Status) -> String {
    let direction = status.direction.name();
    match status.qdisc.as_ref().filter(|qdisc| qdisc.parent != "root") {
        Some(qdisc) => format!("{direction} {}", qdisc.parent),
        None => direction.to_owned(),
    }
}

fn lane(way: &Way, at: usize) -> LaneSample {
    let lane = &way.now.lanes[at];
    let waits = match way.before() {
        Some(_) => way.sojourn(at),
        None => Histogram::default(),
    };
    let of = |counter: fn(&engine::status::LaneCounters) -> u64| {
        way.grown(|status| status.lanes.get(at).map_or(0, counter))
    };
    LaneSample {
        name: lane_name(&way.now.scheduler, at, way.now.lanes.len()),
        backlog_bytes: lane.backlog_bytes,
        backlog_packets: lane.backlog_packets,
        sent_bytes: of(|lane| lane.sent_bytes),
        sent_packets: of(|lane| lane.sent_packets),
        waits: waits.counts.into_iter().enumerate().filter(|(_, packets)| *packets > 0).collect(),
    }
}

fn changes(before: &Status, now: &Status) -> Vec<String> {
    let rate = |status: &Status| link::shown(status.link.rate);
    let limit = |status: &Status| status.limit.clone().unwrap_or_else(|| "none".into());
    let overhead = |status: &Status| status.link.overhead.to_string();
    let sight = |status: &Status| {
        auto(status).map_or("not followed", |auto| if auto.blind { "blind" } else { "seen" })
    };
    // Rates that were decided on are told as decisions.
    let by_hand = |status: &Status| if auto(now).is_some() { String::new() } else { rate(status) };
    [
        ("rate", by_hand(before), by_hand(now)),
        ("the link", sight(before).into(), sight(now).into()),
        ("scheduler", before.scheduler.clone(), now.scheduler.clone()),
        ("limit", limit(before), limit(now)),
        ("overhead", overhead(before), overhead(now)),
    ]
    .into_iter()
    .filter(|(_, before, now)| before != now)
    .map(|(what, before, now)| format!("{what} {before} to {now}"))
    .collect()
}
