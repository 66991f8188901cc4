//! `show`: for people on 80 columns, and as a document with the same figures as `tc -s`.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::machine::Machine;
use super::{Path, shortlane, succeed};
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
    before.must_be_back()
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
