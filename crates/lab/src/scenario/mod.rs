//! A scenario file as a lab: what of it can be had on this machine, and the rest refused by name.

mod plans;
mod way;

use scenario::{Kind, Scenario, ScenarioError, Traffic as Sent};
use sched::Nanos;
use workload::TransferList;

use crate::config::{AgentProgram, Config, Labels, Round, Timing, Traffic, Transfers};
use crate::scheduler::{Engine, Scheduler};
use crate::traffic::{Plan, Tcp, Transfer};
use plans::MOST_PAIRS;
use way::Way;

/// As many as `--downloads` takes.
const MOST_FLOWS: u64 = 1000;

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
    let rounds: Vec<Round> = scenario.seeds.iter().map(|seed| way.round(scenario, *seed)).collect();
    for round in &rounds {
        if round.plans.len() > MOST_PAIRS {
            let what = format!(
                "is between {} pairs of hosts; the lab takes {MOST_PAIRS}",
                round.plans.len()
            );
            return Err(scenario.refuse("traffic", &what));
        }
        let checked = round.plans.iter().try_for_each(Plan::check);
        checked.map_err(|error| scenario.refuse("traffic", &format!("cannot be sent: {error}")))?;
    }
    let first = || rounds[0].plans.iter();
    let objects = first().flat_map(|plan| &plan.visitors).flat_map(|v| &v.pages);
    let objects = objects.flat_map(|page| &page.objects);
    // Of objects the sizes count, for the times on the idle link.
    let all: Vec<&Transfer> = first().flat_map(|plan| &plan.transfers).chain(objects).collect();
    let count = |of: fn(&Plan) -> usize| first().map(of).sum::<usize>() as u32;
    let tcp = scenario.traffic.iter().find_map(|traffic| traffic.kind.tcp()).map(tcp_of);
    let listed =
        all.iter().map(|t| workload::Transfer { start: t.start, size_bytes: t.size_bytes });
    let ecn = scenario.traffic.iter().find_map(|traffic| traffic.kind.tcp()).is_some_and(|t| t.ecn);
    let link = way.bottleneck(scenario, ecn)?;
    Ok(Config {
        traffic: Traffic {
            transfers: Transfers::Listed(TransferList::new(listed.collect())),
            tcp: vec![tcp.unwrap_or_default()],
            downloads: count(|plan| plan.downloads.len()),
            uploads: count(|plan| plan.uploads.len()),
            interactive: false,
        },
        timing: Timing {
            warm_up: scenario.warm_up,
            arrivals: scenario.duration - scenario.warm_up,
            drain: Nanos::ZERO,
            rounds: scenario.seeds.len() as u64,
            until_precise: None,
            jobs: jobs
                .unwrap_or_else(|| Timing::jobs_for(link.rate.max(link.up_rate), schedulers.len())),
            late_limit,
        },
        schedulers,
        link,
        idle_times: !all.is_empty(),
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
    let requests = scenario.traffic.iter().filter_map(|traffic| match traffic.kind {
        Kind::Requests { flows, .. } => Some((traffic.name.as_str().into(), flows)),
        _ => None,
    });
    Labels {
        transfers: names(is_transfers),
        persistent: names(is_persistent),
        requests: requests.collect(),
    }
}

const fn is_transfers(kind: &Kind) -> bool {
    matches!(kind, Kind::Transfers { .. } | Kind::Periodic { .. } | Kind::Web { .. })
}

const fn is_persistent(kind: &Kind) -> bool {
    matches!(kind, Kind::Persistent { .. })
}

const fn is_requests(kind: &Kind) -> bool {
    matches!(kind, Kind::Requests { .. })
}

fn tcp_of(tcp: &tcp::Config) -> Tcp {
    match tcp.congestion {
        tcp::Congestion::Reno => Tcp::Reno,
        tcp::Congestion::Cubic => Tcp::Cubic,
        tcp::Congestion::Bbr => Tcp::Bbr,
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
        Kind::Transfers { .. }
        | Kind::Periodic { .. }
        | Kind::Persistent { .. }
        | Kind::Cbr(_)
        | Kind::Web { .. }
        | Kind::Requests { .. } => {}
        Kind::OnOff { .. } | Kind::Trace(_) | Kind::OpenLoop { .. } => {
            return refuse(
                "kind",
                "cannot be had in the lab; it takes transfers, periodic, persistent, web, requests \
                 and cbr",
            );
        }
    }
    let are = |nodes: &[usize], side: &dyn Fn(&usize) -> bool| nodes.iter().all(side);
    let is_server = |node: &usize| way.servers.iter().any(|(server, _)| server == node);
    let is_client = |node: &usize| way.clients.contains(node);
    let down = are(&traffic.from, &is_server) && are(&traffic.to, &is_client);
    let up = are(&traffic.from, &is_client) && are(&traffic.to, &is_server);
    if !(down || up && is_persistent(&traffic.kind)) {
        return refuse(
            "from",
            "cannot be had in the lab: towards the bottleneck's `a` or left only persistent flows \
             go, and all others across the bottleneck the other way",
        );
    }
    if matches!(traffic.kind, Kind::Web { .. }) && traffic.from.len() > 1 {
        return refuse("from", "cannot be had in the lab: its pages come from one server");
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
