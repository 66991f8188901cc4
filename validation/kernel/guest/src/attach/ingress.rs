//! `--ingress`: what a device receives, shaped on an ifb; left out when that goes away; restored.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::machine::Machine;
use super::{HERE, Path, refused, succeed};
use crate::command::run as shell;

const RATE: u64 = 5_000_000;
const PACKET: usize = 1000;
/// Ethernet, IP and UDP.
const HEADERS: usize = 42;

pub(super) fn run() -> Result<()> {
    let path = Path::new()?;
    shell("ethtool -K v0 gro on")?;
    let before = Machine::now()?;
    shaped(&path)?;
    before.must_be_back().context("detach")?;
    both_or_none()?;
    before.must_be_back().context("a refused change")?;
    left_out(&path)?;
    before.must_be_back().context("without the ifb")?;
    beside_others()
}

/// The rate is held, the other direction is not touched, and both can be had at once.
fn shaped(path: &Path) -> Result<()> {
    succeed("attach v0 --ingress 5mbit")?;
    let rate = received(path)?;
    ensure!((0.97..1.03).contains(&(rate / RATE as f64)), "received at {rate} bit/s");
    refused("attach v0 --ingress 5mbit", 1, &["v0", "already", "--replace"])?;
    succeed("attach v0 --rate 20mbit")?;
    let document: Value = serde_json::from_str(&succeed("show v0 --json")?.output)?;
    let attached = document["attached"].as_array().context("no list")?;
    let found: Vec<_> = attached
        .iter()
        .map(|shown| (shown["device"].as_str(), shown["direction"].as_str(), &shown["rate_bps"]))
        .collect();
    ensure!(
        found.len() == 2
            && found.contains(&(Some("v0"), Some("egress"), &20_000_000.into()))
            && found.contains(&(Some("v0"), Some("ingress"), &RATE.into())),
        "{found:?}"
    );
    succeed("change v0 --ingress 10mbit")?;
    let rate = received(path)?;
    ensure!((0.97..1.03).contains(&(rate / 10e6)), "received at {rate} bit/s after a change");
    succeed("detach v0")?;
    Ok(())
}

/// A change that one direction refuses is made in neither.
fn both_or_none() -> Result<()> {
    succeed("attach v0 --rate 20mbit --scheduler efd:limit=5000packets")?;
    let before = succeed("show v0 --json")?.output;
    let limit = |output: &str| output.contains("limit=5000packets");
    ensure!(limit(&before), "{before}");
    refused("change v0 --rate 9mbit --ingress 9mbit", 1, &["v0", "receives is not attached"])?;
    let unchanged = succeed("show v0 --json")?.output;
    ensure!(unchanged.contains("20000000"), "{unchanged}");
    succeed("attach v0 --ingress 5mbit --scheduler efd:limit=60packets")?;
    refused("change v0 --scheduler efd:limit=4000packets", 2, &["4000", "1024"])?;
    let unchanged = succeed("show v0 --json")?.output;
    ensure!(limit(&unchanged), "{unchanged}");
    succeed("detach v0")?;
    Ok(())
}

/// Somebody removes the ifb: packets pass as if it had never been there, and detach cleans up.
fn left_out(path: &Path) -> Result<()> {
    succeed("attach v0 --ingress 5mbit")?;
    let links = shell("ip -br link show type ifb")?;
    let ifb = links.split_whitespace().next().context("no ifb")?;
    shell(&format!("ip link del {ifb}"))?;
    let rate = received(path)?;
    ensure!(rate > 2.0 * RATE as f64, "{rate} bit/s without the ifb");
    succeed("detach v0")?;
    Ok(())
}

/// A filter of somebody else's is left alone.
fn beside_others() -> Result<()> {
    shell("tc qdisc add dev v0 clsact")?;
    let before = Machine::now()?;
    succeed("attach v0 --ingress 5mbit")?;
    succeed("detach v0")?;
    before.must_be_back().context("a clsact that was there stays")?;
    shell("tc filter add dev v0 ingress matchall action ok")?;
    refused("attach v0 --ingress 5mbit", 1, &["v0", "filter", "matchall"])?;
    shell("tc qdisc del dev v0 clsact")?;
    Ok(())
}

/// Bits that arrive here in a second while the far end sends all it can.
fn received(path: &Path) -> Result<f64> {
    let sink = UdpSocket::bind((HERE, 9))?;
    sink.set_read_timeout(Some(Duration::from_secs(2)))?;
    let over = AtomicBool::new(false);
    let source = path.far.run(|| UdpSocket::bind(("0.0.0.0", 0)))??;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for _ in 0..20 {
                    // A full queue is what is wanted.
                    let _ = source.send_to(&[0; PACKET], (HERE, 9));
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        let mut buffer = [0; PACKET];
        let mut count = |time: Duration| -> Result<f64> {
            let begin = Instant::now();
            let mut packets = 0;
            while begin.elapsed() < time {
                sink.recv(&mut buffer).context("nothing arrives")?;
                packets += 1;
            }
            Ok((packets * (PACKET + HEADERS) * 8) as f64 / begin.elapsed().as_secs_f64())
        };
        let result = count(Duration::from_millis(500)).and_then(|_| count(Duration::from_secs(3)));
        over.store(true, Ordering::Relaxed);
        result
    })
}
