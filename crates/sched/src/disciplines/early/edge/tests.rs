use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;
use crate::testkit::{Log, Random};

const SECOND: Nanos = Nanos::from_secs(1);

fn packet(flow: u64) -> Packet {
    Packet::new(FlowId::new(flow), 500)
}

fn tagger(spec: &str) -> Tagger {
    spec.parse::<EdgeSpec>().unwrap_or_else(|error| panic!("{error}")).build()
}

/// The DSCPs of so many packets of a flow in a row.
fn tags(tagger: &mut Tagger, flow: u64, count: usize, now: Nanos) -> Vec<u8> {
    let tag = |_| {
        let mut packet = packet(flow);
        tagger.tag(&mut packet, now);
        packet.dscp
    };
    (0..count).map(tag).collect()
}

#[test]
fn the_first_packets_of_every_flow_are_short() {
    let mut edge = tagger("threshold=3,update=inf");
    for flow in 1..=1_000 {
        assert_eq!(tags(&mut edge, flow, 5, Nanos(flow)), [10, 10, 10, 12, 12]);
    }
    assert_eq!(edge.edge().flows(), 1_000);
    // Super-packets count as their segments; the one that begins within is short.
    let mut edge = tagger("threshold=3");
    let mut big = packet(1).with_segments(5);
    edge.tag(&mut big, Nanos::ZERO);
    assert_eq!((big.dscp, tags(&mut edge, 1, 1, Nanos::ZERO)), (10, [12].into()));
}

#[test]
fn a_flow_that_was_idle_is_a_new_one() {
    let mut edge = tagger("threshold=2,idle=1s,update=inf,short-dscp=46,long-dscp=0");
    assert_eq!(tags(&mut edge, 1, 3, Nanos::ZERO), [46, 46, 0]);
    assert_eq!(tags(&mut edge, 1, 1, SECOND), [0]);
    assert_eq!(tags(&mut edge, 1, 3, SECOND + SECOND + Nanos(1)), [46, 46, 0]);
    // And is not remembered for ever.
    assert_eq!(tags(&mut edge, 2, 1, Nanos::from_secs(60)), [46]);
    assert_eq!(edge.edge().flows(), 1);
}

#[test]
fn at_the_bound_the_longest_idle_makes_room() {
    let mut edge = tagger("threshold=1,flows=3,idle=inf,sweep=inf,update=inf");
    for flow in 1..=4 {
        assert_eq!(tags(&mut edge, flow, 2, Nanos(flow)), [10, 12]);
    }
    assert_eq!(edge.edge().flows(), 3);
    assert_eq!(tags(&mut edge, 2, 1, Nanos(9)), [12], "was there");
    assert_eq!(tags(&mut edge, 1, 1, Nanos(9)), [10], "had made room");
}

#[test]
fn the_threshold_moves_by_one_at_most_and_towards_the_ratio() {
    let mut edge = tagger("threshold=10,ratio=3,update=1s,idle=1s");
    // Flows of 1 to 40 packets begin every millisecond, and send a packet every 5 ms, so that
    // about 80 are active with up to a second behind their end.
    let mut random = Random(1);
    let mut flows: Vec<(u64, u64)> = Vec::new();
    let mut shares = Vec::new();
    let (mut before, mut next) = (10, 1);
    for ms in 0..400_000u64 {
        if ms % 5 == 0 {
            flows.push((next, 1 + random.below(40)));
            next += 1;
            flows.retain_mut(|(flow, left)| {
                edge.tag(&mut packet(*flow), Nanos::from_millis(ms));
                *left -= 1;
                *left > 0
            });
        }
        let threshold = edge.edge().threshold();
        assert!(threshold.abs_diff(before) <= u32::from(ms % 1_000 == 0), "at {ms} ms");
        before = threshold;
        if ms % 1_000 == 0 && ms > 200_000 {
            let long = |flow: &&Flow| flow.count > threshold;
            let long = edge.edge.flows.iter().map(|(_, f)| f).filter(long).count();
            shares.push(edge.edge().flows() as f64 / long as f64 - 1.0);
        }
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((1.5..6.0).contains(&mean), "short flows to a long one: {mean}");
}

#[test]
fn the_threshold_stays_where_nobody_sends_and_never_falls_below_one() {
    let mut edge = tagger("threshold=3,update=1s,idle=1s");
    tags(&mut edge, 1, 1, Nanos::ZERO);
    // One short flow, no long one: a step down, and no more for the hour of silence.
    tags(&mut edge, 1, 1, Nanos::from_secs(3_600));
    assert_eq!(edge.edge().threshold(), 2);
    for second in 3_601..3_700 {
        tags(&mut edge, second, 1, Nanos::from_secs(second));
    }
    assert_eq!(edge.edge().threshold(), 1);
}

#[test]
fn flows_are_told_of() {
    let params = tagger_params("threshold=1,idle=1s,sweep=10s,update=inf");
    let (mut edge, mut log) = (Edge::new(&params), Log::default());
    let mut send = |second| edge.classify(&packet(7), Nanos::from_secs(second), &mut log);
    let lanes = [send(0), send(1), send(3), send(4)];
    assert_eq!(lanes, [Lane::SHORT, Lane::LONG, Lane::SHORT, Lane::LONG]);
    let flow = FlowId::new(7);
    let expected = [
        Event::FlowCreated { flow },
        Event::Demoted { flow },
        Event::Promoted { flow },
        Event::Demoted { flow },
    ];
    assert_eq!(log.events, expected);
}

fn tagger_params(spec: &str) -> Params {
    spec.parse::<EdgeSpec>().expect("valid").0
}

#[test]
fn what_an_edge_cannot_be_is_refused() {
    let number = "edge: ratio=0 is not accepted; ratio takes 1 to 1048576";
    for (spec, error) in [
        ("ratio=0", number),
        ("ratio=-3", "edge: ratio=-3 is not accepted; ratio takes 1 to 1048576"),
        ("threshold=0", "edge: threshold=0 is not accepted; threshold takes 1 to 1073741824"),
        ("update=0s", "edge: update=0s is not accepted; update takes 1ms to 86400s, or inf"),
        ("short-dscp=64", "edge: short-dscp=64 is not accepted; short-dscp takes 0 to 63"),
        (
            "long-dscp=10",
            "edge: short-dscp=10 is not accepted with long-dscp=10; short-dscp takes another \
             DSCP",
        ),
        ("threshold", "edge: 'threshold' is not name=value"),
    ] {
        let refused = spec.parse::<EdgeSpec>().map(|_| ()).unwrap_err();
        assert_eq!(refused.to_string(), error);
    }
    let refused = "slr=3".parse::<EdgeSpec>().unwrap_err().to_string();
    assert!(refused.starts_with("edge has no parameter 'slr'; it has threshold"), "{refused}");
    let refused = "rio-ps:ratio=0".parse::<crate::spec::Spec>().unwrap_err().to_string();
    assert_eq!(refused, number.replace("edge", "rio-ps"));
}

#[test]
fn a_spec_reads_back_as_it_is_shown() {
    for text in ["", "threshold=20,update=inf", "ratio=5,flows=100,short-dscp=46"] {
        assert_eq!(text.parse::<EdgeSpec>().unwrap().to_string(), text);
    }
    assert_eq!(EdgeSpec::default(), "".parse().unwrap());
}
