//! A scenario file as a lab: what of it can be had on this machine, and the rest refused by name.

use std::collections::BTreeSet;

use scenario::{Kind, Link, Queue, Scenario, ScenarioError, Traffic as Sent, draw};
use sched::{Amount, Nanos, Rate, Spec};
use workload::TransferList;

use crate::block::empty_plan;
use crate::config::{AgentProgram, Bottleneck, Config, Labels, Round, Timing, Traffic, Transfers};
use crate::scheduler::{Engine, Scheduler, in_kernel};
use crate::traffic::{Cbr, Plan, Stream, Tcp, Transfer};

/// Links beside the bottleneck are to hold nothing up, as those of the lab do.
const ACCESS_TIMES: u64 = 10;
/// As many as `--downloads` takes.
const MOST_FLOWS: u64 = 1000;
/// What the lab's engine and its pacer carry.
const RATES: std::ops::RangeInclusive<u64> = 100_000..=2_000_000_000;

/// The lab of a scenario: a round for each seed, a block as long as a run. `named` are disciplines
/// to run instead of the scenario's.
///
/// # Errors
/// With the first thing that the lab cannot do, and the line where it stands.
pub fn config(
    scenario: &Scenario,
    engine: Engine,
    named: Option<Vec<Scheduler>>,
    jobs: Option<usize>,
    late_limit: f64,
    agent: AgentProgram,
) -> Result<Config, ScenarioError> {
    let way = Way::of(scenario, engine)?;
    let schedulers = way.schedulers(scenario, named)?;
    for (number, traffic) in scenario.traffic.iter().enumerate() {
        check_traffic(scenario, &way, number, traffic)?;
    }
    let rounds: Vec<Round> = scenario
        .seeds
        .iter()
        .map(|seed| Round { seed: *seed, plan: way.plan(scenario, *seed) })
        .collect();
    for round in &rounds {
        let checked = round.plan.check();
        checked.map_err(|error| scenario.refuse("traffic", &format!("cannot be sent: {error}")))?;
    }
    let first = &rounds[0].plan;
    let tcp = first.transfers.first().map(|transfer| transfer.tcp);
    let tcp = tcp.or_else(|| first.downloads.iter().chain(&first.uploads).map(|s| s.tcp).next());
    let listed = first.transfers.iter().map(|transfer| workload::Transfer {
        start_ns: transfer.start_ns,
        size_bytes: transfer.size_bytes,
    });
    let ecn = scenario.traffic.iter().find_map(|traffic| traffic.kind.tcp()).is_some_and(|t| t.ecn);
    let link = way.bottleneck(scenario, ecn)?;
    Ok(Config {
        traffic: Traffic {
            transfers: Transfers::Listed(TransferList::new(listed.collect())),
            tcp: vec![tcp.unwrap_or_default()],
            downloads: first.downloads.len() as u32,
            uploads: first.uploads.len() as u32,
            interactive: false,
        },
        timing: Timing {
            warm_up_ns: scenario.warm_up_ns,
            arrivals_ns: scenario.duration_ns - scenario.warm_up_ns,
            drain_ns: 0,
            rounds: scenario.seeds.len() as u64,
            until_precise: None,
            jobs: jobs.unwrap_or_else(|| {
                Timing::jobs_for(link.rate_bps.max(link.up_rate_bps), schedulers.len())
            }),
            late_limit,
        },
        schedulers,
        link,
        idle_times: !first.transfers.is_empty(),
        seed: scenario.seeds[0],
        labels: labels(scenario),
        rounds,
        agent,
    })
}

fn labels(scenario: &Scenario) -> Labels {
    let names = |of: fn(&Kind) -> bool| {
        let traffic = scenario.traffic.iter().filter(|traffic| of(&traffic.kind));
        traffic.map(|traffic| traffic.name.as_str().into()).collect()
    };
    Labels { transfers: names(is_transfers), persistent: names(is_persistent) }
}

const fn is_transfers(kind: &Kind) -> bool {
    matches!(kind, Kind::Transfers { .. } | Kind::Periodic { .. })
}

const fn is_persistent(kind: &Kind) -> bool {
    matches!(kind, Kind::Persistent { .. })
}

