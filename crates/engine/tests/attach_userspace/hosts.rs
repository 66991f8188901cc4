//! Two hosts with a cable between them.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use engine::report::{DirectionReport, Tally};
use engine::userspace::HookKind;
use engine::{Forwarder, LinkConfig, Rate, Report};
use netdev::link::{Home, Links};
use netdev::netns::Namespace;

/// Hosts `a` and `b`, each with an `eth0`.
pub(crate) struct Hosts {
    pub(crate) a: Namespace,
    pub(crate) b: Namespace,
}

pub(crate) const A4: &str = "10.9.0.1";
pub(crate) const B4: &str = "10.9.0.2";
pub(crate) const A6: &str = "fd09::1";
pub(crate) const B6: &str = "fd09::2";

impl Hosts {
    /// `None`, said loudly, where the engine cannot be had.
    pub(crate) fn new() -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("SKIPPED, nothing was tested: BPF programs need root");
            return None;
        }
        let [a, b] = [Namespace::new().unwrap(), Namespace::new().unwrap()];
        let cable = || Links::open().unwrap().add_veth("eth0", "eth0", Home::Namespace(&b));
        a.run(cable).unwrap().unwrap();
        for (host, v4, v6) in [(&a, A4, A6), (&b, B4, B6)] {
            host.run(|| {
                let mut links = Links::open().unwrap();
                links.set_up("lo").unwrap();
                links.set_up("eth0").unwrap();
                links.add_address("eth0", ip(v4), 24).unwrap();
                links.add_address("eth0", ip(v6), 64).unwrap();
            })
            .unwrap();
        }
        Some(Self { a, b })
    }

    pub(crate) fn attach(
        &self,
        egress: Option<LinkConfig>,
        ingress: Option<LinkConfig>,
        hook: HookKind,
    ) -> Forwarder {
        self.a.run(|| Forwarder::attach("eth0", egress, ingress, hook)).unwrap().unwrap()
    }

    /// Runs `job` while the engine has both directions of `a`'s interface.
    pub(crate) fn while_attached<T>(
        &self,
        egress: Option<LinkConfig>,
        ingress: Option<LinkConfig>,
        hook: HookKind,
        job: impl FnOnce() -> T,
    ) -> (T, Report) {
        while_running(self.attach(egress, ingress, hook), job)
    }

    /// What a command says on a host.
    pub(crate) fn says(host: &Namespace, command: &str) -> String {
        let mut words = command.split_whitespace();
        let program = words.next().unwrap();
        let run = || Command::new(program).args(words).output().unwrap();
        let output = host.run(run).unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Moves an interface of the calling thread's namespace to another one.
    pub(crate) fn move_to(name: &str, namespace: &Namespace) {
        // `ip` takes a process for its namespace.
        let holder = namespace.run(|| Command::new("sleep").arg("100").spawn()).unwrap();
        let mut holder = holder.unwrap();
        let there = holder.id().to_string();
        let moved = Command::new("ip").args(["link", "set", name, "netns", &there]).status();
        holder.kill().and_then(|()| holder.wait()).unwrap();
        assert!(moved.unwrap().success());
    }

    /// Programs, qdiscs and devices of `a` that an engine would have made.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let links = Self::says(&self.a, "ip -o link");
        let qdiscs = Self::says(&self.a, "tc qdisc show dev eth0");
        let programs = Self::says(&self.a, "bpftool net show dev eth0");
        let lines = links.lines().chain(qdiscs.lines()).chain(programs.lines());
        let is_ours = |line: &&str| ["shortlane", "clsact"].iter().any(|what| line.contains(what));
        lines.filter(is_ours).map(str::to_owned).collect()
    }

    /// Sends `bytes` over TCP, and says whether they have arrived as they were sent.
    pub(crate) fn transfer(&self, from: &Namespace, server: (&Namespace, IpAddr), bytes: usize) {
        let listener = server.0.run(|| TcpListener::bind((server.1, 0))).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        let data: Vec<u8> = (0..bytes).map(|i| (i * i / 251) as u8).collect();
        thread::scope(|scope| {
            let receiving = scope.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut received = Vec::new();
                stream.read_to_end(&mut received).unwrap();
                received
            });
            let connect = || TcpStream::connect_timeout(&address, Duration::from_secs(20));
            let mut stream = from.run(connect).unwrap().unwrap();
            stream.write_all(&data).unwrap();
            drop(stream);
            assert!(receiving.join().unwrap() == data, "what arrived is not what was sent");
        });
    }

    /// A socket that gives up after a while, so that a failing test ends.
    pub(crate) fn udp(host: &Namespace, at: &str) -> UdpSocket {
        let socket = host.run(|| UdpSocket::bind((ip(at), 0))).unwrap().unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket
    }
}

/// Runs `job` while an engine runs, from when every direction takes packets.
pub(crate) fn while_running<T>(engine: Forwarder, job: impl FnOnce() -> T) -> (T, Report) {
    let stop = AtomicBool::new(false);
    let (is_ready, ready) = channel();
    thread::scope(|scope| {
        let running = scope.spawn(|| engine.run_live(&stop, move || is_ready.send(()).unwrap()));
        // Even if the job panics, so that the test ends.
        let stopping = Stop(&stop);
        // An engine that ends before that says why below.
        let done = ready.recv().map(|()| job());
        drop(stopping);
        let report = running.join().unwrap().unwrap();
        (done.unwrap(), report)
    })
}

/// Sets a flag when it is dropped.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn server<'a>(host: &'a Namespace, at: &str) -> (&'a Namespace, IpAddr) {
    (host, ip(at))
}

/// A link under the named discipline.
pub(crate) fn link(spec: &str, rate: u64) -> Option<LinkConfig> {
    Some(LinkConfig::new(spec.parse().unwrap(), Rate(rate)))
}

/// All that was received is accounted for.
pub(crate) fn adds_up(report: &DirectionReport) {
    let accounted = report.sent + report.dropped() + report.queued + report.in_flight;
    assert_eq!(report.received, accounted, "{report:#?}");
}

/// What has come through: by way of the engine, or past it where a slow machine kept the engine
/// waiting for longer than its programs do.
pub(crate) fn came_through(report: &DirectionReport) -> Tally {
    report.sent + report.passed
}
