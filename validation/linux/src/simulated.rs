//! A round in the simulator.

use lab::traffic::Tcp;
use sched::{Amount, Nanos};
use sim::sources::{FlowPlan, Opener, Pair, Transfers};
use sim::{
    ENDLESS, FlowReport, Impairments, LinkConfig, LinkId, Network, NodeId, Queue, Recorder, Sample,
    Simulation, SourceId,
};
use tcp::{Config, Congestion, Pacing, SlowStartExit};

use crate::case::{Case, ETHERNET_BYTES, FRAME_BYTES, Work};
use crate::outcome::Outcome;

/// As the lab asks for data.
const REQUEST_BYTES: u64 = 16;
/// An empty acknowledgment: IP and TCP headers with timestamps, and Ethernet's.
const ACK_BYTES: u32 = 52 + ETHERNET_BYTES;
/// Nowhere a bottleneck.
const ACCESS_BPS: u64 = 10_000_000_000;
/// As the engine does.
const SAMPLE_EVERY: Nanos = Nanos::from_millis(10);

/// Our model of this kernel.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its TCP.
    pub tcp: Config,
    /// What a real host's and the engine's wake-ups add at most to either way. It makes one round
    /// of a single flow differ from the next.
    pub jitter: Nanos,
}

impl Model {
    /// As it is compared.
    #[must_use]
    pub fn new(tcp: Tcp) -> Self {
        let congestion = if tcp == Tcp::Reno { Congestion::Reno } else { Congestion::Cubic };
        let linux = Config::linux();
        let header_bytes = linux.header_bytes + ETHERNET_BYTES;
        Self { tcp: Config { congestion, header_bytes, ..linux }, jitter: Nanos(100_000) }
    }
}

/// Changes a model.
pub type Change = fn(&mut Model);

/// What may be switched in our model, to find the cause of a difference: a name, and the change.
pub const SWITCHES: [(&str, Change); 14] = [
    ("ack-every-segment", |model| model.tcp.ack_every = 1),
    ("quick-acks-16", |model| model.tcp.quick_acks = 16),
    ("quick-acks-100", |model| model.tcp.quick_acks = 100),
    ("quick-acks-1000", |model| model.tcp.quick_acks = 1000),
    ("growth-by-acked", |model| model.tcp.grow_by_delivered = false),
    ("window-64k", |model| model.tcp.receive_window = 65_535),
    ("slow-start-to-loss", |model| model.tcp.slow_start_exit = SlowStartExit::Loss),
    ("no-tail-loss-probe", |model| model.tcp.tail_loss_probe = false),
    ("no-prr", |model| model.tcp.prr = false),
    ("no-fast-convergence", |model| model.tcp.cubic_fast_convergence = false),
    ("not-reno-friendly", |model| model.tcp.cubic_friendly = false),
    ("pacing", |model| model.tcp.pacing = Some(Pacing::LINUX)),
    ("jitter-1ms", |model| model.jitter = Nanos::from_millis(1)),
    ("jitter-3ms", |model| model.jitter = Nanos::from_millis(3)),
];

/// Simulates a round with this model.
///
/// # Errors
/// If it cannot be simulated; the text says why.
pub fn run(case: &Case, work: &Work, round: u64, model: &Model) -> Result<Outcome, String> {
    // What has been received is reported at the end of a run, and a run is a function of its seed:
    // one more that ends with the warm-up has what was received by then.
    let before = simulate(case, work, round, model, case.warm_up)?;
    let until = simulate(case, work, round, model, case.measured)?;
    let whole = simulate(case, work, round, model, case.end)?;
    let long = until.long.iter().zip(&before.long);
    let mut completion_ms = vec![None; work.transfers.transfers().len()];
    for report in &whole.transfers {
        let ns = report.completed.map(|completed| completed.since(report.started).0);
        completion_ms[report.index as usize] = ns.map(|ns| ns as f64 / 1e6);
    }
    let count = |what: fn(&tcp::Stats) -> u32| {
        let senders = whole.long.iter().flatten().filter_map(|report| report.tcp.as_ref());
        senders.map(|[_, server]| f64::from(what(server))).sum()
    };
    Ok(Outcome {
        goodput_bps: long
            .map(|(until, before)| Outcome::rate_bps(case, received(until) - received(before)))
            .collect(),
        queue_packets: until.queue_packets(),
        loss: whole.dropped as f64 / whole.arrived.max(1) as f64,
        retransmissions: count(|stats| stats.retransmissions),
        timeouts: count(|stats| stats.timeouts),
        acks: whole.acks as f64 / whole.sent.max(1) as f64,
        completion_ms,
    })
}

fn received(report: &Option<FlowReport>) -> u64 {
    report.as_ref().map_or(0, |report| report.received)
}

/// What a run leaves.
struct Seen {
    bottleneck: LinkId,
    from: Nanos,
    sources: Vec<SourceId>,
    /// One for each flow without end.
    long: Vec<Option<FlowReport>>,
    transfers: Vec<FlowReport>,
    queued: u64,
    samples: u64,
    arrived: u64,
    dropped: u64,
    sent: u64,
    acks: u64,
}

impl Seen {
    fn queue_packets(&self) -> f64 {
        self.queued as f64 / self.samples.max(1) as f64
    }
}

