//! The configuration of a lab: link, traffic, disciplines, duration.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use measure::Text;
use scenario::Varying;
use sched::Amount;
use sched::edge::EdgeSpec;
use serde::Serialize;
use units::{Nanos, Rate};
use workload::{Offered, SizeLaw, TransferList};

use crate::hosts::{client_address, server_address};
use crate::kernel;
use crate::scheduler::{Engine, Scheduler};
use crate::traffic::{Plan, Tcp};

/// A whole experiment.
#[derive(Clone, Debug)]
pub struct Config {
    /// The disciplines, each run on the same traffic.
    pub schedulers: Vec<Scheduler>,
    /// The bottleneck.
    pub link: Bottleneck,
    /// What goes through it.
    pub traffic: Traffic,
    /// How often and how long.
    pub timing: Timing,
    /// Whether to measure what transfers take on the idle link first, for their slowdown.
    pub idle_times: bool,
    /// Feeds the workload and the disciplines.
    pub seed: u64,
    /// From a scenario: what each round sends, instead of what `traffic` says.
    pub rounds: Vec<Round>,
    /// Names of a scenario's traffic.
    pub labels: Labels,
    /// The program that plays client and server; its last argument will be `client` or `server`.
    pub agent: AgentProgram,
}

/// What one round of a scenario sends.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// Its traffic: what goes between a server and a client, for each pair of these that has any.
    pub plans: Vec<Plan>,
    /// How the rate of the link varies, towards the client and back.
    pub varying: [Option<Varying>; 2],
}

/// Names of a scenario's traffic. Those of one kind take turns in ids: id `i` is of the `i % n`th.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// Of transfers.
    pub transfers: Vec<Text>,
    /// Of downloads and uploads together.
    pub persistent: Vec<Text>,
    /// Of requests, with the number of connections.
    pub requests: Vec<(Text, u64)>,
}

impl Labels {
    /// The name of a transfer's traffic.
    #[must_use]
    pub fn transfer(&self, id: u64) -> Option<Text> {
        in_turn(&self.transfers, id)
    }

    /// The name of the traffic of a connection for requests, and the step between their numbers.
    #[must_use]
    pub fn requests(&self, id: u64) -> (Option<Text>, u64) {
        match in_turn(&self.requests, id) {
            Some((name, flows)) => (Some(name), flows * self.requests.len() as u64),
            None => (None, 1),
        }
    }

    /// The name of a long flow's traffic.
    #[must_use]
    pub fn persistent(&self, id: u64) -> Option<Text> {
        in_turn(&self.persistent, id)
    }
}

fn in_turn<T: Clone>(names: &[T], id: u64) -> Option<T> {
    names.get((id as usize).checked_rem(names.len())?).cloned()
}

/// The hosts at the ends of the bottleneck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// How many clients there are.
    pub clients: u8,
    /// The servers: the round-trip time that each has beyond that of the bottleneck.
    pub servers: Vec<Nanos>,
}

impl Default for Ends {
    fn default() -> Self {
        Self { clients: 1, servers: vec![Nanos::ZERO] }
    }
}

impl Ends {
    /// A plan between a server and a client, by their numbers, still without traffic.
    #[must_use]
    pub fn plan(&self, server: u8, client: u8) -> Plan {
        let is_far = self.servers.get(usize::from(server)).is_some_and(|rtt| rtt.0 > 0);
        Plan::new(server_address(server, is_far), client_address(client))
    }
}

/// The bottleneck.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    /// What its queues are made of.
    pub engine: Engine,
    /// Rate towards the client.
    pub rate: Rate,
    /// Rate of the way back.
    pub up_rate: Rate,
    /// The discipline of the way back, where it is not the one under test.
    pub up_scheduler: Option<Scheduler>,
    /// The queue limit, where a discipline has no other.
    pub limit: Amount,
    /// Round-trip time of an empty link.
    pub rtt: Nanos,
    /// Who is at its ends.
    pub ends: Ends,
    /// An edge in front of the queue, in both directions.
    pub edge: Option<EdgeSpec>,
    /// Whether client and server use ECN.
    pub ecn: bool,
    /// Whether the senders' own host shapes to the link's rate, so that TCP small queues hide
    /// the queue from the discipline.
    pub local_sender: bool,
}

