//! A device here, and beyond it a bottleneck whose rate and delay can be changed.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use netdev::link::Links;
use netdev::tc::TrafficControl;

use super::controller::REFLECTORS;
use crate::command;
use crate::namespace::{self, HERE};

pub(super) const DEVICE: &str = "t0";
/// Where `ingress` of the peer's queue is.
pub(super) const IFB: &str = "ifb-t0";
pub(super) const ADDRESS: &str = "10.9.0.1";
/// Behind the bottleneck.
pub(super) const END: &str = "10.9.0.3";
/// The namespaces of the bottleneck and of the end.
const MIDDLE: &str = "middle";
pub(super) const BEYOND: &str = "beyond";
/// There and back, without noise.
pub(super) const ROUND_TRIP_MS: f64 = 20.0;

/// What the bottleneck sends at once after its rate has changed, in bytes.
pub(super) const BURST: u64 = 3_100;

/// Which way a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

/// The kernel's own queues are the bottleneck: a bridge whose two ports have a rate and a FIFO of
/// 300 kB. What the end sends is delayed by the whole round trip.
pub(super) struct Line {
    /// `tc` in the namespaces, which changes rates and the delay at once.
    rates: Child,
    delays: Child,
    counts: TrafficControl,
    /// The ports where the bottleneck is, for either way.
    ports: [u32; 2],
}

impl Line {
    pub(super) fn new() -> Result<Self> {
        for namespace in [MIDDLE, BEYOND] {
            command::run(&format!("ip netns add {namespace}"))?;
        }
        command::run(&format!("ip link add {DEVICE} type veth peer t1 netns {MIDDLE}"))?;
        command::run(&format!("ip address add {ADDRESS}/24 dev {DEVICE}"))?;
        namespace::run(MIDDLE, || -> Result<()> {
            command::run(&format!("ip link add r0 type veth peer e0 netns {BEYOND}"))?;
            command::run("ip link add b0 type bridge")?;
            for port in ["t1", "r0"] {
                command::run(&format!("ip link set {port} up master b0"))?;
                Links::open()?.offloads_off(port)?;
                command::run(&format!("tc qdisc add dev {port} root {}", tbf(100.0)))?;
            }
            command::run("ip link set b0 up").map(drop)
        })??;
        namespace::run(BEYOND, || -> Result<()> {
            command::run(&format!("ip address add {END}/24 dev e0"))?;
            for reflector in 1..=REFLECTORS {
                command::run(&format!("ip address add 192.0.2.{reflector}/32 dev e0"))?;
            }
            command::run("ip link set e0 up")?;
            Links::open()?.offloads_off("e0")?;
            command::run(&format!("tc qdisc add dev e0 root {}", netem(ROUND_TRIP_MS)))?;
            Ok(())
        })??;
        command::run(&format!("ip link set {DEVICE} up"))?;
        Links::open()?.offloads_off(DEVICE)?;
        command::run(&format!("ip route add 192.0.2.0/24 via {END}"))?;
        for namespace in [HERE, BEYOND] {
            // A transfer is not to know how the one before it fared.
            let write = || std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
            namespace::run(namespace, write)??;
        }
        let counts = namespace::run(MIDDLE, TrafficControl::open)??;
        let ports = namespace::run(MIDDLE, || -> Result<_> {
            Ok([namespace::ifindex("r0")?, namespace::ifindex("t1")?])
        })??;
        Ok(Self { rates: batch(MIDDLE)?, delays: batch(BEYOND)?, counts, ports })
    }

    /// The bottleneck's rate, in both directions.
    pub(super) fn carries(&mut self, mbit: f64) -> Result<()> {
        let orders: Vec<String> = ["t1", "r0"]
            .map(|port| format!("qdisc change dev {port} root {}\n", tbf(mbit)))
            .to_vec();
        tell(&mut self.rates, &orders.concat())
    }

    /// Bytes that the bottleneck has passed on.
    pub(super) fn passed(&mut self, way: Way) -> Result<u64> {
        let port = self.ports[way as usize];
        let root = self.counts.root(port).map_err(|refusal| anyhow!("{refusal}"))?;
        Ok(root.context("the bottleneck has no queue")?.stats.bytes)
    }

    /// How long a packet takes there and back. None overtakes another.
    pub(super) fn delays(&mut self, ms: f64) -> Result<()> {
        tell(&mut self.delays, &format!("qdisc change dev e0 root {}\n", netem(ms)))
    }

    /// Waits until nothing is under way any more.
    pub(super) fn becomes_quiet(&mut self) -> Result<()> {
        self.carries(100.0)?;
        self.delays(ROUND_TRIP_MS)?;
        let begin = Instant::now();
        let mut before = u64::MAX;
        loop {
            let now = self.passed(Way::Up)? + self.passed(Way::Down)?;
            if now.abs_diff(before) < 2_000 {
                return Ok(());
            }
            if begin.elapsed() > Duration::from_secs(60) {
                bail!("the line does not become quiet");
            }
            before = now;
            thread::sleep(Duration::from_millis(500));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        for child in [&mut self.rates, &mut self.delays] {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

fn tbf(mbit: f64) -> String {
    format!("tbf rate {:.0}bit burst {BURST} limit 300000", mbit * 1e6)
}

fn netem(ms: f64) -> String {
    format!("netem delay {ms:.3}ms rate 1gbit limit 20000")
}

fn batch(namespace: &str) -> Result<Child> {
    let start = || Command::new("tc").args(["-force", "-batch", "-"]).stdin(Stdio::piped()).spawn();
    Ok(namespace::run(namespace, start)??)
}

fn tell(child: &mut Child, orders: &str) -> Result<()> {
    let stdin = child.stdin.as_mut().context("tc has no input")?;
    Ok(stdin.write_all(orders.as_bytes())?)
}
