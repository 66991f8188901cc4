//! The row of a flow.

use measure::{Flow, FlowKind, SizeClass};
use sim::{ENDLESS, FlowReport};

use super::Recording;
use crate::traffic::Kind;

impl Recording<'_> {
    pub(super) fn row_of(&self, number: usize, report: &FlowReport) -> Flow {
        let traffic = &self.scenario.traffic[number];
        let finite = report.bytes < ENDLESS && !matches!(traffic.kind, Kind::Persistent { .. });
        let kind = kind_of(&traffic.kind);
        let is_transfer = kind == FlowKind::Transfer;
        let completion = report.completed.map(|end| end.since(report.started).0);
        let completion = completion.filter(|_| is_transfer);
        let idle = if is_transfer { self.idle.of(number, report) } else { None };
        let mut accounts = report.ports.iter().map(|(_, account)| account).peekable();
        let seen = accounts.peek().is_some();
        let sum = |value: fn(&sim::FlowAccount) -> u64| {
            let accounts = report.ports.iter().map(|(_, account)| account);
            seen.then(|| accounts.map(value).sum())
        };
        let flow = (report.source.index(), report.index);
        let before = self.received_before.get(&flow).copied().unwrap_or_default();
        let short = |lane: usize| {
            move |a: &sim::FlowAccount| a.dropped[lane].iter().map(|n| u64::from(*n)).sum::<u64>()
        };
        let dropped = |lane: usize| {
            seen.then(|| report.ports.iter().map(|(_, account)| short(lane)(account)).sum())
        };
        let sent: u64 = sum(|a| a.sent.iter().map(|n| u64::from(*n)).sum()).unwrap_or(0);
        let queued = sum(|a| a.sojourn_sum.0).unwrap_or(0);
        let [sender, receiver] = [0, 1].map(|end| report.tcp.map(|ends| by_role(&ends)[end]));
        Flow {
            key: self.key.clone(),
            index: self.index(number, report.index),
            kind,
            traffic: Some(self.names[number].clone()),
            flow: Some(report.label.to_string().into()),
            tcp: traffic.kind.tcp().map(|tcp| tcp_name(tcp).into()),
            size_bytes: finite.then_some(report.bytes),
            size_class: is_transfer.then(|| class_of(&traffic.kind, report.bytes)),
            planned_ns: Some(report.started.0),
            start_ns: report.started.0,
            connect_ns: report.connected.map(|at| at.0),
            end_ns: report.completed.filter(|_| is_transfer).map(|at| at.0),
            completion_ns: completion,
            stall_max_ns: report.longest_stall.map(|stall| stall.0),
            idle_ns: idle,
            slowdown: completion.zip(idle).map(|(took, idle)| took as f64 / idle.max(1) as f64),
            received_bytes: report.received - before,
            complete: report.completed.is_some(),
            failure: report.failure.map(|_| "timeout".into()),
            packets: report.ports.iter().map(|(_, a)| u64::from(a.arrived_packets)).max(),
            dropped_packets: dropped(0)
                .zip(dropped(1))
                .map(|(short, long): (u64, u64)| short + long),
            dropped_short_lane: dropped(0),
            dropped_long_lane: dropped(1),
            sent_short_lane: sum(|a| u64::from(a.sent[0])),
            sent_long_lane: sum(|a| u64::from(a.sent[1])),
            reordered_packets: sum(|a| u64::from(a.reordered_packets)),
            marked_packets: sum(|a| u64::from(a.marked_packets)),
            queueing_mean_ns: (sent > 0).then(|| queued / sent),
            queueing_max_ns: report.ports.iter().map(|(_, a)| a.sojourn_max.0).max(),
            fragments: sum(|a| u64::from(a.fragments)),
            demotions: sum(|a| u64::from(a.demotions)),
            retransmissions: sender.map(|stats| u64::from(stats.retransmissions)),
            duplicates: receiver.map(|stats| u64::from(stats.duplicates_received)),
            timeouts: sender.map(|stats| u64::from(stats.timeouts)),
            handshake_timeouts: report.tcp.map(|ends| handshake_timeouts(&ends)),
        }
    }
}

/// What the end that sends the data counted, which is the one that sent more of it, and the other.
fn by_role(&[one, other]: &[tcp::Stats; 2]) -> [tcp::Stats; 2] {
    if other.data_segments > one.data_segments { [other, one] } else { [one, other] }
}

fn handshake_timeouts(ends: &[tcp::Stats; 2]) -> u64 {
    ends.iter().map(|stats| u64::from(stats.syn_timeouts)).sum()
}

pub(super) fn kind_of(kind: &Kind) -> FlowKind {
    match kind {
        Kind::Transfers { .. }
        | Kind::Periodic { .. }
        | Kind::Web { .. }
        | Kind::OpenLoop { .. } => FlowKind::Transfer,
        Kind::Persistent { .. } => FlowKind::Download,
        Kind::Requests { .. } => FlowKind::Request,
        Kind::Cbr(_) | Kind::OnOff { .. } | Kind::Trace(_) => FlowKind::Stream,
    }
}

/// Bytes of a full packet's payload.
pub(crate) fn payload_of(kind: &Kind) -> u64 {
    match kind {
        Kind::OpenLoop { packet_bytes, .. } => u64::from(*packet_bytes),
        kind => kind.tcp().map_or(1, |tcp| u64::from(tcp.mss)),
    }
}

fn class_of(kind: &Kind, bytes: u64) -> SizeClass {
    SizeClass::of_bytes(bytes, payload_of(kind))
}

fn tcp_name(tcp: &tcp::Config) -> &'static str {
    match tcp.congestion {
        tcp::Congestion::Reno => "reno",
        tcp::Congestion::Cubic => "cubic",
        tcp::Congestion::Bbr => "bbr",
    }
}
