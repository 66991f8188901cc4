//! What is told of an engine's process, of flows and hosts, and of a rate that follows the link.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use account::Tally;
use sched::Nanos;
use serde::{Deserialize, Serialize};

/// What only the userspace engine has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The engine's process.
    pub pid: u32,
    /// Frames that the engine received.
    pub received: Tally,
    /// Frames that it handed to the interface.
    pub handed_on: Tally,
    /// Frames under way on the link that the engine plays: the propagation delay.
    pub in_flight: Tally,
    /// Frames lost in the kernel because the engine did not receive them in time.
    pub lost_in_kernel: u64,
    /// Frames that passed by the engine, unshaped, since it did not answer in time.
    pub passed: Tally,
    /// Whether the engine may have real-time priority while it paces (or never needed it).
    pub realtime: bool,
    /// Whether clients that are behind NAT on this machine are told apart, by conntrack.
    #[serde(default)]
    pub nat_revealed: bool,
    /// How punctual its shaper was.
    pub punctuality: Punctuality,
}

/// Who was seen lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The hosts to or from which most arrives, first the busiest, if hosts share the link and the
    /// engine knows them.
    #[serde(default)]
    pub busiest_hosts: Vec<Host>,
    /// The biggest flows, first the biggest; of marks, of the long ones.
    pub biggest_flows: Vec<Flow>,
    /// The newest flows, first the newest. Marks do not know them.
    #[serde(default)]
    pub newest_flows: Vec<Flow>,
}

impl Seen {
    /// Hosts or flows in one list.
    pub(crate) const LISTED: usize = 24;

    /// Those of these hosts to or from which most arrives.
    pub(crate) fn busiest(hosts: impl IntoIterator<Item = Host>) -> Vec<Host> {
        let mut hosts: Vec<Host> = hosts.into_iter().collect();
        hosts.sort_by_key(|host| Reverse((host.arriving_bps, host.sent.bytes)));
        hosts.truncate(Self::LISTED);
        hosts
    }
}

/// A rate that follows the link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Auto {
    /// The rate is never below this, in bit/s.
    pub floor_bps: u64,
    /// What it is while nothing is known of the link.
    pub base_bps: u64,
    /// It is never above this.
    pub ceiling_bps: u64,
    /// The host that is asked for its delay.
    pub probe: String,
    /// The process that follows.
    #[serde(default)]
    pub pid: u32,
    /// Whether it only tells what it would do: the rate stays at the base.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether that does not answer.
    pub blind: bool,
    /// The least round-trip time of the last minute.
    pub round_trip_ns: Option<u64>,
    /// How much longer the latest ones were.
    pub extra_delay_ns: Option<u64>,
    /// How often the rate was lowered, for a queue.
    pub lowered: u64,
    /// How often it was raised, as there was room.
    pub raised: u64,
    /// The last decision with its evidence, as one line.
    pub last_decision: Option<String>,
    /// Its reason in one word.
    pub last_reason: Option<String>,
    /// How long ago that was.
    pub decided_ns_ago: Option<u64>,
    /// How many decisions there were, by their reason.
    #[serde(default)]
    pub decided: BTreeMap<String, u64>,
    /// The latest decisions, the oldest of them first; of older ones, those for `room` are forgotten
    /// first.
    #[serde(default)]
    pub decisions: Vec<Decided>,
}

/// One decision on a rate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The how manieth it is of its direction, from 1.
    pub number: u64,
    /// How long ago it was.
    pub ns_ago: u64,
    /// The rate before, in bit/s.
    pub from_bps: u64,
    /// The rate that was decided on.
    pub to_bps: u64,
    /// Its reason in one word.
    pub reason: String,
    /// Both rates and the evidence, as one line.
    pub text: String,
}

/// How punctual the shaper was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Punctuality {
    /// The longest that a transmission started after it was due.
    #[serde(rename = "max_late_ns")]
    pub max_late: Nanos,
    /// Transmission time that was lost, as wake-ups came later than can be caught up.
    #[serde(rename = "lost_ns")]
    pub lost: Nanos,
    /// How many transmissions were later than can be caught up.
    pub late_beyond_burst: u64,
    /// Most packets that were started at one instant.
    pub largest_burst_packets: u64,
    /// Most bytes that were started at one instant, with overhead.
    pub largest_burst_bytes: u64,
}

/// A flow, counted since it was taken into the engine's table of flows; of marks, since it became
/// long. A qdisc inside the kernel counts a packet when that has left, or is dropped from its flow's
/// queue: what waits is not in here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Its 5-tuple: `10.0.0.1:1234 > 10.0.0.2:80 tcp`.
    pub flow: String,
    /// The lane that its latest packet joined; none before one did.
    pub lane: Option<u8>,
    /// Where it stands by its age, if the discipline knows ages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// Packets that arrived at the queue.
    pub arrived: Tally,
    /// Packets that left it for the link. Marks are in front of the queue: they see what arrives,
    /// and neither drops nor marks.
    pub sent: Tally,
    /// Packets that were dropped.
    pub dropped_packets: u64,
    /// Packets that were marked "congestion experienced"; a qdisc inside the kernel does not know of
    /// which flow they are.
    pub marked_packets: u64,
    /// What of it arrived during the last second, in bit/s; in a qdisc inside the kernel, what left.
    pub arriving_bps: u64,
    /// Time since it was taken up.
    #[serde(rename = "age_ns")]
    pub age: Nanos,
    /// Time since its latest packet arrived.
    #[serde(rename = "idle_ns")]
    pub idle: Nanos,
}

/// Where a flow stands among others, by its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The lane that its next packet joins.
    pub lane: u8,
    /// Its tier, from 1; 0 if it is new.
    pub tier: u8,
    /// Its age: bytes that it was served in excess of its fair share.
    pub excess_bytes: u64,
}

/// A host that shares the link with others: its flows of the last 30 s.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its address.
    pub host: String,
    /// How many flows.
    pub flows: u64,
    /// What of them arrived during the last second, in bit/s.
    pub arriving_bps: u64,
    /// Packets of them that left the queue for the link.
    pub sent: Tally,
}