/// The one way of a topology: server, bottleneck, client, and links that hold nothing up.
struct Way<'a> {
    bottleneck: &'a Link,
    /// Which direction of it leads to the client.
    down: usize,
    server: usize,
    client: usize,
    rtt_ns: u64,
    engine: Engine,
}

impl<'a> Way<'a> {
    fn of(scenario: &'a Scenario, engine: Engine) -> Result<Self, ScenarioError> {
        let topology = &scenario.topology;
        let tested: Vec<(usize, usize)> = topology.tested().collect();
        let (at, down) = tested[0];
        let links: BTreeSet<usize> = tested.iter().map(|(link, _)| *link).collect();
        if links.len() > 1 {
            let what = format!("has {} links under test; the lab has one bottleneck", links.len());
            return Err(scenario.refuse("topology", &what));
        }
        let degree = |node| topology.links.iter().filter(|link| link.ends.contains(&node)).count();
        let is_line = topology.links.len() + 1 == topology.nodes.len()
            && (0..topology.nodes.len()).all(|node| degree(node) <= 2);
        if !is_line {
            let has_pairs = scenario.keys("topology").iter().any(|key| key == "pairs");
            let path = if has_pairs { "topology.pairs" } else { "topology" };
            return Err(scenario.refuse(
                path,
                "has more ends than the lab: one server, one client, and one way between them",
            ));
        }
        let bottleneck = &topology.links[at];
        let end = |mut node: usize| {
            let mut from = at;
            loop {
                let on = (0..topology.links.len())
                    .find(|next| *next != from && topology.links[*next].ends.contains(&node));
                let Some(next) = on else { return node };
                let [a, b] = topology.links[next].ends;
                node = if a == node { b } else { a };
                from = next;
            }
        };
        let way = Self {
            bottleneck,
            down,
            server: end(bottleneck.ends[down]),
            client: end(bottleneck.ends[1 - down]),
            engine,
            rtt_ns: 2 * topology.links.iter().map(|link| link.delay_ns).sum::<u64>(),
        };
        for link in &topology.links {
            way.check_link(scenario, link)?;
        }
        Ok(way)
    }

    fn is_bottleneck(&self, link: &Link) -> bool {
        link.name == self.bottleneck.name
    }

    fn check_link(&self, scenario: &Scenario, link: &Link) -> Result<(), ScenarioError> {
        let refuse =
            |key: &str, what: &str| Err(scenario.refuse(&format!("{}.{key}", link.key), what));
        let impaired = [
            ("loss", link.loss > 0.0),
            ("jitter", link.jitter_ns > 0),
            ("reorder", link.reorder > 0.0),
        ];
        if let Some((key, _)) = impaired.iter().find(|(_, is)| *is) {
            return refuse(key, "cannot be had in the lab: its links lose and reorder nothing");
        }
        for (key, rates) in ["varying", "back-varying"].into_iter().zip(&link.varying) {
            if rates.is_some() {
                return refuse(key, "cannot be had in the lab: its rates are fixed");
            }
        }
        let rates = ["rate", "back-rate"].into_iter().zip(link.rate_bps);
        if self.is_bottleneck(link) {
            for (key, rate) in rates {
                if !RATES.contains(&rate) {
                    return refuse(key, "is not accepted; the lab takes 100kbit to 2gbit");
                }
            }
            if self.rtt_ns > 2_000_000_000 {
                return refuse("delay", "makes round trips beyond the lab's longest, 2s");
            }
            if link.edge.is_some() && self.engine == Engine::Kernel {
                return refuse("edge", "is of the userspace engine; --engine kernel has none");
            }
            return Ok(());
        }
        if link.edge.is_some() {
            return refuse("edge", "cannot be had in the lab: only the bottleneck has one");
        }
        let least = ACCESS_TIMES * self.bottleneck.rate_bps.into_iter().max().unwrap_or(0);
        for (key, rate) in rates {
            if rate < least {
                let what = format!(
                    "cannot be had in the lab, whose other links hold nothing up; it takes {} \
                     and more, {ACCESS_TIMES} times the bottleneck's",
                    Rate(least)
                );
                return refuse(key, &what);
            }
        }
        let plain =
            |queue: &Queue| matches!(queue, Queue::Fixed(spec) if spec.info().name == "fifo");
        if link.queues.iter().all(plain) {
            return Ok(());
        }
        refuse("scheduler", "cannot be had in the lab: only the bottleneck has a discipline")
    }

