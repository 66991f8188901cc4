//! The tables.

use serde::Serialize;

use crate::table::{Cell, Kind, Text, Value, table};

table! {
    /// The columns that every table begins with: which run of what a row belongs to.
    Key {
        /// The run's name: one call of one command.
        run: Text [""],
        /// The scheduler with the parameters that were given.
        scheduler: Text [""],
        /// The seed of the workload.
        seed: u64 [""],
        /// Within a round every scheduler gets the same workload; comparisons pair by it.
        round: u64 ["number"],
        /// One scheduler in one round; numbers blocks in the order they ran.
        block: u64 ["number"],
    }
}

/// What a flow is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowKind {
    /// A transfer of the list.
    #[default]
    Transfer,
    /// A long download beside the transfers.
    Download,
    /// A long upload beside the transfers.
    Upload,
    /// A request and its response on a connection that stays open.
    Request,
    /// A constant-rate stream.
    Stream,
    /// A flow of a replayed capture, in one direction. Its bytes are those on the wire.
    Captured,
}

impl FlowKind {
    /// Its name in tables and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transfer => "transfer",
            Self::Download => "download",
            Self::Upload => "upload",
            Self::Request => "request",
            Self::Stream => "stream",
            Self::Captured => "captured",
        }
    }
}

impl Cell for FlowKind {
    const KIND: Kind = Kind::Text;
    fn value(&self) -> Value {
        Value::Text(self.name().into())
    }
}

/// Transfers by size, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum SizeClass {
    /// 1 to 20 packets: what EFD's default threshold calls short.
    #[default]
    #[serde(rename = "<=20")]
    UpTo20,
    /// 21 to 100 packets.
    #[serde(rename = "20-100")]
    UpTo100,
    /// 101 to 1000 packets.
    #[serde(rename = "100-1000")]
    UpTo1000,
    /// More than 1000 packets.
    #[serde(rename = ">1000")]
    Over1000,
}

impl SizeClass {
    /// Every class, smallest first.
    pub const ALL: [Self; 4] = [Self::UpTo20, Self::UpTo100, Self::UpTo1000, Self::Over1000];

    /// The class of a transfer of so many packets.
    #[must_use]
    pub const fn of_packets(packets: u64) -> Self {
        match packets {
            0..=20 => Self::UpTo20,
            21..=100 => Self::UpTo100,
            101..=1000 => Self::UpTo1000,
            _ => Self::Over1000,
        }
    }

    /// The class of a transfer of so many application bytes in packets of `payload_bytes`.
    #[must_use]
    pub const fn of_bytes(bytes: u64, payload_bytes: u64) -> Self {
        let payload = if payload_bytes == 0 { 1 } else { payload_bytes };
        Self::of_packets(bytes.div_ceil(payload))
    }

    /// Its name in tables and files, in packets.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UpTo20 => "<=20",
            Self::UpTo100 => "20-100",
            Self::UpTo1000 => "100-1000",
            Self::Over1000 => ">1000",
        }
    }
}

impl Cell for SizeClass {
    const KIND: Kind = Kind::Text;
    fn value(&self) -> Value {
        Value::Text(self.name().into())
    }
}

table! {
    /// One row per block: one scheduler run once on one workload.
    "blocks" Block {
        /// When the block started, from the start of the run.
        start_ns: u64 ["ns"],
        /// How long its workload lasted, without the drain phase.
        duration_ns: u64 ["ns"],
        /// Whether the block does not count, and was repeated under another `block` number.
        void: bool [""],
        /// Why it does not count.
        void_reason: Option<Text> [""],
        /// Application bytes of the transfers over what the bottleneck carries in `duration_ns`.
        offered_load: Option<f64> ["fraction"],
        /// Transfers in the list.
        transfers: u64 ["number"],
        /// Transfers completed by the end of the drain phase.
        completed: u64 ["number"],
    }
}

