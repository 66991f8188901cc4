//! Nodes and links, whatever kind of topology they were written as.

use std::collections::BTreeMap;
use std::path::Path;

use sched::edge::EdgeSpec;
use sched::{Amount, Nanos, Rate, Spec};

use crate::error::ScenarioError;
use crate::reader::Table;
use crate::sections::{ARM, PLACE, ROUTE, TOPOLOGIES};
use crate::varying::Rates;

/// Nodes, links between them, and routes that are not the shortest.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Names of the nodes; elsewhere a node is its place here.
    pub nodes: Vec<String>,
    /// Names for several nodes at once.
    pub groups: BTreeMap<String, Vec<usize>>,
    /// The links.
    pub links: Vec<Link>,
    /// Explicit routes: every node on the way.
    pub routes: Vec<Vec<usize>>,
}

/// A full-duplex link. Pairs of values are for the way there (from the first end to the second) and
/// the way back.
#[derive(Clone, Debug)]
pub struct Link {
    /// The table that it was written as, such as `topology.bottleneck`.
    pub key: String,
    /// Its name; the way back is `NAME-back`.
    pub name: String,
    /// The nodes at its ends.
    pub ends: [usize; 2],
    /// Rates.
    pub rates: [Rate; 2],
    /// How they vary, where they do.
    pub varying: [Option<Rates>; 2],
    /// Propagation delay in each direction.
    pub delay: Nanos,
    /// What a packet takes on the link beside its own bytes.
    pub overhead: u32,
    /// The queues.
    pub queues: [Queue; 2],
    /// An edge in front of each queue.
    pub edge: Option<EdgeSpec>,
    /// Part of the packets lost behind the queue.
    pub loss: f64,
    /// Largest extra delay.
    pub jitter: Nanos,
    /// Part of the packets that are held up.
    pub reorder: f64,
    /// How long these are held up.
    pub reorder_delay: Nanos,
}

/// The queue at an end of a link.
#[derive(Clone, Debug)]
pub enum Queue {
    /// The scheduler under test; its limit, unless the scheduler has its own.
    Tested(Amount),
    /// Always this one.
    Fixed(Spec),
}

impl Link {
    /// The name of one direction.
    #[must_use]
    pub fn direction_name(&self, direction: usize) -> String {
        if direction == 0 { self.name.clone() } else { format!("{}-back", self.name) }
    }
}

impl Topology {
    pub(crate) fn read(root: &Table<'_>, files: Files<'_>) -> Result<Self, ScenarioError> {
        let chooser = root.chooser("topology")?;
        let section = chooser.by_word("kind", &TOPOLOGIES)?;
        let table = chooser.under(section)?;
        let mut topology = Self::default();
        match table.word("kind")? {
            Some("dumbbell") => topology.dumbbell(&table, files)?,
            Some("chain") => topology.chain(&table, files)?,
            Some("star") => topology.star(&table, files)?,
            _ => topology.free(&table, files)?,
        }
        if topology.tested().next().is_none() {
            return Err(
                table.error("has no link with scheduler = \"tested\"; at least one is needed")
            );
        }
        Ok(topology)
    }

    /// Every direction with the scheduler under test, as link and direction.
    pub fn tested(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let directions = (0..self.links.len()).flat_map(|link| [(link, 0), (link, 1)]);
        directions.filter(|&(link, way)| matches!(self.links[link].queues[way], Queue::Tested(_)))
    }

    /// The direction of this name.
    #[must_use]
    pub fn direction(&self, name: &str) -> Option<(usize, usize)> {
        let directions = (0..self.links.len()).flat_map(|link| [(link, 0), (link, 1)]);
        directions.into_iter().find(|&(link, way)| self.links[link].direction_name(way) == name)
    }

    /// The nodes of names of nodes and groups. `Err` is the first that is neither.
    pub(crate) fn places(&self, names: &[String]) -> Result<Vec<usize>, String> {
        let mut places = Vec::new();
        for name in names {
            match (self.groups.get(name), self.node(name)) {
                (Some(group), _) => places.extend(group),
                (None, Some(node)) => places.push(node),
                (None, None) => return Err(name.clone()),
            }
        }
        Ok(places)
    }

    /// What may be named, for errors: groups first, and not thousands of nodes.
    pub(crate) fn names(&self) -> String {
        const MOST: usize = 12;
        let all = self.groups.keys().chain(&self.nodes);
        let mut names: Vec<&str> = all.map(String::as_str).take(MOST).collect();
        if self.groups.len() + self.nodes.len() > MOST {
            names.push("...");
        }
        names.join(", ")
    }

    /// For each node, a number that nodes have in common if and only if links join them.
    pub(crate) fn islands(&self) -> Vec<usize> {
        let mut island: Vec<usize> = (0..self.nodes.len()).collect();
        fn root(island: &mut [usize], mut node: usize) -> usize {
            while island[node] != node {
                island[node] = island[island[node]];
                node = island[node];
            }
            node
        }
        for link in &self.links {
            let [a, b] = link.ends.map(|end| root(&mut island, end));
            island[a.max(b)] = a.min(b);
        }
        (0..island.len()).map(|node| root(&mut island, node)).collect()
    }

    fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|known| known == name)
    }

    fn add_node(&mut self, name: String) -> usize {
        self.nodes.push(name);
        self.nodes.len() - 1
    }

    /// `n` nodes `NAME1`, `NAME2`, ..., each with a link of its own to `router`. Their links point
    /// at the router.
    fn add_group(&mut self, name: &str, n: u64, router: usize, access: &LinkKeys) {
        let members: Vec<usize> = (1..=n)
            .map(|number| {
                let node = self.add_node(format!("{name}{number}"));
                self.links.push(access.link(format!("{name}{number}"), [node, router]));
                node
            })
            .collect();
        self.groups.insert(name.to_owned(), members);
    }

    fn dumbbell(&mut self, table: &Table<'_>, files: Files<'_>) -> Result<(), ScenarioError> {
        let pairs = table.needed("pairs", table.count("pairs"))?;
        let access = LinkKeys::needed(table, "access", files)?;
        let right_access = LinkKeys::optional(table, "right-access", files)?;
        let bottleneck = LinkKeys::needed(table, "bottleneck", files)?;
        let routers = ["left-router", "right-router"].map(|name| self.add_node(name.into()));
        self.links.push(bottleneck.link("bottleneck".into(), routers));
        self.add_group("left", pairs, routers[0], &access);
        self.add_group("right", pairs, routers[1], right_access.as_ref().unwrap_or(&access));
        Ok(())
    }

    fn chain(&mut self, table: &Table<'_>, files: Files<'_>) -> Result<(), ScenarioError> {
        let hops = table.needed("hops", table.count("hops"))?;
        let access = LinkKeys::needed(table, "access", files)?;
        let bottleneck = LinkKeys::needed(table, "bottleneck", files)?;
        let join = LinkKeys::optional(table, "join", files)?;
        let join = join.as_ref().unwrap_or(&access);
        let mut entry = None;
        for hop in 1..=hops {
            let routers = ["a", "b"].map(|side| self.add_node(format!("{hop}{side}")));
            if let Some(before) = entry.replace(routers[1]) {
                self.links.push(join.link(format!("join{}", hop - 1), [before, routers[0]]));
            }
            self.links.push(bottleneck.link(format!("hop{hop}"), routers));
            let ends = [(format!("cross{hop}"), routers[0]), (format!("sink{hop}"), routers[1])];
            for (name, router) in ends {
                self.add_end(name, router, &access);
            }
            if hop == 1 {
                self.add_end("source".into(), routers[0], &access);
            }
            if hop == hops {
                self.add_end("sink".into(), routers[1], &access);
            }
        }
        Ok(())
    }

    fn add_end(&mut self, name: String, router: usize, access: &LinkKeys) {
        let node = self.add_node(name.clone());
        self.links.push(access.link(name, [node, router]));
    }

    fn star(&mut self, table: &Table<'_>, files: Files<'_>) -> Result<(), ScenarioError> {
        let arms = table.tables("arms", |_| Ok(&ARM))?;
        if arms.len() < 2 {
            return Err(table.refuse("arms", "at least two tables"));
        }
        let hub = self.add_node("hub".into());
        for arm in &arms {
            let name = arm.needed("name", arm.text("name"))?;
            if name.is_empty() || self.groups.contains_key(&name) || name == "hub" {
                return Err(arm.refuse("name", "a name that nothing else has"));
            }
            let nodes = arm.needed("nodes", arm.count("nodes"))?;
            let access = LinkKeys::needed(arm, "access", files)?;
            let (link, bottleneck) = (
                LinkKeys::optional(arm, "link", files)?,
                LinkKeys::optional(arm, "bottleneck", files)?,
            );
            let trunk = match (link, bottleneck) {
                (Some(keys), None) | (None, Some(keys)) => keys,
                _ => return Err(arm.error("takes exactly one of link and bottleneck")),
            };
            let router = self.add_node(format!("{name}-router"));
            self.links.push(trunk.link(name.clone(), [router, hub]));
            self.add_group(&name, nodes, router, &access);
        }
        Ok(())
    }

    fn free(&mut self, table: &Table<'_>, files: Files<'_>) -> Result<(), ScenarioError> {
        let links = table.tables("links", |_| Ok(&PLACE))?;
        if links.is_empty() {
            return Err(table.refuse("links", "at least one table"));
        }
        for link in &links {
            let names = [link.needed("a", link.text("a"))?, link.needed("b", link.text("b"))?];
            if names[0] == names[1] {
                return Err(link.refuse("b", "another node than a"));
            }
            let name = link.text("name")?.unwrap_or_else(|| names.join("-"));
            if self.direction(&name).or(self.direction(&format!("{name}-back"))).is_some() {
                return Err(link.error(format!("is named '{name}', as another one is")));
            }
            let ends = names.map(|name| self.node(&name).unwrap_or_else(|| self.add_node(name)));
            self.links.push(LinkKeys::read(link, files)?.link(name, ends));
        }
        for route in table.tables("routes", |_| Ok(&ROUTE))? {
            let path = self.route(&route)?;
            self.routes.push(path);
        }
        Ok(())
    }

    fn route(&self, table: &Table<'_>) -> Result<Vec<usize>, ScenarioError> {
        let names = table.needed("path", table.names("path"))?;
        let mut path: Vec<usize> = Vec::new();
        for name in &names {
            let Some(node) = self.node(name) else {
                return Err(table.wrong("path", &format!("names '{name}', which no link ends at")));
            };
            if path.contains(&node) {
                return Err(table.wrong("path", &format!("is a loop: it comes to '{name}' twice")));
            }
            let joined = |before: &usize| {
                self.links.iter().any(|l| l.ends == [*before, node] || l.ends == [node, *before])
            };
            if let Some(before) = path.last().filter(|before| !joined(before)) {
                let before = &self.nodes[*before];
                return Err(
                    table.wrong("path", &format!("is broken: no link joins {before} and {name}"))
                );
            }
            path.push(node);
        }
        if path.len() < 2 {
            return Err(table.refuse("path", "at least two nodes"));
        }
        Ok(path)
    }
}

