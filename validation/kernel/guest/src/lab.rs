//! `shortlane lab FILE --engine kernel` through qdiscs that only this kernel has.
//!
//! `lab` runs a small file; `bench [SCHEDULER]...` one of `make bench-kernel`, and judges ours by it;
//! `suite [FILE]...` a part of the suite after RFC 7928, which is held against the simulator.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::command;

/// Small: the CPU is an emulated one.
const FILE: &str = r#"[scenario]
title = "Small transfers beside a download"
duration = "6s"
warm-up = "1s"
seeds = 1

[topology]
kind = "dumbbell"
access = { rate = "1gbit", delay = "1ms" }
bottleneck = { rate = "5mbit", delay = "4ms", limit = "100packets", varying = "steps:0s=5mbit,3s=3mbit" }

[schedulers]
run = ["cake", "fq-codel", "fq-lanes"]

[tcp]
preset = "linux"

[[traffic]]
kind = "transfers"
arrivals = 3
sizes = "fixed:size=10kb"

[[traffic]]
kind = "persistent"
flows = 1

[[traffic]]
name = "call"
kind = "cbr"
rate = "64kbit"
packet = "160b"
"#;

/// Two downloads, fetches, voice and video.
const TWO_DOWNLOADS: &str = include_str!("../../../../scenarios/kernel/two-downloads-near.toml");
/// What ours are held against.
const PEER: &str = "kernel:fq_codel";
/// Those that are judged if none is named.
const OURS: [&str; 2] = ["fq-lanes", "marks:cake"];

/// Files of the suite: seven long flows of one host, and ten of two.
const SUITE: [(&str, &str); 2] = [
    ("mild", include_str!("../../../../scenarios/rfc7928/mild.toml")),
    ("fairness", include_str!("../../../../scenarios/rfc7928/fairness.toml")),
];
/// How far measurement may be from prediction: parts of a completion time and of a rate, and a delay
/// in ms.
const WITHIN: [f64; 3] = [0.1, 0.02, 2.0];

/// What a command says of a file, by scheduler.
fn said_of(text: &str, command: &str) -> Result<Value> {
    fs::write("/tmp/lab.toml", text)?;
    serde_json::from_str(&command::run(&format!("shortlane {command} --json"))?).context("no JSON")
}

/// What the lab says of a file.
fn measured(text: &str, options: &str) -> Result<Vec<Value>> {
    let lab = "lab /tmp/lab.toml --engine kernel --late-limit 60% --jobs 1";
    let document = said_of(text, &format!("{lab} {options}"))?;
    ensure!(document["scenario"]["engine"] == "kernel", "{document}");
    // Nothing of it is left, and the names of our qdiscs are free again.
    ensure!(!command::run("ip link")?.contains("clients"), "an interface is left");
    let left = fs::read_dir("/run/shortlane").into_iter().flatten().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    ensure!(left.is_empty(), "of marks are left: {left:?}");
    Ok(document["summary"]["schedulers"].as_array().context("no schedulers")?.clone())
}

/// Ratios with wide margins, of both rounds together.
pub(crate) fn bench(words: &[String]) -> Result<()> {
    let ours = if words.is_empty() { OURS.map(str::to_owned).to_vec() } else { words.to_vec() };
    let names = ours
        .iter()
        .fold(format!("--scheduler {PEER}"), |all, name| format!("{all} --scheduler {name}"));
    let schedulers = measured(TWO_DOWNLOADS, &format!("{names} --seeds 1..2 --out /out"))?;
    let (peer, judged) = schedulers.split_first().context("nothing was measured")?;
    let number = |value: &Value| value.as_f64().with_context(|| format!("{value} is no number"));
    for (name, own) in ours.iter().zip(judged) {
        let ratio = |path: &str| -> Result<f64> {
            let of = |all: &Value| number(all.pointer(path).unwrap_or(&Value::Null));
            Ok(of(own)? / of(peer)?)
        };
        let fetch = ratio("/classes/0/completion_ms/mean/value")?;
        let bulk = ratio("/downloads_mbit/value")?;
        println!(
            "{name} / {PEER}: fetches of 5 and 20 kB take {fetch:.2}, downloads get {bulk:.2}"
        );
        ensure!(fetch <= 0.8, "{name}: fetches take {fetch:.2} of {PEER}'s time; at most 0.8");
        ensure!((0.9..1.1).contains(&bulk), "{name}: downloads get {bulk:.2} of {PEER}'s rate");
        let lost = |all: &Value| -> Result<f64> {
            Ok(number(&all["voice"]["lost"])? / number(&all["voice"]["sent"])?)
        };
        let (own, theirs) = (lost(own)?, lost(peer)?);
        ensure!(own <= theirs + 0.01, "{name}: of the voice packets {own:.3} were lost");
    }
    Ok(())
}

