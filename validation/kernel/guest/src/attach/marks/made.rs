//! Queues that are made: each kind, both directions, changed, and gone again without a trace.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::super::machine::Machine;
use super::super::{FAR, HERE, Path, refused, succeed};
use super::{
    LONG, Packets, RATE, drained, fault, flow, flow_from, number, only, passes, told_apart,
};
use crate::command::run as shell;

/// Counts a device's packets.
type Count = fn(&str) -> Result<Packets>;

/// Kinds of queues, the qdisc at their root, and what counts their packets.
const QUEUES: [(&str, &str, Count); 3] = [
    ("cake", "cake", Packets::of_tins),
    ("prio", "tbf", |device| Packets::of_classes(device, "prio", [1, 2])),
    ("htb", "htb", |device| Packets::of_classes(device, "htb", [2, 3])),
];

pub(super) fn run() -> Result<()> {
    for (queues, root, count) in QUEUES {
        sent(queues, root, count).with_context(|| queues.to_owned())?;
        received(queues, count).with_context(|| format!("{queues}, --ingress"))?;
    }
    in_place_of_somebodys()
}

fn sent(queues: &str, root: &str, count: Count) -> Result<()> {
    let _path = Path::new()?;
    let before = Machine::now()?;
    let attach = format!("attach v0 --rate 10mbit --engine marks --queues {queues}");
    succeed(&attach)?;
    let early = beside_lanes(&settled(count)?.1)?;
    told_apart("v0", |packets| flow(FAR, packets), || count("v0"))?;
    let status = only("v0")?;
    ensure!(status["engine"] == "marks" && status["kind"] == root, "{status:#}");
    ensure!(status["rate_bps"] == RATE && status["demoted"] == 1, "{status:#}");
    let text = format!("marks:queues={queues},threshold=110000bytes");
    ensure!(status["scheduler"] == text, "{status:#}");
    agrees(queues, count, early)?;
    let shown = succeed("show v0")?.output;
    ensure!(shown.contains("v0: marks, rate 10mbit"), "{shown}");
    ensure!(fault("v0")?.is_empty(), "{}", fault("v0")?);
    refused(&attach, 1, &["v0", "already"])?;
    changed(queues)?;
    succeed("detach v0")?;
    before.must_be_back()
}

/// What `tc` and `show` tell of `v0` with no packet between the two.
fn settled(count: Count) -> Result<(Packets, Value)> {
    loop {
        drained("v0")?;
        let tc = count("v0")?;
        let status = only("v0")?;
        if count("v0")? == tc {
            return Ok((tc, status));
        }
    }
}

/// Packets that the root has sent and no lane: those that came when it had no classes yet.
fn beside_lanes(status: &Value) -> Result<u64> {
    let lanes = status["lanes"].as_array().context("no lanes")?;
    let sent = lanes.iter().map(|lane| number(&lane["sent_packets"])).sum::<Result<u64>>()?;
    let all = number(&status["tc"]["packets"])?;
    all.checked_sub(sent).with_context(|| format!("{sent} packets sent by lanes: {status:#}"))
}

/// `show` has the packets that `tc` has, but for a few early ones; nothing is queued.
fn agrees(queues: &str, count: Count, early: u64) -> Result<()> {
    let (tc, status) = settled(count)?;
    let lanes = status["lanes"].as_array().context("no lanes")?;
    let of = |lane: usize, what: &str| number(&lanes[lane][what]);
    // CAKE counts what arrives, the others what leaves.
    let what = if queues == "cake" { "enqueued_packets" } else { "sent_packets" };
    let shown = Packets { short: of(0, what)?, long: of(1, what)? };
    ensure!(shown.long == tc.long, "{shown:?} is shown, {tc:?} in tc");
    // Lane 0 of CAKE has the tin Voice as well.
    ensure!(shown.short >= tc.short, "{shown:?} is shown, {tc:?} in tc");
    let beside = beside_lanes(&status)?;
    ensure!(beside == early, "{beside} packets by the root alone, {early} before: {status:#}");
    by_name(&status)?;
    let hosts = status["busiest_hosts"].as_array().context("no hosts")?;
    let named: Vec<_> = hosts.iter().filter_map(|host| host["host"].as_str()).collect();
    let expected: &[&str] = if queues == "cake" { &[FAR] } else { &[] };
    ensure!(named == expected, "{hosts:#?}");
    Ok(())
}

/// The long flow, with its packets since it became one.
fn by_name(status: &Value) -> Result<()> {
    let flows = status["biggest_flows"].as_array().context("no flows")?;
    let [flow] = &flows[..] else { bail!("not one long flow: {flows:#?}") };
    let name = flow["flow"].as_str().context("no name")?;
    let (from, to) = (format!("{HERE}:"), format!(" > {FAR}:"));
    ensure!(name.starts_with(&from) && name.contains(&to) && name.ends_with(" udp"), "{flow:#}");
    ensure!(flow["lane"] == 1 && LONG.contains(&number(&flow["arrived"]["packets"])?), "{flow:#}");
    let shown = succeed("show v0")?.output;
    ensure!(shown.contains("long flows") && shown.contains(name), "{shown}");
    Ok(())
}

/// Another rate, for the queues and for the rule.
fn changed(queues: &str) -> Result<()> {
    succeed("change v0 --rate 20mbit --overhead 18")?;
    let status = only("v0")?;
    let text = format!("marks:queues={queues},threshold=220000bytes");
    ensure!(status["scheduler"] == text && status["rate_bps"] == 2 * RATE, "{status:#}");
    ensure!(status["demoted"] == 1, "what was counted is gone: {status:#}");
    let tc = shell("tc qdisc show dev v0")? + &shell("tc class show dev v0")?;
    ensure!(tc.contains("20Mbit") && status["overhead_bytes"] == 18, "{tc}, {status:#}");
    Ok(())
}

/// What a device receives, on an ifb.
fn received(queues: &str, count: Count) -> Result<()> {
    let path = Path::new()?;
    let before = Machine::now()?;
    succeed(&format!("attach v0 --ingress 10mbit --rate 30mbit --engine marks --queues {queues}"))?;
    let links = shell("ip -br link show type ifb")?;
    let ifb = links.split_whitespace().next().context("no ifb")?;
    told_apart(ifb, |packets| flow_from(&path.far, HERE, packets), || count(ifb))?;
    succeed("change v0 --ingress 5mbit")?;
    let shown = succeed("show v0")?.output;
    ensure!(shown.contains("5mbit") && shown.contains("30mbit"), "{shown}");
    passes(&path)?;
    succeed("detach v0")?;
    before.must_be_back()
}

/// The root that somebody has configured is back after `detach`.
fn in_place_of_somebodys() -> Result<()> {
    let _path = Path::new()?;
    shell("tc qdisc add dev v0 root handle 5: tbf rate 50mbit burst 10kb latency 50ms")?;
    let before = Machine::now()?;
    refused("attach v0 --rate 10mbit --engine marks", 1, &["configured", "--replace"])?;
    before.must_be_back().context("a refusal")?;
    succeed("attach v0 --rate 10mbit --engine marks --replace")?;
    succeed("detach v0")?;
    before.must_be_back()
}
