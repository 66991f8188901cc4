//! What must be refused is refused, with nothing left behind.

use anyhow::{Context, Result, bail, ensure};
use engine::LinkSettings;
use engine::kernel::{Instance, Registered};
use sched::{Nanos, Rate};

use super::bench::{Link, find, must_fail, qdisc, register};
use super::census::Census;
use super::netlink::add_root;
use crate::traffic::{Frames, Sender, Varying};
use crate::{command, namespace};

pub(crate) fn run(_: &[String]) -> Result<()> {
    let _link = Link::new(2)?;
    let census = Census::now();
    for discipline in ["efd", "fq-lanes"] {
        parents(discipline).with_context(|| discipline.to_owned())?;
        instances(discipline).with_context(|| discipline.to_owned())?;
    }
    options_of_tc()?;
    option_bytes()?;
    names()?;
    census.wait_for_return()
}

fn delete_root() {
    let _ = command::run("tc qdisc del dev v0 root");
}

/// There is a place for it at the root, or below mq without a rate.
fn parents(discipline: &str) -> Result<()> {
    let paced = register("shortlane", discipline, Some(10_000_000), 4)?;
    for root in [
        "root handle 1: htb default 1",
        "root handle 1: tbf rate 1mbit burst 10kb limit 100kb",
        "root handle 1: prio",
    ] {
        command::run(&format!("tc qdisc add dev v0 {root}"))?;
        if root.contains("htb") {
            command::run("tc class add dev v0 parent 1: classid 1:1 htb rate 1mbit")?;
        }
        let said = must_fail("tc qdisc add dev v0 parent 1:1 shortlane")?;
        println!("misuse: below {}: {}", root.split(' ').nth(3).unwrap_or(root), line_of(&said));
        delete_root();
    }
    command::run("tc qdisc add dev v0 root handle 1: mq")?;
    let said = must_fail("tc qdisc add dev v0 parent 1:1 shortlane")?;
    ensure!(said.contains("not supported"), "below mq with a rate: {said}");
    println!("misuse: below mq with a rate: {}", line_of(&said));
    delete_root();
    drop(paced);
    must_fail("tc qdisc add dev v0 root shortlane").map(drop)
}

/// The last thing that a command said, which is why it failed.
fn line_of(said: &str) -> &str {
    said.lines().last().unwrap_or_default()
}

/// One instance a qdisc, and no more than there are.
fn instances(discipline: &str) -> Result<()> {
    command::run("ip link add dev d0 type dummy")?;
    let kind = register("shortlane", discipline, None, 2)?;
    command::run("tc qdisc add dev v0 root handle 1: shortlane")?;
    let twice = must_fail("tc qdisc add dev v0 root handle 1: shortlane")?;
    println!("misuse: twice: {}", line_of(&twice));
    command::run("tc qdisc replace dev v0 root handle 2: shortlane")?;
    command::run("tc qdisc add dev d0 root shortlane")?;
    let none_left = must_fail("tc qdisc add dev lo root shortlane")?;
    ensure!(none_left.contains("No space left"), "a third one of two: {none_left}");
    println!("misuse: a third one of two: {}", line_of(&none_left));
    command::run("tc qdisc del dev d0 root")?;
    command::run("tc qdisc add dev lo root shortlane")?;
    // On the loopback it works too; whoever asks for that with `attach` is told.
    command::run("ping -c 1 -W 5 127.0.0.1")?;
    command::run("tc qdisc del dev lo root")?;
    command::run("ip link del d0")?;
    delete_root();
    drop(kind);
    Ok(())
}

