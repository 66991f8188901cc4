//! Where commands are killed: what there is around `t0`, and whether traffic passes.

use std::net::UdpSocket;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::kernel::inspect::machine;
use netdev::link::{Home, Links};
use netdev::netns::Namespace;

use crate::path::{FAR, Path, wait_for};

/// Behind `u0`.
const BEHIND: &str = "10.9.0.3";
/// What a kill may leave where programs are filters (before Linux 6.6): between its making and the
/// first filter, or between the last filter and its removal, nothing tells whose a clsact is.
const EMPTY_CLSACT: &str = "qdisc clsact ffff: dev t0 parent ffff:fff1 \n";
/// What is registered is so in the whole machine: one test after the other.
static MACHINE: Mutex<()> = Mutex::new(());

/// What there is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `t0`.
    Device,
    /// `t0`, on a kernel that takes qdiscs written in BPF.
    Qdisc,
    /// The same, and what is registered is looked at.
    Registry,
    /// `t0` and `u0`, each with a host behind it.
    Bridge,
    /// The same, and both are ports of a bridge of the kernel.
    KernelBridge,
}

pub(super) struct Scene {
    pub(super) path: Path,
    kind: Kind,
    behind: Option<Namespace>,
    /// The state before all that is done.
    pub(super) before: String,
    _alone: Option<MutexGuard<'static, ()>>,
}

impl Scene {
    /// Nothing, said loudly, where it cannot be had.
    pub(super) fn new(kind: Kind) -> Option<Self> {
        let path = Path::new()?;
        let mut alone = None;
        if matches!(kind, Kind::Qdisc | Kind::Registry) {
            if let Err(why) = machine().qdisc {
                eprintln!("SKIPPED, nothing was tested: {why}");
                return None;
            }
            alone = Some(MACHINE.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let is_bridge = matches!(kind, Kind::Bridge | Kind::KernelBridge);
        let behind = is_bridge.then(|| add_second(&path));
        if kind == Kind::KernelBridge {
            path.shell(
                "ip link add br0 type bridge && ip link set br0 up && ip link set t0 master br0 \
                 && ip link set u0 master br0",
            );
        }
        wait_for("the devices are up", || !path.shell("ip link").output.contains("NO-CARRIER"));
        let mut scene = Self { path, kind, behind, before: String::new(), _alone: alone };
        // The kernel's bridge has to listen first, and hosts to find each other. The kernel tells its
        // state up to a second late.
        if kind == Kind::KernelBridge {
            wait_for("the bridge of the kernel forwards", || scene.crosses());
            let state = || scene.path.shell("ip link show br0").output;
            wait_for("the bridge of the kernel is up", || state().contains("state UP"));
        }
        scene.before = scene.state();
        Some(scene)
    }

    /// Whether traffic passes once nothing holds the device any more.
    pub(super) fn passes(&self) -> bool {
        match self.kind {
            // Of a port only the bridge gets anything.
            Kind::KernelBridge => self.crosses(),
            // And what is registered can be told.
            Kind::Registry => {
                self.path.reaches() && self.path.shortlane("register").status == Some(0)
            }
            _ => self.path.reaches(),
        }
    }

    /// Whether the engine's bridge works.
    pub(super) fn is_bridged(&self) -> bool {
        if !self.crosses() {
            return false;
        }
        // It may have been the kernel's.
        let said = self.path.shortlane("show t0 --json").output;
        let document: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
        let lanes = document["attached"][0]["lanes"].as_array().into_iter().flatten();
        lanes.filter_map(|lane| lane["sent_packets"].as_u64()).sum::<u64>() > 0
    }

    /// Whether a datagram gets from behind `u0` to the far side, which `t0` counts as sent.
    fn crosses(&self) -> bool {
        let Some(behind) = &self.behind else { return false };
        let sink = self.path.far.run(|| UdpSocket::bind((FAR, 0)).unwrap()).unwrap();
        sink.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let source = behind.run(|| UdpSocket::bind((BEHIND, 0)).unwrap()).unwrap();
        source.send_to(b"there?", sink.local_addr().unwrap()).unwrap();
        sink.recv(&mut [0; 10]).is_ok()
    }

    pub(super) fn state(&self) -> String {
        let more = match self.kind {
            Kind::Device | Kind::Qdisc => "true",
            Kind::Bridge | Kind::KernelBridge => "ethtool -k u0; tc filter show dev u0 ingress",
            // What is registered can be put in place, whatever files there are.
            Kind::Registry => {
                "find /sys/fs/bpf; tc qdisc add dev lo root shortlane_fifo 2>/dev/null && \
                 tc qdisc del dev lo root && echo \"fifo is registered\""
            }
        };
        let state = self.path.state() + &self.path.shell(more).output;
        // Among what is set in a bridge of the kernel are timers, which go on.
        let is_fixed = |line: &&str| !line.contains("_timer");
        state.lines().filter(is_fixed).map(|line| format!("{line}\n")).collect()
    }

    /// Lines of the state that are not what they were before.
    pub(super) fn difference(&self) -> String {
        let state = self.state();
        let without = |lines: &str, others: &str, sign: &str| -> String {
            let is_new = |line: &&str| !others.lines().any(|other| other == *line);
            lines.lines().filter(is_new).map(|line| format!("{sign} {line}\n")).collect()
        };
        without(&self.before, &state, "-") + &without(&state, &self.before, "+")
    }

    /// Whether the state is what it was before. An empty clsact, where one may be left, goes.
    pub(super) fn is_as_before(&self, is_killed: bool) -> bool {
        let state = self.state();
        if is_killed && !machine().tcx && state.replacen(EMPTY_CLSACT, "", 1) == self.before {
            self.path.shell("tc qdisc del dev t0 clsact 2>/dev/null");
            return self.state() == self.before;
        }
        state == self.before
    }
}

/// Adds `u0` and the host behind it.
fn add_second(path: &Path) -> Namespace {
    let behind = Namespace::new().expect("a namespace");
    path.here
        .run(|| {
            let mut links = Links::open().unwrap();
            links.add_veth("u0", "u1", Home::Namespace(&behind)).unwrap();
            links.set_up("u0").unwrap();
        })
        .unwrap();
    behind
        .run(|| {
            let mut links = Links::open().unwrap();
            links.set_up("u1").unwrap();
            links.add_address("u1", BEHIND.parse().unwrap(), 24).unwrap();
        })
        .unwrap();
    behind
}