impl Bottleneck {
    /// The round-trip time to the farthest server.
    #[must_use]
    pub fn longest_rtt(&self) -> Nanos {
        self.rtt + self.ends.servers.iter().copied().max().unwrap_or_default()
    }
}

/// The traffic beside which short transfers are measured, and these themselves.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// The transfers.
    pub transfers: Transfers,
    /// Congestion controls, taken in turn by transfers and long flows.
    pub tcp: Vec<Tcp>,
    /// Long downloads.
    pub downloads: u32,
    /// Long uploads.
    pub uploads: u32,
    /// Whether voice, video, pings and a persistent connection run beside them.
    pub interactive: bool,
}

/// Where transfers come from.
#[derive(Clone, Debug)]
pub enum Transfers {
    /// Poisson arrivals with sizes by a law, at a load of the bottleneck.
    Drawn {
        /// The law of sizes.
        law: SizeLaw,
        /// Offered load, as a fraction of the link, headers included.
        load: f64,
    },
    /// A given list, the same in every round.
    Listed(TransferList),
}

/// How long and how often.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Timing {
    /// Long flows run alone before the first transfer.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Nanos,
    /// Transfers start.
    #[serde(rename = "arrivals_ns")]
    pub arrivals: Nanos,
    /// Nothing starts any more; what is not complete at the end is counted as incomplete.
    #[serde(rename = "drain_ns")]
    pub drain: Nanos,
    /// Rounds, each with every discipline once; for `until_precise` the least number.
    pub rounds: u64,
    /// Goes on until the intervals of the short transfers' ratios are within 5 %, but no further
    /// than this many rounds.
    pub until_precise: Option<u64>,
    /// Disciplines that run at the same time, each in namespaces of its own.
    pub jobs: usize,
    /// A block whose pacer gave up more of its sending time than this fraction, since it woke up
    /// too late to catch up, is void.
    pub late_limit: f64,
}

/// What setting up and tearing down a block takes, about.
const AROUND_BLOCK: Nanos = Nanos::from_millis(700);
/// A block longer than this has more rounds instead.
const LONGEST_BLOCK: Nanos = Nanos::from_secs(9);
/// Transfers of a thousand packets cannot complete in less.
const SHORTEST_BLOCK: Nanos = Nanos::from_secs(2);

impl Timing {
    /// Splits the time `total` between `schedulers` disciplines, `jobs` at a time, in rounds of short
    /// blocks.
    #[must_use]
    pub fn within(total: Nanos, schedulers: usize, jobs: usize, late_limit: f64) -> Self {
        let each = total / turns(schedulers, jobs);
        let rounds = (each.0 / LONGEST_BLOCK.0).max(1);
        let block = (each / rounds).since(AROUND_BLOCK).max(SHORTEST_BLOCK);
        let warm_up = (block / 6).min(Nanos::from_secs(1));
        let drain = block / 5;
        let arrivals = block - warm_up - drain;
        Self { warm_up, arrivals, drain, rounds, until_precise: None, jobs, late_limit }
    }

    /// Rounds of long blocks until 5 % intervals are reached.
    #[must_use]
    pub const fn thorough(jobs: usize, late_limit: f64) -> Self {
        Self {
            warm_up: Nanos::from_secs(1),
            arrivals: Nanos::from_secs(12),
            drain: Nanos::from_secs(3),
            rounds: 6,
            until_precise: Some(200),
            jobs,
            late_limit,
        }
    }

    /// The end of a block, from its start.
    #[must_use]
    pub fn block(&self) -> Nanos {
        self.warm_up + self.arrivals + self.drain
    }

    /// About how long the whole takes.
    #[must_use]
    pub fn total(&self, schedulers: usize) -> Nanos {
        (self.block() + AROUND_BLOCK) * self.rounds * turns(schedulers, self.jobs)
    }

    /// How many disciplines a machine runs side by side without getting in each other's way: as many
    /// as make 25 Mbit/s a processor, a small part of what it can carry.
    #[must_use]
    pub fn jobs_for(rate: Rate, schedulers: usize) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let carried = processors as u64 * PER_PROCESSOR.0 / rate.0.max(1);
        (carried as usize).clamp(1, schedulers.max(1))
    }
}

/// See [`Timing::jobs_for`].
const PER_PROCESSOR: Rate = Rate(25_000_000);

