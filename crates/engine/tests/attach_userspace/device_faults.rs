//! What happens to the device while an engine has it.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use engine::Report;
use engine::userspace::HookKind;
use netdev::link::Links;
use netdev::netns::Namespace;

use super::hooks;
use super::hosts::{A4, B4, Hosts, Stop, adds_up, link, server};
use super::probe::probed;

const SPEC: &str = "fifo:limit=1000packets";
const RATE: u64 = 50_000_000;

fn links(host: &Namespace) -> Links {
    host.run(|| Links::open().unwrap()).unwrap()
}

/// Runs an engine until it ends because of what `job` does.
fn until_fault(hosts: &Hosts, hook: HookKind, job: impl FnOnce()) -> Report {
    let engine = hosts.attach(link(SPEC, RATE), link(SPEC, RATE), hook);
    let stop = AtomicBool::new(false);
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| engine.run(&stop));
        let stopping = Stop(&stop);
        hosts.transfer(&hosts.a, server(&hosts.b, B4), 100_000);
        job();
        // It ends by itself.
        std::mem::forget(stopping);
        running.join().unwrap().unwrap()
    });
    report.directions.iter().for_each(adds_up);
    report
}

#[test]
fn a_device_that_is_removed_or_moved_ends_the_engine_with_the_reason() {
    for hook in hooks() {
        let Some(hosts) = Hosts::new() else { return };
        let report = until_fault(&hosts, hook, || links(&hosts.a).remove("eth0").unwrap());
        assert!(report.fault.unwrap().starts_with("eth0: the interface was removed"));
        assert!(!Hosts::says(&hosts.a, "ip -o link").contains("shortlane"));

        let Some(hosts) = Hosts::new() else { return };
        let elsewhere = Namespace::new().unwrap();
        let report = until_fault(&hosts, hook, || {
            hosts.a.run(|| Hosts::move_to("eth0", &elsewhere)).unwrap();
        });
        assert!(report.fault.unwrap().contains("moved to another network namespace"));
        assert!(!Hosts::says(&hosts.a, "ip -o link").contains("shortlane"));
        // It has no program left where it is now.
        let there = Hosts::says(&elsewhere, "bpftool net show dev eth0");
        assert!(!there.contains("shortlane"), "{there}");
        assert!(!Hosts::says(&elsewhere, "tc qdisc show dev eth0").contains("clsact"));
    }
}

#[test]
fn a_tap_that_somebody_switches_off_or_removes_ends_the_engine_and_traffic_flows() {
    for change in ["down", "gone"] {
        let Some(hosts) = Hosts::new() else { return };
        let ((report, changed), probes) = probed(&hosts, || {
            let mut changed = Instant::now();
            let report = until_fault(&hosts, HookKind::Auto, || {
                changed = Instant::now();
                match change {
                    "down" => links(&hosts.a).set_down("shortlane0").unwrap(),
                    _ => links(&hosts.a).remove("shortlane0").unwrap(),
                }
            });
            thread::sleep(Duration::from_secs(2));
            (report, changed)
        });
        let fault = report.fault.unwrap();
        assert!(fault.starts_with("shortlane0: "), "{fault}");
        let end = *probes[0].sent.last().unwrap();
        for probe in &probes {
            assert_eq!(probe.lost(changed + Duration::from_secs(1), end), 0);
            let silence = probe.longest_silence(changed, end);
            println!("TAP {change}: nothing passed for {silence:?}");
        }
        assert_eq!(hosts.left_behind(), [""; 0]);
    }
}

#[test]
fn a_device_may_be_renamed_go_down_and_up_lose_its_carrier_and_change_its_mtu() {
    let Some(hosts) = Hosts::new() else { return };
    let long = || link(SPEC, 2_000_000_000);
    for config in [|| link(SPEC, RATE), long] {
        let ((), report) = hosts.while_attached(config(), config(), HookKind::Auto, || {
            let again = |what: &str| {
                println!("after {what}");
                hosts.transfer(&hosts.a, server(&hosts.b, B4), 200_000);
                hosts.transfer(&hosts.b, server(&hosts.a, A4), 200_000);
            };
            Hosts::says(&hosts.a, "ip link set eth0 down");
            Hosts::says(&hosts.a, "ip link set eth0 name wan");
            Hosts::says(&hosts.a, "ip link set wan up");
            again("being down, another name");
            Hosts::says(&hosts.a, "ip link set wan down");
            Hosts::says(&hosts.a, "ip link set wan name eth0");
            Hosts::says(&hosts.a, "ip link set eth0 up");
            let mut far = links(&hosts.b);
            far.set_down("eth0").unwrap();
            thread::sleep(Duration::from_millis(200));
            far.set_up("eth0").unwrap();
            again("having no carrier");
            for mtu in [9000, 1280, 1500] {
                links(&hosts.a).set_mtu("eth0", mtu).unwrap();
                far.set_mtu("eth0", mtu).unwrap();
                again(&format!("an MTU of {mtu}"));
            }
        });
        assert_eq!(report.fault, None);
        report.directions.iter().for_each(adds_up);
        assert_eq!(hosts.left_behind(), [""; 0]);
    }
}
