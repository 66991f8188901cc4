//! Whatever was at the root is there again after `detach`, or it was said that it will not be.

use anyhow::{Result, ensure};

use super::machine::Machine;
use super::{refused, root_kind, succeed};
use crate::command::run as shell;

/// Roots that the kernel's own choice makes: how the device comes to be, and what is there then.
const DEFAULTS: [(&str, &str); 3] = [
    ("ip link add t0 type dummy", "noqueue"),
    ("ip link add t0 type ifb", "fq_codel"),
    ("ip link add t0 numtxqueues 4 type ifb", "mq"),
];

/// Roots that somebody configured, and that come back with everything.
const CONFIGURED: [&str; 9] = [
    "handle 7: tbf rate 1mbit burst 5kb latency 50ms",
    "tbf rate 12gbit burst 1mb limit 2mb peakrate 13gbit mtu 9000",
    "handle 20: fq_codel limit 500 target 2ms ecn",
    "cake bandwidth 5mbit besteffort rtt 40ms",
    "sfq perturb 10 limit 100",
    "prio bands 4",
    "handle 1: mq",
    "pfifo limit 50",
    "netem delay 10ms limit 200",
];

/// Roots of which something would be missing, what that is, and how they come to be.
const LOST: [(&str, &[&str]); 4] = [
    (
        "classes",
        &[
            "qdisc add dev t0 root handle 1: htb default 10",
            "class add dev t0 parent 1: classid 1:10 htb rate 1mbit",
        ],
    ),
    (
        "child",
        &["qdisc add dev t0 root handle 1: prio", "qdisc add dev t0 parent 1:2 handle 30: sfq"],
    ),
    (
        "filters",
        &[
            "qdisc add dev t0 root handle 1: prio",
            "filter add dev t0 parent 1: protocol ip matchall flowid 1:1",
        ],
    ),
    (
        "options",
        &["qdisc add dev t0 root red limit 100kb min 10kb max 30kb avpkt 1000 probability 0.1"],
    ),
];

pub(super) fn run() -> Result<()> {
    shell("modprobe sch_fq_codel")?;
    shell("sysctl -w net.core.default_qdisc=fq_codel")?;
    for (make, kind) in DEFAULTS {
        with_device(make, || {
            ensure!(root_kind("t0")? == kind, "{make}: {}", root_kind("t0")?);
            there_and_back("attach t0 --rate 10mbit")?;
            there_and_back("attach t0 --rate unlimited")
        })?;
    }
    for root in CONFIGURED {
        with_device("ip link add t0 numtxqueues 4 type dummy", || {
            shell(&format!("tc qdisc add dev t0 root {root}"))?;
            refused("attach t0 --rate 10mbit", 1, &["configured", "--replace", "puts it back"])?;
            there_and_back("attach t0 --rate 10mbit --replace")
        })?;
    }
    for (what, commands) in LOST {
        with_device("ip link add t0 type dummy", || {
            let default = shell("tc qdisc show dev t0")?;
            for command in commands {
                shell(&format!("tc {command}"))?;
            }
            refused("attach t0 --rate 10mbit", 1, &["could not put it back", what])?;
            let said = succeed("attach t0 --rate 10mbit --replace")?.words;
            ensure!(said.contains("will not put back") && said.contains(what), "{said}");
            let said = succeed("detach t0")?.words;
            ensure!(said.contains("is not put back") && said.contains(what), "{said}");
            ensure!(shell("tc qdisc show dev t0")? == default, "not the default");
            Ok(())
        })?;
    }
    Ok(())
}

fn with_device(make: &str, test: impl FnOnce() -> Result<()>) -> Result<()> {
    shell(make)?;
    shell("ip link set t0 up")?;
    let result = test();
    shell("ip link del t0")?;
    result.map_err(|error| error.context(make.to_owned()))
}

fn there_and_back(attach: &str) -> Result<()> {
    let before = Machine::now()?;
    succeed(attach)?;
    ensure!(root_kind("t0")? == "shortlane", "{}", root_kind("t0")?);
    succeed("detach t0")?;
    before.must_be_back()
}