/// How many blocks of a round come one after another.
const fn turns(schedulers: usize, jobs: usize) -> u64 {
    schedulers.div_ceil(if jobs == 0 { 1 } else { jobs }) as u64
}

/// The program that plays client and server.
#[derive(Clone, Debug)]
pub struct AgentProgram {
    /// Its path.
    pub path: PathBuf,
    /// Its arguments before the role.
    pub arguments: Vec<String>,
}

/// IP and TCP headers with timestamps, beside the payload of a full packet.
const HEADER_BYTES: u64 = 52;
/// What of a full frame is payload, in parts per thousand: 1448 of 1514 bytes.
const PAYLOAD_PER_MILLE: u64 = 956;

/// What the lab's engine and its pacer carry.
pub(crate) const RATES: RangeInclusive<Rate> = Rate(100_000)..=Rate(2_000_000_000);

/// Beyond any link on this planet, satellites included.
const MOST_RTT: Nanos = Nanos(2_000_000_000);

impl Config {
    /// The transfers of a round, from the start of its arrivals.
    ///
    /// # Errors
    /// If the load or the size law does not give a list.
    pub fn transfers(&self, round: u64) -> Result<TransferList, ConfigError> {
        match &self.traffic.transfers {
            Transfers::Listed(list) => Ok(list.clone()),
            Transfers::Drawn { law, load } => {
                let offered = Offered {
                    load: *load,
                    rate: Rate(self.link.rate.0 / 1000 * PAYLOAD_PER_MILLE),
                    duration: self.timing.arrivals,
                };
                let seed = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(round);
                TransferList::generate(law, &offered, seed)
                    .map_err(|error| ConfigError(error.to_string()))
            }
        }
    }

    /// Checks what the parts cannot check for themselves.
    ///
    /// # Errors
    /// With the setting, what was found and what is accepted.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |text: String| Err(ConfigError(text));
        if self.schedulers.is_empty() {
            return refuse("no scheduler is named; at least one".into());
        }
        if !RATES.contains(&self.link.rate) {
            return refuse(format!(
                "--rate {} is not accepted; the lab takes 100kbit to 2gbit",
                self.link.rate
            ));
        }
        if self.link.rtt > MOST_RTT {
            return refuse(format!(
                "--delay {} is not accepted; the lab takes at most {}",
                self.link.rtt, MOST_RTT
            ));
        }
        for (index, named) in self.schedulers.iter().enumerate() {
            if self.schedulers[..index].iter().any(|other| other.to_string() == named.to_string()) {
                return refuse(format!("the scheduler {named} is named twice; each is run once"));
            }
        }
        if self.link.engine == Engine::Kernel {
            if self.link.edge.is_some() {
                return refuse("--edge is of the userspace engine; a qdisc has none".into());
            }
            let mut ours = self.schedulers.iter().filter_map(Scheduler::ours);
            ours.try_for_each(kernel::can).map_err(ConfigError)?;
        }
        if self.traffic.tcp.is_empty() {
            return refuse("no congestion control is named; cubic, reno or bbr".into());
        }
        for spec in self.schedulers.iter().filter_map(Scheduler::ours) {
            let Some(what) = spec.info().needs.of_no_link() else { continue };
            return refuse(format!(
                "{} cannot run on a live link: it needs {what}, which a link does not tell",
                spec.info().name
            ));
        }
        self.transfers(0).map(|_| ())
    }
}

/// A setting was refused: one line with what was found and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// Payload of a full packet with TCP timestamps.
pub const PAYLOAD_BYTES: u64 = 1500 - HEADER_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_minutes_of_five_schedulers_are_short_blocks_in_rounds() {
        for (jobs, rounds) in [(1, 2), (2, 4), (5, 13)] {
            let timing = Timing::within(Nanos::from_secs(120), 5, jobs, 0.05);
            assert_eq!(timing.rounds, rounds);
            let total = timing.total(5);
            assert!((Nanos::from_secs(115)..=Nanos::from_secs(125)).contains(&total), "{total}");
            assert!(timing.arrivals > timing.drain);
        }
    }

    #[test]
    fn too_little_time_still_makes_one_round() {
        let timing = Timing::within(Nanos(1), 5, 1, 0.05);
        assert_eq!(timing.rounds, 1);
        assert_eq!(timing.block(), SHORTEST_BLOCK);
    }
}
