//! The ways of a topology that the lab takes, and its bottleneck.

use std::collections::BTreeSet;

use netdev::device::ETHERNET_HEADER;
use scenario::{Link, Queue, Rates, Scenario, ScenarioError, Traffic as Sent};
use sched::{Amount, Nanos, Rate, Spec};

use crate::config::{Bottleneck, Ends, RATES};
use crate::scheduler::{Engine, Scheduler, in_kernel};

/// Links beside the bottleneck are to hold nothing up, as those of the lab do.
const ACCESS_TIMES: u64 = 10;
/// Servers with a round-trip time of their own have a network each.
const MOST_FAR: usize = 8;

/// The ways of a topology: servers, bottleneck, clients, and links that hold nothing up.
pub(super) struct Way<'a> {
    pub(super) bottleneck: &'a Link,
    /// Which direction of it leads to the clients.
    pub(super) down: usize,
    /// Those at whose ends traffic is: their nodes, and for servers the round-trip time that each has
    /// beyond `rtt`.
    pub(super) servers: Vec<(usize, Nanos)>,
    pub(super) clients: Vec<usize>,
    /// Of the shortest way.
    rtt: Nanos,
    engine: Engine,
}

/// How far nodes are from a node without crossing a link: `None` for those behind it.
fn distances(scenario: &Scenario, from: usize, without: usize) -> Vec<Option<Nanos>> {
    let topology = &scenario.topology;
    let mut far = vec![None; topology.nodes.len()];
    far[from] = Some(Nanos::ZERO);
    let mut next = vec![from];
    while let Some(node) = next.pop() {
        for (at, link) in topology.links.iter().enumerate() {
            if at == without || !link.ends.contains(&node) {
                continue;
            }
            let [a, b] = link.ends;
            let other = if a == node { b } else { a };
            if far[other].is_none() {
                far[other] = far[node].map(|time: Nanos| time + link.delay);
                next.push(other);
            }
        }
    }
    far
}

impl<'a> Way<'a> {
    pub(super) fn of(scenario: &'a Scenario, engine: Engine) -> Result<Self, ScenarioError> {
        let topology = &scenario.topology;
        let tested: Vec<(usize, usize)> = topology.tested().collect();
        let (at, down) = tested[0];
        let links: BTreeSet<usize> = tested.iter().map(|(link, _)| *link).collect();
        if links.len() > 1 {
            let what = format!("has {} links under test; the lab has one bottleneck", links.len());
            return Err(scenario.refuse("topology", &what));
        }
        let bottleneck = &topology.links[at];
        let to_server = distances(scenario, bottleneck.ends[down], at);
        let to_client = distances(scenario, bottleneck.ends[1 - down], at);
        let is_tree = topology.links.len() + 1 == topology.nodes.len();
        if !is_tree || to_server.iter().zip(&to_client).any(|(s, c)| s.is_some() == c.is_some()) {
            return Err(scenario.refuse(
                "topology",
                "has other ways than one across the bottleneck between two ends, as the lab has",
            ));
        }
        let ends = scenario.traffic.iter().flat_map(|t| t.from.iter().chain(&t.to));
        let ends: BTreeSet<usize> = ends.copied().collect();
        let mut servers: Vec<(usize, Nanos)> =
            ends.iter().filter_map(|node| Some((*node, to_server[*node]?))).collect();
        let clients: Vec<(usize, Nanos)> =
            ends.iter().filter_map(|node| Some((*node, to_client[*node]?))).collect();
        let nearest =
            |ends: &[(usize, Nanos)]| ends.iter().map(|(_, far)| *far).min().unwrap_or_default();
        let (near, client) = (nearest(&servers), nearest(&clients));
        for (_, far) in &mut servers {
            *far = 2 * (*far - near);
        }
        if clients.iter().any(|(_, far)| *far != client) {
            return Err(scenario.refuse(
                "topology",
                "has receivers at different distances; in the lab only senders may be",
            ));
        }
        if servers.iter().filter(|(_, far)| *far > Nanos::ZERO).count() > MOST_FAR
            || servers.len().max(clients.len()) > 200
        {
            let what = format!("has too many ends; the lab takes 200, and {MOST_FAR} far senders");
            return Err(scenario.refuse("topology", &what));
        }
        let way = Self {
            bottleneck,
            down,
            servers,
            clients: clients.into_iter().map(|(node, _)| node).collect(),
            engine,
            rtt: 2 * (bottleneck.delay + near + client),
        };
        for link in &topology.links {
            way.check_link(scenario, link)?;
        }
        Ok(way)
    }

