//! The summary of a lab: rows reduced to the numbers that are compared.

use std::collections::{BTreeMap, BTreeSet};

use measure::stats::{self, Estimate, Matches};
use measure::{Flow, FlowKind, LinkUse, Probe, SizeClass};
use sched::Nanos;
use serde::Serialize;

use crate::config::Config;
use crate::rows::Rows;

/// The result of a lab.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Rounds that every discipline completed.
    pub rounds: u64,
    /// One entry per discipline, in the order they were named.
    pub schedulers: Vec<SchedulerSummary>,
}

/// What one discipline did.
#[derive(Clone, Debug, Serialize)]
pub struct SchedulerSummary {
    /// Its name with the parameters given.
    pub scheduler: String,
    /// Transfers by size.
    pub classes: Vec<ClassSummary>,
    /// Requests on the connection that stays open: response time in ms.
    pub requests_ms: stats::Summary,
    /// Requests that had no answer by the end.
    pub requests_incomplete: u64,
    /// Voice-like stream.
    pub voice: StreamSummary,
    /// Video-like stream.
    pub video: StreamSummary,
    /// Small requests and answers over UDP: round trip.
    pub ping: StreamSummary,
    /// A scenario's other streams, by name.
    pub streams: BTreeMap<String, StreamSummary>,
    /// Long downloads together, in Mbit/s of payload.
    pub downloads_mbit: Option<Estimate>,
    /// The same over FIFO's, paired by round.
    pub downloads_vs_fifo: Option<Estimate>,
    /// Long uploads together, in Mbit/s of payload.
    pub uploads_mbit: Option<Estimate>,
    /// Fraction of the time that the link towards the client was sending.
    pub utilisation: Option<f64>,
    /// Drops on the link towards the client.
    pub drops: Vec<DropSummary>,
    /// Time-mean of entries in the flow table of that link.
    pub flow_table_mean: Option<f64>,
    /// Most entries in it.
    pub flow_table_peak: Option<u64>,
    /// Entries that a long download had one after another, per 1000 of its packets.
    pub download_fragments_per_1000_packets: Option<f64>,
    /// Entries that a transfer had one after another, on average.
    pub transfer_fragments: Option<f64>,
    /// Segments that TCP sent again, of all flows.
    pub retransmissions: u64,
    /// Segments that arrived a second time, of all flows.
    pub duplicates: u64,
    /// Retransmission timeouts, of all flows; `None` where the kernel does not tell.
    pub timeouts: Option<u64>,
}

impl SchedulerSummary {
    /// Transfers of this size, if there were any.
    #[must_use]
    pub fn class(&self, packets: SizeClass) -> Option<&ClassSummary> {
        self.classes.iter().find(|class| class.packets == packets)
    }
}

/// Transfers of one size class.
#[derive(Clone, Debug, Serialize)]
pub struct ClassSummary {
    /// The class, in packets.
    pub packets: SizeClass,
    /// Completion time in ms, of the complete ones.
    pub completion_ms: stats::Summary,
    /// Completion time over that on an idle link, mean.
    pub slowdown: Option<Estimate>,
    /// Transfers not complete by the end of their block.
    pub incomplete: u64,
    /// Mean completion time over FIFO's, of transfers complete under both.
    pub vs_fifo: Option<Estimate>,
    /// Mean completion time over FQ-CoDel's, of transfers complete under both.
    pub vs_fq_codel: Option<Estimate>,
}

/// A stream of numbered packets.
#[derive(Clone, Debug, Serialize)]
pub struct StreamSummary {
    /// Packets sent.
    pub sent: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Delay in ms, of those that arrived.
    pub delay_ms: stats::Summary,
}

impl StreamSummary {
    /// Loss in per cent; `None` where nothing was sent.
    #[must_use]
    pub fn loss_percent(&self) -> Option<f64> {
        (self.sent > 0).then(|| 100.0 * self.lost as f64 / self.sent as f64)
    }
}

/// Drops of one lane, reason and size class.
#[derive(Clone, Debug, Serialize)]
pub struct DropSummary {
    /// 0 is the short lane, and the only one of disciplines without lanes; `None` for a packet
    /// that the engine lost outside the discipline.
    pub lane: Option<u64>,
    /// Why.
    pub reason: String,
    /// The transfers concerned; `None` for all other traffic.
    pub packets_class: Option<SizeClass>,
    /// Packets.
    pub packets: u64,
}

