#![allow(dead_code, reason = "each test file uses its part")]
//! Two hosts in namespaces of their own, and a bridge between them in a third.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use engine::{Forwarder, Io, LinkConfig, Observe, Rate, Report};
use netdev::link::{Home, Links};
use netdev::netns::{Namespace, set_parameter};

/// Hosts `a` and `b`, whose interfaces are the peers of `left` and `right` in `middle`.
pub(crate) struct Lab {
    pub(crate) a: Namespace,
    pub(crate) b: Namespace,
    pub(crate) middle: Namespace,
    io: Io,
}

pub(crate) const A4: &str = "10.9.0.1";
pub(crate) const B4: &str = "10.9.0.2";
pub(crate) const A6: &str = "fd09::1";
pub(crate) const B6: &str = "fd09::2";

impl Lab {
    /// One whose engine takes frames by packet sockets, and one by `AF_XDP`; said loudly where
    /// these cannot be had.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        let xdp = || {
            let lab = Self::new()?;
            let fifo = || link("fifo", 1_000_000);
            let open = || Forwarder::bridge("left", "right", fifo(), fifo(), Io::Xdp).map(|_| ());
            if let Err(error) = lab.middle.run(open).unwrap() {
                eprintln!("SKIPPED, AF_XDP was not tested: {error}");
                return None;
            }
            Some(Self { io: Io::Xdp, ..lab })
        };
        [Self::new(), xdp()].into_iter().flatten()
    }

    /// `None`, said loudly, where namespaces cannot be had.
    pub(crate) fn new() -> Option<Self> {
        let make = || Ok([Namespace::new()?, Namespace::new()?, Namespace::new()?]);
        let [a, b, middle] = match make() {
            Ok(made) => made,
            Err::<_, netdev::netns::NetnsError>(error) => {
                eprintln!("SKIPPED, nothing was tested: {error}");
                return None;
            }
        };
        middle
            .run(|| {
                let mut links = Links::open().unwrap();
                for (name, host) in [("left", &a), ("right", &b)] {
                    links.add_veth(name, "eth0", Home::Namespace(host)).unwrap();
                    set_parameter(&format!("ipv6.conf.{name}.disable_ipv6"), "1").unwrap();
                    links.offloads_off(name).unwrap();
                    links.set_up(name).unwrap();
                }
            })
            .unwrap();
        for (host, v4, v6) in [(&a, A4, A6), (&b, B4, B6)] {
            host.run(|| {
                let mut links = Links::open().unwrap();
                links.set_up("lo").unwrap();
                links.offloads_off("eth0").unwrap();
                links.set_up("eth0").unwrap();
                links.add_address("eth0", ip(v4), 24).unwrap();
                links.add_address("eth0", ip(v6), 64).unwrap();
            })
            .unwrap();
        }
        Some(Self { a, b, middle, io: Io::Packet })
    }

    /// Runs `job` while the engine passes frames between the hosts.
    pub(crate) fn while_bridged<T: Send>(
        &self,
        forth: LinkConfig,
        back: LinkConfig,
        job: impl FnOnce() -> T + Send,
    ) -> (T, Report) {
        self.run(forth, back, job, true)
    }

    /// Runs `job`, which is to make the engine end, beside the engine.
    pub(crate) fn until_fault<T: Send>(
        &self,
        forth: LinkConfig,
        back: LinkConfig,
        job: impl FnOnce() -> T + Send,
    ) -> (T, Report) {
        self.run(forth, back, job, false)
    }

    fn run<T: Send>(
        &self,
        forth: LinkConfig,
        back: LinkConfig,
        job: impl FnOnce() -> T + Send,
        stop_it: bool,
    ) -> (T, Report) {
        let engine = self
            .middle
            .run(|| Forwarder::bridge("left", "right", forth, back, self.io))
            .unwrap()
            .unwrap();
        let stop = AtomicBool::new(false);
        let observe = Observe::since(engine::clock::now());
        thread::scope(|scope| {
            let running = scope.spawn(|| engine.run_observed(&stop, observe));
            let done = job();
            stop.store(stop_it, Ordering::Relaxed);
            (done, running.join().unwrap().unwrap())
        })
    }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A link under the named discipline.
pub(crate) fn link(spec: &str, rate: u64) -> LinkConfig {
    LinkConfig::new(spec.parse().unwrap(), Rate(rate))
}

/// Takes all capabilities from the calling thread.
pub(crate) fn drop_capabilities() {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, pid: 0 };
    let nothing = [0u32; 6];
    // SAFETY: both pointers are to locals laid out as capset(2) of this version reads them.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const nothing) };
    assert_eq!(result, 0);
}
