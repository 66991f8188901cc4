//! What carries the qdisc goes away or changes while packets are in it.

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use engine::kernel::Instance;

use super::bench::{DISCIPLINES, Link, attach, drained, find, qdisc, sent, wait_until};
use super::census::Census;
use crate::namespace::{self, HERE};
use crate::traffic::{Frames, Sender, Varying, flood};
use crate::{command, traffic};

pub(crate) fn run(_: &[String]) -> Result<()> {
    DISCIPLINES.iter().try_for_each(|discipline| {
        println!("removal: of {discipline}");
        all(discipline)
    })?;
    qdisc_stays("efd:low-share=0.1")
}

fn all(discipline: &str) -> Result<()> {
    for (what, commands) in [
        ("the interface is deleted", &["ip link del v0"][..]),
        ("its far end is deleted", &["ip -n there link del v1"]),
        ("it moves to another namespace", &["ip link set v0 netns there"]),
        ("the namespace of its far end is deleted", &["ip netns del there"]),
        ("another qdisc takes its place", &["tc qdisc replace dev v0 root pfifo limit 10"]),
    ] {
        qdisc_is_gone(discipline, what, commands)?;
    }
    namespace_is_deleted(discipline)?;
    qdisc_stays(discipline)
}

/// More than the link can take, in pieces that leave the processor to others.
fn load(namespace: &str) -> traffic::Running<traffic::Offered> {
    let frames = Frames::new(500, Varying::Ports(30));
    flood(namespace, "v0", frames, 32, Duration::from_millis(1))
}

/// After this nothing of the qdisc is left, and packets that were in it are freed.
fn qdisc_is_gone(discipline: &str, what: &str, commands: &[&str]) -> Result<()> {
    let link = Link::new(1)?;
    let census = Census::now();
    let queued = Sender::new("v0")?;
    drop(attach("v0", discipline, Some(2_000_000))?);
    let load = load(HERE);
    queued.send(&mut Frames::new(1000, Varying::Ports(5)), 100)?;
    thread::sleep(Duration::from_millis(300));
    commands.iter().try_for_each(|line| command::run(line).map(drop))?;
    census.wait_for_return()?;
    wait_until("its packets are freed", || Ok(queued.unfreed()? == 0))?;
    load.finish()?;
    drop(queued);
    drop(link);
    println!("removal: {what}: nothing is left");
    Ok(())
}

/// The namespace that the interface itself is in.
fn namespace_is_deleted(discipline: &str) -> Result<()> {
    command::run("ip netns add gone")?;
    let census = Census::now();
    for line in [
        "ip -n gone link add v0 type veth peer name v1",
        "ip -n gone link set v0 up",
        "ip -n gone link set v1 up",
    ] {
        command::run(line)?;
    }
    namespace::run("gone", || attach("v0", discipline, Some(2_000_000)).map(drop))??;
    let load = load("gone");
    thread::sleep(Duration::from_millis(300));
    command::run("ip netns del gone")?;
    // The sender's socket keeps the namespace; then nothing does.
    ensure!(load.finish()?.total() > 0, "no traffic");
    census.wait_for_return()?;
    println!("removal: its namespace is deleted: nothing is left");
    Ok(())
}

/// After each of these the qdisc goes on.
fn qdisc_stays(discipline: &str) -> Result<()> {
    let link = Link::new(1)?;
    let census = Census::now();
    let instance = attach("v0", discipline, Some(2_000_000))?;
    let load = load(HERE);
    thread::sleep(Duration::from_millis(200));
    for (what, commands) in [
        ("a new MTU", &["ip link set v0 mtu 600", "ip link set v0 mtu 9000"][..]),
        ("another length of its queue", &["ip link set v0 txqueuelen 10"]),
        ("down and up", &["ip link set v0 down", "ip link set v0 up"]),
        ("carrier lost and back", &["ip -n there link set v1 down", "ip -n there link set v1 up"]),
        ("offloads off and on", &["ethtool -K v0 tso off gso off", "ethtool -K v0 tso on gso on"]),
        ("another name", &["ip link set v0 name other", "ip link set other name v0"]),
    ] {
        for line in commands {
            command::run(line)?;
            thread::sleep(Duration::from_millis(100));
        }
        goes_on(&instance)?;
        println!("removal: {what}: it goes on");
    }
    load.finish()?;
    ensure!(
        qdisc(&instance.status()).flushed > 0,
        "packets that were queued when it went down are not counted"
    );
    drained(&instance)?;
    let shown = command::run("tc -s qdisc show dev v0")?;
    ensure!(shown.contains("backlog 0b 0p"), "{shown}");
    drop(instance);
    command::run("tc qdisc del dev v0 root")?;
    census.wait_for_return()?;
    drop(link);
    Ok(())
}

fn goes_on(instance: &Instance) -> Result<()> {
    find("v0")?;
    let before = sent(&instance.status());
    wait_until("packets leave again", || Ok(sent(&instance.status()) > before + 20))
}