    fn longest_rtt(&self) -> Nanos {
        self.rtt + self.servers.iter().map(|(_, far)| *far).max().unwrap_or_default()
    }

    fn is_bottleneck(&self, link: &Link) -> bool {
        link.name == self.bottleneck.name
    }

    fn check_link(&self, scenario: &Scenario, link: &Link) -> Result<(), ScenarioError> {
        let refuse =
            |key: &str, what: &str| Err(scenario.refuse(&format!("{}.{key}", link.key), what));
        let impaired = [
            ("loss", link.loss > 0.0),
            ("jitter", link.jitter > Nanos::ZERO),
            ("reorder", link.reorder > 0.0),
        ];
        if let Some((key, _)) = impaired.iter().find(|(_, is)| *is) {
            return refuse(key, "cannot be had in the lab: its links lose and reorder nothing");
        }
        let varying = ["varying", "back-varying"].into_iter().zip(&link.varying);
        for (key, rates) in varying.filter_map(|(key, rates)| Some((key, rates.as_ref()?))) {
            if !self.is_bottleneck(link) {
                return refuse(key, "cannot be had in the lab: only the bottleneck's rate varies");
            }
            // A walk has no rate of 0.
            let stalls = |rates: &Rates| match rates {
                Rates::Given(rates) => rates.steps().iter().any(|(_, rate)| rate.0 == 0),
                Rates::Walk(_) => false,
            };
            if self.engine == Engine::Kernel && stalls(rates) {
                return refuse(key, "stalls; qdiscs of the kernel take no rate of 0");
            }
        }
        // Without the key, a file leaves to each engine what it counts.
        let counted = if self.is_bottleneck(link) { u32::from(ETHERNET_HEADER) } else { 0 };
        if ![0, counted].contains(&link.overhead) {
            let what = "cannot be had in the lab, whose bottleneck counts frames: 14b there, and \
                        nothing on other links";
            return refuse("overhead", what);
        }
        let rates = ["rate", "back-rate"].into_iter().zip(link.rates);
        if self.is_bottleneck(link) {
            for (key, rate) in rates {
                if !RATES.contains(&rate) {
                    return refuse(key, "is not accepted; the lab takes 100kbit to 2gbit");
                }
            }
            if self.longest_rtt() > Nanos::from_secs(2) {
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
        let [there, back] = self.bottleneck.rates;
        let least = Rate(ACCESS_TIMES * there.max(back).0);
        for (key, rate) in rates {
            if rate < least {
                let what = format!(
                    "cannot be had in the lab, whose other links hold nothing up; it takes {} \
                     and more, {ACCESS_TIMES} times the bottleneck's",
                    least
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
        if let Some(what) = spec.info().needs.of_no_link() {
            let name = spec.info().name;
            return Err(format!("has {name}, which needs what a live link does not tell: {what}"));
        }
        match self.engine {
            Engine::Userspace => Ok(Scheduler::Ours(spec.clone())),
            Engine::Kernel => in_kernel(spec)
                .map_err(|error| format!("has what --engine kernel cannot take: {error}")),
        }
    }

    pub(super) fn schedulers(
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

    pub(super) fn bottleneck(
        &self,
        scenario: &Scenario,
        ecn: bool,
    ) -> Result<Bottleneck, ScenarioError> {
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
            rate: link.rates[down],
            up_rate: link.rates[up],
            up_scheduler,
            limit,
            rtt: self.rtt,
            ends: self.ends(),
            edge: link.edge.clone(),
            ecn,
            local_sender: false,
        })
    }

    pub(super) fn ends(&self) -> Ends {
        Ends {
            clients: self.clients.len().max(1) as u8,
            servers: self.servers.iter().map(|(_, far)| *far).collect(),
        }
    }

    pub(super) fn is_up(&self, traffic: &Sent) -> bool {
        traffic.from.iter().all(|node| self.clients.contains(node))
    }
}
