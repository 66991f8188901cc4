//! What sets the rates of the device: ours on each engine, a fixed rate, and the peer.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::line::{DEVICE, END, IFB};
use crate::command;

/// A checkout of cake-autorate.
const PEER: &str = "/peer";
/// Hosts that the peer may probe: as many as it has by default.
pub(super) const REFLECTORS: usize = 30;
/// For it to end in order.
const PATIENCE: Duration = Duration::from_secs(20);

/// Floor, base and ceiling in Mbit/s.
#[derive(Clone, Copy)]
pub(super) struct Bounds(pub(super) u64, pub(super) u64, pub(super) u64);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    /// In front of CAKE.
    Marks,
    Kernel,
    Userspace,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Controller {
    /// None: an engine at a fixed rate.
    Fixed(Engine),
    Ours(Engine),
    /// The script cake-autorate with its defaults, and CAKE.
    Peer,
}

pub(super) const ALL: [Controller; 7] = [
    Controller::Fixed(Engine::Marks),
    Controller::Fixed(Engine::Kernel),
    Controller::Fixed(Engine::Userspace),
    Controller::Ours(Engine::Marks),
    Controller::Ours(Engine::Kernel),
    Controller::Ours(Engine::Userspace),
    Controller::Peer,
];

impl Controller {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fixed(Engine::Marks) => "fixed-marks",
            Self::Fixed(Engine::Kernel) => "fixed-kernel",
            Self::Fixed(Engine::Userspace) => "fixed-userspace",
            Self::Ours(Engine::Marks) => "marks",
            Self::Ours(Engine::Kernel) => "kernel",
            Self::Ours(Engine::Userspace) => "userspace",
            Self::Peer => "peer",
        }
    }

    /// Whether it runs if none is named: what a fixed rate gives depends little on the engine.
    pub(super) fn is_usual(self) -> bool {
        !matches!(self, Self::Fixed(Engine::Kernel | Engine::Userspace))
    }

    pub(super) fn is_here(self) -> bool {
        self != Self::Peer || Path::new(PEER).join("cake-autorate.sh").exists()
    }

    /// Puts it in place on the device.
    pub(super) fn start(self, bounds: Bounds, fixed: u64) -> Result<Running> {
        let Bounds(floor, base, ceiling) = bounds;
        let (engine, rates) = match self {
            Self::Peer => return start_peer(bounds).map(|script| Running(Some(script))),
            Self::Fixed(engine) => (engine, format!("--rate {fixed}mbit --ingress {fixed}mbit")),
            Self::Ours(engine) => {
                let auto = format!("auto:{floor}mbit..{base}mbit..{ceiling}mbit");
                (engine, format!("--rate {auto} --ingress {auto} --probe {END}"))
            }
        };
        let engine = match engine {
            Engine::Marks => "marks --queues cake",
            Engine::Kernel => "kernel",
            Engine::Userspace => "userspace",
        };
        command::run(&format!("shortlane attach {DEVICE} {rates} --engine {engine}"))?;
        Ok(Running(None))
    }
}

/// A controller at work; the peer's process.
pub(super) struct Running(Option<Child>);

impl Running {
    /// Decisions of ours since that of a number, in lines, and the number of the last.
    pub(super) fn decisions(&self, since: u64) -> Result<(String, u64)> {
        let (mut lines, mut last) = (String::new(), since);
        if self.0.is_some() {
            return Ok((lines, last));
        }
        let shown: Value =
            serde_json::from_str(&command::run(&format!("shortlane show {DEVICE} --json"))?)?;
        for status in shown["attached"].as_array().into_iter().flatten() {
            for decision in status["auto"]["decisions"].as_array().into_iter().flatten() {
                let number = decision["number"].as_u64().unwrap_or(0);
                last = last.max(number);
                if number > since {
                    writeln!(lines, "{} {decision}", status["direction"])?;
                }
            }
        }
        Ok((lines, last))
    }

    /// The peer's log.
    pub(super) fn log(&self) -> String {
        self.0.as_ref().and_then(|_| fs::read_to_string(LOG).ok()).unwrap_or_default()
    }

    pub(super) fn stop(self) -> Result<()> {
        let Some(mut script) = self.0 else {
            return command::run(&format!("shortlane detach {DEVICE}")).map(drop);
        };
        kill(Pid::from_raw(script.id() as i32), Signal::SIGTERM)?;
        let begin = Instant::now();
        while script.try_wait()?.is_none() {
            if begin.elapsed() > PATIENCE {
                script.kill()?;
                bail!("cake-autorate does not end");
            }
            thread::sleep(Duration::from_millis(100));
        }
        let _ = fs::remove_file(LOG);
        command::run(&format!("tc qdisc del dev {DEVICE} root"))?;
        command::run(&format!("tc qdisc del dev {DEVICE} ingress"))?;
        command::run(&format!("ip link del {IFB}")).map(drop)
    }
}

const LOG: &str = "/var/log/cake-autorate.guest.log";

/// CAKE in both directions, and the script with its defaults.
fn start_peer(Bounds(floor, base, ceiling): Bounds) -> Result<Child> {
    for line in [
        format!("tc qdisc add dev {DEVICE} root cake bandwidth {base}mbit"),
        format!("ip link add {IFB} type ifb"),
        format!("ip link set {IFB} up"),
        format!("tc qdisc add dev {IFB} root cake bandwidth {base}mbit"),
        format!("tc qdisc add dev {DEVICE} handle ffff: ingress"),
        format!(
            "tc filter add dev {DEVICE} parent ffff: protocol all matchall action mirred egress \
             redirect dev {IFB}"
        ),
    ] {
        command::run(&line)?;
    }
    let mut config = format!("dl_if={IFB}\nul_if={DEVICE}\noutput_cake_changes=1\n");
    for way in ["dl", "ul"] {
        for (name, mbit) in [("min", floor), ("base", base), ("max", ceiling)] {
            writeln!(config, "{name}_{way}_shaper_rate_kbps={}", mbit * 1_000)?;
        }
    }
    let reflectors: Vec<String> =
        (1..=REFLECTORS).map(|host| format!("\"192.0.2.{host}\"")).collect();
    writeln!(config, "reflectors=({})", reflectors.join(" "))?;
    let file = format!("{PEER}/config.guest.sh");
    fs::write(&file, config)?;
    fs::create_dir_all("/var/log")?;
    fs::create_dir_all("/etc")?;
    // Without it fping says nothing, and ends.
    fs::write("/etc/protocols", "icmp 1 ICMP\nipv6-icmp 58 IPv6-ICMP\n")?;
    command::run("fping -c 1 192.0.2.1").context("no reflector answers")?;
    let script = Command::new("bash")
        .args([&format!("{PEER}/cake-autorate.sh"), &file])
        .env("CAKE_AUTORATE_SCRIPT_PREFIX", PEER)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("bash")?;
    let begin = Instant::now();
    let has_started =
        || fs::read_to_string(LOG).is_ok_and(|log| log.contains("Started cake-autorate"));
    while !has_started() {
        let log = fs::read_to_string(LOG).unwrap_or_default();
        ensure!(begin.elapsed() < PATIENCE, "cake-autorate does not start: {log}");
        thread::sleep(Duration::from_millis(100));
    }
    Ok(script)
}
