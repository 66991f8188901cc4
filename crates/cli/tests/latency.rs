//! `shortlane test` through a bottleneck of its own: known rates, known delays, whose queue it was.
//!
//! Client, router and server are namespaces. Further out is a queue of the kernel's own, the router's
//! `tbf`; near is a discipline of ours, attached to the client's device.
#![cfg(feature = "kernel")]

use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use netdev::link::{Home, Links};
use netdev::netns::{self, Namespace};
use nix::unistd::geteuid;
use serde_json::Value;

const SHORTLANE: &str = env!("CARGO_BIN_EXE_shortlane");

struct Path {
    client: Namespace,
    router: Namespace,
    server: Namespace,
    serving: Option<Child>,
}

fn run(at: &Namespace, command: &mut Command) -> Output {
    at.run(|| command.output().unwrap()).unwrap()
}

fn shell(at: &Namespace, script: &str) {
    let output = run(at, Command::new("sh").args(["-c", script]));
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Path {
    fn new() -> Option<Self> {
        if !geteuid().is_root() {
            eprintln!("SKIPPED, nothing was tested: not root");
            return None;
        }
        let all = (Namespace::new(), Namespace::new(), Namespace::new());
        let (Ok(client), Ok(router), Ok(server)) = all else {
            eprintln!("SKIPPED, nothing was tested: no namespaces");
            return None;
        };
        let mut path = Self { client, router, server, serving: None };
        path.router
            .run(|| {
                netns::set_parameter("ipv4.ip_forward", "1").unwrap();
                let mut links = Links::open().unwrap();
                links.add_veth("r0", "c0", Home::Namespace(&path.client)).unwrap();
                links.add_veth("r1", "s0", Home::Namespace(&path.server)).unwrap();
                for (device, address) in [("r0", "10.8.0.254"), ("r1", "10.8.1.254")] {
                    links.set_up(device).unwrap();
                    links.add_address(device, address.parse().unwrap(), 24).unwrap();
                }
            })
            .unwrap();
        let ends = [("c0", "10.8.0.1", &path.client), ("s0", "10.8.1.2", &path.server)];
        for (device, address, at) in ends {
            at.run(|| {
                let mut links = Links::open().unwrap();
                links.set_up("lo").unwrap();
                links.set_up(device).unwrap();
                links.add_address(device, address.parse().unwrap(), 24).unwrap();
            })
            .unwrap();
        }
        shell(&path.client, "ip route add default via 10.8.0.254");
        shell(&path.server, "ip route add default via 10.8.1.254");
        let serve = || {
            let mut command = Command::new(SHORTLANE);
            command.args(["test", "--server", "--listen", "10.8.1.2:4043"]);
            command.stderr(Stdio::null()).spawn().unwrap()
        };
        path.serving = Some(path.server.run(serve).unwrap());
        Some(path)
    }

    fn shortlane(&self, arguments: &str) -> Output {
        run(&self.client, Command::new(SHORTLANE).args(arguments.split(' ')))
    }

    fn succeed(&self, arguments: &str) -> Output {
        let output = self.shortlane(arguments);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {words}");
        output
    }

    /// The router sends at this rate by this device (`r0` is down, `r1` up), behind a queue of so
    /// many milliseconds.
    fn limit(&self, device: &str, mbit: u32, queue_ms: u32) {
        shell(
            &self.router,
            &format!(
                "tc qdisc replace dev {device} root tbf rate {mbit}mbit burst 5kb latency {queue_ms}ms"
            ),
        );
    }

    fn test(&self, duration: &str) -> Vec<Value> {
        let listens = || {
            let connect = || std::net::TcpStream::connect("10.8.1.2:4043").is_ok();
            self.client.run(connect).unwrap()
        };
        while !listens() {
            sleep(Duration::from_millis(20));
        }
        let output = self.succeed(&format!("test 10.8.1.2 --json --duration {duration}"));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["phases"].as_array().unwrap().clone()
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        let _ = self.shortlane("detach c0");
        if let Some(mut serving) = self.serving.take() {
            let _ = serving.kill();
            let _ = serving.wait();
        }
    }
}

fn number(phase: &Value, key: &str) -> f64 {
    phase[key].as_f64().unwrap_or_else(|| panic!("no {key} in {phase}"))
}

#[test]
#[ignore = "it measures delays, for a minute: make test-operators"]
fn a_long_queue_further_out_is_measured_and_graded() {
    let Some(path) = Path::new() else { return };
    path.limit("r0", 20, 100);
    path.limit("r1", 10, 150);
    let phases = path.test("17s");
    let [idle, down, up, both] = &phases[..] else { panic!("{phases:?}") };
    assert!(number(idle, "delay_median_ms") < 5.0, "{idle}");
    for (phase, key, mbit, queue_ms) in
        [(down, "down_bps", 20.0, 100.0), (up, "up_bps", 10.0, 150.0)]
    {
        // Headers take 3 to 5 % of what tbf counts, and the start of TCP some of five seconds.
        let carried = number(phase, key) / 1e6;
        assert!((0.80 * mbit..=mbit).contains(&carried), "{phase}");
        // Cubic's queue is between half full and full.
        let extra = number(phase, "extra_delay_ms");
        assert!((0.4 * queue_ms..=1.1 * queue_ms).contains(&extra), "{phase}");
    }
    assert!(number(both, "extra_delay_ms") > number(down, "extra_delay_ms"), "{both}");
    // Nothing is attached.
    assert!(phases.iter().all(|phase| phase["queue"].is_null()), "{phases:?}");
}

#[test]
#[ignore = "it measures delays, for a minute: make test-operators"]
fn it_says_whose_queue_it_was() {
    let Some(path) = Path::new() else { return };
    let queues = ["fifo:limit=100packets", "efd", "fq-codel", "cake", "fq-lanes"];
    let rates = [(10, 40), (20, 100), (30, 8), (50, 20)];
    for (scheduler, (ours, far_mbit)) in
        queues.iter().flat_map(|queue| rates.map(|rates| (*queue, rates)))
    {
        let whose = match scheduler {
            _ if far_mbit < ours => "further-out",
            // Who comes new waits behind all that is queued, as nowhere else.
            "fifo:limit=100packets" => "ours",
            _ => "nobodys",
        };
        path.succeed(&format!(
            "attach c0 --engine userspace --rate {ours}mbit --scheduler {scheduler}"
        ));
        path.limit("r1", far_mbit, 150);
        let phases = path.test("14s");
        assert_eq!(
            phases[2]["queue"], whose,
            "{scheduler} at {ours} before {far_mbit} Mbit/s: {}",
            phases[2]
        );
        path.succeed("detach c0");
    }
}

#[test]
fn a_server_that_is_killed_ends_it_in_one_line() {
    let Some(mut path) = Path::new() else { return };
    path.test("14s");
    let mut serving = path.serving.take().unwrap();
    let output = path.client.run(|| {
        let mut command = Command::new(SHORTLANE);
        command.args(["test", "10.8.1.2", "--duration", "60s"]);
        let running = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_secs(8));
        serving.kill().unwrap();
        serving.wait().unwrap();
        running.wait_with_output().unwrap()
    });
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = words.lines().filter(|line| line.starts_with("shortlane:")).collect();
    assert_eq!(said.len(), 1, "{words}");
    assert!(said[0].contains("no longer takes part"), "{words}");
}
