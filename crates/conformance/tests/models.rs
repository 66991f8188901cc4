//! Disciplines against naive models of themselves: departures, drops and flow tables identical
//! on random sequences, with bytes, super-packets and live changes.

use conformance::naive::{MODELS, compare};
use conformance::strategy::{self, Setup};
use conformance::{Arrival, Operation};
use sched::params::Kind;
use sched::{Spec, registry};

/// What the model of a discipline leaves out.
fn except(name: &str) -> &'static [&'static str] {
    MODELS.iter().find(|(n, _)| *n == name).expect("a model").1
}

fn behaves_as_its_model(name: &str) {
    let info = registry::find(name).expect("a discipline of this name");
    for setup in Setup::ALL {
        strategy::for_all(info, except(name), setup, 512, &compare);
    }
}

#[test]
fn efd() {
    behaves_as_its_model("efd");
}

#[test]
fn sb() {
    behaves_as_its_model("sb");
}

#[test]
fn sb_with_knockout() {
    behaves_as_its_model("sb-ko");
}

#[test]
fn sample_and_hold() {
    behaves_as_its_model("sb-sh");
}

#[test]
fn auto() {
    behaves_as_its_model("auto");
}

/// Measurements as short as the times between packets, and steps that reach the range.
#[test]
fn auto_that_adapts_all_the_time() {
    let info = registry::find("auto").expect("a discipline of this name");
    for (update, target) in [("1ms", "0.1"), ("50ms", "0.3"), ("1s", "1"), ("20ms", "0")] {
        for setup in [Setup::Tiny, Setup::Bytes] {
            strategy::for_all(info, except("auto"), setup, 192, &|spec, operations, seed| {
                let set = |spec: Spec, (name, value): (&str, &str)| spec.with(name, value);
                let given = [("update", update), ("target", target), ("step", "0.5")];
                let spec = given.into_iter().try_fold(spec.clone(), set);
                compare(&spec.map_err(|e| e.to_string())?, operations, seed)
            });
        }
    }
}

#[test]
fn las() {
    behaves_as_its_model("las");
}

#[test]
fn lars() {
    behaves_as_its_model("lars");
}

/// From half-lives shorter than most gaps between packets to none.
#[test]
fn lars_with_any_half_life() {
    let info = registry::find("lars").expect("a discipline of this name");
    for half_life in ["1ms", "70ms", "1s", "3600s", "inf"] {
        strategy::for_all(info, except("lars"), Setup::Random, 256, &|spec, operations, seed| {
            let spec = spec.clone().with("half-life", half_life).map_err(|e| e.to_string())?;
            compare(&spec, operations, seed)
        });
    }
}

#[test]
fn scfq() {
    behaves_as_its_model("scfq");
}

#[test]
fn red() {
    behaves_as_its_model("red");
}

#[test]
fn fred() {
    behaves_as_its_model("fred");
}

#[test]
fn rio() {
    behaves_as_its_model("rio");
}

#[test]
fn rio_ps() {
    behaves_as_its_model("rio-ps");
}

/// Averages that are the queue itself, or nearly so, cross the thresholds often, with each kind
/// of spacing; certainty and impossibility leave nothing to the dice.
#[test]
fn early_droppers_with_averages_that_move() {
    for name in ["red", "fred", "rio", "rio-ps"] {
        let info = registry::find(name).expect("a discipline of this name");
        for averaging in ["1", "0.5", "0.1"] {
            for setup in [Setup::Defaults, Setup::Random] {
                strategy::for_all(info, except(name), setup, 256, &|spec, operations, seed| {
                    let spec = spec.clone().with("averaging", averaging);
                    let spec = spec.and_then(|spec| spec.with("limit", "20packets"));
                    compare(&spec.map_err(|e| e.to_string())?, operations, seed)
                });
            }
        }
    }
}

#[test]
fn wfq() {
    behaves_as_its_model("wfq");
}

#[test]
fn wf2q() {
    behaves_as_its_model("wf2q+");
}

#[test]
fn fsc() {
    behaves_as_its_model("fsc");
}

#[test]
fn h_fsc() {
    behaves_as_its_model("h-fsc");
}

#[test]
fn cake() {
    behaves_as_its_model("cake");
}

