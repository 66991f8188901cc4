//! The command `shortlane` as a user calls it, on devices of a real kernel.

pub(crate) mod ecn;
mod gone;
mod ingress;
mod killed;
mod live;
mod machine;
pub(crate) mod marks;
pub(crate) mod nat;
mod offloads;
pub(crate) mod pacing;
pub(crate) mod queues;
mod refusals;
mod restored;
mod shown;

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use netdev::link::{Home, Links};
use netdev::netns::Namespace;
use serde_json::Value;

use crate::command::run as shell;

type Part = fn() -> Result<()>;

/// All of it, or the parts that are named.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let parts: [(&str, Part); 8] = [
        ("shown", shown::run),
        ("restored", restored::run),
        ("offloads", offloads::run),
        ("ingress", ingress::run),
        ("live", live::run),
        ("refusals", refusals::run),
        ("gone", gone::run),
        ("killed", killed::run),
    ];
    run_parts(&parts, names)
}

fn run_parts(parts: &[(&str, Part)], names: &[String]) -> Result<()> {
    // Devices that come with these modules would come in the middle of a test.
    shell("modprobe dummy numdummies=0")?;
    shell("modprobe ifb numifbs=0")?;
    for (name, part) in parts {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            part().with_context(|| (*name).to_owned())?;
            println!("{name}: as it should be");
        }
    }
    Ok(())
}

/// What a command has said.
struct Said {
    status: i32,
    output: String,
    /// Standard error.
    words: String,
}

/// Runs `shortlane` with these arguments, apart by spaces.
fn shortlane(arguments: &str) -> Result<Said> {
    let output = command(arguments).output().context("shortlane")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Said {
        status: output.status.code().with_context(|| format!("{arguments}: killed"))?,
        output: text(&output.stdout),
        words: text(&output.stderr),
    })
}

fn command(arguments: &str) -> Command {
    let mut command = Command::new("shortlane");
    command.args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

/// The same, and it must succeed.
fn succeed(arguments: &str) -> Result<Said> {
    let said = shortlane(arguments)?;
    ensure!(said.status == 0, "shortlane {arguments}: status {}: {}", said.status, said.words);
    Ok(said)
}

/// The same, and it must be refused, with this status and in one line that has all these words.
fn refused(arguments: &str, status: i32, words: &[&str]) -> Result<()> {
    let said = shortlane(arguments)?;
    ensure!(said.status == status, "{arguments}: status {}: {}", said.status, said.words);
    ensure!(said.words.trim().lines().count() == 1, "{arguments}: not one line: {}", said.words);
    for word in words {
        ensure!(said.words.contains(word), "{arguments}: no '{word}' in: {}", said.words);
    }
    Ok(())
}

/// Has the kernel keep account of what programs take.
fn keep_account_of_programs() -> Result<()> {
    shell("sysctl -w kernel.bpf_stats_enabled=1").map(drop)
}

/// Prints what a call of a program takes: nanoseconds, which on a counted clock are instructions.
fn print_cost_of(program: &str) -> Result<()> {
    let shown: Value = serde_json::from_str(&shell("bpftool prog show --json")?)?;
    let all = shown.as_array().context("no list of programs")?;
    let found = all.iter().find(|one| one["name"] == program).context("no such program")?;
    let number = |key: &str| found[key].as_u64().unwrap_or(0);
    let calls = number("run_cnt").max(1);
    println!("{program}: {} ns a call, {calls} calls", number("run_time_ns") / calls);
    Ok(())
}

/// `v0` here, and its peer in a namespace of its own; gone with this.
struct Path {
    far: Namespace,
}

const HERE: &str = "10.9.0.1";
const FAR: &str = "10.9.0.2";

impl Path {
    fn new() -> Result<Self> {
        let far = Namespace::new()?;
        let mut links = Links::open()?;
        links.add_veth("v0", "v1", Home::Namespace(&far))?;
        links.add_address("v0", HERE.parse()?, 24)?;
        links.set_up("v0")?;
        far.run(|| -> Result<()> {
            let mut links = Links::open()?;
            links.add_address("v1", FAR.parse()?, 24)?;
            Ok(links.set_up("v1")?)
        })??;
        // So that no packet waits for an address to be resolved.
        shell("ping -c 1 -W 5 10.9.0.2")?;
        Ok(Self { far })
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        // A test may have removed it.
        let _ = shell("ip link del v0");
    }
}

/// The root qdisc's kind.
fn root_kind(device: &str) -> Result<String> {
    let shown = shell(&format!("tc qdisc show dev {device}"))?;
    let root = shown.lines().find(|line| line.contains(" root ")).context("no root")?;
    Ok(root.split_whitespace().nth(1).context("no kind")?.to_owned())
}
