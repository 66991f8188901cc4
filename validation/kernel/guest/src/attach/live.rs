//! Changes while packets are queued: each of them arrives.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::Value;

use super::{FAR, Path, refused, succeed};

const PORT: u16 = 9;
const CHANGES: [&str; 8] = [
    "--rate 30mbit",
    "--scheduler efd:threshold=2packets",
    "--scheduler efd:limit=1000packets",
    "--rate 8mbit --overhead 24",
    "--scheduler efd:low-share=0.5",
    "--burst-time 2ms",
    "--scheduler efd:threshold=40packets,limit=400packets",
    "--rate 20mbit --overhead 0",
];

pub(super) fn run() -> Result<()> {
    let path = Path::new()?;
    succeed("attach v0 --rate 20mbit --scheduler efd")?;
    let receiver = path.far.run(|| UdpSocket::bind((FAR, PORT)))??;
    setsockopt(&receiver, sockopt::RcvBufForce, &(64 << 20))?;
    receiver.set_read_timeout(Some(Duration::from_secs(1)))?;
    let (over, queued) = (AtomicBool::new(false), AtomicU64::new(0));
    let (sent, arrived) = thread::scope(|scope| -> Result<(u64, u64)> {
        let sender = scope.spawn(|| flood(&over));
        let counter = scope.spawn(|| count(&receiver, &over));
        let changed = (0..3).flat_map(|_| CHANGES).try_for_each(|change| -> Result<()> {
            succeed(&format!("change v0 {change}"))?;
            let now = status()?;
            queued.fetch_max(now["tc"]["qlen"].as_u64().unwrap_or(0), Ordering::Relaxed);
            Ok(())
        });
        over.store(true, Ordering::Relaxed);
        let sent = sender.join().expect("no panic")?;
        let arrived = counter.join().expect("no panic")?;
        changed.map(|()| (sent, arrived))
    })?;
    let queued = queued.into_inner();
    ensure!(queued > 20, "only {queued} packets were ever queued: the changes met no load");
    ensure!(arrived == sent, "{arrived} of {sent} packets arrived");
    what_is_not_given_stays()?;
    idleness_gives_no_burst()?;
    for engine in ["kernel --burst-time 50ms", "marks --queues cake"] {
        the_rate_holds_while_it_changes(engine)?;
    }
    println!(
        "live: {sent} packets through {} changes, up to {queued} queued: all arrived",
        3 * CHANGES.len()
    );
    Ok(())
}

fn status() -> Result<Value> {
    let document: Value = serde_json::from_str(&succeed("show v0 --json")?.output)?;
    Ok(document["attached"][0].clone())
}

/// As much as the socket's own buffer lets through: fewer packets than any limit here.
fn flood(over: &AtomicBool) -> io::Result<u64> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect((FAR, PORT))?;
    let mut sent = 0u64;
    while !over.load(Ordering::Relaxed) {
        socket.send(&[0; 1000])?;
        sent += 1;
    }
    Ok(sent)
}

fn count(receiver: &UdpSocket, over: &AtomicBool) -> io::Result<u64> {
    let (mut packet, mut arrived) = ([0; 1500], 0);
    loop {
        match receiver.recv(&mut packet) {
            Ok(_) => arrived += 1,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if over.load(Ordering::Relaxed) {
                    return Ok(arrived);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn what_is_not_given_stays() -> Result<()> {
    let begin = Instant::now();
    succeed("change v0 --rate 50mbit --scheduler efd:threshold=7packets --overhead 10")?;
    succeed("change v0 --scheduler efd:limit=200packets")?;
    succeed("change v0 --burst-time 3ms")?;
    let now = status()?;
    let text = now["scheduler"].as_str().context("no scheduler")?;
    ensure!(text.contains("threshold=7packets") && text.contains("limit=200packets"), "{text}");
    ensure!(now["rate_bps"] == 50_000_000 && now["overhead_bytes"] == 10, "{now}");
    ensure!(now["burst_ns"] == 3_000_000, "{now}");
    ensure!(now["uptime_ns"].as_u64() > Some(begin.elapsed().as_nanos() as u64), "a new qdisc");
    refused("change v0 --scheduler sb-sh", 2, &["cannot take the place of", "attach it anew"])?;
    refused("change v0 --scheduler efd:limit=100000packets", 2, &["1024 packets at most"])?;
    refused("change v0", 2, &["nothing to change"])?;
    let after = status()?;
    ensure!(after["scheduler"] == now["scheduler"], "a refused change has changed it: {after}");
    succeed("detach v0").map(|_| ())
}

/// A shaper that could catch up by all of a burst does not do so for a link that was idle.
fn idleness_gives_no_burst() -> Result<()> {
    const BURST: u64 = 40;
    for scheduler in ["efd", "fq-lanes"] {
        succeed(&format!("attach v0 --rate 10mbit --burst-time 100ms --scheduler {scheduler}"))?;
        let socket = UdpSocket::bind(("0.0.0.0", 0))?;
        socket.connect((FAR, PORT))?;
        thread::sleep(Duration::from_millis(300));
        for _ in 0..BURST {
            socket.send(&[0; 1000])?;
        }
        thread::sleep(Duration::from_millis(300));
        let status = status()?;
        let paced = status["paced"].as_u64().context("paced")?;
        ensure!(paced > BURST / 2, "{scheduler}: {paced} of {BURST} packets waited: {status}");
        succeed("detach v0")?;
    }
    Ok(())
}

/// A change of rate gives no burst, nor does it forgive what is on the link: whoever follows a link
/// changes it ten times a second.
fn the_rate_holds_while_it_changes(engine: &str) -> Result<()> {
    const RATE: f64 = 10e6;
    const SPAN: Duration = Duration::from_secs(3);
    succeed(&format!("attach v0 --rate 10mbit --engine {engine}"))?;
    let over = AtomicBool::new(false);
    let (changes, rate) = thread::scope(|scope| -> Result<(u32, f64)> {
        let sender = scope.spawn(|| flood(&over));
        // What may pass at once does, before it is measured.
        thread::sleep(Duration::from_millis(500));
        let (begin, before) = (Instant::now(), transmitted()?);
        let mut changes = 0;
        let changed = (|| {
            while begin.elapsed() < SPAN {
                for rate in ["9990kbit", "10mbit"] {
                    succeed(&format!("change v0 --rate {rate}"))?;
                    changes += 1;
                }
            }
            Ok(())
        })();
        let sent = transmitted()? - before;
        let rate = (sent * 8) as f64 / begin.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        sender.join().expect("no panic")?;
        changed.map(|()| (changes, rate))
    })?;
    println!("live: {engine}: {:.3} of the rate with {changes} changes", rate / RATE);
    ensure!(rate < 1.05 * RATE, "{rate:.0} bit/s with {changes} changes");
    succeed("detach v0").map(|_| ())
}

fn transmitted() -> Result<u64> {
    Ok(fs::read_to_string("/sys/class/net/v0/statistics/tx_bytes")?.trim().parse()?)
}