    /// What a queue under test holds.
    fn limit(&self) -> Amount {
        match &self.bottleneck.queues[self.down] {
            Queue::Tested(limit) => *limit,
            Queue::Fixed(spec) => spec.params().amount("limit"),
        }
    }

    /// What a discipline of ours is in this engine.
    fn scheduler(&self, spec: &Spec) -> Result<Scheduler, String> {
        let needs = spec.info().needs;
        if needs.flow_size || needs.offset {
            let name = spec.info().name;
            return Err(format!(
                "has {name}, which needs what a live link does not tell: the sizes of flows"
            ));
        }
        match self.engine {
            Engine::Userspace => Ok(Scheduler::Ours(spec.clone())),
            Engine::Kernel => in_kernel(spec)
                .map_err(|error| format!("has what --engine kernel cannot take: {error}")),
        }
    }

    fn schedulers(
        &self,
        scenario: &Scenario,
        named: Option<Vec<Scheduler>>,
    ) -> Result<Vec<Scheduler>, ScenarioError> {
        let refuse = |what: &String| scenario.refuse("schedulers.run", what);
        let of_file = || scenario.schedulers.iter().map(|spec| self.scheduler(spec)).collect();
        let all = named.map_or_else(of_file, Ok).map_err(|what: String| refuse(&what))?;
        let limit = self.limit();
        let limited = |one: Scheduler| {
            one.with_limit(limit).map_err(|error| refuse(&format!("is refused: {error}")))
        };
        all.into_iter().map(limited).collect()
    }

    fn bottleneck(&self, scenario: &Scenario, ecn: bool) -> Result<Bottleneck, ScenarioError> {
        let link = self.bottleneck;
        let (down, up) = (self.down, 1 - self.down);
        let limit = self.limit();
        let up_scheduler = match &link.queues[up] {
            Queue::Tested(_) => None,
            Queue::Fixed(spec) => {
                let path = format!("{}.back-scheduler", link.key);
                let own = self.scheduler(spec).map_err(|what| scenario.refuse(&path, &what))?;
                let limit = spec.params().amount("limit");
                let limited = own.with_limit(limit);
                Some(limited.map_err(|error| scenario.refuse(&path, &error.to_string()))?)
            }
        };
        Ok(Bottleneck {
            engine: self.engine,
            rate_bps: link.rate_bps[down],
            up_rate_bps: link.rate_bps[up],
            up_scheduler,
            limit,
            rtt: Nanos(self.rtt_ns),
            edge: link.edge.clone(),
            ecn,
            local_sender: false,
        })
    }

    fn is_up(&self, traffic: &Sent) -> bool {
        traffic.from == [self.client]
    }

    /// What a round sends. Ids are those of the simulator: traffics of one kind take turns.
    fn plan(&self, scenario: &Scenario, seed: u64) -> Plan {
        let mut plan = empty_plan();
        plan.arrivals_end_ns = scenario.duration_ns;
        plan.drain_end_ns = scenario.duration_ns;
        let all = |of: fn(&Kind) -> bool| {
            scenario.traffic.iter().filter(|traffic| of(&traffic.kind)).count() as u32
        };
        let (mut transfers, mut persistent) = (0, 0);
        for traffic in &scenario.traffic {
            let tcp = traffic.kind.tcp().map_or(Tcp::Cubic, tcp_of);
            match &traffic.kind {
                Kind::Transfers { .. } | Kind::Periodic { .. } => {
                    let planned = (0..).zip(draw::flows(traffic, seed));
                    plan.transfers.extend(planned.map(|(index, flow): (u32, _)| Transfer {
                        id: index * all(is_transfers) + transfers,
                        start_ns: flow.start_ns,
                        size_bytes: flow.size_bytes,
                        tcp,
                    }));
                    transfers += 1;
                }
                Kind::Persistent { flows, stagger_ns, .. } => {
                    let streams =
                        if self.is_up(traffic) { &mut plan.uploads } else { &mut plan.downloads };
                    let one = |index: u32| Stream {
                        id: index * all(is_persistent) + persistent,
                        tcp,
                        start_ns: traffic.start_ns + u64::from(index) * stagger_ns,
                        stop_ns: traffic.stop_ns,
                    };
                    let started = |stream: &Stream| stream.start_ns < stream.stop_ns;
                    streams.extend((0..*flows as u32).map(one).filter(started));
                    persistent += 1;
                }
                Kind::Cbr(stream) => plan.cbr.extend((0..stream.flows).map(|flow| Cbr {
                    name: match stream.flows {
                        1 => traffic.name.clone(),
                        _ => format!("{}/{flow}", traffic.name),
                    },
                    rate_bps: stream.rate_bps,
                    packet_bytes: stream.packet_bytes as u16,
                    start_ns: draw::first_ns(stream, traffic, flow, seed),
                    stop_ns: traffic.stop_ns,
                })),
                _ => {}
            }
        }
        plan.cbr.retain(|stream| stream.start_ns < stream.stop_ns);
        plan
    }
}

