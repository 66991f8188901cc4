//! `kill -9` of the command at any time: the next one repairs what it left.

use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::super::killed::{KILLS, kill_at, repaired};
use super::super::machine::Machine;
use super::super::{FAR, Path, root_kind, succeed};
use super::{Packets, flow, passes, told_apart};
use crate::command::run as shell;

const ATTACH: &str = "attach v0 --rate 10mbit --engine marks --replace --queues";

pub(super) fn run() -> Result<()> {
    let path = Path::new()?;
    shell("tc qdisc add dev v0 root handle 5: tbf rate 50mbit burst 10kb latency 50ms")?;
    let before = Machine::now()?;
    // Of all queues, prio takes the most steps.
    let attach = format!("{ATTACH} prio");
    let begin = Instant::now();
    succeed(&attach)?;
    let attaching = begin.elapsed();
    let begin = Instant::now();
    succeed("detach v0")?;
    let detaching = begin.elapsed();
    before.must_be_back()?;
    let mut killed = 0;
    for number in 0..KILLS {
        killed += u32::from(kill_at(&attach, number, attaching)?);
        if number % 4 == 0 {
            passes(&path).with_context(|| format!("killed attach {number}"))?;
        }
        if number % 5 == 0 {
            // The next one to come repairs as well.
            succeed(&format!("{ATTACH} cake"))?;
            ensure!(root_kind("v0")? == "cake", "{}", root_kind("v0")?);
        }
        repaired(&before).with_context(|| format!("killed attach {number}"))?;
    }
    ensure!(killed > KILLS / 3, "only {killed} of {KILLS} came in time");
    println!("killed: attach, {killed} times: repaired");
    killed = 0;
    for number in 0..KILLS {
        succeed(&attach)?;
        killed += u32::from(kill_at("detach v0", number, detaching)?);
        repaired(&before).with_context(|| format!("killed detach {number}"))?;
    }
    println!("killed: detach, {killed} times: repaired");
    while_changing(&before)
}

/// Marks and queues work after a change that was killed, and after the next one agree again.
fn while_changing(before: &Machine) -> Result<()> {
    succeed(&format!("{ATTACH} cake"))?;
    let begin = Instant::now();
    succeed("change v0 --rate 11mbit")?;
    let changing = begin.elapsed();
    let mut killed = 0;
    for number in 0..KILLS {
        killed +=
            u32::from(kill_at(&format!("change v0 --rate {}mbit", 12 + number), number, changing)?);
        ensure!(root_kind("v0")? == "cake", "the queues are gone");
    }
    succeed("change v0 --rate 10mbit")?;
    told_apart("v0", |packets| flow(FAR, packets), || Packets::of_tins("v0"))?;
    println!("killed: change, {killed} times: repaired");
    repaired(before)
}
