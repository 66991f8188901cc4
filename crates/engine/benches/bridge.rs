//! The engine beside the kernel's own bridge and `tbf`, between two namespaces, interleaved.
//!
//! `cargo bench -p shortlane-engine` prints, for 1500-byte packets on this machine: TCP goodput
//! through 1 Gbit/s, idle round-trip times, and how exactly rates are held. Needs root and
//! iproute2. Absolute figures of a shared machine drift: read the ratios.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engine::link::{Home, Links};
use engine::netns::{Namespace, NetnsError, set_parameter};
use engine::{Engine, LinkConfig, Rate, Report};

const GIGABIT: u64 = 1_000_000_000;
/// Bytes that a UDP packet of 1500 bytes carries, and bytes of its frame.
const PAYLOAD: usize = 1472;
const FRAME: u64 = 1514;

fn main() {
    // `cargo test --benches` runs this as well; it has nothing to test.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let rounds = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(7);
    if let Err(error) = Hosts::new() {
        eprintln!("nothing was measured: {error}");
        std::process::exit(1);
    }
    goodput(rounds);
    round_trips(rounds);
    rates();
}

/// What lies between the two hosts.
#[derive(Clone, Copy, Debug)]
enum Middle {
    /// The kernel's bridge, at whatever speed.
    KernelBridge,
    /// The kernel's bridge, and `tbf` of this rate at both ports.
    KernelTbf(u64),
    /// The engine, with links of this rate.
    Engine(&'static str, u64),
}

impl Middle {
    fn name(self) -> String {
        match self {
            Self::KernelBridge => "kernel bridge".to_owned(),
            Self::KernelTbf(rate) => format!("kernel bridge + tbf {}", mbit(rate)),
            Self::Engine(spec, u64::MAX) => format!("engine {spec}, unlimited"),
            Self::Engine(spec, rate) => format!("engine {spec} {}", mbit(rate)),
        }
    }
}

fn mbit(rate: u64) -> String {
    format!("{} Mbit/s", rate as f64 / 1e6)
}

fn goodput(rounds: usize) {
    println!("TCP goodput in Mbit/s, one connection, 2 s a run, {rounds} interleaved rounds:");
    compare(
        rounds,
        &[
            Middle::KernelTbf(GIGABIT),
            Middle::Engine("fifo", GIGABIT),
            Middle::Engine("efd", GIGABIT),
            Middle::KernelBridge,
            Middle::Engine("fifo:limit=1000packets", u64::MAX),
        ],
        |hosts| tcp_goodput(hosts, Duration::from_secs(2)),
    );
}

fn round_trips(rounds: usize) {
    println!("Idle UDP round trip in us, median of 5000 a run, {rounds} interleaved rounds:");
    compare(
        rounds,
        &[
            Middle::KernelBridge,
            Middle::KernelTbf(GIGABIT),
            Middle::Engine("efd", GIGABIT),
            Middle::Engine("efd", u64::MAX),
        ],
        |hosts| round_trip(hosts, 5000),
    );
}

/// Runs every middle once a round and prints medians with the least and the most.
fn compare(rounds: usize, middles: &[Middle], measure: impl Fn(&Hosts) -> f64) {
    let mut results = vec![Vec::new(); middles.len()];
    for _ in 0..rounds {
        for (middle, results) in middles.iter().zip(&mut results) {
            let hosts = Hosts::new().expect("namespaces could be made before");
            results.push(hosts.joined_by(*middle, || measure(&hosts)).0);
        }
    }
    let first = median(&mut results[0]);
    for (middle, results) in middles.iter().zip(&mut results) {
        let median = median(results);
        let (least, most) = (results[0], results[results.len() - 1]);
        let name = middle.name();
        println!("  {name:42} {median:9.1}  ({least:.1} to {most:.1})  x {:.2}", median / first);
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A queue deep enough to bridge the moments when the sender gets no processor.
const DEEP: &str = "fifo:limit=20000packets";

fn rates() {
    println!("Rate held, UDP offered at 1.5 x rate, arrivals at the far interface, by the second:");
    for rate in [1_000_000, 10_000_000, 100_000_000, GIGABIT] {
        let hosts = Hosts::new().expect("namespaces could be made before");
        let (windows, report) =
            hosts.joined_by(Middle::Engine(DEEP, rate), || flood(&hosts, rate, 5));
        let ratios: Vec<_> = windows
            .iter()
            .map(|bytes| format!("{:.4}", *bytes as f64 * 8.0 / rate as f64))
            .collect();
        let forth = &report.expect("the engine ran").directions[0];
        let seen = forth.punctuality;
        println!(
            "  {:12} {}  (latest {} us, lost {:.3} %, largest burst {} packets)",
            mbit(rate),
            ratios.join(" "),
            seen.max_late_ns / 1000,
            seen.lost_ns as f64 / forth.duration_ns as f64 * 100.0,
            seen.largest_burst_packets,
        );
    }
}

fn tcp_goodput(hosts: &Hosts, duration: Duration) -> f64 {
    let listener = hosts.b.run(|| TcpListener::bind((B, 0))).unwrap().unwrap();
    let server = listener.local_addr().unwrap();
    let mut sender = hosts.a.run(|| TcpStream::connect(server)).unwrap().unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let block = vec![0; 64 << 10];
            while !done.load(Ordering::Relaxed) {
                sender.write_all(&block).unwrap();
            }
            let _ = sender.shutdown(std::net::Shutdown::Both);
        });
        // Slow start is left out.
        let mut block = vec![0; 256 << 10];
        let warm = Instant::now() + Duration::from_millis(300);
        while Instant::now() < warm {
            receiver.read_exact(&mut block[..4096]).unwrap();
        }
        let (begin, mut bytes) = (Instant::now(), 0);
        while begin.elapsed() < duration {
            bytes += receiver.read(&mut block).unwrap();
        }
        let goodput = bytes as f64 * 8.0 / begin.elapsed().as_secs_f64() / 1e6;
        done.store(true, Ordering::Relaxed);
        while receiver.read(&mut block).is_ok_and(|n| n > 0) {}
        goodput
    })
}