fn tcp_of(tcp: &tcp::Config) -> Tcp {
    match tcp.congestion {
        tcp::Congestion::Reno => Tcp::Reno,
        tcp::Congestion::Cubic => Tcp::Cubic,
    }
}

fn check_traffic(
    scenario: &Scenario,
    way: &Way<'_>,
    number: usize,
    traffic: &Sent,
) -> Result<(), ScenarioError> {
    let path = format!("traffic[{number}]");
    let refuse = |key: &str, what: &str| Err(scenario.refuse(&format!("{path}.{key}"), what));
    match &traffic.kind {
        Kind::Transfers { .. } | Kind::Periodic { .. } | Kind::Persistent { .. } | Kind::Cbr(_) => {
        }
        Kind::Web { .. }
        | Kind::Requests { .. }
        | Kind::OnOff { .. }
        | Kind::Trace(_)
        | Kind::OpenLoop { .. } => {
            return refuse(
                "kind",
                "cannot be had in the lab; it takes transfers, periodic, persistent and cbr",
            );
        }
    }
    let ends = (&traffic.from[..], &traffic.to[..]);
    let down = ends == (&[way.server][..], &[way.client][..]);
    let up = ends == (&[way.client][..], &[way.server][..]);
    if !(down || up && is_persistent(&traffic.kind)) {
        return refuse(
            "from",
            "cannot be had in the lab: towards the bottleneck's `a` or left only persistent flows \
             go, and all others from end to end the other way",
        );
    }
    if traffic.dscp > 0 {
        return refuse("dscp", "cannot be had in the lab: its packets have none");
    }
    match &traffic.kind {
        Kind::Cbr(stream) if !(56..=1500).contains(&stream.packet_bytes) => {
            return refuse("packet", "cannot be had in the lab; it takes 56b to 1500b");
        }
        Kind::Persistent { flows, .. } if *flows > MOST_FLOWS => {
            return refuse("flows", "are too many for the lab; it takes 1000");
        }
        _ => {}
    }
    let Some(tcp) = traffic.kind.tcp() else { return Ok(()) };
    for table in ["tcp".to_owned(), format!("{path}.tcp")] {
        let model = |key: &String| !["preset", "congestion", "ecn"].contains(&key.as_str());
        if let Some(key) = scenario.keys(&table).into_iter().find(model) {
            let what = "is of the simulator's TCP; the lab's is this kernel's, and takes \
                        preset = \"linux\", congestion and ecn";
            return Err(scenario.refuse(&format!("{table}.{key}"), what));
        }
    }
    let ecn = scenario.traffic.iter().filter_map(|other| other.kind.tcp()).map(|tcp| tcp.ecn);
    let mine = tcp::Config { congestion: tcp.congestion, ecn: tcp.ecn, ..tcp::Config::linux() };
    if *tcp != mine {
        return Err(scenario.refuse(
            "tcp.preset",
            "is of the simulator's TCP; the lab's is this kernel's: preset = \"linux\"",
        ));
    }
    if ecn.into_iter().any(|ecn| ecn != tcp.ecn) {
        return refuse(
            "tcp",
            "uses ECN and others do not, or the reverse; in the lab all do or none",
        );
    }
    Ok(())
}
