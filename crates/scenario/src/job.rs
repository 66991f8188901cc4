//! One run: one scheduler, one seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use measure::{Block, Key, LinkUse};
use sched::{Nanos, Spec};
use sim::{Impairments, LinkConfig, LinkId, Network, NodeId, Simulation, Totals};

use crate::idle::IdleTimes;
use crate::record::{Recording, Wanted};
use crate::rows::Row;
use crate::scenario::{Scenario, with_limit};
use crate::sources;
use crate::tally::{LinkTally, Tally};
use crate::topology::Queue;
use crate::watched::watched;

/// A network for one scheduler.
pub(crate) struct Built {
    pub(crate) network: Network,
    /// By the place of a node in the topology.
    pub(crate) nodes: Vec<NodeId>,
    /// The directions under test, in their order.
    tested: Vec<LinkId>,
}

/// Builds the network of a run: `spec`, where a queue is under test, and its seed. Without them all
/// of these are plain FIFOs, and all rates fixed. With `log`, the first of these reports every packet.
pub(crate) fn build(
    scenario: &Scenario,
    run: Option<(&Spec, u64)>,
    log: bool,
) -> Result<Built, String> {
    let topology = &scenario.topology;
    let mut network = Network::new();
    let nodes: Result<Vec<NodeId>, _> =
        topology.nodes.iter().map(|name| network.node(name)).collect();
    let nodes = nodes.map_err(|error| error.to_string())?;
    let mut tested = Vec::new();
    for link in &topology.links {
        for direction in [0, 1] {
            let queue = match &link.queues[direction] {
                Queue::Fixed(fixed) if fixed.info().name == "fifo" => {
                    sim::Queue::Fifo { limit: fixed.params().amount("limit") }
                }
                Queue::Fixed(fixed) => sim::Queue::Discipline { spec: fixed.clone(), log: false },
                Queue::Tested(limit) => match run {
                    Some((spec, _)) => {
                        let spec = with_limit(spec, *limit).map_err(|error| error.to_string())?;
                        sim::Queue::Discipline { spec, log: log && tested.is_empty() }
                    }
                    None => sim::Queue::Fifo { limit: *limit },
                },
            };
            let name = link.direction_name(direction);
            let varying = link.varying[direction].as_ref().zip(run);
            let varying = varying.map(|(rates, (_, seed))| rates.of(seed, &name));
            let id = network
                .link(LinkConfig {
                    name,
                    from: nodes[link.ends[direction]],
                    to: nodes[link.ends[1 - direction]],
                    rate: link.rates[direction],
                    varying,
                    delay: link.delay,
                    overhead: link.overhead,
                    queue,
                    edge: link.edge.clone(),
                    impairments: Impairments {
                        loss: link.loss,
                        jitter: link.jitter,
                        reorder: link.reorder,
                        reorder_delay: link.reorder_delay,
                    },
                })
                .map_err(|error| error.to_string())?;
            if let Queue::Tested(_) = link.queues[direction] {
                tested.push(id);
            }
        }
    }
    for route in &topology.routes {
        let route: Vec<NodeId> = route.iter().map(|node| nodes[*node]).collect();
        network.route(&route).map_err(|error| error.to_string())?;
    }
    Ok(Built { network, nodes, tested })
}

/// What a run is given.
pub(crate) struct Job<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) idle: &'a IdleTimes<'a>,
    /// Its scheduler.
    pub(crate) spec: &'a Spec,
    pub(crate) seed: u64,
    /// Its place among the seeds, and among all runs.
    pub(crate) round: u64,
    pub(crate) block: u64,
    pub(crate) wanted: Wanted,
    pub(crate) stop: &'a AtomicBool,
}

/// How a run ended.
pub(crate) enum Ended {
    /// It is complete.
    Complete(Box<Tally>),
    /// It was told to stop.
    Stopped,
    /// It could not go on.
    Failed(String),
}

/// A run is looked after this often.
const SLICES: u64 = 200;

