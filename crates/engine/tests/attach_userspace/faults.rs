//! Whatever happens to the engine, traffic flows.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use engine::netns::Namespace;
use engine::userspace::{HookKind, tidy_up};
use nix::sys::signal::Signal;

use super::HOOKS;
use super::hosts::{A4, B4, Hosts, link, server};
use super::process::Process;

const RATE: u64 = 50_000_000;
const SPEC: &str = "fifo:limit=1000packets";
/// Between two probes of a direction.
const PERIOD: Duration = Duration::from_millis(1);
/// What was sent so long after a fault must arrive. Ten times what is promised, as the machine
/// may be busy.
const LATER: Duration = Duration::from_secs(1);

/// Numbered packets in one direction, all the time.
struct Probe {
    /// When each was sent, and whether it has arrived.
    sent: Vec<Instant>,
    arrived: BTreeMap<usize, u32>,
}

impl Probe {
    /// Sends from one host to the other until the flag is set.
    fn run(from: UdpSocket, to: &UdpSocket, stop: &AtomicBool) -> Self {
        from.connect(to.local_addr().unwrap()).unwrap();
        to.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let mut arrived = BTreeMap::new();
                let mut packet = [0; 8];
                // The silence after the last one ends it.
                while to.recv(&mut packet).is_ok() || !stop.load(Ordering::Relaxed) {
                    *arrived.entry(usize::from_ne_bytes(packet)).or_default() += 1;
                }
                arrived
            });
            let mut sent = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                // Full queues of the sender are no fault of ours.
                let _ = from.send(&sent.len().to_ne_bytes());
                sent.push(Instant::now());
                thread::sleep(PERIOD);
            }
            let arrived = receiving.join().unwrap();
            Self { sent, arrived }
        })
    }

    /// The longest time in which nothing that was sent has arrived.
    fn longest_gap(&self, since: Instant) -> Duration {
        let mut last = since;
        let mut longest = Duration::ZERO;
        for (number, sent) in self.sent.iter().enumerate().filter(|(_, sent)| **sent >= since) {
            if self.arrived.contains_key(&number) {
                longest = longest.max(*sent - last);
                last = *sent;
            }
        }
        longest
    }

    /// How many that were sent between two times have not arrived.
    fn lost(&self, from: Instant, to: Instant) -> usize {
        let sent = self.sent.iter().enumerate();
        sent.filter(|(number, sent)| {
            **sent >= from && **sent < to && !self.arrived.contains_key(number)
        })
        .count()
    }

    fn none_came_twice(&self) {
        let twice: Vec<_> = self.arrived.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "came more than once: {twice:?}");
    }
}

/// Probes both directions while `job` does what it does.
fn probed<T>(hosts: &Hosts, job: impl FnOnce() -> T) -> (T, [Probe; 2]) {
    let stop = AtomicBool::new(false);
    let sockets = || (Hosts::udp(&hosts.a, A4), Hosts::udp(&hosts.b, B4));
    let (from_a, to_b) = sockets();
    let (to_a, from_b) = sockets();
    thread::scope(|scope| {
        let forth = scope.spawn(|| Probe::run(from_a, &to_b, &stop));
        let back = scope.spawn(|| Probe::run(from_b, &to_a, &stop));
        // Hosts have found each other, and the probes run.
        thread::sleep(Duration::from_millis(500));
        let done = job();
        stop.store(true, Ordering::Relaxed);
        (done, [forth.join().unwrap(), back.join().unwrap()])
    })
}

#[test]
fn a_killed_engine_leaves_the_traffic_flowing_and_nothing_behind() {
    let Some(hosts) = Hosts::new() else { return };
    for hook in HOOKS {
        let mut process = Process::start(&hosts.a, SPEC, RATE, hook);
        let ((killed, end), probes) = probed(&hosts, || {
            let killed = Instant::now();
            process.signal(Signal::SIGKILL);
            process.wait();
            thread::sleep(LATER * 2);
            (killed, Instant::now())
        });
        for (probe, direction) in probes.iter().zip(["egress", "ingress"]) {
            assert_eq!(probe.lost(killed + LATER, end), 0, "{hook:?} {direction}");
            probe.none_came_twice();
            let gap = probe.longest_gap(killed);
            println!("{hook:?} {direction}: nothing passed for {gap:?} after kill -9");
        }
        match hook {
            HookKind::Clsact => {
                let left = hosts.left_behind();
                assert!(left.iter().any(|line| line.contains("clsact")), "{left:?}");
                assert!(!left.iter().any(|line| line.contains("alias")), "no TAP: {left:?}");
                // The next one takes it away, and its own when it ends.
                let ((), _) = hosts.while_attached(link(SPEC, RATE), None, hook, || {});
                assert!(!hosts.a.run(|| tidy_up("eth0")).unwrap().unwrap());
            }
            _ => assert_eq!(hosts.left_behind(), [""; 0]),
        }
        assert_eq!(hosts.left_behind(), [""; 0]);
        hosts.transfer(&hosts.a, server(&hosts.b, B4), 100_000);
    }
}

#[test]
fn what_a_killed_engine_leaves_on_clsact_can_be_taken_away() {
    let Some(hosts) = Hosts::new() else { return };
    let mut process = Process::start(&hosts.a, SPEC, RATE, HookKind::Clsact);
    process.signal(Signal::SIGKILL);
    process.wait();
    assert!(!hosts.left_behind().is_empty());
    assert!(hosts.a.run(|| tidy_up("eth0")).unwrap().unwrap(), "there was something");
    assert_eq!(hosts.left_behind(), [""; 0]);
}

#[test]
fn a_stopped_engine_lets_traffic_pass_and_works_again_when_it_goes_on() {
    let Some(hosts) = Hosts::new() else { return };
    for hook in HOOKS {
        let process = Process::start(&hosts.a, SPEC, RATE, hook);
        let ((stopped, going_on, end), probes) = probed(&hosts, || {
            let stopped = Instant::now();
            process.signal(Signal::SIGSTOP);
            thread::sleep(LATER * 2);
            let going_on = Instant::now();
            process.signal(Signal::SIGCONT);
            thread::sleep(LATER * 2);
            (stopped, going_on, Instant::now())
        });
        for (probe, direction) in probes.iter().zip(["egress", "ingress"]) {
            assert_eq!(probe.lost(stopped + LATER, going_on), 0, "{hook:?} {direction}");
            assert_eq!(probe.lost(going_on + LATER, end), 0, "{hook:?} {direction}");
            probe.none_came_twice();
            let gap = probe.longest_gap(stopped);
            println!("{hook:?} {direction}: nothing passed for {gap:?} after SIGSTOP");
        }
        let report = process.end();
        for direction in &report.directions {
            // It had the probes before, not those of two seconds, and those after.
            let most = probes[0].sent.len() as u64;
            let had = direction.received.packets;
            assert!(had > most / 4 && had < most * 3 / 4, "{had} of {most}");
            assert!(direction.passed.packets > 0, "{direction:#?}");
        }
        assert_eq!(hosts.left_behind(), [""; 0]);
    }
}
