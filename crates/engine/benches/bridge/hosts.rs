//! Two hosts in namespaces of their own, and what lies between them.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use engine::{Forwarder, Io, LinkConfig, Rate, Report};
use netdev::link::{Home, Links};
use netdev::netns::{Namespace, NetnsError, set_parameter};

pub(crate) const A: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(crate) const B: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// Bytes of the frame of a packet of 1500 bytes.
pub(crate) const FRAME: u64 = 1514;

/// What lies between the two hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Middle {
    /// The kernel's bridge, at whatever speed.
    KernelBridge,
    /// The kernel's bridge, and `tbf` of this rate at both ports.
    KernelTbf(u64),
    /// The engine with this I/O and discipline, and links of this rate.
    Engine(Io, &'static str, u64),
    /// The kernel's bridge, and an engine attached to each port that shapes what leaves by it.
    #[cfg(feature = "kernel")]
    Attached(&'static str, u64),
}

impl Middle {
    pub(crate) fn name(self) -> String {
        match self {
            Self::KernelBridge => "kernel bridge".to_owned(),
            Self::KernelTbf(rate) => format!("kernel bridge + tbf {}", mbit(rate)),
            #[cfg(feature = "kernel")]
            Self::Attached(spec, rate) => format!("attached engine {spec} {}", mbit(rate)),
            Self::Engine(io, spec, u64::MAX) => format!("engine {io} {spec}, unlimited"),
            Self::Engine(io, spec, rate) => format!("engine {io} {spec} {}", mbit(rate)),
        }
    }
}

pub(crate) fn mbit(rate: u64) -> String {
    format!("{} Mbit/s", rate as f64 / 1e6)
}

/// What the hosts leave to their interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offloads {
    /// Nothing: packets are those of a wire.
    Off,
    /// Checksums and segmentation: packets are up to 64 KB.
    On,
}

/// Two hosts, and the namespace between them.
pub(crate) struct Hosts {
    pub(crate) a: Namespace,
    pub(crate) b: Namespace,
    middle: Namespace,
}

impl Hosts {
    pub(crate) fn new(offloads: Offloads) -> Result<Self, NetnsError> {
        let hosts = Self { a: Namespace::new()?, b: Namespace::new()?, middle: Namespace::new()? };
        let on = offloads == Offloads::On;
        for (name, host, address) in [("left", &hosts.a, A), ("right", &hosts.b, B)] {
            let make = || {
                let mut links = Links::open()?;
                links.add_veth(name, "eth0", Home::Namespace(host))?;
                set_parameter(&format!("ipv6.conf.{name}.disable_ipv6"), "1").unwrap();
                links.offloads(name, on)?;
                links.set_up(name)
            };
            hosts.middle.run(make).unwrap().unwrap();
            let configure = || {
                set_parameter("ipv6.conf.eth0.disable_ipv6", "1").unwrap();
                let mut links = Links::open()?;
                links.offloads("eth0", on)?;
                links.set_up("eth0")?;
                links.add_address("eth0", address.into(), 24)
            };
            host.run(configure).unwrap().unwrap();
        }
        Ok(hosts)
    }

    /// Joins the hosts, runs `job` and returns what it returns.
    pub(crate) fn joined_by<T: Send>(
        &self,
        middle: Middle,
        job: impl FnOnce() -> T,
    ) -> (T, Option<Report>) {
        match middle {
            Middle::KernelBridge => {
                self.join_by_kernel();
                (job(), None)
            }
            Middle::KernelTbf(rate) => {
                self.join_by_kernel();
                // As much burst, and as much queue, as the engine has.
                let (burst, limit) = (rate / 8 / 1000 + FRAME, 300 * FRAME);
                for port in ["left", "right"] {
                    let shape = format!(
                        "tc qdisc add dev {port} root tbf rate {rate}bit burst {burst} limit {limit}"
                    );
                    self.shell(&shape);
                }
                (job(), None)
            }
            #[cfg(feature = "kernel")]
            Middle::Attached(spec, rate) => {
                self.join_by_kernel();
                let link = LinkConfig::new(spec.parse().unwrap(), Rate(rate));
                let attach = |port| {
                    let kind = engine::userspace::HookKind::Auto;
                    Forwarder::attach(port, Some(link.clone()), None, kind).unwrap()
                };
                let engines =
                    ["left", "right"].map(|port| self.middle.run(|| attach(port)).unwrap());
                let stop = AtomicBool::new(false);
                thread::scope(|scope| {
                    let running = engines.map(|engine| scope.spawn(|| engine.run(&stop)));
                    let done = job();
                    stop.store(true, Ordering::Relaxed);
                    let [_, right] = running.map(|engine| engine.join().unwrap().unwrap());
                    (done, Some(right))
                })
            }
            Middle::Engine(io, spec, rate) => {
                let link = || LinkConfig::new(spec.parse().unwrap(), Rate(rate));
                let open = || Forwarder::bridge("left", "right", link(), link(), io);
                let engine = self.middle.run(open).unwrap().unwrap();
                let stop = AtomicBool::new(false);
                thread::scope(|scope| {
                    let running = scope.spawn(|| engine.run(&stop));
                    let done = job();
                    stop.store(true, Ordering::Relaxed);
                    (done, Some(running.join().unwrap().unwrap()))
                })
            }
        }
    }

    fn join_by_kernel(&self) {
        self.shell("ip link add br0 type bridge && ip link set br0 up");
        self.shell("ip link set left master br0 && ip link set right master br0");
    }

    fn shell(&self, script: &str) {
        let run = || Command::new("sh").args(["-ec", script]).status();
        let status = self.middle.run(run).unwrap().unwrap();
        assert!(status.success(), "{script}");
    }
}