impl Job<'_> {
    /// Runs it. Simulated time is told to `passed` as it passes.
    pub(crate) fn run(&self, out: &mut dyn FnMut(Row), passed: &dyn Fn(Nanos)) -> Ended {
        let key = Key {
            run: self.scenario.name.as_str().into(),
            scheduler: self.spec.to_string().into(),
            seed: self.seed,
            round: self.round,
            block: self.block,
        };
        let built = match build(self.scenario, Some((self.spec, self.seed)), self.wanted.events) {
            Ok(built) => built,
            Err(error) => return Ended::Failed(error),
        };
        let names = |id: &LinkId| built.network.links()[id.index()].name.as_str().into();
        let tested: BTreeMap<LinkId, _> = built.tested.iter().map(|id| (*id, names(id))).collect();
        let mut recording = Recording::new(self.scenario, self.idle, key, self.wanted, out);
        recording.tested = tested;
        let mut simulation = Simulation::new(built.network, self.seed);
        simulation.bound(self.scenario.bound);
        if self.scenario.record.samples < Nanos::MAX {
            simulation.sample_every(self.scenario.record.samples);
        }
        let watched = match self.wanted.tables {
            true => watched(self.scenario, self.seed),
            false => BTreeSet::new(),
        };
        let nodes = &built.nodes;
        match sources::add(&mut simulation, self.scenario, nodes, self.seed, &watched) {
            Ok(purposes) => recording.purposes = purposes,
            Err(error) => return Ended::Failed(error),
        }
        let mut before: Vec<Totals> = Vec::new();
        let (warm_up, duration) = (self.scenario.warm_up, self.scenario.duration);
        for until in slices(warm_up, duration) {
            let since = simulation.now();
            let result = simulation.run_until(until, &mut recording);
            if let Err(error) = result {
                recording.end(since, Some(&error.to_string()));
                return Ended::Failed(format!("{}, seed {}: {error}", self.spec, self.seed));
            }
            passed(until - since);
            if until == warm_up {
                before = totals(&simulation, &built.tested);
                recording.warm_up(simulation.report_open_flows());
                simulation.restart_totals();
            }
            if until < duration && self.stop.load(Ordering::Relaxed) {
                recording.end(until, Some("interrupted"));
                return Ended::Stopped;
            }
        }
        self.finish(simulation, recording, &built.tested, &before)
    }

    fn finish(
        &self,
        simulation: Simulation,
        mut recording: Recording<'_>,
        tested: &[LinkId],
        before: &[Totals],
    ) -> Ended {
        let (warm_up, duration) = (self.scenario.warm_up, self.scenario.duration);
        let counted_ns = (duration - warm_up).0;
        let mut drops = Vec::new();
        for (at, id) in tested.iter().enumerate() {
            let link = &simulation.network().links()[id.index()];
            // What the link gave: with a rate that varies, its mean while it counted.
            let rate_bps = link.varying.as_ref().map_or(link.rate.0, |rates| {
                let bits = rates.bits(warm_up, duration);
                (u128::from(bits) * 1_000_000_000 / u128::from(counted_ns)) as u64
            });
            let Some(port) = simulation.port(*id) else { continue };
            let (ledger, now) = (port.ledger(), simulation.now());
            let counted = ledger.totals();
            let all = before.get(at).cloned().unwrap_or_default().and(counted);
            let utilisation =
                counted.sent().bytes as f64 * 8e9 / rate_bps.max(1) as f64 / counted_ns as f64;
            let row = LinkUse {
                key: recording.key.clone(),
                link: recording.tested[id].clone(),
                rate_bps,
                arrived_packets: all.arrived.packets,
                arrived_bytes: all.arrived.bytes,
                sent_packets: all.sent().packets,
                sent_bytes: all.sent().bytes,
                dropped_packets: all.drops.total().packets,
                marked_packets: Some(all.marked_packets),
                utilisation: Some(utilisation),
                backlog_mean_packets: Some(ledger.backlog().mean(now)),
                backlog_peak_packets: Some(ledger.backlog().peak()),
                flow_entries_mean: Some(ledger.table().mean(now)),
                flow_entries_peak: Some(ledger.table().peak()),
                flow_entries_p99: ledger.table().quantile(0.99, now),
                flow_entries_beyond_backlog: Some(ledger.entries_beyond_backlog()),
                flows_untracked: Some(all.flows_untracked),
                ..LinkUse::default()
            };
            recording.put(|_| Row::Link(Box::new(row.clone())));
            recording.tally.links.push(LinkTally {
                row,
                dropped: counted.drops.short_and_long(),
                arrived: counted.arrived.packets,
                marked: counted.marked_packets,
            });
            drops.push((*id, all.drops));
        }
        recording.tally.packet_hops = simulation.effort().packet_hops;
        simulation.finish(&mut recording);
        for (id, drops) in drops {
            recording.put_drops(id, &drops);
        }
        recording.end(duration, None);
        Ended::Complete(Box::new(recording.tally))
    }
}

fn totals(simulation: &Simulation, tested: &[LinkId]) -> Vec<Totals> {
    let of = |id: &LinkId| simulation.port(*id).map(|port| port.ledger().totals().clone());
    tested.iter().filter_map(of).collect()
}

/// The ends of the slices of a run; the warm-up ends with one.
fn slices(warm_up: Nanos, duration: Nanos) -> impl Iterator<Item = Nanos> {
    let slice = (duration / SLICES).max(Nanos(1));
    let mut now = Nanos::ZERO;
    std::iter::from_fn(move || {
        if now == duration {
            return None;
        }
        let next = duration.min(now + slice);
        now = if now < warm_up && warm_up < next { warm_up } else { next };
        Some(now)
    })
}

impl Recording<'_> {
    /// The row of the block; void with a reason if the run did not come to its end.
    fn end(&mut self, duration: Nanos, void: Option<&str>) {
        if !self.wanted.tables {
            return;
        }
        let link = self.scenario.topology.tested().next();
        let rate = link.map(|(link, way)| self.scenario.topology.links[link].rates[way]);
        let load = rate.map(|rate| {
            self.transfer_bytes as f64 * 8e9 / rate.0 as f64 / duration.0.max(1) as f64
        });
        (self.out)(Row::Block(Box::new(Block {
            key: self.key.clone(),
            start_ns: 0,
            duration_ns: duration.0,
            void: void.is_some(),
            void_reason: void.map(Into::into),
            offered_load: load.filter(|_| void.is_none()),
            transfers: self.transfers,
            completed: self.completed,
        })));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_end_at_the_warm_up_and_at_the_end() {
        for (warm_up, duration) in [(0, 1), (0, 7), (50, 1000), (3, 1000), (999, 1000)] {
            let (warm_up, duration) = (Nanos(warm_up), Nanos(duration));
            let ends: Vec<Nanos> = slices(warm_up, duration).collect();
            assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
            assert_eq!(ends.last(), Some(&duration));
            assert!(warm_up == Nanos::ZERO || ends.contains(&warm_up));
        }
    }
}