/// Few rounds say little about the mean of a round; pieces of this length of a round say more,
/// and are long against the memory of the queue.
const BATCH: Nanos = Nanos::from_secs(2);
const FEW_ROUNDS: u64 = 6;

impl Summary {
    /// Summarises the blocks of complete rounds.
    #[must_use]
    pub fn of(config: &Config, blocks: &[Rows]) -> Self {
        let names: Vec<String> = config.schedulers.iter().map(ToString::to_string).collect();
        let rounds = blocks.iter().map(|rows| rows.block.key.round + 1).max().unwrap_or(0);
        let find = |name: &str| config.schedulers.iter().position(|s| s.is(name));
        let reference = |name| find(name).map(|at| of_scheduler(blocks, &names[at]));
        let (fifo, fq_codel) = (reference("fifo"), reference("fq-codel"));
        let schedulers = names
            .iter()
            .map(|name| {
                let own = of_scheduler(blocks, name);
                summarise(name, &own, fifo.as_deref(), fq_codel.as_deref(), rounds, config)
            })
            .collect();
        Self { rounds, schedulers }
    }

    /// Whether the ratios of short transfers to FIFO and FQ-CoDel are known within 5 %.
    #[must_use]
    pub fn is_precise(&self) -> bool {
        let narrow = |estimate: &Option<Estimate>| {
            estimate.as_ref().is_none_or(|e| {
                e.interval.is_some_and(|(low, high)| (high - low) / 2.0 <= 0.05 * e.value)
            })
        };
        self.schedulers
            .iter()
            .filter_map(|s| s.class(SizeClass::UpTo20))
            .all(|class| narrow(&class.vs_fifo) && narrow(&class.vs_fq_codel))
    }
}

fn of_scheduler<'a>(blocks: &'a [Rows], name: &str) -> Vec<&'a Rows> {
    blocks.iter().filter(|rows| &*rows.block.key.scheduler == name).collect()
}

fn flows<'a>(blocks: &'a [&'a Rows], kind: FlowKind) -> impl Iterator<Item = &'a Flow> {
    blocks.iter().flat_map(|rows| &rows.flows).filter(move |flow| flow.kind == kind)
}

fn summarise(
    name: &str,
    own: &[&Rows],
    fifo: Option<&[&Rows]>,
    fq_codel: Option<&[&Rows]>,
    rounds: u64,
    config: &Config,
) -> SchedulerSummary {
    let warm_up = config.timing.warm_up;
    let seconds = config.timing.arrivals.0 as f64 / 1e9;
    let links: Vec<&LinkUse> =
        own.iter().flat_map(|rows| &rows.links).filter(|l| &*l.link == "down").collect();
    let goodput = |blocks: &[&Rows], kind| -> Vec<f64> {
        let of_block = |rows: &&Rows| {
            let bytes: u64 =
                rows.flows.iter().filter(|f| f.kind == kind).map(|f| f.received_bytes).sum();
            bytes as f64 * 8.0 / 1e6 / seconds
        };
        blocks.iter().map(of_block).collect()
    };
    let requests: Vec<&Flow> = flows(own, FlowKind::Request).collect();
    let downloads = goodput(own, FlowKind::Download);
    let paired: Option<Vec<(f64, f64)>> =
        fifo.map(|fifo| downloads.iter().copied().zip(goodput(fifo, FlowKind::Download)).collect());
    let tcp = || own.iter().flat_map(|rows| &rows.flows);
    let timeouts: Vec<u64> = tcp().filter_map(|flow| flow.timeouts).collect();
    SchedulerSummary {
        scheduler: name.to_owned(),
        classes: SizeClass::ALL
            .iter()
            .map(|&class| class_summary(class, own, [fifo, fq_codel], rounds, warm_up))
            .filter(|class| class.completion_ms.n + class.incomplete > 0)
            .collect(),
        requests_ms: stats::Summary::of(&times_ms(requests.iter().copied())),
        requests_incomplete: requests.iter().filter(|flow| !flow.complete).count() as u64,
        voice: stream_summary("voice", own, warm_up),
        video: stream_summary("video", own, warm_up),
        ping: stream_summary("ping", own, warm_up),
        streams: others(own)
            .into_iter()
            .map(|name| (name.to_owned(), stream_summary(name, own, warm_up)))
            .collect(),
        downloads_vs_fifo: paired
            .filter(|_| config.traffic.downloads > 0)
            .and_then(|pairs| stats::geometric_ratio(&pairs)),
        downloads_mbit: (config.traffic.downloads > 0).then(|| stats::mean(&downloads)).flatten(),
        uploads_mbit: (config.traffic.uploads > 0)
            .then(|| stats::mean(&goodput(own, FlowKind::Upload)))
            .flatten(),
        utilisation: plain_mean(links.iter().filter_map(|l| l.utilisation)),
        drops: drop_summary(own),
        flow_table_mean: plain_mean(links.iter().filter_map(|l| l.flow_entries_mean)),
        flow_table_peak: links.iter().filter_map(|l| l.flow_entries_peak).max(),
        download_fragments_per_1000_packets: fragments_per_1000(flows(own, FlowKind::Download)),
        transfer_fragments: plain_mean(
            flows(own, FlowKind::Transfer).filter_map(|f| f.fragments).map(|n| n as f64),
        ),
        retransmissions: tcp().filter_map(|flow| flow.retransmissions).sum(),
        duplicates: tcp().filter_map(|flow| flow.duplicates).sum(),
        timeouts: (!timeouts.is_empty()).then(|| timeouts.iter().sum()),
    }
}

fn class_summary(
    class: SizeClass,
    own: &[&Rows],
    [fifo, fq_codel]: [Option<&[&Rows]>; 2],
    rounds: u64,
    warm_up: Nanos,
) -> ClassSummary {
    let of_class = |flow: &&Flow| {
        flow.size_class == Some(class) && flow.planned_ns.is_none_or(|at| Nanos(at) >= warm_up)
    };
    let mine: Vec<&Flow> = flows(own, FlowKind::Transfer).filter(of_class).collect();
    let slowdowns: Vec<f64> = mine.iter().filter_map(|flow| flow.slowdown).collect();
    let against = |reference: Option<&[&Rows]>| {
        let theirs = flows(reference?, FlowKind::Transfer).filter(of_class);
        let matches = Matches::new(mine.iter().copied(), theirs);
        let matches = if rounds < FEW_ROUNDS { matches.in_batches(BATCH.0) } else { matches };
        matches.ratio_of_means()
    };
    ClassSummary {
        packets: class,
        completion_ms: stats::Summary::of(&times_ms(mine.iter().copied())),
        slowdown: stats::mean(&slowdowns),
        incomplete: mine.iter().filter(|flow| !flow.complete).count() as u64,
        vs_fifo: against(fifo),
        vs_fq_codel: against(fq_codel),
    }
}

fn times_ms<'a>(flows: impl Iterator<Item = &'a Flow>) -> Vec<f64> {
    flows.filter_map(|flow| flow.completion_ns).map(|ns| ns as f64 / 1e6).collect()
}

