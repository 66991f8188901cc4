//! A link to try things on, and a qdisc on it.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use engine::LinkSettings;
use engine::kernel::{Instance, Registered, Shaping, compose, load};
use engine::status::{Qdisc, Status};
use sched::{Nanos, Rate, Spec};

use crate::{command, namespace};

/// The namespace of the link's far end.
pub(crate) const THERE: &str = "there";
/// What the far end is reached by.
pub(crate) const ADDRESS_THERE: [u8; 4] = [10, 9, 0, 2];

/// A veth pair: `v0` here, `v1` in a namespace of its own. Only what tests send is on it.
pub(crate) struct Link(());

impl Link {
    /// A link with this many transmit queues.
    pub(crate) fn new(queues: u32) -> Result<Self> {
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        command::run(&format!("ip netns add {THERE}"))?;
        let link = Self(());
        let end = format!("numtxqueues {queues} numrxqueues {queues}");
        for line in [
            &*format!(
                "ip link add v0 address 02:00:00:00:00:01 {end} type veth peer name v1 {end}"
            ),
            "ip link set v1 address 02:00:00:00:00:02 netns there",
            "ip link set v0 gso_max_segs 1 up",
            "ip addr add 10.9.0.1/24 dev v0",
            "ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent",
            "ip -n there link set lo up",
            "ip -n there link set v1 up",
            "ip -n there addr add 10.9.0.2/24 dev v1",
            "ip -n there neigh replace 10.9.0.1 lladdr 02:00:00:00:00:01 dev v1 nud permanent",
        ] {
            command::run(line)?;
        }
        Ok(link)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = command::run("ip link del v0");
        let _ = command::run(&format!("ip netns del {THERE}"));
    }
}

/// What is tried where the discipline could matter: there are two programs, and each is of one.
pub(crate) const DISCIPLINES: [&str; 2] = ["fq-lanes", "efd"];

/// A rate, or `None`, without overhead.
pub(crate) fn shaping(rate: Option<u64>) -> Shaping {
    let rate = rate.map_or(Rate::UNLIMITED, Rate);
    let burst_time = Nanos::from_millis(5);
    LinkSettings { rate, burst_time, ..LinkSettings::default() }.into()
}

/// Registers a discipline as a kind of qdisc.
pub(crate) fn register(
    kind: &str,
    spec: &str,
    rate: Option<u64>,
    instances: u32,
) -> Result<Registered> {
    let spec: Spec = spec.parse().map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(load(kind, &compose(&spec, &shaping(rate))?, instances, None)?)
}

/// Puts a discipline on an interface, in the place of what is there, and lets the registration go.
pub(crate) fn attach(interface: &str, spec: &str, rate: Option<u64>) -> Result<Instance> {
    let registered = register("shortlane", spec, rate, 1)?;
    // Another handle than the one before: the kernel changes no qdisc of the same handle and kind.
    let _ = command::run(&format!("tc qdisc del dev {interface} root"));
    command::run(&format!("tc qdisc add dev {interface} root shortlane"))?;
    drop(registered);
    find(interface)
}

pub(crate) fn find(interface: &str) -> Result<Instance> {
    Instance::find(namespace::ifindex(interface)?)?.context("the qdisc is not found")
}

/// Waits for a condition.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !holds()? {
        if begin.elapsed() > Duration::from_secs(30) {
            bail!("{what}: not within 30 s");
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A command line that must fail; gives what it said.
pub(crate) fn must_fail(line: &str) -> Result<String> {
    match command::run(line) {
        Ok(_) => bail!("'{line}' was accepted"),
        Err(error) => Ok(error.to_string()),
    }
}

/// What only a qdisc has of a status.
pub(crate) fn qdisc(status: &Status) -> &Qdisc {
    status.qdisc.as_ref().expect("it is a qdisc's")
}

pub(crate) fn backlog(status: &Status) -> u64 {
    status.lanes.iter().map(|lane| lane.backlog_packets).sum()
}

pub(crate) fn sent(status: &Status) -> u64 {
    status.lanes.iter().map(|lane| lane.sent_packets).sum()
}

pub(crate) fn enqueued(status: &Status) -> u64 {
    status.lanes.iter().map(|lane| lane.enqueued_packets).sum()
}

/// Arrivals that were dropped since the queue was full.
pub(crate) fn refused(status: &Status) -> u64 {
    status.lanes.iter().map(|lane| lane.full).sum::<u64>() + qdisc(status).no_slots
}

/// Every packet that was enqueued has left, or is there; to be asked when nothing moves.
pub(crate) fn check_conservation(status: &Status) -> Result<()> {
    let dropped: u64 = status.lanes.iter().map(|lane| lane.pushed_out + lane.congested).sum();
    let gone = sent(status) + dropped + qdisc(status).flushed;
    ensure!(
        enqueued(status) == gone + backlog(status),
        "of {} packets {gone} left and {} are there: {:#?}, {:#?}",
        enqueued(status),
        backlog(status),
        status.lanes,
        qdisc(status)
    );
    let flows = (status.flows_created, status.flows_removed, status.flows);
    ensure!(flows.0 - flows.1 == flows.2, "created, removed, there: {flows:?}");
    let lost = qdisc(status).lost;
    ensure!(lost == 0, "{lost} packets were lost");
    Ok(())
}

/// Waits until the queue is empty and nothing moves, and looks whether all is accounted for.
pub(crate) fn drained(instance: &Instance) -> Result<Status> {
    let mut status = instance.status();
    // Its counters are not read at one moment: they hold if no packet came in between.
    wait_until("the queue drains", || {
        let before = enqueued(&status);
        status = instance.status();
        Ok(backlog(&status) == 0 && enqueued(&status) == before)
    })?;
    check_conservation(&status)?;
    Ok(status)
}
