//! Whatever happens to the engine's process, traffic flows.

use std::thread;
use std::time::{Duration, Instant};

use engine::EngineError;
use engine::userspace::{HookKind, tidy_up};
use nix::sys::signal::Signal;

use super::hooks;
use super::hosts::{B4, Hosts, link, server};
use super::probe::probed;
use super::process::Process;

const RATE: u64 = 50_000_000;
const SPEC: &str = "fifo:limit=1000packets";
/// What was sent so long after a fault must arrive. Ten times what is promised, as the machine
/// may be busy.
const LATER: Duration = Duration::from_secs(1);

/// Whether anything was left on host a to be taken away. A child that another test has just forked
/// holds a copy of our lock until it runs its program.
fn tidied(hosts: &Hosts) -> bool {
    for _ in 0..200 {
        match hosts.a.run(|| tidy_up("eth0")).unwrap() {
            Err(EngineError::Taken { .. }) => thread::sleep(Duration::from_millis(10)),
            result => return result.unwrap(),
        }
    }
    panic!("eth0 stays taken");
}

#[test]
fn a_killed_engine_leaves_the_traffic_flowing_and_nothing_behind() {
    let Some(hosts) = Hosts::new() else { return };
    for hook in hooks() {
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
            let silence = probe.longest_silence(killed, end);
            println!("{hook:?} {direction}: nothing passed for {silence:?} after kill -9");
        }
        match hook {
            HookKind::Clsact => {
                let left = hosts.left_behind();
                assert!(left.iter().any(|line| line.contains("clsact")), "{left:?}");
                assert!(!left.iter().any(|line| line.contains("alias")), "no TAP: {left:?}");
                // The next one takes it away, and its own when it ends.
                let ((), _) = hosts.while_attached(link(SPEC, RATE), None, hook, || {});
                assert!(!tidied(&hosts));
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
    assert!(tidied(&hosts), "there was something");
    assert_eq!(hosts.left_behind(), [""; 0]);
}

#[test]
fn a_stopped_engine_lets_traffic_pass_and_works_again_when_it_goes_on() {
    let Some(hosts) = Hosts::new() else { return };
    for hook in hooks() {
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
            let silence = probe.longest_silence(stopped, going_on);
            println!("{hook:?} {direction}: nothing passed for {silence:?} after SIGSTOP");
        }
        let report = process.end();
        for (direction, probe) in report.directions.iter().zip(&probes) {
            let before = probe.sent.iter().filter(|sent| **sent < stopped).count() as u64;
            let after = probe.sent.iter().filter(|sent| **sent > going_on + LATER).count() as u64;
            let all = probe.sent.len() as u64;
            // One or the other had each of them.
            let (had, passed) = (direction.received.packets, direction.passed.packets);
            assert!(had >= before + after && had < all, "{had} of {all}: {before}, {after}");
            assert!(passed > 0 && had + passed >= all, "{had} and {passed} of {all}");
        }
        assert_eq!(hosts.left_behind(), [""; 0]);
    }
}