table! {
    /// One row per block and bottleneck link: what the link and its engine counted.
    "links" LinkUse {
        /// The link: `down` and `up` in the lab, the link's name in a simulation.
        link: Text [""],
        /// The link's rate; if it varies, its mean over the measured time.
        rate_bps: u64 ["bit/s"],
        /// Packets that arrived at the queue.
        arrived_packets: u64 ["packets"],
        /// Bytes that arrived at the queue.
        arrived_bytes: u64 ["bytes"],
        /// Packets sent.
        sent_packets: u64 ["packets"],
        /// Bytes sent.
        sent_bytes: u64 ["bytes"],
        /// Packets dropped by scheduler and engine; by reason in table `drops`.
        dropped_packets: u64 ["packets"],
        /// Packets that the kernel lost before the engine could receive them.
        lost_in_kernel: Option<u64> ["packets"],
        /// Packets marked "congestion experienced".
        marked_packets: Option<u64> ["packets"],
        /// Fraction of the block during which the link was sending.
        utilisation: Option<f64> ["fraction"],
        /// Time-mean of the queue.
        backlog_mean_packets: Option<f64> ["packets"],
        /// Longest queue.
        backlog_peak_packets: Option<u64> ["packets"],
        /// Time-mean of the entries in the flow table.
        flow_entries_mean: Option<f64> ["number"],
        /// Most entries in the flow table.
        flow_entries_peak: Option<u64> ["number"],
        /// For 99 % of the time the flow table had no more entries than this.
        flow_entries_p99: Option<u64> ["number"],
        /// Arrivals and departures after which the flow table had more entries than the queue
        /// packets. Always 0 under EFD, which remembers a flow only while it has a packet queued.
        flow_entries_beyond_backlog: Option<u64> ["number"],
        /// How often the flow table was full and could not add a flow.
        flows_untracked: Option<u64> ["number"],
        /// The longest delay between the time a transmission was due and its start.
        late_max_ns: Option<u64> ["ns"],
        /// Transmissions later than may be caught up (`burst-time`).
        late_beyond_burst: Option<u64> ["number"],
        /// Transmission time lost by them.
        late_lost_ns: Option<u64> ["ns"],
        /// Most packets started at one instant, to catch up.
        burst_max_packets: Option<u64> ["packets"],
        /// Most bytes started at one instant, to catch up.
        burst_max_bytes: Option<u64> ["bytes"],
    }
}

table! {
    /// One row per transfer, long flow, request or stream.
    "flows" Flow {
        /// Its place in the workload, from 0: the same in every block of a round and kind.
        index: u64 ["number"],
        /// What it is for: `transfer`, `download`, `upload`, `request`, `stream`; `captured` for a
        /// flow of a replayed capture, whose bytes are those on the wire.
        kind: FlowKind [""],
        /// The name of the traffic that it belongs to, if a scenario has several.
        traffic: Option<Text> [""],
        /// The 5-tuple as text.
        flow: Option<Text> [""],
        /// TCP's congestion control.
        tcp: Option<Text> [""],
        /// Application bytes to transfer; empty if the flow never ends.
        size_bytes: Option<u64> ["bytes"],
        /// The class of that size, in packets: `<=20`, `20-100`, `100-1000`, `>1000`.
        size_class: Option<SizeClass> ["packets"],
        /// When the workload wanted it to start, from the start of the block.
        planned_ns: Option<u64> ["ns"],
        /// When it started (the call of connect, or the request), from the start of the block.
        start_ns: u64 ["ns"],
        /// When the connection was established, from the start of the block.
        connect_ns: Option<u64> ["ns"],
        /// When the last byte was received, from the start of the block; empty if incomplete.
        end_ns: Option<u64> ["ns"],
        /// `end_ns - start_ns`; empty if incomplete.
        completion_ns: Option<u64> ["ns"],
        /// The longest time that the receiver waited for a new byte in order: from `connect_ns` to the
        /// first, from one to the next, and, if the last never came, from the latest until TCP
        /// gave up or the block ended. Empty if the connection was never established.
        stall_max_ns: Option<u64> ["ns"],
        /// How long the same transfer takes on an idle link.
        idle_ns: Option<u64> ["ns"],
        /// `completion_ns / idle_ns`.
        slowdown: Option<f64> ["ratio"],
        /// Application bytes received by the end of the block: by a flow without end, after the
        /// warm-up.
        received_bytes: u64 ["bytes"],
        /// Whether all of it was received.
        complete: bool [""],
        /// Why it is not complete, if that is known: `reset`, `timeout`, `refused`, `cut`.
        failure: Option<Text> [""],
        /// Its packets that arrived at the bottleneck in the direction of its data.
        packets: Option<u64> ["packets"],
        /// Its packets that the bottleneck dropped.
        dropped_packets: Option<u64> ["packets"],
        /// Of these, packets in or bound for the short lane.
        dropped_short_lane: Option<u64> ["packets"],
        /// Of these, packets in or bound for the long lane.
        dropped_long_lane: Option<u64> ["packets"],
        /// Its packets that left by the short lane.
        sent_short_lane: Option<u64> ["packets"],
        /// Its packets that left by the long lane.
        sent_long_lane: Option<u64> ["packets"],
        /// Its packets that left the bottleneck after one sent later (RFC 4737).
        reordered_packets: Option<u64> ["packets"],
        /// Its packets that were marked "congestion experienced".
        marked_packets: Option<u64> ["packets"],
        /// Mean time of its packets in the queue.
        queueing_mean_ns: Option<u64> ["ns"],
        /// Longest time of one of its packets in the queue.
        queueing_max_ns: Option<u64> ["ns"],
        /// Successive entries that it had in the flow table: under EFD, its fragments.
        fragments: Option<u64> ["number"],
        /// How often it became long.
        demotions: Option<u64> ["number"],
        /// Segments that TCP sent again (TCP_INFO, `tcpi_total_retrans`).
        retransmissions: Option<u64> ["packets"],
        /// Segments that arrived a second time: as the sender was told (RFC 2883; TCP_INFO,
        /// `tcpi_dsack_dups`), in a simulation as the receiver saw them.
        duplicates: Option<u64> ["packets"],
        /// Retransmission timeouts. Linux counts those of the handshake among them (TCP_INFO,
        /// `tcpi_total_rto`), a simulation does not.
        timeouts: Option<u64> ["number"],
        /// Timeouts of the handshake at both ends: of SYN, and of SYN-ACK.
        handshake_timeouts: Option<u64> ["number"],
    }
}

