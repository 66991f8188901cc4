//! What several share a link by: DSCP, tags of an edge, hosts.

use super::*;

/// The bytes that each traffic got across a link of 1 Mbit/s which it shares with others.
fn shares(scheduler: &str, traffic: &str) -> Vec<u64> {
    let scenario = parse(&format!(
        "[scenario]\ntitle = \"t\"\nduration = \"100s\"\nseeds = 1\n[schedulers]\n\
         run = [\"{scheduler}\"]\n[topology]\nkind = \"dumbbell\"\n\
         access = {{ rate = \"10mbit\" }}\nbottleneck = {{ rate = \"1mbit\" }}\n{traffic}"
    ));
    let (rows, _) = run(&scenario);
    let of = |name: &str| {
        let flows = rows.flows.iter().filter(|flow| flow.traffic.as_deref() == Some(name));
        flows.map(|flow| flow.received_bytes).sum()
    };
    scenario.traffic.iter().map(|traffic| of(&traffic.name)).collect()
}

#[test]
fn traffic_has_the_dscp_that_it_is_given() {
    for kind in ["kind = \"cbr\"\nrate = \"1mbit\"", "kind = \"persistent\""] {
        let two = format!(
            "[[traffic]]\nname = \"ef\"\ndscp = 46\n{kind}\n[[traffic]]\nname = \"other\"\n{kind}\n"
        );
        let ratio = |scheduler| match shares(scheduler, &two)[..] {
            [ef, other] => ef as f64 / other as f64,
            _ => panic!("two kinds of traffic"),
        };
        let found = [ratio("wfq:weights=1+3@ef"), ratio("wfq:weights=1+3@af41"), ratio("wfq")];
        // What TCP has queued is not always enough for its share.
        assert!((1.8..=3.1).contains(&found[0]), "{kind}: {found:?}");
        assert!(found[1..].iter().all(|ratio| (ratio - 1.0).abs() < 0.05), "{kind}: {found:?}");
    }
}

/// When every transfer over a busy dumbbell ended, and how many packets were marked or dropped.
fn ends(scheduler: &str, access: &str, bottleneck: &str) -> (Vec<Option<u64>>, u64) {
    let scenario = parse(&format!(
        "[scenario]\ntitle = \"t\"\nduration = \"30s\"\nseeds = 1\n[schedulers]\n\
         run = [\"{scheduler}\"]\n[tcp]\necn = true\n[topology]\nkind = \"dumbbell\"\npairs = 3\n\
         access = {{ rate = \"100mbit\", delay = \"5ms\"{access} }}\n\
         bottleneck = {{ rate = \"3mbit\", delay = \"5ms\", limit = \"60packets\"{bottleneck} }}\n\
         [[traffic]]\nkind = \"persistent\"\nflows = 2\n\
         [[traffic]]\nkind = \"transfers\"\nload = 0.6\n"
    ));
    let (rows, _) = run(&scenario);
    let signals =
        rows.links.iter().map(|link| link.marked_packets.unwrap_or(0) + link.dropped_packets).sum();
    (rows.flows.iter().map(|flow| flow.end_ns).collect(), signals)
}

/// Tags that an edge has put in front of the queue, or at the sender's link, are what `rio-ps`
/// finds with its own.
#[test]
fn an_edge_is_the_same_wherever_it_stands() {
    let edge = "threshold=5,update=inf,idle=inf";
    let own = ends(&format!("rio-ps:averaging=0.1,{edge}"), "", "");
    assert!(own.0.len() > 30 && own.1 > 50, "{} flows, {} signals", own.0.len(), own.1);
    let key = format!(", edge = \"{edge}\"");
    let tagged = "rio-ps:averaging=0.1,classifier=tag";
    assert_eq!(ends(tagged, "", &key), own, "in front of the queue");
    assert_eq!(ends(tagged, &key, ""), own, "at the sender");
    assert_ne!(ends(tagged, "", ""), own, "nowhere, so all are long");
    // Where the threshold moves, two edges that see the same move alike.
    let moves = "threshold=5,update=2s";
    let own = ends(&format!("rio-ps:averaging=0.1,{moves}"), "", "");
    assert_eq!(ends(tagged, "", &format!(", edge = \"{moves}\"")), own);
}

/// Nine downloads to one host and one to another, onto one bottleneck: the one's part of the bytes.
fn part_of_the_host_with_one_download(scheduler: &str) -> f64 {
    let scenario = parse(&format!(
        "[scenario]\ntitle = \"t\"\nduration = \"20s\"\nseeds = 1\n[schedulers]\nrun = [\"{scheduler}\"]\n\
         [topology]\nkind = \"dumbbell\"\npairs = 2\naccess = {{ rate = \"1gbit\", delay = \"5ms\" }}\n\
         bottleneck = {{ rate = \"10mbit\", delay = \"5ms\" }}\n\
         [[traffic]]\nname = \"many\"\nkind = \"persistent\"\nflows = 9\nto = \"right1\"\n\
         [[traffic]]\nname = \"one\"\nkind = \"persistent\"\nflows = 1\nto = \"right2\"\n"
    ));
    let (rows, _) = run(&scenario);
    let bytes = |name: &str| {
        let flows = rows.flows.iter().filter(|flow| flow.traffic.as_deref() == Some(name));
        flows.map(|flow| flow.received_bytes as f64).sum::<f64>()
    };
    bytes("one") / (bytes("one") + bytes("many"))
}

/// One flow of Reno does not take all of its half: a signal is for all of its host's share.
#[test]
fn hosts_are_the_nodes_that_traffic_goes_between() {
    let by_host = part_of_the_host_with_one_download("cake:isolation=dual-dsthost");
    assert!((0.36..0.5).contains(&by_host), "{by_host}");
    let by_flow = part_of_the_host_with_one_download("cake:isolation=flows");
    assert!((0.08..0.12).contains(&by_flow), "{by_flow}");
}