/// What the kernel's qdisc does is what the simulator says of the same file: of all, or of those
/// that are named.
pub(crate) fn suite(names: &[String]) -> Result<()> {
    const SIZE: &str = "--seeds 1 --duration 15s --scheduler fq-lanes";
    let number = |all: &Value, path: &str| {
        let found = all.pointer(path).and_then(Value::as_f64);
        found.with_context(|| format!("no number at {path} of {all}"))
    };
    let wanted = |&(name, _): &(&str, _)| names.is_empty() || names.iter().any(|it| it == name);
    for (name, text) in SUITE.into_iter().filter(wanted) {
        let document = said_of(text, &format!("sim /tmp/lab.toml {SIZE}"))?;
        let predicted = &document["summary"]["schedulers"][0];
        let traffic = predicted["traffic"].as_array().context("no traffic")?;
        let of = |name| traffic.iter().find(|it| it["name"] == name).context("not in the file");
        let rates = traffic.iter().filter(|it| it["kind"] == "persistent");
        let rates = rates.map(|it| number(it, "/mbit/value")).collect::<Result<Vec<f64>>>()?;
        let expected = [
            number(of("short")?, "/classes/0/completion_ms/value")?,
            rates.iter().sum(),
            number(of("call")?, "/delay_ms/p95/value")?,
        ];
        let measured = measured(text, &format!("{SIZE} --out /out"))?;
        let own = measured.first().context("nothing was measured")?;
        let found = [
            number(own, "/classes/0/completion_ms/mean/value")?,
            number(own, "/downloads_mbit/value")?,
            number(own, "/streams/call/delay_ms/p95/value")?,
        ];
        println!("{name}: short transfers in ms, long flows in Mbit/s, p95 of the call in ms:");
        println!("{name}: predicted {expected:.3?}, measured {found:.3?}");
        let apart = [
            (found[0] / expected[0] - 1.0).abs(),
            (found[1] / expected[1] - 1.0).abs(),
            (found[2] - expected[2]).abs(),
        ];
        ensure!(apart.iter().zip(WITHIN).all(|(&it, most)| it <= most), "{name}: {apart:.3?}");
    }
    Ok(())
}

pub(crate) fn run(_: &[String]) -> Result<()> {
    let schedulers = measured(FILE, "--out /out")?;
    let names: Vec<&str> = schedulers.iter().filter_map(|s| s["scheduler"].as_str()).collect();
    ensure!(names == ["kernel:cake", "kernel:fq_codel", "fq-lanes"], "{names:?}");
    for scheduler in &schedulers {
        let used = scheduler["utilisation"].as_f64().context("no utilisation")?;
        println!("{}: link used {used:.3}", scheduler["scheduler"]);
        // Of what the link had to give; at a fixed rate it would be 1.25.
        ensure!((0.7..=1.05).contains(&used), "{scheduler}");
        let complete = scheduler["classes"][0]["completion_ms"]["n"].as_u64();
        ensure!(complete.is_some_and(|n| n > 5), "{scheduler}");
        ensure!(scheduler["streams"]["call"]["delay_ms"]["n"].as_u64() > Some(100), "{scheduler}");
    }
    Ok(())
}
