//! All sequences of arrivals and departures up to a bounded length, for small limits and
//! thresholds: nothing is left to chance.

use conformance::naive::compare;
use conformance::strategy::sized;
use conformance::{Operation, check};
use sched::{Spec, registry};

/// Calls `visit` with every sequence of `length` calls: an arrival of one of `flows` flows, or a
/// departure. Shorter sequences are the beginnings of these. Flows are interchangeable, so a
/// flow is used only after those before it.
fn every_sequence(flows: u8, length: usize, visit: &mut impl FnMut(&[Operation])) {
    fn extend(
        sequence: &mut Vec<Operation>,
        used: u8,
        flows: u8,
        length: usize,
        visit: &mut impl FnMut(&[Operation]),
    ) {
        if sequence.len() == length {
            return visit(sequence);
        }
        for flow in 0..flows.min(used + 1) {
            sequence.push(Operation::arrival(flow, 1000));
            extend(sequence, used.max(flow + 1), flows, length, visit);
            sequence.pop();
        }
        sequence.push(Operation::Dequeue);
        extend(sequence, used, flows, length, visit);
        sequence.pop();
    }
    extend(&mut Vec::new(), 0, flows, length, visit);
}

/// `spec` behaves as its model for all limits of 1 to 3 packets and thresholds of 0 to 2.
fn equals_its_model(spec: &str, flows: u8, length: usize) {
    let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{error}"));
    let mut sequences = 0;
    for limit in 1..=3 {
        for threshold in 0..=2 {
            let sized = |name: &str, value: u32, spec: Spec| {
                let set = spec.clone().with(name, &format!("{value}packets"));
                set.unwrap_or(spec)
            };
            let spec = sized("limit", limit, sized("threshold", threshold, spec.clone()));
            every_sequence(flows, length, &mut |operations| {
                sequences += 1;
                if let Err(violation) = compare(&spec, operations, 1) {
                    panic!("{violation}\nafter {operations:#?}");
                }
            });
            if !spec.params().has("threshold") {
                break;
            }
        }
    }
    assert!(sequences > 1_000, "{sequences} sequences");
}

#[test]
fn efd() {
    equals_its_model("efd", 3, 9);
    equals_its_model("efd:boundary=literal,hold-on-wire=yes", 2, 10);
    equals_its_model("efd:low-share=0.5", 2, 10);
}

#[test]
fn sb() {
    equals_its_model("sb:weight=1", 3, 8);
    equals_its_model("sb-ko:weight=1", 3, 8);
    equals_its_model("sb-ko:weight=0.5", 2, 10);
    equals_its_model("sb-sh:weight=1,probability=1", 2, 10);
}

#[test]
fn las() {
    equals_its_model("las", 3, 10);
    equals_its_model("las:victim=most-served", 2, 9);
    equals_its_model("las:charge-drops=yes", 2, 9);
}

#[test]
fn lars() {
    equals_its_model("lars", 3, 9);
    equals_its_model("lars:victim=key", 2, 9);
}

#[test]
fn scfq() {
    equals_its_model("scfq", 3, 9);
    equals_its_model("scfq:drop=longest-queue", 3, 9);
}

/// The average is the queue; at the upper threshold drops are certain.
#[test]
fn early_droppers() {
    equals_its_model("red:averaging=1,min=0.3,max=0.6,max-probability=1,gentle=no", 1, 12);
    equals_its_model("red:averaging=0.5,min=0.3,max=0.6,max-probability=1", 1, 12);
    equals_its_model("fred:averaging=1,max-probability=1", 3, 8);
    equals_its_model("fred:averaging=1,min=0.5,max=0.9,two-packets=yes", 3, 8);
    equals_its_model("rio-ps:averaging=1,threshold=1,wait=no,long-probability=1", 2, 9);
}

#[test]
fn wfq() {
    equals_its_model("wfq", 3, 8);
    equals_its_model("wfq:drop=tail", 2, 9);
    equals_its_model("wf2q+", 3, 8);
    equals_its_model("wf2q+:drop=tail", 2, 9);
}

#[test]
fn fsc() {
    equals_its_model("fsc:bpr=2,pbs=1500b", 3, 8);
    equals_its_model("h-fsc:bpr=2,pbs=1500b,classes=a=3+b=1", 3, 7);
}

#[test]
fn fq_lanes() {
    equals_its_model("fq-lanes", 3, 8);
    equals_its_model("fq-lanes:flows=2,hosts=source", 3, 8);
}

/// What must hold for every discipline, over all short sequences.
#[test]
fn every_discipline_in_the_registry() {
    for info in registry::ALL {
        for (limit, threshold) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
            let spec = Spec::named(info.name).expect("a name from the registry");
            let spec = sized(&spec, &format!("{limit}packets"), &format!("{threshold}packets"));
            every_sequence(2, 7, &mut |operations| {
                check(&spec, operations, 1).unwrap_or_else(|violation| panic!("{violation}"));
            });
        }
    }
}
