//! More flows than the table has entries, and changes under load.

use std::fs;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{setsockopt, sockopt};

use super::super::machine::Machine;
use super::super::{FAR, Path, succeed};
use super::{Packets, drained, flow, number, only, passes, told_apart};
use crate::traffic::{Frames, Sender, Varying};

/// Entries of the table.
const BOUND: u64 = 32_768;
/// Flows of one packet each: so many times 2,000.
const FLOOD: (u64, u64) = (60, 2_000);
const PORT: u16 = 11;
const CHANGES: [&str; 6] = [
    "--rate 30mbit",
    "--rate 8mbit --overhead 24",
    "--rate 50mbit",
    "--overhead 0",
    "--rate 20mbit",
    "--rate 12mbit --overhead 18",
];

pub(super) fn run() -> Result<()> {
    let path = Path::new()?;
    let before = Machine::now()?;
    flooded(&path).context("a flood of new flows")?;
    before.must_be_back()?;
    for queues in ["cake", "prio", "htb"] {
        changed(&path, queues).with_context(|| format!("changes of {queues} under load"))?;
        before.must_be_back()?;
    }
    Ok(())
}

/// The table is bounded, memory stays, packets pass, and afterwards flows are told apart as ever.
fn flooded(path: &Path) -> Result<()> {
    succeed("attach v0 --rate 10mbit --engine marks --queues cake")?;
    let sender = Sender::new("v0")?;
    let mut frames = Frames::new(100, Varying::Addresses);
    let mut batch = || sender.send(&mut frames, FLOOD.1);
    for _ in 0..FLOOD.0 / 4 {
        batch()?;
    }
    let memory = used_kb()?;
    for _ in FLOOD.0 / 4..FLOOD.0 {
        batch()?;
    }
    let grown = used_kb()?.saturating_sub(memory);
    let status = only("v0")?;
    let (flows, created) = (number(&status["flows"])?, number(&status["flows_created"])?);
    // A table that forgets the least recently used may be somewhat less than full.
    ensure!((BOUND / 2..=BOUND).contains(&flows), "{flows} flows: {status:#}");
    ensure!(created + number(&status["flows_untracked"])? >= FLOOD.0 * FLOOD.1, "{status:#}");
    ensure!(number(&status["flow_bound"])? == BOUND, "{status:#}");
    ensure!(grown < 4_000, "{grown} KB more after {} flows", FLOOD.0 * FLOOD.1);
    drained("v0")?;
    passes(path)?;
    // Until short flows have paid for more than their share.
    thread::sleep(Duration::from_millis(1100));
    told_apart("v0", |packets| flow(FAR, packets), || Packets::of_tins("v0"))?;
    succeed("detach v0")?;
    println!("crowd: {created} flows of one packet each, {flows} in the table, {grown} KB more");
    Ok(())
}

/// Memory of the kernel's that is in use.
fn used_kb() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let of = |name: &str| -> Result<u64> {
        let line = text.lines().find(|line| line.starts_with(name)).context("no such line")?;
        Ok(line.split_whitespace().nth(1).context("no number")?.parse()?)
    };
    Ok(of("SUnreclaim:")? + of("Percpu:")? + of("VmallocUsed:")?)
}

/// What is sent arrives or is counted as dropped, through every change.
fn changed(path: &Path, queues: &str) -> Result<()> {
    succeed(&format!("attach v0 --rate 20mbit --engine marks --queues {queues}"))?;
    let receiver = path.far.run(|| UdpSocket::bind((FAR, PORT)))??;
    setsockopt(&receiver, sockopt::RcvBufForce, &(64 << 20))?;
    receiver.set_read_timeout(Some(Duration::from_secs(1)))?;
    let over = AtomicBool::new(false);
    let (sent, arrived) = thread::scope(|scope| -> Result<(u64, u64)> {
        let sender = scope.spawn(|| flood(&over));
        let counter = scope.spawn(|| count(&receiver, &over));
        let changed = (0..2).flat_map(|_| CHANGES).try_for_each(|change| -> Result<()> {
            succeed(&format!("change v0 {change}"))?;
            // Both classes have something of everything.
            thread::sleep(Duration::from_millis(100));
            Ok(())
        });
        over.store(true, Ordering::Relaxed);
        let (sent, arrived) = (sender.join().expect("no panic"), counter.join().expect("no panic"));
        changed?;
        Ok((sent?, arrived))
    })?;
    let status = only("v0")?;
    let dropped = number(&status["tc"]["drops"])?;
    ensure!(arrived + dropped >= sent, "{sent} sent, {arrived} arrived, {dropped} dropped");
    ensure!(arrived > sent / 10, "{sent} sent, only {arrived} arrived");
    ensure!(status["rate_bps"] == 12_000_000, "{status:#}");
    ensure!(
        status["scheduler"].as_str().is_some_and(|it| it.contains("=132000bytes")),
        "{status:#}"
    );
    succeed("detach v0")?;
    println!(
        "crowd: {queues}: {sent} packets through {} changes, {dropped} dropped",
        2 * CHANGES.len()
    );
    Ok(())
}

/// As much as the socket's own buffer lets through.
fn flood(over: &AtomicBool) -> Result<u64> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect((FAR, PORT))?;
    let mut sent = 0;
    while !over.load(Ordering::Relaxed) {
        // A queue that refuses it counts it as dropped.
        let _ = socket.send(&[0; 1000]);
        sent += 1;
    }
    Ok(sent)
}

fn count(receiver: &UdpSocket, over: &AtomicBool) -> u64 {
    let (mut packet, mut arrived) = ([0; 1500], 0);
    loop {
        match receiver.recv(&mut packet) {
            Ok(_) => arrived += 1,
            Err(_) if over.load(Ordering::Relaxed) => return arrived,
            Err(_) => {}
        }
    }
}
