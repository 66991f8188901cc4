//! Below mq: one qdisc a queue, at work on several processors at once.

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use engine::kernel::Instance;

use super::bench::{DISCIPLINES, Link, drained, enqueued, refused, register, sent};
use super::census::Census;
use crate::command;
use crate::namespace::{HERE, statistic};
use crate::traffic::{Frames, Varying, flood};

const QUEUES: usize = 2;

pub(crate) fn run(_: &[String]) -> Result<()> {
    DISCIPLINES.iter().try_for_each(|discipline| at_once(discipline))
}

fn at_once(discipline: &str) -> Result<()> {
    let _link = Link::new(QUEUES as u32)?;
    let census = Census::now();
    let kind = register("shortlane", discipline, None, QUEUES as u32)?;
    command::run("tc qdisc replace dev v0 root handle 1: mq")?;
    for queue in 1..=QUEUES {
        command::run(&format!("tc qdisc replace dev v0 parent 1:{queue} shortlane"))?;
    }
    drop(kind);
    let before = statistic("v0", "tx_packets")?;
    // Two senders of many flows each: either queue gets packets from either processor.
    let senders = [0, 1]
        .map(|_| flood(HERE, "v0", Frames::new(200, Varying::Ports(500)), 64, Duration::ZERO));
    thread::sleep(Duration::from_secs(10));
    let mut offered = 0;
    for sender in senders {
        offered += sender.finish()?.total();
    }
    let instances = Instance::all()?;
    ensure!(instances.len() == QUEUES, "{} qdiscs were found", instances.len());
    let (mut counts, mut dropped, mut left) = (vec![], 0, 0);
    for instance in &instances {
        let status = drained(instance)?;
        counts.push(enqueued(&status));
        dropped += refused(&status);
        left += sent(&status);
    }
    // Where senders meet, one enqueues for both, and the other does not hear of a drop.
    let arrived = counts.iter().sum::<u64>() + dropped;
    ensure!(arrived == offered, "{offered} packets were offered, {arrived} came");
    let seen = statistic("v0", "tx_packets")? - before;
    ensure!(left == seen, "{left} counted, {seen} on the interface");
    ensure!(counts.iter().all(|packets| *packets > 1000), "one is idle: {counts:?}");
    println!("mq: {QUEUES} qdiscs of {discipline} at once, {counts:?} packets: all accounted for");
    drop(instances);
    command::run("tc qdisc del dev v0 root")?;
    census.wait_for_return()
}
