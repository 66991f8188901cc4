//! The network of a simulation: nodes, links, routes.

use std::collections::{HashMap, VecDeque};

use sched::edge::EdgeSpec;
use sched::{Amount, Nanos, Rate, Spec};

use crate::varying::Varying;

/// A node of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

/// A link of a [`Network`], in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub(crate) u32);

impl NodeId {
    /// Its place among the nodes, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Its place among the links, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What stands in front of a link.
#[derive(Clone, Debug)]
pub enum Queue {
    /// A drop-tail FIFO of which only totals are kept: fast, for links that are not in question.
    Fifo {
        /// The most that waits; the packet being sent does not count.
        limit: Amount,
    },
    /// Any discipline, with a [`Ledger`](crate::Ledger).
    Discipline {
        /// The discipline.
        spec: Spec,
        /// Whether the recorder gets every packet's fate.
        log: bool,
    },
}

/// What a link does to packets besides carrying them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Packets are lost on the link with this probability, independently.
    pub loss: f64,
    /// Each packet takes up to this much longer, uniformly. Order is kept.
    pub jitter: Nanos,
    /// With this probability a packet is held up by `reorder_delay`, and others pass it.
    pub reorder: f64,
    /// How long such a packet is held up.
    pub reorder_delay: Nanos,
}

/// A link in one direction.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Its name in results.
    pub name: String,
    /// Where it starts.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Its rate.
    pub rate: Rate,
    /// How the rate varies. `rate` then is what disciplines are told and shares are of.
    pub varying: Option<Varying>,
    /// Propagation delay.
    pub delay: Nanos,
    /// Bytes that a packet takes on the link beside its own, such as a frame's header.
    pub overhead: u32,
    /// What stands in front of it.
    pub queue: Queue,
    /// An edge in front of that, which tags the packets of short flows by DSCP.
    pub edge: Option<EdgeSpec>,
    /// What else it does to packets.
    pub impairments: Impairments,
}

/// Why a network was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// Rates beyond reason.
    #[error("link {link}: rate {} bit/s is not accepted; a rate is 1 bit/s to 1 Tbit/s", .found.0)]
    Rate {
        /// The link.
        link: String,
        /// The rate found.
        found: Rate,
    },
    /// Delays beyond reason.
    #[error("link {link}: {what} of {} ns is not accepted; at most 1 hour is", .found.0)]
    Delay {
        /// The link.
        link: String,
        /// Which delay.
        what: &'static str,
        /// The delay found.
        found: Nanos,
    },
    /// A probability outside `[0, 1)`.
    #[error("link {link}: {what} {found} is not accepted; it is at least 0 and below 1")]
    Probability {
        /// The link.
        link: String,
        /// Which probability.
        what: &'static str,
        /// The value found.
        found: f64,
    },
    /// A link that ends where it starts.
    #[error("link {link} starts and ends at node {node}; its ends must differ")]
    SelfLoop {
        /// The link.
        link: String,
        /// The node.
        node: String,
    },
    /// Two nodes, or two links, of one name.
    #[error("there are two {what}s named '{name}'; names must differ")]
    Twice {
        /// Nodes or links.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// More nodes than flows' names can hold.
    #[error("a network has at most {} nodes", Network::MOST_NODES)]
    TooManyNodes,
    /// No way from one node to another.
    #[error("no links lead from node {from} to node {to}")]
    Disconnected {
        /// The start.
        from: String,
        /// The end.
        to: String,
    },
    /// A given route with a gap.
    #[error("route from {from} to {to}: no link leads from node {at} to node {next}")]
    BrokenRoute {
        /// The start.
        from: String,
        /// The end.
        to: String,
        /// Where the gap is.
        at: String,
        /// What should follow.
        next: String,
    },
    /// A given route that comes by a node again.
    #[error("route from {from} to {to} passes node {node} twice; routes have no loops")]
    LoopedRoute {
        /// The start.
        from: String,
        /// The end.
        to: String,
        /// The node.
        node: String,
    },
}

/// Nodes and the links between them. Packets take the way of fewest links (of several, that of
/// the link added first), unless a route is given.
#[derive(Clone, Debug, Default)]
pub struct Network {
    nodes: Vec<String>,
    links: Vec<LinkConfig>,
    node_names: HashMap<String, NodeId>,
    link_names: HashMap<String, LinkId>,
    /// By node: the links that start there.
    leaving: Vec<Vec<LinkId>>,
    routes: Vec<(NodeId, NodeId, Vec<LinkId>)>,
}

const FASTEST: Rate = Rate(1_000_000_000_000);
const LONGEST_DELAY: Nanos = Nanos::from_secs(3600);

impl Network {
    /// Names of flows have 15 bits for each end.
    pub const MOST_NODES: usize = 1 << 15;

