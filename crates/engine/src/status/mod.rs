//! What is attached and what it has counted: one shape for both engines.
//!
//! `shortlane show --json` prints it, the control socket carries it, `top` and `metrics` read
//! it. What an engine does not have is absent from the document.

mod histogram;
mod process;
#[cfg(feature = "kernel")]
mod queues;

pub use account::Tally;
pub use netdev::tc::TcStats;
use sched::Nanos;
use serde::{Deserialize, Serialize};

pub use self::histogram::{BUCKETS, Histogram};
pub use self::process::{Auto, Decided, Flow, Host, Process, Punctuality, Seen, Standing};
use crate::settings::framing::Framing;
use crate::settings::link::LinkSettings;

/// A queue at work: what it is and what it has counted since it was attached. By default it has
/// counted nothing, and no engine has more to say of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// How long it has been attached.
    #[serde(rename = "uptime_ns")]
    pub uptime: Nanos,
    /// Since when it has been attached, by the monotonic clock.
    #[serde(rename = "attached_at_ns")]
    pub attached_at: Nanos,
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
    /// Packets that found the flow table full: served as short, or with others in one queue.
    pub flows_untracked: u64,
    /// Fragments. The kernel engine counts those whose headers had to be read.
    pub fragments: u64,
    /// Packets without a readable IP header; in the kernel engine among the same.
    pub not_ip: u64,
    /// Packets that a device has still to cut into segments.
    pub super_packets: u64,
    /// Times that the rate made a packet wait.
    pub paced: u64,
    /// How its rate follows the link, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<Auto>,
    /// The rate that was asked for, if it is to follow the link by a process beside a queue in the
    /// kernel. Without [`auto`](Self::auto) that process is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// What only a qdisc has.
    #[serde(flatten)]
    pub qdisc: Option<Qdisc>,
    /// What only the userspace engine has.
    #[serde(flatten)]
    pub process: Option<Process>,
    /// Who was seen lately; a qdisc of ours does not tell.
    #[serde(flatten)]
    pub seen: Option<Seen>,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// A qdisc inside the kernel.
    #[default]
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
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Heading {
    /// Out of the device.
    #[default]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qdisc {
    /// The kind of qdisc, as `tc` shows it.
    pub kind: String,
    /// Its handle, as `tc` shows it.
    pub handle: String,
    /// Its place: `root`, or the class that it is below.
    pub parent: String,
    /// Transmit queues of the device that have one each, if this is the sum of those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
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

#[cfg(test)]
mod tests;
