//! Networks that several tests use.
#![allow(dead_code, reason = "each test file uses its own part")]

use sched::{Amount, Nanos, Rate};
use sim::sources::Pair;
use sim::{Impairments, LinkConfig, LinkId, Network, NodeId, Queue};

/// `a - r1 - r2 - b`, with the bottleneck between the routers.
pub(crate) struct Line {
    pub(crate) network: Network,
    pub(crate) there: Pair,
    pub(crate) bottleneck: LinkId,
}

pub(crate) fn plain(limit: Amount) -> Queue {
    Queue::Fifo { limit }
}

pub(crate) fn discipline(spec: &str) -> Queue {
    Queue::Discipline { spec: spec.parse().expect("a discipline"), log: false }
}

pub(crate) fn add(
    network: &mut Network,
    (from, to): (NodeId, NodeId),
    rate: u64,
    delay: Nanos,
    queue: Queue,
) -> LinkId {
    let name = format!("{}-{}", network.node_name(from), network.node_name(to));
    let impairments = Impairments::default();
    let config = LinkConfig {
        name,
        from,
        to,
        rate: Rate(rate),
        delay,
        overhead: 0,
        queue,
        edge: None,
        impairments,
        varying: None,
    };
    network.link(config).expect("a good link")
}

/// Access links of 100 Mbit/s, 1 ms on every link.
pub(crate) fn line(rate: u64, queue: Queue) -> Line {
    let mut network = Network::new();
    let nodes = ["a", "r1", "r2", "b"].map(|name| network.node(name).expect("a new node"));
    let ms = Nanos::from_millis(1);
    let access = || plain(Amount::UNLIMITED);
    let [a, r1, r2, b] = nodes;
    add(&mut network, (a, r1), 100_000_000, ms, access());
    let bottleneck = add(&mut network, (r1, r2), rate, ms, queue);
    add(&mut network, (r2, b), 100_000_000, ms, access());
    add(&mut network, (b, r2), 100_000_000, ms, access());
    add(&mut network, (r2, r1), rate, ms, access());
    add(&mut network, (r1, a), 100_000_000, ms, access());
    Line { network, there: Pair { sender: a, receiver: b }, bottleneck }
}

/// Two nodes; as good as nothing comes back from the receiver.
pub(crate) fn broken_line() -> Line {
    let mut network = Network::new();
    let [a, b] = ["a", "b"].map(|name| network.node(name).expect("a new node"));
    let ms = Nanos::from_millis(1);
    let bottleneck = add(&mut network, (a, b), 10_000_000, ms, discipline("fifo"));
    let impairments = Impairments { loss: 0.999_999, ..Impairments::default() };
    let (name, queue) = ("broken".to_string(), plain(Amount::UNLIMITED));
    let like = network.links()[bottleneck.index()].clone();
    let config = LinkConfig { name, from: b, to: a, queue, impairments, ..like };
    network.link(config).expect("a good link");
    Line { network, there: Pair { sender: a, receiver: b }, bottleneck }
}