    /// A network of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node.
    ///
    /// # Errors
    /// If there are too many, or one has this name.
    pub fn node(&mut self, name: &str) -> Result<NodeId, NetworkError> {
        if self.nodes.len() >= Self::MOST_NODES {
            return Err(NetworkError::TooManyNodes);
        }
        if self.find_node(name).is_some() {
            return Err(NetworkError::Twice { what: "node", name: name.to_owned() });
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(name.to_owned());
        self.node_names.insert(name.to_owned(), id);
        self.leaving.push(Vec::new());
        Ok(id)
    }

    /// Adds a link in one direction.
    ///
    /// # Errors
    /// If a value is out of range, or a link has this name.
    pub fn link(&mut self, config: LinkConfig) -> Result<LinkId, NetworkError> {
        self.check(&config)?;
        let id = LinkId(self.links.len() as u32);
        self.leaving[config.from.index()].push(id);
        self.link_names.insert(config.name.clone(), id);
        self.links.push(config);
        Ok(id)
    }

    /// Gives the route for packets from the first to the last of `nodes`.
    ///
    /// # Errors
    /// If two neighbours have no link, or a node comes twice. Fewer than two nodes are no route
    /// and are ignored.
    pub fn route(&mut self, nodes: &[NodeId]) -> Result<(), NetworkError> {
        let (Some(&from), Some(&to)) = (nodes.first(), nodes.last()) else { return Ok(()) };
        if nodes.len() < 2 {
            return Ok(());
        }
        let name = |node: NodeId| self.node_name(node).to_owned();
        if let Some((_, node)) =
            nodes.iter().enumerate().find(|(at, node)| nodes[..*at].contains(node))
        {
            return Err(NetworkError::LoopedRoute {
                from: name(from),
                to: name(to),
                node: name(*node),
            });
        }
        let link_between = |at: NodeId, next: NodeId| {
            let leaving = self.leaving[at.index()].iter().copied();
            leaving.into_iter().find(|link| self.links[link.index()].to == next).ok_or_else(|| {
                NetworkError::BrokenRoute {
                    from: name(from),
                    to: name(to),
                    at: name(at),
                    next: name(next),
                }
            })
        };
        let links = nodes
            .windows(2)
            .map(|pair| link_between(pair[0], pair[1]))
            .collect::<Result<_, _>>()?;
        self.routes.retain(|(start, end, _)| (*start, *end) != (from, to));
        self.routes.push((from, to, links));
        Ok(())
    }

    /// The links that a packet takes.
    ///
    /// # Errors
    /// If no links lead there.
    pub fn path(&self, from: NodeId, to: NodeId) -> Result<Vec<LinkId>, NetworkError> {
        if let Some((.., links)) = self.routes.iter().find(|(a, b, _)| (*a, *b) == (from, to)) {
            return Ok(links.clone());
        }
        self.shortest_path(from, to).ok_or_else(|| NetworkError::Disconnected {
            from: self.node_name(from).to_owned(),
            to: self.node_name(to).to_owned(),
        })
    }

    /// The node of this name.
    #[must_use]
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.node_names.get(name).copied()
    }

    /// The link of this name.
    #[must_use]
    pub fn find_link(&self, name: &str) -> Option<LinkId> {
        self.link_names.get(name).copied()
    }

    /// A node's name.
    #[must_use]
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.nodes[node.index()]
    }

    /// The links, in the order in which they were added.
    #[must_use]
    pub fn links(&self) -> &[LinkConfig] {
        &self.links
    }

    /// Breadth first.
    fn shortest_path(&self, from: NodeId, to: NodeId) -> Option<Vec<LinkId>> {
        let mut came_by: Vec<Option<LinkId>> = vec![None; self.nodes.len()];
        let mut reached = VecDeque::from([from]);
        while let Some(node) = reached.pop_front() {
            if node == to {
                break;
            }
            for link in &self.leaving[node.index()] {
                let next = self.links[link.index()].to;
                if next != from && came_by[next.index()].is_none() {
                    came_by[next.index()] = Some(*link);
                    reached.push_back(next);
                }
            }
        }
        let mut path = Vec::new();
        let mut at = to;
        while at != from {
            let link = came_by[at.index()]?;
            path.push(link);
            at = self.links[link.index()].from;
        }
        path.reverse();
        (!path.is_empty()).then_some(path)
    }

    fn check(&self, config: &LinkConfig) -> Result<(), NetworkError> {
        let link = || config.name.clone();
        if config.from == config.to {
            let node = self.node_name(config.from).to_owned();
            return Err(NetworkError::SelfLoop { link: link(), node });
        }
        if self.find_link(&config.name).is_some() {
            return Err(NetworkError::Twice { what: "link", name: link() });
        }
        if !(Rate(1)..=FASTEST).contains(&config.rate) {
            return Err(NetworkError::Rate { link: link(), found: config.rate });
        }
        let impairments = &config.impairments;
        for (what, delay) in [
            ("delay", config.delay),
            ("jitter", impairments.jitter),
            ("reorder delay", impairments.reorder_delay),
        ] {
            if delay > LONGEST_DELAY {
                return Err(NetworkError::Delay { link: link(), what, found: delay });
            }
        }
        for (what, found) in [("loss", impairments.loss), ("reorder", impairments.reorder)] {
            if !(0.0..1.0).contains(&found) {
                return Err(NetworkError::Probability { link: link(), what, found });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
