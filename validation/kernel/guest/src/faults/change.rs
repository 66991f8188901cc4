//! A configuration changes under load: nothing is lost, and the rate follows.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use sched::Spec;

use super::bench::{Link, attach, backlog, drained, enqueued, refused, sent, shaping, wait_until};
use crate::namespace::{HERE, statistic};
use crate::traffic::{Frames, Sender, Varying, flood};

pub(crate) fn run(_: &[String]) -> Result<()> {
    let _link = Link::new(1)?;
    queued_packets_survive()?;
    under_load(
        "efd",
        &["threshold=3packets", "limit=40packets", "low-share=0.3", "limit=600packets"],
    )?;
    under_load("fq-lanes", &["target=1ms", "limit=40packets", "interval=10ms", "limit=64kb"])?;
    under_load("sb-sh", &["weight=0.4", "limit=64kb", "threshold=5packets", "weight=1"])?;
    a_slow_link_becomes_fast()?;
    Ok(())
}

fn spec(text: &str) -> Result<Spec> {
    text.parse().map_err(|error| anyhow::anyhow!("{error}"))
}

/// What is queued stays queued through every change, also one to a limit below it.
fn queued_packets_survive() -> Result<()> {
    let instance = attach("v0", "efd:limit=300packets", Some(1_000))?;
    let sender = Sender::new("v0")?;
    let before = statistic("v0", "tx_packets")?;
    let offered = sender.send(&mut Frames::new(200, Varying::Ports(3)), 250)?;
    ensure!(offered.refused == 0, "{offered:?}");
    for change in
        ["efd:limit=10packets", "efd:threshold=1packets,limit=500packets", "efd:low-share=0.5"]
    {
        instance.change(&spec(change)?, &shaping(Some(2_000)))?;
    }
    let held = backlog(&instance.status());
    ensure!(held >= 245, "only {held} of 250 are left");
    instance.change(&spec("efd")?, &shaping(Some(100_000_000)))?;
    drained(&instance)?;
    let arrived = statistic("v0", "tx_packets")? - before;
    ensure!(arrived == 250, "{arrived} of 250 packets were sent");
    println!("change: 250 queued packets through 4 changes: all sent");
    Ok(())
}

/// Changes every few milliseconds while packets come faster than they can leave.
fn under_load(discipline: &str, parameters: &[&str]) -> Result<()> {
    let instance = attach("v0", discipline, Some(20_000_000))?;
    let before = statistic("v0", "tx_packets")?;
    let load = flood(HERE, "v0", Frames::new(700, Varying::Ports(40)), 64, Duration::ZERO);
    let begin = Instant::now();
    let mut changes = 0u64;
    while begin.elapsed() < Duration::from_secs(8) {
        let parameter = parameters[changes as usize % parameters.len()];
        let rate = [5_000_000, 20_000_000, 80_000_000][changes as usize % 3];
        instance.change(&spec(&format!("{discipline}:{parameter}"))?, &shaping(Some(rate)))?;
        changes += 1;
        thread::sleep(Duration::from_millis(2));
    }
    let offered = load.finish()?;
    let status = drained(&instance)?;
    let (enqueued, refused) = (enqueued(&status), refused(&status));
    ensure!(enqueued == offered.taken, "{} were taken, {enqueued} queued", offered.taken);
    ensure!(refused == offered.refused, "{} were refused, {refused} counted", offered.refused);
    let arrived = statistic("v0", "tx_packets")? - before;
    ensure!(arrived == sent(&status), "{arrived} were sent, {} counted", sent(&status));
    println!(
        "change: {discipline}: {changes} changes under load; {} packets offered, {} sent, {} \
         dropped full, {} pushed out: all accounted for",
        offered.total(),
        sent(&status),
        refused,
        status.lanes.iter().map(|lane| lane.pushed_out).sum::<u64>()
    );
    Ok(())
}

/// A rate that would hold a packet for minutes is no longer waited for once it is gone.
fn a_slow_link_becomes_fast() -> Result<()> {
    let instance = attach("v0", "efd", Some(10))?;
    Sender::new("v0")?.send(&mut Frames::new(1000, Varying::Ports(3)), 3)?;
    thread::sleep(Duration::from_millis(300));
    ensure!(backlog(&instance.status()) > 0, "10 bit/s were too fast");
    instance.change(&spec("efd")?, &shaping(Some(10_000_000)))?;
    let begin = Instant::now();
    wait_until("they leave", || Ok(backlog(&instance.status()) == 0))?;
    println!("change: from 10 bit/s to 10 Mbit/s: felt within {:?}", begin.elapsed());
    Ok(())
}
