//! What is attached and what it has counted: one shape for both engines.
//!
//! `shortlane show --json` prints it, the control socket carries it, `top` and `metrics` read
//! it. What an engine does not have is absent from the document.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::settings::framing::Framing;
use crate::settings::link::LinkSettings;
pub use account::Tally;
pub use netdev::tc::TcStats;

/// A queue at work: what it is and what it has counted since it was attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The device.
    pub device: String,
    /// Its index.
    pub ifindex: u32,
    /// What runs the discipline.
    pub engine: EngineKind,
    /// Which way the packets go, seen from the device.
    pub direction: Heading,
    /// The other interface of a bridge; none on a single interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The discipline with the parameters that were given.
    pub scheduler: String,
    /// What the backlog may be at most, in packets or bytes; none if the discipline has no limit.
    pub limit: Option<String>,
    /// The link, as it was given.
    #[serde(flatten)]
    pub link: LinkSettings,
    /// What its overhead makes of the device's frames.
    #[serde(flatten)]
    pub framing: Framing,
    /// How long it has been attached, in nanoseconds.
    pub uptime_ns: u64,
    /// Since when it has been attached, in nanoseconds of the monotonic clock.
    pub attached_at_ns: u64,
    /// By lane; the first is the short one. A discipline without lanes has one.
    pub lanes: Vec<LaneCounters>,
    /// Packets that were dropped, by reason and lane.
    pub drops: Vec<DropCounter>,
    /// Packets that the discipline marked "congestion experienced".
    pub marked: u64,
    /// Most packets that were queued at once.
    pub most_packets: u64,
    /// Entries in the flow table.
    pub flows: u64,
    /// Most entries there were at once.
    pub most_flows: u64,
    /// Entries that there is room for; none if the discipline has no such bound.
    pub flow_bound: Option<u64>,
    /// Entries of the flow table that were made.
    pub flows_created: u64,
    /// Entries of the flow table that went.
    pub flows_removed: u64,
    /// Times that a flow became long.
    pub demoted: u64,
    /// Times that a long flow became short again while it was remembered.
    pub promoted: u64,
    /// Packets that found the flow table full and were served as short.
    pub flows_untracked: u64,
    /// Fragments. The kernel engine counts those whose headers had to be read.
    pub fragments: u64,
    /// Packets without a readable IP header; in the kernel engine among the same.
    pub not_ip: u64,
    /// Packets that a device has still to cut into segments.
    pub super_packets: u64,
    /// Times that the rate made a packet wait.
    pub paced: u64,
    /// What only a qdisc has.
    #[serde(flatten)]
    pub qdisc: Option<Qdisc>,
    /// What only the userspace engine has.
    #[serde(flatten)]
    pub process: Option<Process>,
}

impl Status {
    /// Bytes that left the queue, over all lanes.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.sent_bytes).sum()
    }

    /// Packets that left the queue, over all lanes.
    #[must_use]
    pub fn sent_packets(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.sent_packets).sum()
    }

    /// Packets that were dropped, whatever for.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.drops.iter().map(|drop| drop.packets).sum()
    }
}

/// What runs a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// A qdisc inside the kernel.
    Kernel,
    /// A program that marks packets for the kernel's own queues.
    Marks,
    /// A process that holds the packets.
    Userspace,
}

impl EngineKind {
    /// Its name, as `--engine` takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Marks => "marks",
            Self::Userspace => "userspace",
        }
    }
}

/// Which way packets go, seen from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Heading {
    /// Out of the device.
    Egress,
    /// In by the device.
    Ingress,
}

impl Heading {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Egress => "egress",
            Self::Ingress => "ingress",
        }
    }
}

/// What a lane has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCounters {
    /// Packets that joined it; a super-packet is one.
    pub enqueued_packets: u64,
    /// Packets that left it for the link.
    pub sent_packets: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Arrivals that found the queue full and were to join it.
    pub full: u64,
    /// Packets that were queued and made room for another.
    pub pushed_out: u64,
    /// Packets that were dropped to signal congestion.
    pub congested: u64,
    /// Packets in it now.
    pub backlog_packets: u64,
    /// Segments in it now: what a limit in packets counts.
    pub backlog_segments: u64,
    /// Bytes in it now.
    pub backlog_bytes: u64,
    /// How long packets were queued.
    pub sojourn: Histogram,
}

/// Buckets of a [`Histogram`].
pub const BUCKETS: usize = 28;
/// The first bucket's bound is 2 to the power of this, in nanoseconds.
const FIRST_BOUND: usize = 10;

/// How long packets were queued, in buckets that double: the first one has those below 1024 ns,
/// the last one is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Packets, by bucket.
    pub counts: [u64; BUCKETS],
    /// All times together, in nanoseconds. It begins anew at 2^64, as the kernel's does: after
    /// months of a busy link with a long queue.
    pub sum_ns: u64,
}