impl Recorder for Seen {
    fn flow(&mut self, report: &FlowReport) {
        match self.sources.iter().position(|source| *source == report.source) {
            Some(long) => self.long[long] = Some(report.clone()),
            None => self.transfers.push(report.clone()),
        }
    }

    fn sample(&mut self, sample: &Sample) {
        if sample.link == self.bottleneck && sample.at >= self.from {
            self.queued += sample.backlog.packets;
            self.samples += 1;
        }
    }
}

fn simulate(
    case: &Case,
    work: &Work,
    round: u64,
    model: &Model,
    end: Nanos,
) -> Result<Seen, String> {
    let mut net = Net::new(case, model.jitter).map_err(|error| error.to_string())?;
    let mut simulation = Simulation::new(std::mem::take(&mut net.network), round);
    let tcp = simulation.add_tcp(model.tcp.clone()).map_err(|error| error.to_string())?;
    simulation.sample_every(SAMPLE_EVERY);
    let mut add = |plans: Vec<FlowPlan>| {
        let opener = Opener::Receiver { request_bytes: REQUEST_BYTES };
        let source = Transfers::planned(plans.into_iter(), tcp).opened_by(opener);
        simulation.add_source(Box::new(source))
    };
    let endless = |start, sender| {
        vec![FlowPlan { start, bytes: ENDLESS, pair: Pair { sender, receiver: net.client } }]
    };
    let mut sources = vec![add(endless(work.near, net.server))];
    sources.extend(work.far.map(|start| add(endless(start, net.far))));
    let transfers = work.transfers.transfers().iter().map(|transfer| FlowPlan {
        start: Nanos(transfer.start_ns),
        bytes: transfer.size_bytes,
        pair: Pair { sender: net.server, receiver: net.client },
    });
    add(transfers.collect());
    let mut seen = Seen {
        bottleneck: net.bottleneck,
        from: case.warm_up,
        long: vec![None; sources.len()],
        sources,
        transfers: Vec::new(),
        queued: 0,
        samples: 0,
        arrived: 0,
        dropped: 0,
        sent: 0,
        acks: 0,
    };
    simulation.run_until(end, &mut seen).map_err(|error| error.to_string())?;
    let totals = |link| simulation.port(link).map(|port| port.ledger().totals());
    if let (Some(data), Some(acks)) = (totals(net.bottleneck), totals(net.back)) {
        (seen.arrived, seen.dropped) = (data.arrived.packets, data.drops.total().packets);
        (seen.sent, seen.acks) = (data.sent().packets, acks.arrived.packets);
    }
    simulation.finish(&mut seen);
    Ok(seen)
}

/// `client = router - bottleneck - router = server`, and a detour to `far` behind that.
struct Net {
    network: Network,
    client: NodeId,
    server: NodeId,
    far: NodeId,
    bottleneck: LinkId,
    back: LinkId,
}

impl Net {
    fn new(case: &Case, jitter: Nanos) -> Result<Self, sim::NetworkError> {
        let mut network = Network::new();
        let mut node = |name| network.node(name);
        let (client, clients) = (node("client")?, node("clients")?);
        let (servers, server, far) = (node("servers")?, node("server")?, node("far")?);
        let mut link = |from: NodeId, to: NodeId, rate_bps, delay, queue, jitter| {
            let name = format!("{}-{}", network.node_name(from), network.node_name(to));
            let impairments = Impairments { jitter, ..Impairments::default() };
            let edge = None;
            network.link(LinkConfig {
                name,
                from,
                to,
                rate_bps,
                delay,
                queue,
                impairments,
                edge,
                varying: None,
            })
        };
        let access = || Queue::Fifo { limit: Amount::UNLIMITED };
        let queue = || Queue::Discipline { spec: case.spec(), log: false };
        let (rate, zero, detour) = (case.rate_bps, Nanos::ZERO, Nanos(case.detour().0 / 2));
        let (data, acks) = (case.propagation(FRAME_BYTES), case.propagation(ACK_BYTES));
        let bottleneck = link(servers, clients, rate, data, queue(), jitter)?;
        let back = link(clients, servers, rate, acks, queue(), jitter)?;
        for (from, to, delay) in [
            (server, servers, zero),
            (servers, server, zero),
            (clients, client, zero),
            (client, clients, zero),
            (far, servers, detour),
            (servers, far, detour),
        ] {
            link(from, to, ACCESS_BPS, delay, access(), zero)?;
        }
        Ok(Self { network, client, server, far, bottleneck, back })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_flow_fills_the_link_and_the_share_of_the_farther_one_is_smaller() {
        let cases = Case::all();
        let case = cases.iter().find(|case| case.limit == 50).expect("a buffer above one BDP");
        let outcome = run(case, &case.work(1), 1, &Model::new(case.tcp)).expect("it runs");
        // 1448 of 1514 bytes are data.
        assert!((9.4e6..9.57e6).contains(&outcome.goodput_bps[0]), "{outcome:?}");
        assert!(outcome.loss > 0.0 && outcome.retransmissions > 0.0, "{outcome:?}");
        let case = cases
            .iter()
            .find(|case| case.tcp == Tcp::Reno && case.detour() == Nanos::from_millis(40))
            .expect("two flows of Reno");
        let outcome = run(case, &case.work(1), 1, &Model::new(case.tcp)).expect("it runs");
        assert!(outcome.goodput_bps[1] < 0.8 * outcome.goodput_bps[0], "{outcome:?}");
    }
}
