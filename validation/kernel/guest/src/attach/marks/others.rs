//! What others do around marks: remove the program, replace or change the queues, have programs and
//! a clsact of their own. Traffic passes, `doctor` says what is wrong, `detach` leaves what is theirs.

use anyhow::{Context, Result, ensure};

use super::super::machine::Machine;
use super::super::{FAR, Path, root_kind, succeed};
use super::{FEW, MANY, Packets, drained, fault, flow, only, passes, tcx, told_apart};
use crate::command::run as shell;

const ATTACH: &str = "attach v0 --rate 10mbit --engine marks --queues cake";
/// What somebody puts in the place of the queues, and whether its classes have the numbers that
/// marks name.
const INSTEAD: [&str; 7] = [
    "qdisc replace dev v0 root handle 9: cake bandwidth 10mbit",
    "qdisc replace dev v0 root handle 9: cake bandwidth 10mbit besteffort",
    "qdisc replace dev v0 root fq_codel",
    "qdisc replace dev v0 root handle 9: prio",
    "qdisc change dev v0 root cake besteffort",
    "qdisc change dev v0 root cake diffserv8",
    "qdisc change dev v0 root cake precedence",
];

pub(super) fn run() -> Result<()> {
    let path = Path::new()?;
    let before = Machine::now()?;
    program_removed(&path)?;
    before.must_be_back().context("the program removed")?;
    for instead in INSTEAD {
        queues_replaced(&path, instead).context(instead)?;
        before.must_be_back().context(instead)?;
    }
    queues_removed(&path)?;
    before.must_be_back().context("the queues removed")?;
    beside_filters(&path)?;
    before.must_be_back().context("beside others' filters")?;
    tcx::run(&path)?;
    before.must_be_back().context("beside others' TCX programs")?;
    joined_queues_removed(&path)?;
    before.must_be_back().context("what was joined is gone")?;
    drop(path);
    device_gone()
}

/// As if there had never been marks: all is short.
fn program_removed(path: &Path) -> Result<()> {
    for remove in ["filter del dev v0 egress", "qdisc del dev v0 clsact"] {
        succeed(ATTACH)?;
        shell(&format!("tc {remove}"))?;
        passes(path)?;
        let before = Packets::of_tins("v0")?;
        flow(FAR, MANY)?;
        drained("v0")?;
        let after = Packets::of_tins("v0")?;
        ensure!(after.long == before.long, "marked without a program: {after:?}");
        ensure!(after.short >= before.short + MANY as u64, "{before:?}, {after:?}");
        ensure!(fault("v0")?.contains("the program is gone"), "{}", fault("v0")?);
        ensure!(only("v0")?["engine"] == "marks", "{:#}", only("v0")?);
        succeed("change v0 --rate 20mbit")?;
        succeed("detach v0")?;
    }
    Ok(())
}

/// Marks do no harm to other queues, and these stay.
fn queues_replaced(path: &Path, instead: &str) -> Result<()> {
    succeed(ATTACH)?;
    shell(&format!("tc {instead}"))?;
    flow(FAR, MANY)?;
    passes(path)?;
    let said = fault("v0")?;
    ensure!(!said.is_empty(), "doctor finds nothing");
    let kind = root_kind("v0")?;
    let theirs = shell("tc qdisc show dev v0 root")?;
    succeed("detach v0")?;
    if instead.contains("replace") {
        ensure!(said.contains("no longer cake"), "{said}");
        ensure!(shell("tc qdisc show dev v0 root")? == theirs, "{kind} was touched");
        shell("tc qdisc del dev v0 root")?;
    }
    Ok(())
}

fn queues_removed(path: &Path) -> Result<()> {
    succeed(ATTACH)?;
    shell("tc qdisc del dev v0 root")?;
    flow(FAR, MANY)?;
    passes(path)?;
    ensure!(fault("v0")?.contains("no longer cake"), "{}", fault("v0")?);
    let said = succeed("detach v0")?.words;
    ensure!(said.contains("v0"), "{said}");
    Ok(())
}

/// Filters in front and behind, and the clsact that they are in, which was there before.
fn beside_filters(path: &Path) -> Result<()> {
    shell("tc qdisc add dev v0 clsact")?;
    shell("tc filter add dev v0 egress prio 1 protocol all matchall action continue")?;
    shell("tc filter add dev v0 egress prio 100 protocol all matchall action ok")?;
    shell("tc filter add dev v0 ingress prio 5 protocol all matchall action ok")?;
    let theirs = Machine::now()?;
    succeed(ATTACH)?;
    let before = hits()?;
    told_apart("v0", |packets| flow(FAR, packets), || Packets::of_tins("v0"))?;
    passes(path)?;
    let after = hits()?;
    for (before, after) in before.iter().zip(&after) {
        let added = after - before;
        ensure!(added >= (FEW + MANY) as u64, "a filter of theirs saw {added} packets only");
    }
    succeed("detach v0")?;
    theirs.must_be_back().context("their filters and clsact stay")?;
    // One that comes later keeps the clsact, which was made for marks.
    shell("tc qdisc del dev v0 clsact")?;
    succeed(ATTACH)?;
    shell("tc filter add dev v0 egress prio 100 protocol all matchall action ok")?;
    succeed("detach v0")?;
    let left = shell("tc filter show dev v0 egress")?;
    ensure!(left.contains("matchall") && !left.contains("shortlane"), "{left}");
    // One in front that ends the way: nothing is marked, everything passes.
    shell("tc filter add dev v0 egress prio 1 protocol all matchall action ok")?;
    succeed(ATTACH)?;
    flow(FAR, MANY)?;
    passes(path)?;
    drained("v0")?;
    let long = Packets::of_tins("v0")?.long;
    ensure!(long == 0, "{long} were marked behind a filter that ends the way");
    succeed("detach v0")?;
    shell("tc qdisc del dev v0 clsact").map(|_| ())
}

/// Packets that each filter of theirs at the egress has seen.
fn hits() -> Result<Vec<u64>> {
    let text = shell("tc -s filter show dev v0 egress")?;
    let count = |line: &str| line.trim().strip_prefix("Sent ")?.split(' ').nth(2)?.parse().ok();
    let found: Vec<u64> = text.lines().filter_map(count).collect();
    ensure!(found.len() == 2, "{text}");
    Ok(found)
}

fn joined_queues_removed(path: &Path) -> Result<()> {
    shell("tc qdisc add dev v0 root handle 1: prio")?;
    succeed("attach v0 --rate 10mbit --join 1:1,1:3")?;
    shell("tc qdisc del dev v0 root")?;
    flow(FAR, MANY)?;
    passes(path)?;
    ensure!(fault("v0")?.contains("no longer prio"), "{}", fault("v0")?);
    succeed("detach v0").map(|_| ())
}

/// With its device everything is gone but a journal, which goes with the next command.
fn device_gone() -> Result<()> {
    let empty = Machine::now()?;
    let path = Path::new()?;
    succeed(ATTACH)?;
    drop(path);
    succeed("detach v0")?;
    empty.must_be_back().context("the device is gone")
}