/// The streams that only a scenario has.
fn others<'a>(own: &[&'a Rows]) -> BTreeSet<&'a str> {
    let names = own.iter().flat_map(|rows| &rows.probes).map(|probe| &*probe.stream);
    names.filter(|name| !["voice", "video", "ping"].contains(name)).collect()
}

fn stream_summary(name: &str, own: &[&Rows], warm_up: Nanos) -> StreamSummary {
    let counts = |p: &&Probe| &*p.stream == name && Nanos(p.sent_ns) >= warm_up;
    let packets: Vec<&Probe> = own.iter().flat_map(|rows| &rows.probes).filter(counts).collect();
    let delays: Vec<f64> =
        packets.iter().filter_map(|p| p.delay_ns).map(|ns| ns as f64 / 1e6).collect();
    StreamSummary {
        sent: packets.len() as u64,
        lost: (packets.len() - delays.len()) as u64,
        delay_ms: stats::Summary::of(&delays),
    }
}

fn drop_summary(own: &[&Rows]) -> Vec<DropSummary> {
    let mut sums = BTreeMap::new();
    for drop in own.iter().flat_map(|rows| &rows.drops).filter(|drop| &*drop.link == "down") {
        *sums.entry((drop.lane, drop.reason.to_string(), drop.size_class)).or_insert(0) +=
            drop.packets;
    }
    let row = |((lane, reason, packets_class), packets)| DropSummary {
        lane,
        reason,
        packets_class,
        packets,
    };
    sums.into_iter().map(row).collect()
}

fn fragments_per_1000<'a>(flows: impl Iterator<Item = &'a Flow>) -> Option<f64> {
    let (mut fragments, mut packets) = (0, 0);
    for flow in flows {
        fragments += flow.fragments?;
        packets += flow.packets?;
    }
    (packets > 0).then(|| 1000.0 * fragments as f64 / packets as f64)
}

fn plain_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0u64), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / n as f64)
}
