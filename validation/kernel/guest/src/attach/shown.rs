//! `show`: for people on 80 columns, and as a document with the same figures as `tc -s`; flows and
//! hosts by name.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::machine::Machine;
use super::{FAR, Path, shortlane, succeed};
use crate::command::run as shell;

pub(super) fn run() -> Result<()> {
    let path = Path::new()?;
    let before = Machine::now()?;
    let nothing: Value = serde_json::from_str(&succeed("show --json")?.output)?;
    ensure!(nothing["attached"].as_array().is_some_and(Vec::is_empty), "{nothing}");
    succeed("attach v0 --rate 10mbit --scheduler efd:threshold=10packets --overhead 24")?;
    shell("ping -c 5 -i 0.2 10.9.0.2")?;
    text()?;
    document()?;
    // A link elsewhere is none of this namespace's.
    let elsewhere = path.far.run(|| shortlane("show"))??;
    ensure!(elsewhere.output.is_empty() && elsewhere.status == 0, "{}", elsewhere.output);
    succeed("detach v0")?;
    before.must_be_back()?;
    by_name()
}

fn text() -> Result<()> {
    let all = succeed("show")?.output;
    let one = succeed("show v0")?.output;
    for text in [&all, &one] {
        let wide = text.lines().find(|line| line.chars().count() > 80);
        ensure!(wide.is_none(), "more than 80 columns: {wide:?}");
        for part in
            ["v0: efd, rate 10mbit", "efd:threshold=10packets", "overhead 24,", "short lane"]
        {
            ensure!(text.contains(part), "no '{part}' in\n{text}");
        }
    }
    Ok(())
}

fn document() -> Result<()> {
    // Until no packet comes between the two.
    let (document, tc) = loop {
        let tc = shell("tc -s -j qdisc show dev v0 root")?;
        let document = succeed("show v0 --json")?.output;
        if shell("tc -s -j qdisc show dev v0 root")? == tc {
            break (document, tc);
        }
    };
    let (document, tc): (Value, Value) =
        (serde_json::from_str(&document)?, serde_json::from_str(&tc)?);
    let shown = &document["attached"][0];
    let tc = tc.as_array().and_then(|all| all.first()).context("tc shows nothing")?;
    ensure!(shown["kind"] == tc["kind"] && shown["handle"] == tc["handle"], "{shown}\n{tc}");
    for name in ["bytes", "packets", "drops", "overlimits", "requeues", "backlog", "qlen"] {
        ensure!(shown["tc"][name] == tc[name], "{name}: {} here, {} in tc", shown["tc"], tc);
    }
    ensure!(tc["packets"].as_u64() >= Some(5), "{tc}");
    ensure!(shown["rate_bps"] == 10_000_000 && shown["overhead_bytes"] == 24, "{shown}");
    let lanes = shown["lanes"].as_array().context("no lanes")?;
    let sent: u64 = lanes.iter().filter_map(|lane| lane["sent_packets"].as_u64()).sum();
    let timed: u64 = lanes
        .iter()
        .filter_map(|lane| lane["sojourn"]["buckets"].as_array())
        .flatten()
        .filter_map(|bucket| bucket["packets"].as_u64())
        .sum();
    ensure!(Some(sent) == tc["packets"].as_u64() && timed == sent, "{sent}, {timed}, {tc}");
    ensure!(shown["lost"] == 0, "{shown}");
    Ok(())
}

/// Of `fq-lanes`, each flow with what was sent and dropped of it, and each host with its flows: in
/// all what the lanes have.
fn by_name() -> Result<()> {
    const SENT: [u64; 2] = [300, 3];
    succeed("attach v0 --rate 10mbit --scheduler fq-lanes:limit=100packets")?;
    let sockets = [UdpSocket::bind(("0.0.0.0", 0))?, UdpSocket::bind(("0.0.0.0", 0))?];
    for (socket, packets) in sockets.iter().zip(SENT) {
        for _ in 0..packets {
            socket.send_to(&[0; 1000], (FAR, 9))?;
        }
    }
    let status = settled()?;
    let flows = status["biggest_flows"].as_array().context("no flows")?;
    let number = |value: &Value| value.as_u64().with_context(|| format!("{value} is no number"));
    let all =
        |key: &str| -> Result<u64> { flows.iter().map(|flow| number(&flow["sent"][key])).sum() };
    let lanes = status["lanes"].as_array().context("no lanes")?;
    for (key, of_lane) in [("packets", "sent_packets"), ("bytes", "sent_bytes")] {
        let sent: u64 = lanes.iter().map(|lane| number(&lane[of_lane])).sum::<Result<_>>()?;
        ensure!(all(key)? == sent, "{} {key} of flows, {sent} of lanes: {status:#}", all(key)?);
    }
    for (socket, packets) in sockets.iter().zip(SENT) {
        let port = socket.local_addr()?.port();
        let is_it = |flow: &&Value| {
            flow["flow"]
                .as_str()
                .is_some_and(|name| name.contains(&format!(":{port} > {FAR}:9 udp")))
        };
        let flow = flows.iter().find(is_it).with_context(|| format!("no flow of {port}"))?;
        let (came, left) =
            (number(&flow["arrived"]["packets"])?, number(&flow["sent"]["packets"])?);
        ensure!(came == packets && left + number(&flow["dropped_packets"])? == packets, "{flow:#}");
        ensure!((left < packets) == (packets > 100), "{flow:#}");
        ensure!((number(&flow["standing"]["tier"])? > 0) == (packets > 100), "{flow:#}");
    }
    let hosts = status["busiest_hosts"].as_array().context("no hosts")?;
    let far = hosts.iter().find(|host| host["host"] == FAR).context("no host")?;
    ensure!(number(&far["flows"])? >= 2, "{far:#}");
    let shown = succeed("show v0")?.output;
    ensure!(shown.contains("busiest hosts") && shown.contains(" > 10.9.0.2:9 udp"), "{shown}");
    succeed("detach v0").map(drop)
}

/// What `show` tells once nothing is queued, and nothing has come meanwhile.
fn settled() -> Result<Value> {
    let begin = Instant::now();
    let mut before = Value::Null;
    loop {
        let document: Value = serde_json::from_str(&succeed("show v0 --json")?.output)?;
        let status = document["attached"][0].clone();
        if status["tc"] == before["tc"] && status["tc"]["qlen"] == 0 {
            return Ok(status);
        }
        ensure!(begin.elapsed() < Duration::from_secs(20), "it does not settle: {status:#}");
        before = status;
        thread::sleep(Duration::from_millis(50));
    }
}
