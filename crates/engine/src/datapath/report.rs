//! What the engine counted: the shape of its report.
//!
//! For each direction `received = sent + dropped + queued + in_flight` holds in packets and in
//! bytes; what the kernel lost before the engine saw it stands apart. Bytes are those of the
//! frames, without the link's overhead.

use sched::Nanos;
use serde::{Deserialize, Serialize};

pub use crate::status::{Punctuality, Tally};

/// What became of all traffic through an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Of a bridge: from the left interface to the right one, then back.
    pub directions: Vec<DirectionReport>,
    /// Why the engine ended, if it was not told to.
    pub fault: Option<String>,
}

/// What became of the traffic of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// The interface that frames came from.
    pub from: String,
    /// The interface that frames went to.
    pub to: String,
    /// The discipline, with the parameters it was given.
    pub scheduler: String,
    /// How long it ran.
    #[serde(rename = "duration_ns")]
    pub duration: Nanos,
    /// Frames that the engine received.
    pub received: Tally,
    /// Frames that it sent.
    pub sent: Tally,
    /// Frames that the discipline still held at the end.
    pub queued: Tally,
    /// Frames that were on the link (the propagation delay) at the end.
    pub in_flight: Tally,
    /// Frames that were dropped, by reason and, for reasons of the discipline, lane.
    pub drops: Vec<DropCount>,
    /// Frames lost in the kernel because the engine did not receive them in time, or had no
    /// buffer left.
    pub lost_in_kernel: u64,
    /// Frames that passed by themselves, unshaped, since the engine did not answer in time; the
    /// engine has not received them.
    #[serde(default)]
    pub passed: Tally,
    /// Frames that the discipline marked "congestion experienced".
    pub marked: u64,
    /// Whether it had real-time priority while pacing (or never needed it).
    pub realtime: bool,
    /// How punctual the shaper was.
    pub punctuality: Punctuality,
    /// Most entries that the discipline's flow table held, as far as it was looked at: after
    /// each batch of frames.
    pub peak_flows: u64,
    /// What was observed, if observation was switched on.
    pub observed: Option<Observed>,
}

impl DirectionReport {
    /// All frames dropped by discipline or engine.
    #[must_use]
    pub fn dropped(&self) -> Tally {
        self.drops.iter().fold(Tally::default(), |sum, drop| sum + drop.count)
    }
}

/// Frames dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropCount {
    /// The reason: one of `sched::DropReason`'s names or of [`Loss`]'s.
    pub reason: String,
    /// The lane that they were in or would have joined; none if the discipline never saw them
    /// or had sent them.
    pub lane: Option<u8>,
    /// How many.
    #[serde(flatten)]
    pub count: Tally,
}

/// Why the engine itself dropped a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It is larger than the MTU of the interface it would leave by.
    Oversize,
    /// It is a super-packet that the sending host left to the interface to split. The remedy is
    /// to turn segmentation and receive offloads off (`link::Links::offloads_off`).
    SuperPacket,
    /// The interface refused it.
    SendError,
}

impl Loss {
    /// Every reason, in a fixed order for counters.
    pub const ALL: [Self; 3] = [Self::Oversize, Self::SuperPacket, Self::SendError];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Oversize => "oversize",
            Self::SuperPacket => "super-packet",
            Self::SendError => "send-error",
        }
    }
}

/// What an observed direction saw, in times since the epoch that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// The state of the queue at regular times.
    pub samples: Vec<Sample>,
    /// A ledger of flows, by their text.
    pub flows: Vec<FlowRecord>,
}

/// The queue at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When, in ns since the epoch.
    pub t_ns: u64,
    /// Packets that the discipline holds.
    pub packets: u64,
    /// Bytes that the discipline holds.
    pub bytes: u64,
    /// Packets of these in the short lane.
    pub short_lane_packets: u64,
    /// Entries in its flow table.
    pub flows: u64,
    /// Bytes that have left it so far.
    pub sent_bytes: u64,
}

/// What became of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// The flow, as 5-tuple: `10.0.0.1:1234 > 10.0.0.2:80 tcp`.
    pub flow: String,
    /// Packets that arrived at the queue.
    pub arrived: Tally,
    /// Packets that left it for transmission.
    pub departed: Tally,
    /// Packets that left it, by lane: the first entry is the short lane.
    pub departed_by_lane: Vec<u64>,
    /// Packets that were dropped, by reason and lane.
    pub drops: Vec<DropCount>,
    /// Packets that were marked "congestion experienced".
    pub marked: u64,
    /// How often the flow table inserted the flow: the number of its fragments.
    pub fragments: u64,
    /// How often the flow came to count as long.
    pub demotions: u64,
    /// Sum of the times that departed packets spent in the queue, in ns.
    pub sojourn_sum_ns: u64,
    /// The longest of them.
    pub sojourn_max_ns: u64,
    /// When its first packet arrived, in ns since the epoch.
    pub first_arrival_ns: u64,
    /// When its last packet so far arrived, in ns since the epoch.
    pub last_arrival_ns: u64,
}
