//! `kill -9` of a process that attaches, changes and detaches, at any time: what it leaves is a
//! qdisc at work, or nothing.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context, Result, bail, ensure};
use engine::LinkChanges;
use engine::kernel::{DIRECTORY, Instance, Order, attach, change, detach};
use sched::Rate;

use super::bench::{DISCIPLINES, Link, find, register, sent, shaping, wait_until};
use super::census::Census;
use crate::command;
use crate::namespace::ifindex;
use crate::traffic::{Frames, Sender, Varying};

/// Kills at times that are spread over all that the process does.
const KILLS: u32 = 60;
const RATE: Option<u64> = Some(10_000_000);

pub(crate) fn run(words: &[String]) -> Result<()> {
    if let [step, discipline] = words {
        return victim(step, discipline);
    }
    DISCIPLINES.iter().try_for_each(|discipline| all(discipline))
}

fn all(discipline: &str) -> Result<()> {
    let _link = Link::new(1)?;
    let census = Census::now();
    for (step, stays) in [("loaded", false), ("held", true), ("attached", true)] {
        kill(start(step, discipline)?)?;
        let found = Instance::find(ifindex("v0")?)?.is_some();
        ensure!(found == stays, "killed when {step}: a qdisc is there: {found}");
        println!(
            "killed: {discipline} when {step}: {}",
            if found { "it works" } else { "nothing is left" }
        );
        tidy_up(census)?;
    }
    at_any_time(discipline, census)
}

/// Starts the process, and waits until it says that it has come to a step.
fn start(step: &str, discipline: &str) -> Result<Child> {
    let program = env::current_exe()?;
    let words = ["killed", step, discipline];
    let mut child = Command::new(program).args(words).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
    ensure!(line.trim() == step, "the process said '{line}'");
    Ok(child)
}

fn kill(mut child: Child) -> Result<()> {
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// A qdisc that is there works. After `detach` nothing is left, whatever had been done.
fn tidy_up(census: Census) -> Result<()> {
    if Instance::find(ifindex("v0")?)?.is_some() {
        let before = sent(&find("v0")?.status());
        Sender::new("v0")?.send(&mut Frames::new(100, Varying::Ports(5)), 50)?;
        wait_until("packets leave", || Ok(sent(&find("v0")?.status()) >= before + 50))?;
    }
    // It says so if nothing was attached.
    let _ = detach("v0");
    let shown = command::run("tc qdisc show dev v0")?;
    ensure!(!shown.contains("shortlane"), "after detach there is {shown}");
    // The directory goes with the last journal.
    let left: Vec<_> = fs::read_dir(DIRECTORY).into_iter().flatten().collect();
    ensure!(left.is_empty(), "detach leaves {left:?} in {DIRECTORY}");
    census.wait_for_return()
}

/// Goes on until it is killed.
fn victim(step: &str, discipline: &str) -> Result<()> {
    match step {
        "loaded" => stay(step, register("shortlane", discipline, RATE, 1)?),
        "held" => {
            let registered = register("shortlane", discipline, RATE, 1)?;
            command::run("tc qdisc add dev v0 root shortlane")?;
            stay(step, registered)
        }
        "attached" => stay(step, attach_by_command(discipline)?),
        "all" => {
            println!("{step}");
            loop {
                round(discipline)?;
            }
        }
        other => bail!("there is no step '{other}'"),
    }
}

fn attach_by_command(discipline: &str) -> Result<()> {
    let spec = &discipline.parse()?;
    let link = shaping(RATE).link;
    attach(&Order {
        device: "v0",
        spec,
        link,
        replace: false,
        keep_offloads: false,
        per_queue: false,
    })?;
    Ok(())
}

fn round(discipline: &str) -> Result<()> {
    attach_by_command(discipline)?;
    for limit in 100..120 {
        let spec = format!("{discipline}:limit={limit}packets").parse()?;
        let link = LinkChanges { rate: Some(Rate(20_000_000)), ..LinkChanges::default() };
        change("v0", link, Some(&spec))?;
    }
    detach("v0")?;
    Ok(())
}

fn stay<T>(step: &str, _held: T) -> Result<()> {
    println!("{step}");
    thread::sleep(Duration::from_secs(600));
    Ok(())
}

/// Kills a process that attaches, changes and detaches over and over.
fn at_any_time(discipline: &str, census: Census) -> Result<()> {
    let begin = Instant::now();
    round(discipline)?;
    let once = begin.elapsed();
    let mut attached = 0;
    for number in 0..KILLS {
        let child = start("all", discipline)?;
        thread::sleep(once * 2 * number / KILLS);
        kill(child)?;
        attached += u32::from(Instance::find(ifindex("v0")?)?.is_some());
        tidy_up(census)?;
    }
    println!(
        "killed: {discipline} {KILLS} times within {:?}, {attached} times while attached",
        once * 2
    );
    ensure!(attached > 0 && attached < KILLS, "the times were not spread");
    Ok(())
}
