//! A path with a bottleneck beyond the device, whose rate changes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use engine::control::{self, Changes};
use engine::{Forwarder, Io, LinkConfig};
use netdev::link::{self, Home, Links};
use netdev::netns::Namespace;
use sched::{Nanos, Rate};
use serde_json::Value;

use crate::path::{PATIENCE, Path};

/// Behind the bottleneck.
pub(super) const END: &str = "10.9.0.3";
const FLOOR: u64 = 2_000_000;
pub(super) const BASE: u64 = 20_000_000;
const CEILING: u64 = 40_000_000;
pub(super) const AUTO: &str = "auto:2mbit..20mbit..40mbit";

/// Which way a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

/// A path whose far side is a bridge with a rate, a buffer and a delay; behind it is the end.
pub(super) struct Line {
    pub(super) path: Path,
    pub(super) end: Namespace,
    over: Arc<AtomicBool>,
    bridge: Option<JoinHandle<()>>,
    /// A process here, so that the namespace counts as one in use.
    inhabitant: Child,
}

impl Line {
    /// With an engine that this machine has.
    pub(super) fn with(engine: &str) -> Option<Self> {
        let line = Self::new()?;
        let tried = line.path.shortlane(&format!("attach t0 --rate 9mbit {engine}"));
        if tried.status != Some(0) {
            eprintln!("SKIPPED, nothing was tested: {}", tried.words);
            return None;
        }
        line.path.succeed("detach t0");
        Some(line)
    }

    pub(super) fn new() -> Option<Self> {
        let path = Path::new()?;
        let end = Namespace::new().ok()?;
        path.far
            .run(|| {
                let mut links = Links::open().unwrap();
                links.add_veth("r0", "e0", Home::Namespace(&end)).unwrap();
                for device in ["r0", "t1"] {
                    links.set_up(device).unwrap();
                    links.offloads_off(device).unwrap();
                }
            })
            .unwrap();
        end.run(|| {
            let mut links = Links::open().unwrap();
            links.set_up("e0").unwrap();
            links.offloads_off("e0").unwrap();
            links.add_address("e0", END.parse().unwrap(), 24).unwrap();
        })
        .unwrap();
        path.here.run(|| Links::open().unwrap().offloads_off("t0").unwrap()).unwrap();
        // Every kernel has it, and it fills a buffer.
        for namespace in [&path.here, &end] {
            sh(namespace, "echo reno > /proc/sys/net/ipv4/tcp_congestion_control");
        }
        let link = || LinkConfig {
            delay: Nanos::from_millis(10),
            ..LinkConfig::new("fifo:limit=300kb".parse().unwrap(), Rate(BASE))
        };
        let bridge = path.far.run(|| Forwarder::bridge("t1", "r0", link(), link(), Io::Packet));
        let bridge = bridge.unwrap().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let bridge = thread::spawn(move || drop(bridge.run_live(&stop, || ()).unwrap()));
        let inhabitant = path.here.run(|| Command::new("sleep").arg("1000").spawn().unwrap());
        let inhabitant = inhabitant.unwrap();
        Some(Self { path, end, over, bridge: Some(bridge), inhabitant })
    }

    /// The bottleneck's rate, in both directions.
    pub(super) fn carries(&self, mbit: u64) {
        let rate = Some(Rate(mbit * 1_000_000));
        let changes = Changes { rate, ingress_rate: rate, ..Changes::default() };
        let change = || control::change(link::index_of("t1").unwrap(), &changes).unwrap();
        self.path.far.run(change).unwrap();
    }

    /// The device's direction in which a transfer goes. Its rate is always within its bounds.
    pub(super) fn status(&self, way: Way) -> Value {
        let text = self.path.succeed("show t0 --json").output;
        let mut document: Value = serde_json::from_str(&text).unwrap();
        for status in document["attached"].as_array().unwrap() {
            let rate = status["rate_bps"].as_u64().unwrap();
            assert!((FLOOR..=CEILING).contains(&rate), "{status}");
        }
        document["attached"].get_mut(way as usize).map(Value::take).unwrap_or_default()
    }

    /// Waits until the rate of a direction is so; if it never is, says what it went by.
    pub(super) fn rate_becomes(&self, what: &str, way: Way, is_so: impl Fn(u64) -> bool) {
        let begin = Instant::now();
        loop {
            let status = self.status(way);
            if is_so(rate(&status)) {
                return;
            }
            let auto = &status["auto"];
            assert!(begin.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}: {auto:#}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs `job` while bytes flow over TCP.
    pub(super) fn under_load(&self, way: Way, job: impl FnOnce()) {
        let listener = self.end.run(|| TcpListener::bind((END, 0)).unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let here = self.path.here.run(|| TcpStream::connect(address).unwrap()).unwrap();
        let (end, _) = listener.accept().unwrap();
        let (mut from, mut to) = if way == Way::Up { (here, end) } else { (end, here) };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let over = &over;
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) && from.write_all(&[7; 20_000]).is_ok() {}
            });
            scope.spawn(move || {
                let mut buffer = [0; 1 << 16];
                while to.read(&mut buffer).is_ok_and(|length| length > 0) {}
            });
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            over.store(true, Ordering::Relaxed);
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.bridge.take().map(JoinHandle::join);
        let _ = self.inhabitant.kill().and_then(|()| self.inhabitant.wait());
    }
}

pub(super) fn sh(namespace: &Namespace, script: &str) {
    let output = namespace.run(|| Command::new("sh").args(["-ec", script]).output().unwrap());
    let output = output.unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

pub(super) fn rate(status: &Value) -> u64 {
    status["rate_bps"].as_u64().unwrap()
}

pub(super) fn extra_ms(status: &Value) -> u64 {
    status["auto"]["extra_delay_ns"].as_u64().map_or(u64::MAX, |ns| ns / 1_000_000)
}
