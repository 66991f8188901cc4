//! `--join`: queues that somebody has get marks in front of them, and are not touched.

use anyhow::{Context, Result, ensure};

use super::super::machine::{Machine, classes};
use super::super::{FAR, Path, refused, succeed};
use super::{Packets, fault, flow, only, told_apart};
use crate::command::run as shell;

/// What somebody has: how it comes to be, the option that joins it, what counts its packets.
type Theirs = (&'static [&'static str], &'static str, fn() -> Result<Packets>);

const THEIRS: [Theirs; 6] = [
    (&["qdisc add dev v0 root handle 7: cake bandwidth 10mbit"], "cake", || Packets::of_tins("v0")),
    (
        &["qdisc add dev v0 root cake bandwidth 10mbit diffserv4 nat rtt 50ms overhead 18"],
        "cake",
        || Packets::of_tins("v0"),
    ),
    (
        &[
            "qdisc add dev v0 root handle 1: prio bands 3",
            "qdisc add dev v0 parent 1:3 handle 30: sfq",
        ],
        "1:1,1:3",
        || Packets::of_classes("v0", "prio", [1, 3]),
    ),
    (
        &[
            "qdisc add dev v0 root handle 1: htb default 20",
            "class add dev v0 parent 1: classid 1:1 htb rate 10mbit",
            "class add dev v0 parent 1:1 classid 1:10 htb rate 9mbit ceil 10mbit",
            "class add dev v0 parent 1:1 classid 1:20 htb rate 1mbit ceil 10mbit prio 1",
        ],
        "1:10,1:20",
        || Packets::of_classes("v0", "htb", [0x10, 0x20]),
    ),
    (&["qdisc add dev v0 root handle 1: ets bands 3 strict 1 quanta 3000 1500"], "1:1,1:3", || {
        Packets::of_classes("v0", "ets", [1, 3])
    }),
    (
        &[
            "qdisc add dev v0 root handle 1: hfsc default 2",
            "class add dev v0 parent 1: classid 1:1 hfsc sc rate 9mbit ul rate 10mbit",
            "class add dev v0 parent 1: classid 1:2 hfsc sc rate 1mbit ul rate 10mbit",
        ],
        "1:1,1:2",
        || Packets::of_classes("v0", "hfsc", [1, 2]),
    ),
];

/// What cannot be joined: how it comes to be, the option, and words of the refusal.
const REFUSED: [(&str, &str, &[&str]); 9] = [
    ("cake bandwidth 10mbit besteffort", "cake", &["no tin named Bulk"]),
    ("cake bandwidth 10mbit precedence", "cake", &["no tin named Bulk"]),
    ("cake bandwidth 10mbit diffserv8", "cake", &["no tin named Bulk"]),
    ("cake bandwidth 10mbit", "1:1,1:2", &["by their names", "--join cake"]),
    ("handle 1: prio", "cake", &["--join SHORT,LONG"]),
    ("handle 1: prio", "1:1,1:9", &["no class 1:9", "1:3"]),
    ("handle 1: prio", "1:2,1:1", &["1:1 before 1:2"]),
    ("handle 1: ets bands 3 strict 2", "1:2,1:1", &["1:1 before 1:2"]),
    ("pfifo limit 100", "1:1,1:2", &["no classes"]),
];

pub(super) fn run() -> Result<()> {
    let _path = Path::new()?;
    let bare = Machine::now()?;
    refused("attach v0 --rate 10mbit --join cake", 1, &["nothing to join"])?;
    for (commands, classes, count) in THEIRS {
        joins(commands, classes, count).with_context(|| commands[0].to_owned())?;
        shell("tc qdisc del dev v0 root")?;
    }
    for (root, classes, words) in REFUSED {
        shell(&format!("tc qdisc add dev v0 root {root}"))?;
        let before = Machine::now()?;
        refused(&format!("attach v0 --rate 10mbit --join {classes}"), 1, words).context(root)?;
        before.must_be_back().with_context(|| format!("refused: {root}"))?;
        shell("tc qdisc del dev v0 root")?;
    }
    bare.must_be_back()
}

fn joins(commands: &[&str], join: &str, count: fn() -> Result<Packets>) -> Result<()> {
    for command in commands {
        shell(&format!("tc {command}"))?;
    }
    let before = Machine::now()?;
    let queues = || -> Result<String> { Ok(shell("tc qdisc show dev v0 root")? + &classes("v0")?) };
    let theirs = queues()?;
    succeed(&format!("attach v0 --rate 10mbit --join {join}"))?;
    ensure!(queues()? == theirs, "it was touched: {}", queues()?);
    let status = only("v0")?;
    let scheduler = status["scheduler"].as_str().context("no scheduler")?;
    ensure!(scheduler.starts_with("marks:joined="), "{status:#}");
    told_apart("v0", |packets| flow(FAR, packets), count)?;
    refused("change v0 --overhead 18", 1, &["somebody's", "tc changes"])?;
    succeed("change v0 --rate 20mbit")?;
    ensure!(queues()? == theirs, "it was touched: {}", queues()?);
    ensure!(fault("v0")?.is_empty(), "{}", fault("v0")?);
    succeed("detach v0")?;
    before.must_be_back()
}