fn round_trip(hosts: &Hosts, times: usize) -> f64 {
    let server = hosts.b.run(|| UdpSocket::bind((B, 0))).unwrap().unwrap();
    let client = hosts.a.run(|| UdpSocket::bind((A, 0))).unwrap().unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut packet = [0; 64];
            loop {
                let (length, from) = server.recv_from(&mut packet).unwrap();
                if length == 0 {
                    break;
                }
                server.send_to(&packet[..length], from).unwrap();
            }
        });
        let mut packet = [0; 64];
        let mut trips: Vec<f64> = (0..times)
            .map(|_| {
                let sent = Instant::now();
                client.send(&packet).unwrap();
                client.recv(&mut packet).unwrap();
                sent.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        client.send(&[]).unwrap();
        median(&mut trips)
    })
}

/// Bytes that the interface of the calling thread's host has received. (A socket would lose
/// some whenever its reader is late.)
fn received_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Offers more than `rate` and returns the frame bytes that arrive in each of `seconds`.
fn flood(hosts: &Hosts, rate: u64, seconds: usize) -> Vec<u64> {
    let sink = hosts.b.run(|| UdpSocket::bind((B, 0))).unwrap().unwrap();
    let source = hosts.a.run(|| UdpSocket::bind((A, 0))).unwrap().unwrap();
    source.connect(sink.local_addr().unwrap()).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let packet = [0; PAYLOAD];
            let begin = Instant::now();
            let mut sent = 0u64;
            while !done.load(Ordering::Relaxed) {
                let allowed = begin.elapsed().as_secs_f64() * 1.5 * rate as f64 / 8.0;
                while sent * FRAME < allowed as u64 {
                    source.send(&packet).unwrap();
                    sent += 1;
                }
                thread::sleep(Duration::from_micros(300));
            }
        });
        let read = || (Instant::now(), hosts.b.run(received_bytes).unwrap());
        // The queue is full after a while.
        thread::sleep(Duration::from_millis(500));
        let mut before = read();
        let windows = (0..seconds)
            .map(|_| {
                thread::sleep(Duration::from_secs(1));
                let now = read();
                let (span, bytes) = (now.0 - before.0, now.1 - before.1);
                before = now;
                (bytes as f64 / span.as_secs_f64()) as u64
            })
            .collect();
        done.store(true, Ordering::Relaxed);
        windows
    })
}

const A: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// Two hosts, and the namespace between them.
struct Hosts {
    a: Namespace,
    b: Namespace,
    middle: Namespace,
}

impl Hosts {
    fn new() -> Result<Self, NetnsError> {
        let hosts = Self { a: Namespace::new()?, b: Namespace::new()?, middle: Namespace::new()? };
        let ports = [("left", &hosts.a, A), ("right", &hosts.b, B)];
        for (name, host, address) in ports {
            let make = || {
                let mut links = Links::open()?;
                links.add_veth(name, "eth0", Home::Namespace(host))?;
                links.offloads_off(name)?;
                links.set_up(name)
            };
            hosts.middle.run(make).unwrap().unwrap();
            let configure = || {
                set_parameter("ipv6.conf.eth0.disable_ipv6", "1").unwrap();
                let mut links = Links::open()?;
                links.offloads_off("eth0")?;
                links.set_up("eth0")?;
                links.add_address("eth0", address.into(), 24)
            };
            host.run(configure).unwrap().unwrap();
        }
        Ok(hosts)
    }

    /// Joins the hosts, runs `job` and returns what it returns.
    fn joined_by<T: Send>(&self, middle: Middle, job: impl FnOnce() -> T) -> (T, Option<Report>) {
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
            Middle::Engine(spec, rate) => {
                let link = || LinkConfig::new(spec.parse().unwrap(), Rate(rate));
                let open = || Engine::bridge("left", "right", link(), link());
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