/// What is needed to read the files that links name.
#[derive(Clone, Copy)]
pub(crate) struct Files<'a> {
    pub(crate) directory: Option<&'a Path>,
    /// The length of a run: rates are needed until then.
    pub(crate) duration: Nanos,
}

impl Files<'_> {
    fn rates(
        self,
        table: &Table<'_>,
        key: &str,
        rate: Rate,
    ) -> Result<Option<Rates>, ScenarioError> {
        let Some(text) = table.text(key)? else { return Ok(None) };
        let find = |name: &str| Table::file(name, self.directory);
        Rates::parse(&text, rate, self.duration, find)
            .map(Some)
            .map_err(|error| table.wrong(key, &format!("is not accepted: {error}")))
    }
}

/// What was written for a link, without its place.
struct LinkKeys(Link);

impl LinkKeys {
    fn needed(table: &Table<'_>, key: &str, files: Files<'_>) -> Result<Self, ScenarioError> {
        Self::optional(table, key, files)?.ok_or_else(|| table.missing(key))
    }

    fn optional(
        table: &Table<'_>,
        key: &str,
        files: Files<'_>,
    ) -> Result<Option<Self>, ScenarioError> {
        table.table(key)?.map(|table| Self::read(&table, files)).transpose()
    }

    /// Reads the keys of LINK, TESTED_LINK or PLACE.
    fn read(table: &Table<'_>, files: Files<'_>) -> Result<Self, ScenarioError> {
        let rate = table.needed("rate", table.rate("rate"))?;
        let limit = table.needed("limit", table.amount("limit"))?;
        let queue = |key: &str| -> Result<Option<Queue>, ScenarioError> {
            Ok(match table.tested_or_scheduler(key)? {
                None => None,
                Some(None) => Some(Queue::Tested(limit)),
                Some(Some(spec)) => Some(Queue::Fixed(limited(spec, limit, table)?)),
            })
        };
        let fifo =
            || Ok(Queue::Fixed(limited("fifo".parse().expect("fifo exists"), limit, table)?));
        let (there, back) = if table.defines("scheduler") {
            (queue("scheduler")?, queue("back-scheduler")?)
        } else if table.defines("back-scheduler") {
            (Some(Queue::Tested(limit)), queue("back-scheduler")?)
        } else {
            (None, None)
        };
        let there = there.map_or_else(fifo, Ok)?;
        let back = back.unwrap_or_else(|| there.clone());
        let rates = [rate, table.rate("back-rate")?.unwrap_or(rate)];
        let varying = |key, direction: usize| files.rates(table, key, rates[direction]);
        Ok(Self(Link {
            key: table.path().to_owned(),
            name: String::new(),
            ends: [0, 0],
            rates,
            varying: [varying("varying", 0)?, varying("back-varying", 1)?],
            delay: table.needed("delay", table.time("delay"))?,
            overhead: table.bytes("overhead")?.unwrap_or(0) as u32,
            queues: [there, back],
            edge: table.edge("edge")?,
            loss: table.needed("loss", table.number("loss"))?,
            jitter: table.needed("jitter", table.time("jitter"))?,
            reorder: table.needed("reorder", table.number("reorder"))?,
            reorder_delay: table.needed("reorder-delay", table.time("reorder-delay"))?,
        }))
    }

    fn link(&self, name: String, ends: [usize; 2]) -> Link {
        Link { name, ends, ..self.0.clone() }
    }
}

/// The scheduler with the link's limit, where it has none of its own.
fn limited(spec: Spec, limit: Amount, table: &Table<'_>) -> Result<Spec, ScenarioError> {
    spec.with_default("limit", &limit.to_string())
        .map_err(|error| table.wrong("limit", &format!("is not accepted: {error}")))
}