/// One set of queues and of hosts, which is full all the time, told apart in every way; delays that
/// are signalled and overflows that wake BLUE.
#[test]
fn cake_with_a_full_table() {
    let info = registry::find("cake").expect("a discipline of this name");
    for isolation in ["triple-isolate", "dual-srchost", "dual-dsthost", "flows", "hosts"] {
        for (sets, rtt, limit) in [("1", "20ms", "40packets"), ("2", "5ms", "9kb")] {
            strategy::for_all(info, &[], Setup::Defaults, 96, &|spec, operations, seed| {
                let set = |spec: Spec, (name, value): (&str, &str)| spec.with(name, value);
                let given =
                    [("isolation", isolation), ("sets", sets), ("rtt", rtt), ("limit", limit)];
                let spec = given.into_iter().try_fold(spec.clone(), set);
                compare(&spec.map_err(|e| e.to_string())?, operations, seed)
            });
        }
    }
}

/// Three tins that are due, or not, at rates that sequences reach and at none; full tables as well.
#[test]
fn cake_with_tins() {
    let info = registry::find("cake").expect("a discipline of this name");
    for rate in ["inf", "1mbit", "10mbit", "200mbit"] {
        for (sets, rtt, limit) in [("128", "100ms", "inf"), ("1", "20ms", "40packets")] {
            for setup in [Setup::Defaults, Setup::Random] {
                strategy::for_all(info, &[], setup, 96, &|spec, operations, seed| {
                    let set = |spec: Spec, (name, value): (&str, &str)| spec.with(name, value);
                    let given = [
                        ("tins", "diffserv3"),
                        ("rate", rate),
                        ("sets", sets),
                        ("rtt", rtt),
                        ("limit", limit),
                    ];
                    let spec = given.into_iter().try_fold(spec.clone(), set);
                    compare(&spec.map_err(|e| e.to_string())?, operations, seed)
                });
            }
        }
    }
}

#[test]
fn marked() {
    behaves_as_its_model("marked");
}

/// Flows that become long within a sequence, and are forgotten for others.
#[test]
fn marked_flows_that_become_long() {
    let info = registry::find("marked").expect("a discipline of this name");
    for queues in ["cake", "prio"] {
        for (rate, sets) in [("1mbit", "4096"), ("100kbit", "1"), ("3mbit", "2")] {
            strategy::for_all(info, &[], Setup::Defaults, 192, &|spec, operations, seed| {
                let set = |spec: Spec, (name, value): (&str, &str)| spec.with(name, value);
                let given = [("queues", queues), ("rate", rate), ("sets", sets)];
                let spec = given.into_iter().try_fold(spec.clone(), set);
                compare(&spec.map_err(|e| e.to_string())?, operations, seed)
            });
        }
    }
}

#[test]
fn fq_lanes() {
    behaves_as_its_model("fq-lanes");
}

/// Flows that age within a sequence, hosts that take turns, delays that are signalled, overflows; and
/// each of its mechanisms left out.
#[test]
fn fq_lanes_in_which_flows_grow_old() {
    let info = registry::find("fq-lanes").expect("a discipline of this name");
    let Kind::Choice(without) = info.params.last().expect("parameters").kind else {
        panic!("words for what is left out")
    };
    for (index, without) in without.iter().enumerate() {
        let hosts = ["destination", "none", "source"][index % 3];
        for (target, limit) in
            [("inf", "50mb"), ("1ms", "500kb"), ("20us", "50mb"), ("20ms", "40packets")]
        {
            strategy::for_all(info, &[], Setup::Defaults, 48, &|spec, operations, seed| {
                let set = |spec: Spec, (name, value): (&str, &str)| spec.with(name, value);
                let given = [
                    ("without", *without),
                    ("hosts", hosts),
                    ("target", target),
                    ("interval", "1ms"),
                    ("limit", limit),
                ];
                let spec = given.into_iter().try_fold(spec.clone(), set);
                compare(&spec.map_err(|e| e.to_string())?, &grown(operations), seed)
            });
        }
    }
}

