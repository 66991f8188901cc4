//! The rate that a qdisc holds, by how far a late pacer may catch up.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{FAR, Path, succeed};

const RATES: [u64; 4] = [1, 10, 50, 100];
const BURSTS: [&str; 5] = ["500us", "1ms", "2ms", "5ms", "10ms"];
const WARM_UP: Duration = Duration::from_millis(500);
const TIME: Duration = Duration::from_secs(4);

pub(crate) fn run(_: &[String]) -> Result<()> {
    let path = Path::new()?;
    let sink = path.far.run(|| UdpSocket::bind((FAR, 9)))??;
    let over = AtomicBool::new(false);
    thread::scope(|scope| -> Result<()> {
        scope.spawn(|| {
            let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("a socket");
            while !over.load(Ordering::Relaxed) {
                // A full queue is what is wanted.
                let _ = socket.send_to(&[0; 1000], (FAR, 9));
            }
        });
        let result = rates();
        over.store(true, Ordering::Relaxed);
        result
    })?;
    drop(sink);
    Ok(())
}

fn rates() -> Result<()> {
    println!("rate     burst-time   held");
    let mut defaults = Vec::new();
    for rate in RATES {
        succeed(&format!("attach v0 --rate {rate}mbit --scheduler efd"))?;
        for burst in BURSTS {
            succeed(&format!("change v0 --burst-time {burst}"))?;
            let held = held(rate * 1_000_000)?;
            println!("{rate:>3}mbit  {burst:>10}   {:.2} %", held * 100.0);
        }
        succeed("detach v0")?;
        succeed(&format!("attach v0 --rate {rate}mbit --scheduler efd"))?;
        defaults.push((rate, held(rate * 1_000_000)?));
        succeed("detach v0")?;
    }
    for (rate, held) in defaults {
        println!("{rate:>3}mbit     default   {:.2} %", held * 100.0);
        ensure!(held < 1.01, "{rate} Mbit/s: more than the rate left");
    }
    Ok(())
}

/// What left, as a part of the rate.
fn held(rate: u64) -> Result<f64> {
    thread::sleep(WARM_UP);
    let (age, bytes) = sent()?;
    thread::sleep(TIME);
    let (later, more) = sent()?;
    ensure!(more > bytes, "nothing left");
    Ok((more - bytes) as f64 * 8e9 / (later - age) as f64 / rate as f64)
}

/// The qdisc's age in nanoseconds, and the bytes that it has sent.
fn sent() -> Result<(u64, u64)> {
    let document: Value = serde_json::from_str(&succeed("show v0 --json")?.output)?;
    let shown = &document["attached"][0];
    let bytes = shown["tc"]["bytes"].as_u64().context("no bytes")?;
    Ok((shown["uptime_ns"].as_u64().context("no uptime")?, bytes))
}
