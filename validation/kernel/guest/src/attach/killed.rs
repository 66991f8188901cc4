//! `kill -9` of the command at any time: `detach`, or the next `attach`, repairs what it left.
//!
//! What is left is told as well, in the words of the model of journals: `validation/journal/spin.py
//! --log` looks whether the model has each of these states.

use std::fs;
use std::path::Path as FilePath;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::machine::Machine;
use super::{Path, command, root_kind, shortlane, succeed};
use crate::command::run as shell;

const ATTACH: &str = "attach v0 --rate 10mbit --replace";
/// Of each command, spread over all that it does.
pub(super) const KILLS: u32 = 25;

pub(super) fn run() -> Result<()> {
    let _path = Path::new()?;
    shell("ip link add w0 type veth peer name w1")?;
    shell("ethtool -K w0 gro on")?;
    shell("sysctl -w net.ipv4.ip_forward=1")?;
    shell("tc qdisc add dev v0 root handle 5: tbf rate 50mbit burst 10kb latency 50ms")?;
    let before = Machine::now()?;
    let begin = Instant::now();
    succeed(ATTACH)?;
    let attaching = begin.elapsed();
    let begin = Instant::now();
    succeed("detach v0")?;
    let detaching = begin.elapsed();
    before.must_be_back()?;
    while_attaching(&before, attaching)?;
    once_it_has_begun(&before)?;
    while_changing(&before, detaching)?;
    while_detaching(&before, detaching)?;
    shell("sysctl -w net.ipv4.ip_forward=0")?;
    shell("ip link del w0")?;
    Ok(())
}

pub(super) fn start(arguments: &str) -> Result<Child> {
    Ok(command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

/// Kills it; tells whether it was still there.
pub(super) fn kill(mut child: Child) -> Result<bool> {
    let alive = child.try_wait()?.is_none();
    child.kill()?;
    child.wait()?;
    Ok(alive)
}

/// At times that are spread over one and a half of what it takes.
pub(super) fn kill_at(arguments: &str, number: u32, takes: Duration) -> Result<bool> {
    let child = start(arguments)?;
    thread::sleep(takes * 3 * number / (2 * KILLS));
    kill(child)
}

pub(super) fn journalled() -> bool {
    FilePath::new(engine::kernel::DIRECTORY)
        .read_dir()
        .is_ok_and(|files| files.flatten().any(|file| file.file_name() != "."))
}

/// The device, its journal, and the offload that it shares with others, as `device.pml` has them.
fn tell_what_is_left() -> Result<()> {
    let root = match root_kind("v0")?.as_str() {
        "shortlane" => "ours",
        "tbf" => "configured",
        _ => "standard",
    };
    let journal = match fs::read_dir(engine::kernel::DIRECTORY) {
        Ok(files) => files
            .flatten()
            .map(|file| file.path())
            .find(|path| path.extension().is_some_and(|extension| extension == "json")),
        Err(_) => None,
    };
    let journal = journal.map(fs::read).transpose()?;
    let journal: Option<Value> = journal.map(|text| serde_json::from_slice(&text)).transpose()?;
    let (written, journal) = (journal.is_some(), journal.unwrap_or_default());
    let former = if journal["former"].is_null() { "standard" } else { "configured" };
    let receivers = journal["offloads"]["receivers"].as_array();
    let switched = receivers.is_some_and(|receivers| !receivers.is_empty());
    let offload = shell("ethtool -k w0")?.contains("generic-receive-offload: on");
    println!(
        "left: root={root} written={written} former={former} switched={switched} offload={offload}"
    );
    Ok(())
}

pub(super) fn repaired(before: &Machine) -> Result<()> {
    // It says so if there is nothing to repair.
    let said = shortlane("detach v0")?;
    ensure!(said.status == 0 || said.words.contains("not attached"), "{}", said.words);
    before.must_be_back()
}

fn while_attaching(before: &Machine, takes: Duration) -> Result<()> {
    let mut killed = 0;
    for number in 0..KILLS {
        killed += u32::from(kill_at(ATTACH, number, takes)?);
        tell_what_is_left()?;
        repaired(before)?;
    }
    ensure!(killed > KILLS / 3, "only {killed} of {KILLS} came in time");
    println!("killed: attach, {killed} times at any time: repaired");
    Ok(())
}

/// From the first file on things happen fast: kills there, at times that grow by little.
fn once_it_has_begun(before: &Machine) -> Result<()> {
    let (mut unfinished, mut attached) = (0, 0);
    for number in 0..KILLS {
        let mut child = start(ATTACH)?;
        while !journalled() && child.try_wait()?.is_none() {
            std::hint::spin_loop();
        }
        thread::sleep(Duration::from_micros(u64::from(number) * 500));
        kill(child)?;
        tell_what_is_left()?;
        match root_kind("v0")?.as_str() {
            "shortlane" => attached += 1,
            _ => unfinished += 1,
        }
        if number % 4 == 0 {
            // The next one to come repairs as well.
            succeed(ATTACH)?;
        }
        repaired(before)?;
    }
    ensure!(unfinished > 0 && attached > 0, "{unfinished} before, {attached} after: not spread");
    println!(
        "killed: attach, {unfinished} times just before the qdisc was there, {attached} after"
    );
    Ok(())
}

fn while_changing(before: &Machine, takes: Duration) -> Result<()> {
    let mut killed = 0;
    for number in 0..KILLS {
        succeed(ATTACH)?;
        let change = "change v0 --rate 1gbit --scheduler fq-lanes:limit=200packets";
        killed += u32::from(kill_at(change, number, takes)?);
        ensure!(root_kind("v0")? == "shortlane", "the qdisc is gone");
        repaired(before)?;
    }
    println!("killed: change, {killed} times: repaired");
    Ok(())
}

fn while_detaching(before: &Machine, takes: Duration) -> Result<()> {
    let mut killed = 0;
    for number in 0..KILLS {
        succeed(ATTACH)?;
        killed += u32::from(kill_at("detach v0", number, takes)?);
        tell_what_is_left()?;
        repaired(before)?;
    }
    println!("killed: detach, {killed} times: repaired");
    Ok(())
}
