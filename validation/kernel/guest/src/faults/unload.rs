//! The qdisc and its kind come and go under full traffic.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::bench::{DISCIPLINES, Link, drained, find, must_fail, register, sent, wait_until};
use super::census::Census;
use crate::command;
use crate::namespace::{HERE, statistic};
use crate::traffic::{Frames, Varying, flood};

const TIMES: u32 = 100;

pub(crate) fn run(_: &[String]) -> Result<()> {
    DISCIPLINES.iter().try_for_each(|discipline| under_load(discipline))
}

fn under_load(discipline: &str) -> Result<()> {
    let _link = Link::new(1)?;
    let census = Census::now();
    let before = statistic("v0", "tx_packets")?;
    let load = flood(HERE, "v0", Frames::new(300, Varying::Ports(50)), 64, Duration::ZERO);
    let kind = register("shortlane", discipline, Some(20_000_000), 2)?;
    for round in 0..TIMES {
        command::run("tc qdisc replace dev v0 root pfifo limit 100")?;
        // Unpaced every other time, so that it also runs without a watchdog.
        let other = if round % 2 == 0 { "shortlane" } else { "pfifo_fast" };
        command::run(&format!("tc qdisc replace dev v0 root handle 1: {other}"))?;
        // One of ours in the place of another, while both are at work.
        if round % 4 == 0 {
            command::run("tc qdisc replace dev v0 root handle 2: shortlane")?;
        }
    }
    command::run("tc qdisc replace dev v0 root handle 3: shortlane")?;
    drop(kind);
    must_fail("tc qdisc replace dev v0 root handle 4: shortlane")?;
    // Unregistered, and still at work.
    let instance = find("v0")?;
    let at_first = sent(&instance.status());
    wait_until("it goes on", || Ok(sent(&instance.status()) > at_first + 500))?;
    let offered = load.finish()?;
    drained(&instance)?;
    drop(instance);
    command::run("tc qdisc del dev v0 root")?;
    census.wait_for_return()?;
    let left = statistic("v0", "tx_packets")? - before;
    ensure!(left > 1000, "only {left} packets were sent");
    println!(
        "unload: {discipline} replaced {TIMES} times and back while {} packets came, {left} of which were sent; \
         unregistered while in use",
        offered.total()
    );
    Ok(())
}
