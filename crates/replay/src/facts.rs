//! Facts about a capture: packets, flows, damage.

use std::io::Read;

use frame::{Endpoints, LinkType, Parsed};
use sched::{Nanos, Rate};
use serde::Serialize;

use crate::capture::{Capture, Record, Skipped};
use crate::flows::Flows;
use crate::timeline::Timeline;

/// What a capture holds.
#[derive(Clone, Debug, Serialize)]
pub struct CaptureFacts {
    /// `pcap` or `pcapng`.
    pub format: &'static str,
    /// Whether it is compressed.
    pub gzip: bool,
    /// The link types of its packets.
    pub link_types: Vec<LinkTypeCount>,
    /// Packets replayed.
    pub packets: u64,
    /// Their original lengths.
    pub bytes: u64,
    /// 5-tuples; one silent for too long counts again.
    pub flows: u64,
    /// From the first packet to the last.
    pub duration_ns: u64,
    /// When the first packet was captured, since 1970; empty if the capture has no times.
    pub first_packet_unix_ns: Option<i64>,
    /// Over the whole duration.
    pub mean_rate_bps: Option<f64>,
    /// Over the busiest of the seconds counted from the first packet.
    pub busiest_second_bps: u64,
    /// The mean rate over the link's rate.
    pub offered_load: Option<f64>,
    /// The largest packet.
    pub largest_packet_bytes: u32,
    /// Packets of which the capture holds only the beginning (snaplen).
    pub cut_packets: u64,
    /// Packets that are no readable IP packet: their flow is a pair of MAC addresses.
    pub non_ip_packets: u64,
    /// Packets captured before their predecessor, replayed at the same time as it.
    pub out_of_order_packets: u64,
    /// By how much at most.
    pub out_of_order_max_ns: u64,
    /// Packets without a time, replayed at the same time as their predecessor.
    pub untimed_packets: u64,
    /// Flows ended early because there were too many at once.
    pub flows_split: u64,
    /// Packets left out.
    pub skipped: Skipped,
    /// Why the capture ended before its end, if it did.
    pub damage: Option<String>,
    /// Bytes of the capture that were read, decompressed.
    pub bytes_read: u64,
}

/// Packets of one link type.
#[derive(Clone, Debug, Serialize)]
pub struct LinkTypeCount {
    /// The `LINKTYPE_` value.
    pub linktype: u16,
    /// Its name, if it is supported.
    pub name: Option<&'static str>,
    /// Packets.
    pub packets: u64,
}

impl CaptureFacts {
    pub(crate) fn new<R: Read>(
        capture: &Capture<R>,
        timeline: &Timeline,
        counts: &Counts,
        flows: &Flows,
        rate: Rate,
    ) -> Self {
        let duration = timeline.now();
        let mean_rate_bps =
            (duration > Nanos::ZERO).then(|| counts.bytes as f64 * 8e9 / duration.0 as f64);
        let (out_of_order_packets, out_of_order_max) = timeline.went_back();
        let link_type = |&(linktype, packets): &(u16, u64)| LinkTypeCount {
            linktype,
            name: LinkType::from_linktype(linktype).map(LinkType::name),
            packets,
        };
        Self {
            format: capture.format(),
            gzip: capture.is_gzip(),
            link_types: capture.link_types().iter().map(link_type).collect(),
            packets: counts.packets,
            bytes: counts.bytes,
            flows: flows.begun(),
            duration_ns: duration.0,
            first_packet_unix_ns: timeline.first_ns().and_then(|ns| i64::try_from(ns).ok()),
            mean_rate_bps,
            busiest_second_bps: timeline.busiest_second_bytes().saturating_mul(8),
            offered_load: mean_rate_bps.map(|mean| mean / rate.0 as f64),
            largest_packet_bytes: counts.largest_bytes,
            cut_packets: counts.cut,
            non_ip_packets: counts.non_ip,
            out_of_order_packets,
            out_of_order_max_ns: out_of_order_max.0,
            untimed_packets: timeline.untimed(),
            flows_split: flows.evicted(),
            skipped: capture.skipped(),
            damage: capture.damage().map(ToString::to_string),
            bytes_read: capture.bytes_read(),
        }
    }

    /// What should be known before the figures are believed.
    pub(crate) fn warnings(&self) -> Vec<String> {
        /// A jumbo frame with its Ethernet header and two VLAN tags.
        const LARGEST_FRAME: u32 = 9022;
        let mut said = Vec::new();
        if let Some(damage) = &self.damage {
            said.push(format!(
                "the capture is damaged at byte {}: {damage}; replayed are the {} packets before",
                self.bytes_read, self.packets
            ));
        }
        let mut count = |packets: u64, what: &str| {
            if packets > 0 {
                said.push(format!("{packets} of {} packets {what}", self.packets));
            }
        };
        let back_ms = self.out_of_order_max_ns as f64 / 1e6;
        count(
            self.out_of_order_packets,
            &format!(
                "were captured before their predecessor, by up to {back_ms} ms; they are replayed \
                 at the same time as it"
            ),
        );
        count(
            self.untimed_packets,
            "have no time; they are replayed at the time of the one before",
        );
        let skipped = &self.skipped;
        let mut left_out = |packets: u64, why: &str| {
            if packets > 0 {
                said.push(format!("{packets} packets are left out: {why}"));
            }
        };
        left_out(skipped.unsupported_link_type, "their link type is not supported");
        left_out(skipped.malformed, "their blocks contradict themselves or name no interface");
        if self.non_ip_packets == self.packets {
            said.push("no packet is IP: what counts as a flow is a pair of MAC addresses".into());
        }
        if self.largest_packet_bytes > LARGEST_FRAME {
            said.push(format!(
                "the largest packet has {} bytes: captured before segmentation or after \
                 reassembly by a network card, so one packet here was several on the link",
                self.largest_packet_bytes
            ));
        }
        if self.flows_split > 0 {
            let split = self.flows_split;
            said.push(format!("too many flows at once: {split} were ended, and may count again"));
        }
        said
    }
}

/// What is counted of the capture's packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) cut: u64,
    pub(crate) non_ip: u64,
    pub(crate) largest_bytes: u32,
}

impl Counts {
    pub(crate) fn count(&mut self, record: &Record<'_>, parsed: &Parsed) {
        self.packets += 1;
        self.bytes += u64::from(record.wire_length);
        self.cut += u64::from(record.bytes.len() < record.wire_length as usize);
        self.non_ip += u64::from(matches!(parsed.key.endpoints, Endpoints::Mac(..)));
        self.largest_bytes = self.largest_bytes.max(record.wire_length);
    }
}
