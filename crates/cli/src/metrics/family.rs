//! The metrics: names, kinds, labels and where they come from, in one place.
//!
//! `docs/operators/metrics.md` has this as a table; a test compares them.

use engine::status::{Auto, Histogram, LaneCounters, Process, Status};
use sched::Nanos;

use crate::attach::text::counts_long;

/// A name with all its series.
pub(super) struct Family {
    /// Without the suffix that its kind adds (`_total`, `_info`, ...).
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Labels beside [`COMMON`].
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
    pub(super) read: Read,
}

/// Labels that every series has: the device, which way packets go, and, for one of several
/// qdiscs below `mq`, its place.
pub(super) const COMMON: [&str; 3] = ["device", "direction", "parent"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// How its values are read off a status.
pub(super) enum Read {
    /// One; `None` where there is none.
    Whole(fn(&Status) -> Option<Value>),
    /// One for each lane.
    Lane(fn(&LaneCounters) -> Value),
    /// One for each lane.
    Times(fn(&LaneCounters) -> &Histogram),
    /// One for each reason and lane.
    Drops,
    /// One for each reason of a decision on a rate that follows the link.
    Decisions,
    /// What the labels say.
    Words(fn(&Status) -> Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Count(u64),
    Real(f64),
}

use Kind::{Counter, Gauge, Info};
use Read::{Decisions, Drops, Lane, Times, Whole, Words};
use Value::{Count, Real};

const LANE: &[&str] = &["lane"];

fn process(status: &Status, read: fn(&Process) -> Value) -> Option<Value> {
    status.process.as_ref().map(read)
}

fn auto(status: &Status, read: fn(&Auto) -> Option<Value>) -> Option<Value> {
    read(status.auto.as_ref()?)
}

fn seconds(time: Nanos) -> Value {
    Real(time.0 as f64 / 1e9)
}

const fn whole(
    name: &'static str,
    kind: Kind,
    read: fn(&Status) -> Option<Value>,
    help: &'static str,
) -> Family {
    Family { name, kind, labels: &[], help, read: Whole(read) }
}

const fn by_lane(
    name: &'static str,
    kind: Kind,
    read: fn(&LaneCounters) -> Value,
    help: &'static str,
) -> Family {
    Family { name, kind, labels: LANE, help, read: Lane(read) }
}

/// All of them, in the order in which they are told.
pub(super) const ALL: &[Family] = &[
    Family {
        name: "shortlane_attachment",
        kind: Info,
        labels: &["engine", "scheduler", "overhead", "peer"],
        help: "The attached discipline",
        read: Words(|status| {
            vec![
                status.engine.name().to_owned(),
                status.scheduler.clone(),
                status.link.overhead.to_string(),
                status.peer.clone().unwrap_or_default(),
            ]
        }),
    },
    whole(
        "shortlane_rate_limit_bits_per_second",
        Gauge,
        |status| status.link.rate.limit().map(Count),
        "Rate of the shaper; absent if unlimited",
    ),
    whole(
        "shortlane_uptime_seconds",
        Gauge,
        |status| Some(seconds(status.uptime)),
        "Time since it was attached",
    ),
    by_lane(
        "shortlane_enqueued_packets",
        Counter,
        |lane| Count(lane.enqueued_packets),
        "Packets that joined a lane",
    ),
    by_lane(
        "shortlane_sent_packets",
        Counter,
        |lane| Count(lane.sent_packets),
        "Packets that left a lane for the link",
    ),
    by_lane(
        "shortlane_sent_bytes",
        Counter,
        |lane| Count(lane.sent_bytes),
        "Bytes of these, without the link's overhead",
    ),
    Family {
        name: "shortlane_dropped_packets",
        kind: Counter,
        labels: &["reason", "lane"],
        help: "Packets dropped; the lane is empty if no discipline saw them",
        read: Drops,
    },
    whole(
        "shortlane_marked_packets",
        Counter,
        |status| Some(Count(status.marked)),
        "Packets that were marked as having experienced congestion (ECN)",
    ),
    by_lane(
        "shortlane_backlog_packets",
        Gauge,
        |lane| Count(lane.backlog_packets),
        "Packets queued",
    ),
    by_lane("shortlane_backlog_bytes", Gauge, |lane| Count(lane.backlog_bytes), "Bytes queued"),
    Family {
        name: "shortlane_sojourn_seconds",
        kind: Kind::Histogram,
        labels: LANE,
        help: "Sojourn times of packets that were sent",
        read: Times(|lane| &lane.sojourn),
    },
    whole(
        "shortlane_flows",
        Gauge,
        |status| Some(Count(status.flows)),
        "Entries of the flow table",
    ),
    whole(
        "shortlane_flows_created",
        Counter,
        |status| Some(Count(status.flows_created)),
        "Entries added to the flow table",
    ),
    whole(
        "shortlane_flows_removed",
        Counter,
        |status| Some(Count(status.flows_removed)),
        "Entries removed from the flow table",
    ),
    whole(
        "shortlane_flows_demoted",
        Counter,
        |status| counts_long(status).then_some(Count(status.demoted)),
        "Times that a flow became long, where there is a long lane",
    ),
    whole(
        "shortlane_flows_promoted",
        Counter,
        |status| counts_long(status).then_some(Count(status.promoted)),
        "Times that a long flow became short again while it was remembered",
    ),
    whole(
        "shortlane_untracked_packets",
        Counter,
        |status| Some(Count(status.flows_untracked)),
        "Packets that found the flow table full",
    ),
    whole(
        "shortlane_super_packets",
        Counter,
        |status| Some(Count(status.super_packets)),
        "Packets of several segments that arrived unsegmented",
    ),
    whole(
        "shortlane_paced",
        Counter,
        |status| Some(Count(status.paced)),
        "Times that the rate made a packet wait",
    ),
    whole(
        "shortlane_received_packets",
        Counter,
        |status| process(status, |process| Count(process.received.packets)),
        "Frames that the userspace engine received",
    ),
    whole(
        "shortlane_lost_in_kernel_packets",
        Counter,
        |status| process(status, |process| Count(process.lost_in_kernel)),
        "Frames that arrived too fast for the userspace engine to receive",
    ),
    whole(
        "shortlane_passed_packets",
        Counter,
        |status| process(status, |process| Count(process.passed.packets)),
        "Frames that bypassed the userspace engine, unshaped, because it did not respond in time",
    ),
    whole(
        "shortlane_lost_transmission_seconds",
        Counter,
        |status| process(status, |process| seconds(process.punctuality.lost)),
        "Link time lost because the userspace engine was late by more than burst-time",
    ),
    whole(
        "shortlane_lateness_max_seconds",
        Gauge,
        |status| process(status, |process| seconds(process.punctuality.max_late)),
        "Longest delay of a transmission by the userspace engine after it was due",
    ),
    whole(
        "shortlane_auto_base_bits_per_second",
        Gauge,
        |status| auto(status, |auto| Some(Count(auto.base_bps))),
        "Base rate of a rate that follows the link: in force while nothing is known of the link",
    ),
    whole(
        "shortlane_auto_blind",
        Gauge,
        |status| auto(status, |auto| Some(Count(auto.blind.into()))),
        "1 if no probe is answered, so that the rate is at its base; 0 if it follows the link",
    ),
    Family {
        name: "shortlane_auto_decisions",
        kind: Counter,
        labels: &["reason"],
        help: "Decisions on a rate that follows the link: queue, drained, stayed, room, idle or blind",
        read: Decisions,
    },
    whole(
        "shortlane_auto_extra_delay_seconds",
        Gauge,
        |status| auto(status, |auto| auto.extra_delay_ns.map(|ns| seconds(Nanos(ns)))),
        "Round-trip time of the latest probes above the fastest of the last minute",
    ),
    whole(
        "shortlane_auto_lowered",
        Counter,
        |status| auto(status, |auto| Some(Count(auto.lowered))),
        "Times that a rate that follows the link was lowered because of a queue beyond this machine",
    ),
    whole(
        "shortlane_auto_raised",
        Counter,
        |status| auto(status, |auto| Some(Count(auto.raised))),
        "Times that it was raised because it was fully used and there was no queue",
    ),
];