/// `tc` with its plug-in: what it takes, and what it says to the rest.
fn options_of_tc() -> Result<()> {
    let kinds: Vec<Registered> =
        [("efd", "efd"), ("run2c", "run2c"), ("fifo", "fifo"), ("fql", "fq-lanes")]
            .into_iter()
            .map(|(kind, name)| register(&format!("shortlane_{kind}"), name, None, 1))
            .collect::<Result<_>>()?;
    for (kind, options, why) in [
        ("efd", "limit 0", "limit '0' is not accepted"),
        ("efd", "limit many", "limit 'many' is not accepted"),
        ("efd", "limit 5.x", "limit '5.x' is not accepted"),
        ("efd", "limit", "'limit' is without a value"),
        ("efd", "limit 10 limit 10", "'limit' is given twice"),
        ("efd", "rate 0mbit", "rate '0mbit' is not accepted"),
        ("efd", "rate 10", "rate '10' is not accepted"),
        ("efd", "rate 18446744073709551616bit", "is not accepted"),
        ("efd", "rate -5mbit", "rate '-5mbit' is not accepted"),
        ("efd", "rate nanmbit", "rate 'nanmbit' is not accepted"),
        ("efd", "burst 5", "burst '5' is not accepted"),
        ("efd", "overhead 1025", "overhead '1025' is not accepted"),
        ("efd", "low_share 0.91", "low_share '0.91' is not accepted"),
        ("efd", "colour blue", "'colour' is no option"),
        // The qdisc itself refuses these.
        ("efd", "limit 1025", "No space left"),
        ("efd", "threshold 30kb", "Invalid argument"),
        ("fifo", "threshold 20", "not supported"),
        ("run2c", "low_share 0.1", "not supported"),
        ("fql", "threshold 20", "not supported"),
        ("fql", "low_share 0.1", "not supported"),
    ] {
        let said = must_fail(&format!("tc qdisc add dev v0 root shortlane_{kind} {options}"))?;
        ensure!(said.contains(why), "{kind} {options}: '{why}' is expected, not {said}");
    }
    for (boundary, short) in [("before", 7), ("after", 7), ("literal", 8)] {
        takes_threshold(boundary, short)?;
    }
    command::run(
        "tc qdisc add dev v0 root shortlane_efd limit 123 rate 1.5mbit threshold 7 burst 2ms \
         overhead -4 low_share 10%",
    )?;
    let status = find("v0")?.status();
    let LinkSettings { rate, burst_time, .. } = status.link;
    let taken = (rate, burst_time, status.framing.overhead, qdisc(&status).from_tc);
    ensure!(taken == (Rate(1_500_000), Nanos::from_millis(2), -4, true), "{status:?}");
    ensure!(status.limit.as_deref() == Some("123packets"), "{status:?}");
    let (spec, _) = find("v0")?.running()?;
    let text = spec.to_string();
    for part in ["limit=123packets", "threshold=7packets", "low-share=0.1"] {
        ensure!(text.contains(part), "{text}");
    }
    let in_place = must_fail("tc qdisc replace dev v0 root shortlane_efd limit 50")?;
    println!("misuse: a change by tc: {}", line_of(&in_place));
    println!("misuse: tc takes what it should, and refuses the rest: {text}");
    delete_root();
    drop(kinds);
    Ok(())
}

/// A threshold is taken as it is written, whatever its boundary: so many packets are short.
fn takes_threshold(boundary: &str, short: u64) -> Result<()> {
    let kind = register("shortlane_sb", &format!("sb:boundary={boundary}"), None, 1)?;
    command::run("tc qdisc add dev v0 root shortlane_sb threshold 7")?;
    let found = find("v0")?;
    let (spec, _) = found.running()?;
    ensure!(spec.to_string().contains("threshold=7packets"), "{boundary}: {spec}");
    Sender::new("v0")?.send(&mut Frames::new(100, Varying::Nothing(1)), 20)?;
    let high = found.status().lanes[0].enqueued_packets;
    ensure!(high == short, "boundary={boundary}: {high} of 20 packets were short");
    delete_root();
    drop(kind);
    Ok(())
}

/// Bytes that no plug-in sends.
fn option_bytes() -> Result<()> {
    const VERSION: usize = 0;
    const GIVEN: usize = 4;
    const RATE: usize = 8;
    const SIZE: usize = 56;
    let ifindex = namespace::ifindex("v0")?;
    let kind = register("shortlane", "efd", None, 1)?;
    let with = |fields: &[(usize, u32)]| {
        let mut bytes = vec![0; SIZE];
        for (at, value) in fields {
            bytes[*at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    };
    for (what, bytes) in [
        ("nothing", vec![]),
        ("one byte too few", with(&[(VERSION, 1)])[..SIZE - 1].to_vec()),
        ("eight bytes too many", [with(&[(VERSION, 1)]), vec![0; 8]].concat()),
        ("version 0", with(&[])),
        ("version 2", with(&[(VERSION, 2)])),
        ("an option that there is not", with(&[(VERSION, 1), (GIVEN, 1 << 6)])),
        ("rate 0", with(&[(VERSION, 1), (GIVEN, 1)])),
        (
            "an overhead beyond all bounds",
            with(&[(VERSION, 1), (GIVEN, 1 << 4), (40, u32::MAX / 2)]),
        ),
        ("a share above 0.9", with(&[(VERSION, 1), (GIVEN, 1 << 5), (44, 900_000_001)])),
    ] {
        match add_root(ifindex, "shortlane", &bytes) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => bail!("{what}: {error}"),
            Ok(()) => bail!("{what} was accepted"),
        }
    }
    add_root(ifindex, "shortlane", &with(&[(VERSION, 1), (GIVEN, 1), (RATE, 5_000_000)]))?;
    ensure!(find("v0")?.status().link.rate == Rate(5_000_000), "the rate was not taken");
    println!("misuse: options of a wrong size, version or value are refused");
    delete_root();
    drop(kind);
    Ok(())
}

/// A name that is taken is waited for, and then refused.
fn names() -> Result<()> {
    let first = register("shortlane", "efd", None, 1)?;
    let Err(error) = register("shortlane", "fifo", None, 1) else {
        bail!("a name was registered twice");
    };
    println!("misuse: a name that is taken: {error}");
    drop(first);
    // No qdisc of the kernel's own gives up its name.
    let Err(error) = register("pfifo", "fifo", None, 1) else {
        bail!("it took the name of pfifo");
    };
    println!("misuse: the name of a qdisc of the kernel's: {error}");
    let gone = Instance::find(namespace::ifindex("v0")?)?.is_none();
    ensure!(gone, "a qdisc is left");
    Ok(())
}
