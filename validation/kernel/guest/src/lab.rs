//! `shortlane lab FILE --engine kernel` through qdiscs that only this kernel has.

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

pub(crate) fn run(_: &[String]) -> Result<()> {
    fs::write("/tmp/small.toml", FILE)?;
    let said = command::run(
        "shortlane lab /tmp/small.toml --engine kernel --late-limit 60% --jobs 1 --json --out /out",
    )?;
    let document: Value = serde_json::from_str(&said).context("no JSON")?;
    ensure!(document["scenario"]["engine"] == "kernel", "{said}");
    let schedulers = document["summary"]["schedulers"].as_array().context("no schedulers")?;
    let names: Vec<&str> = schedulers.iter().filter_map(|s| s["scheduler"].as_str()).collect();
    ensure!(names == ["kernel:cake", "kernel:fq_codel", "fq-lanes"], "{names:?}");
    for scheduler in schedulers {
        let used = scheduler["utilisation"].as_f64().context("no utilisation")?;
        println!("{}: link used {used:.3}", scheduler["scheduler"]);
        // Of what the link had to give; at a fixed rate it would be 1.25.
        ensure!((0.7..=1.05).contains(&used), "{scheduler}");
        let complete = scheduler["classes"][0]["completion_ms"]["n"].as_u64();
        ensure!(complete.is_some_and(|n| n > 5), "{scheduler}");
        ensure!(scheduler["streams"]["call"]["delay_ms"]["n"].as_u64() > Some(100), "{scheduler}");
    }
    // Nothing of it is left, and the names of our qdiscs are free again.
    ensure!(!command::run("ip link")?.contains("clients"), "an interface is left");
    Ok(())
}
