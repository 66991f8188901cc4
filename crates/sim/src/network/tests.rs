use super::*;

fn network(nodes: &[&str], links: &[(usize, usize)]) -> (Network, Vec<NodeId>) {
    let mut network = Network::new();
    let nodes: Vec<NodeId> =
        nodes.iter().map(|name| network.node(name).expect("a new node")).collect();
    for (from, to) in links {
        network.link(link(nodes[*from], nodes[*to])).expect("a good link");
    }
    (network, nodes)
}

fn link(from: NodeId, to: NodeId) -> LinkConfig {
    LinkConfig {
        edge: None,
        name: format!("{}-{}", from.0, to.0),
        from,
        to,
        rate: Rate(1_000_000),
        varying: None,
        delay: Nanos::from_millis(1),
        overhead: 0,
        queue: Queue::Fifo { limit: Amount::UNLIMITED },
        impairments: Impairments::default(),
    }
}

#[test]
fn packets_take_the_way_of_fewest_links() {
    let (network, nodes) = network(&["a", "b", "c", "d"], &[(0, 1), (1, 2), (2, 3), (1, 3)]);
    let path = network.path(nodes[0], nodes[3]).expect("connected");
    assert_eq!(path, [LinkId(0), LinkId(3)]);
}

#[test]
fn a_cycle_of_links_is_no_trouble_and_a_missing_link_is_named() {
    let (network, nodes) = network(&["a", "b", "c", "d"], &[(0, 1), (1, 2), (2, 0)]);
    assert_eq!(network.path(nodes[1], nodes[0]).map(|path| path.len()), Ok(2));
    let error = network.path(nodes[0], nodes[3]).expect_err("nothing leads to d");
    assert_eq!(error.to_string(), "no links lead from node a to node d");
    assert!(network.path(nodes[0], nodes[0]).is_err(), "a node does not send to itself");
}

#[test]
fn a_given_route_has_links_and_no_loop() {
    let (mut network, nodes) = network(&["a", "b", "c"], &[(0, 1), (1, 2), (0, 2), (2, 0)]);
    network.route(&nodes).expect("a route");
    assert_eq!(network.path(nodes[0], nodes[2]), Ok(vec![LinkId(0), LinkId(1)]));
    let looped = network.route(&[nodes[0], nodes[2], nodes[0], nodes[1]]);
    assert_eq!(
        looped.expect_err("a loop").to_string(),
        "route from a to b passes node a twice; routes have no loops"
    );
    let broken = network.route(&[nodes[0], nodes[2], nodes[1]]);
    assert_eq!(
        broken.expect_err("a gap").to_string(),
        "route from a to b: no link leads from node c to node b"
    );
}

#[test]
fn absurd_values_are_refused_by_name() {
    let (mut network, nodes) = network(&["a", "b"], &[]);
    let good = link(nodes[0], nodes[1]);
    let refused = |network: &mut Network, config: LinkConfig| {
        network.link(config).expect_err("absurd").to_string()
    };
    let text = refused(&mut network, LinkConfig { rate: Rate(0), ..good.clone() });
    assert!(text.contains("link 0-1: rate 0 bit/s"), "{text}");
    let text = refused(&mut network, LinkConfig { delay: Nanos::MAX, ..good.clone() });
    assert!(text.contains("link 0-1: delay of"), "{text}");
    let loss = Impairments { loss: 1.0, ..Impairments::default() };
    let text = refused(&mut network, LinkConfig { impairments: loss, ..good.clone() });
    assert!(text.contains("loss 1 is not accepted"), "{text}");
    let text = refused(&mut network, LinkConfig { to: nodes[0], ..good.clone() });
    assert!(text.contains("starts and ends at node a"), "{text}");
    network.link(good.clone()).expect("a good link");
    assert!(refused(&mut network, good).contains("two links named '0-1'"));
}
