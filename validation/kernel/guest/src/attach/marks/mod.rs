//! Marks in front of the kernel's own queues, by the command, on any kernel since 5.15: the queues
//! that are made, those that are joined, and faults around them.

mod crowd;
mod joined;
mod killed;
mod made;
mod others;
mod tcx;

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netdev::netns::Namespace;
use serde_json::Value;

use super::{Part, Path, shortlane, succeed};
use crate::command::run as shell;

/// At which a flow is long after 110 kB.
const RATE: u64 = 10_000_000;
const PACKET: usize = 1000;
/// Packets of which none is beyond the threshold.
const FEW: usize = 100;
/// Packets of which most are.
const MANY: usize = 300;
/// So many of [`MANY`]: 110 kB are 105 packets, a second's allowance is 75 more, and the threshold may
/// have fallen to 22 kB, as others are short as well.
const LONG: std::ops::RangeInclusive<u64> = 110..=MANY as u64 - 20;

/// All of it, or the parts that are named.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let parts: [(&str, Part); 5] = [
        ("made", made::run),
        ("joined", joined::run),
        ("others", others::run),
        ("crowd", crowd::run),
        ("killed", killed::run),
    ];
    super::run_parts(&parts, names)
}

/// Sends packets of one flow, a new one, to an address, from the namespace of the calling thread.
fn flow(to: &str, packets: usize) -> Result<()> {
    // Without a connection, which would be told that nobody is at that port.
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    for _ in 0..packets {
        socket.send_to(&[0; PACKET], (to, 9))?;
    }
    Ok(())
}

/// The same from elsewhere.
fn flow_from(from: &Namespace, to: &str, packets: usize) -> Result<()> {
    from.run(|| flow(to, packets))?
}

/// Packets that `tc` says a device's queues have had, of short flows and of long ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packets {
    short: u64,
    long: u64,
}

impl Packets {
    /// By the names of CAKE's tins, as `tc` writes them.
    fn of_tins(device: &str) -> Result<Self> {
        let text = shell(&format!("tc -s qdisc show dev {device} root"))?;
        let names = text.lines().find(|line| line.contains("Best Effort")).context("no tins")?;
        let names: Vec<&str> =
            names.split("  ").map(str::trim).filter(|name| !name.is_empty()).collect();
        let counts = text.lines().find_map(|line| line.trim().strip_prefix("pkts"));
        let counts: Vec<u64> = counts
            .context("no pkts")?
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        ensure!(names.len() == counts.len(), "{text}");
        let of = |name| names.iter().zip(&counts).find(|(there, _)| **there == name);
        let (short, long) = (of("Best Effort"), of("Bulk"));
        Ok(Self { short: *short.context("names")?.1, long: *long.context("names")?.1 })
    }

    /// Of two classes, by their minors.
    fn of_classes(device: &str, kind: &str, minors: [u32; 2]) -> Result<Self> {
        let text = shell(&format!("tc -s class show dev {device}"))?;
        let sent = |minor: u32| -> Result<u64> {
            let is_it = |line: &&str| {
                let name = line.strip_prefix(&format!("class {kind} "));
                let name = name.and_then(|rest| rest.split(' ').next());
                name.and_then(|name| name.split_once(':'))
                    .is_some_and(|(_, it)| it == format!("{minor:x}"))
            };
            let mut lines = text.lines().skip_while(|line| !is_it(line)).skip(1);
            // Sent 123 bytes 4 pkt (dropped 0, ...
            let words = lines.next().with_context(|| format!("no class {minor}: {text}"))?;
            let packets = words.split_whitespace().nth(3).context("no packets")?;
            Ok(packets.parse()?)
        };
        Ok(Self { short: sent(minors[0])?, long: sent(minors[1])? })
    }
}

/// Waits until nothing is queued on a device.
fn drained(device: &str) -> Result<()> {
    let begin = Instant::now();
    loop {
        let text = shell(&format!("tc -s qdisc show dev {device} root"))?;
        if text.contains("backlog 0b 0p") {
            return Ok(());
        }
        ensure!(begin.elapsed() < Duration::from_secs(20), "it does not drain: {text}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A flow of few packets, of which none is long, and one of many, of which most are: as `tc` tells
/// by `count`, and as `show` does.
fn told_apart(
    device: &str,
    send: impl Fn(usize) -> Result<()>,
    count: impl Fn() -> Result<Packets>,
) -> Result<()> {
    let before = count()?;
    send(FEW)?;
    drained(device)?;
    let short = count()?;
    ensure!(short.long == before.long, "a short flow in the class of long ones: {short:?}");
    ensure!(short.short >= before.short + FEW as u64, "{before:?}, {short:?}");
    send(MANY)?;
    drained(device)?;
    let long = count()?;
    let added = long.long - short.long;
    ensure!(LONG.contains(&added), "{added} of {MANY} were long");
    Ok(())
}

/// The one thing that is attached.
fn only(device: &str) -> Result<Value> {
    let document: Value = serde_json::from_str(&succeed(&format!("show {device} --json"))?.output)?;
    let all = document["attached"].as_array().context("no list")?;
    ensure!(all.len() == 1, "{all:#?}");
    Ok(all[0].clone())
}

fn number(value: &Value) -> Result<u64> {
    value.as_u64().with_context(|| format!("{value} is no number"))
}

/// What `doctor` says is wrong with marks.
fn fault(device: &str) -> Result<String> {
    let document: Value =
        serde_json::from_str(&shortlane(&format!("doctor {device} --json"))?.output)?;
    let findings = document["findings"].as_array().context("no findings")?;
    let wrong = findings.iter().filter(|it| it["check"] == "marks" && it["result"] == "problem");
    Ok(wrong.filter_map(|finding| finding["found"].as_str()).collect())
}

/// Whether packets get from here to the far end and back. One that is lost is sent again: a queue of
/// CAKE that is used for the first time drops the second one that it is late for.
fn passes(path: &Path) -> Result<()> {
    const PORT: u16 = 10;
    let there = path.far.run(|| UdpSocket::bind((super::FAR, PORT)))??;
    let here = UdpSocket::bind((super::HERE, PORT))?;
    arrive(&here, &there).context("sent")?;
    arrive(&there, &here).context("received")
}

fn arrive(from: &UdpSocket, to: &UdpSocket) -> Result<()> {
    const TRIES: u32 = 5;
    to.set_read_timeout(Some(Duration::from_secs(2)))?;
    let address = to.local_addr()?;
    for n in 0..10_u8 {
        let arrives = || {
            // What a queue refuses is lost as well.
            let _ = from.send_to(&[n], address);
            to.recv(&mut [0xff]).is_ok()
        };
        ensure!((0..TRIES).any(|_| arrives()), "packet {n} does not arrive");
    }
    Ok(())
}