table! {
    /// One row per arrival of new bytes in order at the receiver of a transfer that was chosen for
    /// it, or per so much time (`[record] progress-every`): its `flows` row has kind `transfer` and the same `block` and `index`.
    "progress" Advance {
        /// The name of the traffic that it belongs to, as in table `flows`.
        traffic: Option<Text> [""],
        /// The transfer, as in table `flows`.
        index: u64 ["number"],
        /// When, from the start of the block.
        t_ns: u64 ["ns"],
        /// Application bytes received in order by then, these among them.
        received_bytes: u64 ["bytes"],
        /// Its packets that had arrived at the bottleneck by then, in the direction of its data.
        packets: Option<u64> ["packets"],
        /// Its packets that the bottleneck had dropped by then.
        dropped_packets: Option<u64> ["packets"],
    }
}

table! {
    /// One row per packet of a constant-rate stream, or per request of an interactive client.
    "probes" Probe {
        /// The stream: `voice`, `video`, `ping`, ...
        stream: Text [""],
        /// Its place in the stream, from 0.
        seq: u64 ["number"],
        /// When it was sent, from the start of the block.
        sent_ns: u64 ["ns"],
        /// One-way delay of a stream's packet, round trip of a request; empty if lost.
        delay_ns: Option<u64> ["ns"],
    }
}

table! {
    /// One row per block, link and instant of sampling.
    "samples" Sample {
        /// The link, as in table `links`.
        link: Text [""],
        /// When, from the start of the block.
        t_ns: u64 ["ns"],
        /// Packets queued.
        backlog_packets: u64 ["packets"],
        /// Bytes queued.
        backlog_bytes: u64 ["bytes"],
        /// Of the packets, those in the short lane.
        short_lane_packets: Option<u64> ["packets"],
        /// Entries in the flow table.
        flow_entries: Option<u64> ["number"],
    }
}

table! {
    /// One row per block, link, lane, reason and size class with at least one drop.
    "drops" DropCount {
        /// The link, as in table `links`.
        link: Text [""],
        /// The lane: 0 is the short lane, and the only one of schedulers without lanes; empty if
        /// the packet never reached the scheduler, or had left it.
        lane: Option<u64> ["number"],
        /// The reason: `full`, `pushed-out`, `congested` by the scheduler; `oversize`,
        /// `super-packet`, `send-error` by the engine; `qdisc` if the kernel's queue gave no
        /// reason.
        reason: Text [""],
        /// The size class of the transfers concerned; empty for all other traffic.
        size_class: Option<SizeClass> ["packets"],
        /// Packets dropped.
        packets: u64 ["packets"],
        /// Bytes dropped.
        bytes: u64 ["bytes"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_include_their_upper_bounds() {
        let class = |packets| SizeClass::of_packets(packets).name();
        assert_eq!([0, 1, 20].map(class), ["<=20"; 3]);
        assert_eq!([21, 100].map(class), ["20-100"; 2]);
        assert_eq!([101, 1000].map(class), ["100-1000"; 2]);
        assert_eq!([1001, u64::MAX].map(class), [">1000"; 2]);
        assert_eq!(SizeClass::of_bytes(20 * 1460, 1460), SizeClass::UpTo20);
        assert_eq!(SizeClass::of_bytes(20 * 1460 + 1, 1460), SizeClass::UpTo100);
        assert_eq!(SizeClass::of_bytes(2000, 0), SizeClass::Over1000);
    }

    #[test]
    fn names_in_json_are_those_in_tables() {
        for class in SizeClass::ALL {
            assert_eq!(serde_json::json!(class), class.name());
        }
        let kinds = [FlowKind::Transfer, FlowKind::Download, FlowKind::Upload, FlowKind::Request];
        for kind in kinds.into_iter().chain([FlowKind::Stream, FlowKind::Captured]) {
            assert_eq!(serde_json::json!(kind), kind.name());
        }
    }
}