impl Histogram {
    /// Counts a time.
    #[inline]
    pub fn count(&mut self, ns: u64) {
        let bits = (u64::BITS - ns.leading_zeros()) as usize;
        self.counts[bits.saturating_sub(FIRST_BOUND).min(BUCKETS - 1)] += 1;
        self.sum_ns = self.sum_ns.wrapping_add(ns);
    }

    /// What the times in a bucket are below, in nanoseconds; none for the open one.
    #[must_use]
    pub const fn bound_ns(bucket: usize) -> Option<u64> {
        if bucket + 1 < BUCKETS { Some(1 << (bucket + FIRST_BOUND)) } else { None }
    }

    /// Packets in all.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// A time that this part of the packets stayed below, in nanoseconds; 0 without packets,
    /// `u64::MAX` for the open bucket.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> u64 {
        let wanted = (self.packets() as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= wanted {
                return Self::bound_ns(bucket).unwrap_or(u64::MAX);
            }
        }
        0
    }

    /// Their mean, in nanoseconds; 0 without packets.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.packets()).unwrap_or(0)
    }

    /// What has been counted since an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = std::array::from_fn(|bucket| {
            self.counts[bucket].saturating_sub(earlier.counts[bucket])
        });
        Self { counts, sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns) }
    }
}

/// The document has the buckets that packets are in, by their bounds.
#[derive(Serialize, Deserialize)]
struct Written {
    buckets: Vec<Bucket>,
    sum_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct Bucket {
    below_ns: Option<u64>,
    packets: u64,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let occupied = self.counts.iter().enumerate().filter(|(_, packets)| **packets > 0);
        let bucket = |(at, packets): (usize, &u64)| Bucket {
            below_ns: Self::bound_ns(at),
            packets: *packets,
        };
        Written { buckets: occupied.map(bucket).collect(), sum_ns: self.sum_ns }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { buckets, sum_ns } = Written::deserialize(deserializer)?;
        let mut histogram = Self { sum_ns, ..Self::default() };
        for Bucket { below_ns, packets } in buckets {
            let at = (0..BUCKETS).find(|bucket| Self::bound_ns(*bucket) == below_ns);
            let unknown = || serde::de::Error::custom("a bucket that is none of a histogram's");
            histogram.counts[at.ok_or_else(unknown)?] += packets;
        }
        Ok(histogram)
    }
}

/// Packets that were dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropCounter {
    /// The reason: `full`, `pushed-out` or `congested` by the discipline; or one of the engine's.
    pub reason: String,
    /// The lane that they were in or would have joined; none if no discipline saw them.
    pub lane: Option<u8>,
    /// How many.
    pub packets: u64,
}

/// What only a qdisc has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qdisc {
    /// The kind of qdisc, as `tc` shows it.
    pub kind: String,
    /// Its handle, as `tc` shows it.
    pub handle: String,
    /// Its place: `root`, or the class that it is below.
    pub parent: String,
    /// Whether `tc` gave options of its own.
    pub from_tc: bool,
    /// What `tc -s` shows.
    pub tc: TcStats,
    /// Arrivals dropped since a lane had no slot left, below a limit in bytes.
    pub no_slots: u64,
    /// Packets that were queued when the interface went down or lost its carrier.
    pub flushed: u64,
    /// Packets that got lost by a defect of the qdisc: 0.
    pub lost: u64,
}

/// What only the userspace engine has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// How its rate follows the link, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<Auto>,
    /// How punctual its shaper was.
    pub punctuality: Punctuality,
    /// The hosts to or from which most arrives, first the busiest, if hosts share the link.
    #[serde(default)]
    pub busiest_hosts: Vec<Host>,
    /// The biggest flows, first the biggest, of those that were seen lately.
    pub biggest_flows: Vec<Flow>,
    /// The newest flows, first the newest.
    pub newest_flows: Vec<Flow>,
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
    /// The latest decisions, the oldest of them first.
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
    /// The longest that a transmission started after it was due, in ns.
    pub max_late_ns: u64,
    /// Transmission time that was lost, as wake-ups came later than can be caught up, in ns.
    pub lost_ns: u64,
    /// How many transmissions were later than can be caught up.
    pub late_beyond_burst: u64,
    /// Most packets that were started at one instant.
    pub largest_burst_packets: u64,
    /// Most bytes that were started at one instant, with overhead.
    pub largest_burst_bytes: u64,
}

/// A flow, counted since it was taken into the engine's table of flows.
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
    /// Packets that left it for the link.
    pub sent: Tally,
    /// Packets that were dropped.
    pub dropped_packets: u64,
    /// Packets that were marked "congestion experienced".
    pub marked_packets: u64,
    /// What of it arrived during the last second, in bit/s.
    pub arriving_bps: u64,
    /// Time since it was taken up, in nanoseconds.
    pub age_ns: u64,
    /// Time since its latest packet arrived, in nanoseconds.
    pub idle_ns: u64,
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

#[cfg(test)]
mod tests;
