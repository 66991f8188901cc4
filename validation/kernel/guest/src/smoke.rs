//! The least that must work: load, put in place, find, change, remove; nothing stays behind.

use anyhow::{Context, Result, ensure};
use engine::LinkSettings;
use engine::kernel::{Instance, Shaping, compose, load};
use sched::{Nanos, Rate, Spec};

use crate::command;

const KIND: &str = "shortlane";

fn shaping(rate: Option<u64>) -> Shaping {
    let rate = rate.map_or(Rate::UNLIMITED, Rate);
    let burst_time = Nanos::from_millis(5);
    LinkSettings { rate, burst_time, ..LinkSettings::default() }.into()
}

pub(crate) fn run(_: &[String]) -> Result<()> {
    command::run("ip link add v0 type veth peer name v1")?;
    command::run("ip link set v0 up")?;
    command::run("ip link set v1 up")?;
    let ifindex: u32 = std::fs::read_to_string("/sys/class/net/v0/ifindex")?.trim().parse()?;
    for name in ["efd", "run2c", "x-protect", "sift", "sb", "sb-ko", "sb-sh", "fifo", "fq-lanes"] {
        let spec: Spec = name.parse()?;
        let composition = compose(&spec, &shaping(Some(10_000_000)))?;
        let registered = load(KIND, &composition, 1, None)?;
        let costs: Vec<String> = registered
            .costs()
            .iter()
            .map(|cost| format!("{} {}", cost.program, cost.verified_instructions))
            .collect();
        println!("{name}: verified instructions: {}", costs.join(", "));
        command::run(&format!("tc qdisc replace dev v0 root {KIND}"))?;
        // From here on the qdisc itself keeps its programs.
        drop(registered);
        ensure!(command::run("tc qdisc show dev v0")?.contains(KIND), "tc does not show it");
        let instance = Instance::find(ifindex)?.context("the qdisc is not found")?;
        let status = instance.status();
        ensure!(status.scheduler == spec.to_string(), "{status:?}");
        ensure!(status.link.rate == Rate(10_000_000), "{status:?}");
        instance.change(&spec, &shaping(Some(20_000_000)))?;
        ensure!(instance.status().link.rate == Rate(20_000_000), "the rate did not change");
        command::run("ip addr replace 10.9.0.1/24 dev v0")?;
        let _ = command::run("ping -c 2 -W 1 10.9.0.2");
        let status = Instance::find(ifindex)?.context("lost")?.status();
        ensure!(status.lanes[0].sent_packets > 0, "nothing was sent: {status:?}");
        ensure!(status.qdisc.as_ref().is_some_and(|qdisc| qdisc.lost == 0), "{status:?}");
        println!("{}", command::run("tc -s qdisc show dev v0")?);
        drop(instance);
        command::run("tc qdisc del dev v0 root")?;
        ensure!(Instance::find(ifindex)?.is_none(), "it is still there");
    }
    Ok(())
}