/// The same, with packets a hundred and ten times as large for two flows in three, and the queue
/// emptied.
fn grown(operations: &[Operation]) -> Vec<Operation> {
    let larger = operations.iter().map(|operation| match operation {
        Operation::Enqueue(arrival) => {
            let times = [100, 10, 1][usize::from(arrival.flow % 3)];
            let size = arrival.size.min(3000) * times;
            let segments = arrival.segments.max(size.div_ceil(1500) as u16);
            Operation::Enqueue(Arrival { size, segments, ..*arrival })
        }
        other => other.clone(),
    });
    larger.chain((0..100).map(|_| Operation::Dequeue)).collect()
}

/// A table of a few flows, which are evicted, or share the queues of those that find no room.
#[test]
fn fq_lanes_with_a_full_table() {
    let info = registry::find("fq-lanes").expect("a discipline of this name");
    for (flows, hosts) in [("1", "none"), ("2", "source"), ("2", "destination"), ("5", "source")] {
        strategy::for_all(info, &[], Setup::Defaults, 128, &|spec, operations, seed| {
            let spec = spec.clone().with("flows", flows).and_then(|s| s.with("hosts", hosts));
            compare(&spec.map_err(|e| e.to_string())?, operations, seed)
        });
    }
}

/// From fair queueing to a burst that is worth a hundred times as much.
#[test]
fn fair_service_curves_of_any_shape() {
    for name in ["fsc", "h-fsc"] {
        let info = registry::find(name).expect("a discipline of this name");
        for (bpr, pbs) in [("1", "6000b"), ("4", "0b"), ("1.5", "1500b"), ("100", "9kb")] {
            strategy::for_all(info, except(name), Setup::Random, 192, &|spec, operations, seed| {
                let spec = spec.clone().with("bpr", bpr).and_then(|spec| spec.with("pbs", pbs));
                compare(&spec.map_err(|e| e.to_string())?, operations, seed)
            });
        }
    }
}

/// A threshold that moves with nearly every packet.
#[test]
fn an_edge_that_follows_the_traffic() {
    let info = registry::find("rio-ps").expect("a discipline of this name");
    for (update, idle, ratio) in [("1ms", "100ms", "1"), ("1s", "inf", "3"), ("100ms", "1s", "2")] {
        strategy::for_all(info, except("rio-ps"), Setup::Tiny, 256, &|spec, operations, seed| {
            let set = |spec: Spec, (name, value): (&str, &str)| spec.with(name, value);
            let given = [("update", update), ("idle", idle), ("ratio", ratio), ("threshold", "2")];
            let spec = given.into_iter().try_fold(spec.clone(), set);
            compare(&spec.map_err(|e| e.to_string())?, operations, seed)
        });
    }
}

/// On links slower and faster than random sequences ask for packets.
#[test]
fn fluid_systems_at_any_rate() {
    for name in ["wfq", "wf2q+"] {
        let info = registry::find(name).expect("a discipline of this name");
        for rate in ["9kbit", "10mbit", "1gbit"] {
            strategy::for_all(info, except(name), Setup::Random, 192, &|spec, operations, seed| {
                let spec = spec.clone().with("rate", rate).map_err(|e| e.to_string())?;
                compare(&spec, operations, seed)
            });
        }
    }
}

/// The dice at other chances than the default, among them both certainties.
#[test]
fn sample_and_hold_at_any_probability() {
    let info = registry::find("sb-sh").expect("a discipline of this name");
    for probability in ["0", "0.01", "0.1", "0.5", "1"] {
        strategy::for_all(info, except("sb-sh"), Setup::Tiny, 128, &|spec, operations, seed| {
            let spec = spec.clone().with("probability", probability).map_err(|e| e.to_string())?;
            compare(&spec, operations, seed)
        });
    }
}

/// Measurement intervals as short as the times between packets.
#[test]
fn sample_and_hold_with_intervals() {
    let info = registry::find("sb-sh").expect("a discipline of this name");
    for interval in ["1ms", "100ms", "10s"] {
        strategy::for_all(info, except("sb-sh"), Setup::Tiny, 128, &|spec, operations, seed| {
            let spec = spec.clone().with("interval", interval).and_then(|s| s.with("keep", "3"));
            compare(&spec.map_err(|e| e.to_string())?, operations, seed)
        });
    }
}
