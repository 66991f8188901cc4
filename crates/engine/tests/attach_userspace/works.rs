//! What is attached shapes, and loses nothing but what the discipline drops.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use engine::control::{self, Changes};
use engine::userspace::HookKind;
use engine::{Overhead, Rate};
use netdev::link::Links;

use super::hooks;
use super::hosts::{A4, A6, B4, B6, Hosts, Stop, adds_up, came_through, link, server};
use super::probe::probed;

const AMPLE: u64 = 200_000_000;

#[test]
fn tcp_passes_both_directions_over_ipv4_and_ipv6() {
    let Some(hosts) = Hosts::new() else { return };
    for hook in hooks() {
        for (near, far) in [(A4, B4), (A6, B6)] {
            let fifo = || link("fifo:limit=10000packets", AMPLE);
            let ((), report) = hosts.while_attached(fifo(), fifo(), hook, || {
                hosts.transfer(&hosts.a, server(&hosts.b, far), 3_000_000);
                hosts.transfer(&hosts.b, server(&hosts.a, near), 3_000_000);
            });
            assert_eq!(report.fault, None);
            for direction in &report.directions {
                adds_up(direction);
                assert!(direction.sent.packets > 0, "{direction:#?}");
                assert!(came_through(direction).bytes > 3_000_000, "{direction:#?}");
                assert_eq!(direction.dropped().packets, 0, "{direction:#?}");
                assert_eq!(direction.lost_in_kernel, 0, "{direction:#?}");
                assert_eq!(direction.queued.packets, 0, "{direction:#?}");
            }
            assert_eq!(hosts.left_behind(), [""; 0]);
        }
    }
}

#[test]
fn attaching_and_detaching_lose_no_packet() {
    let Some(hosts) = Hosts::new() else { return };
    // Where there is no clsact, the kernel loses packets of its own while it makes or removes one.
    Hosts::says(&hosts.a, "tc qdisc add dev eth0 clsact");
    for hook in hooks() {
        let (begin, probes) = probed(&hosts, || {
            let begin = std::time::Instant::now();
            for _ in 0..5 {
                // 8 Mbit/s are more than the probes need.
                let config = || link("efd", 8_000_000);
                let ((), report) = hosts.while_attached(config(), config(), hook, || {
                    thread::sleep(Duration::from_millis(300));
                });
                for direction in &report.directions {
                    adds_up(direction);
                    assert!(direction.sent.packets > 0);
                    assert_eq!(direction.lost_in_kernel, 0);
                    assert_eq!(direction.queued.packets + direction.dropped().packets, 0);
                }
            }
            begin
        });
        for probe in &probes {
            let end = *probe.sent.last().unwrap();
            assert_eq!(probe.lost(begin, end), 0, "{hook:?}");
            probe.none_came_twice();
        }
    }
    Hosts::says(&hosts.a, "tc qdisc del dev eth0 clsact");
    assert_eq!(hosts.left_behind(), [""; 0]);
}

#[test]
fn rate_parameters_and_discipline_change_while_packets_are_queued() {
    let Some(hosts) = Hosts::new() else { return };
    let index = hosts.a.run(|| Links::open().unwrap().get("eth0").unwrap().index).unwrap();
    let config = || link("fifo:limit=2000packets", 100_000_000);
    let engine = hosts.attach(config(), config(), HookKind::Auto);
    let stop = AtomicBool::new(false);
    let done = AtomicBool::new(false);
    let adsl: Overhead = "pppoe-vcmux".parse().unwrap();
    let changes = [
        Changes { rate: Some(Rate(2_000_000_000)), ..Changes::default() },
        Changes { scheduler: Some("efd:limit=2000packets".into()), ..Changes::default() },
        Changes { scheduler: Some("efd:limit=3000packets".into()), ..Changes::default() },
        Changes { rate: Some(Rate(50_000_000)), overhead: Some(adsl), ..Changes::default() },
        Changes { scheduler: Some("fq-codel:limit=2000packets".into()), ..Changes::default() },
        Changes { ingress_rate: Some(Rate(1_000_000_000)), ..Changes::default() },
        Changes { scheduler: Some("run2c:limit=2000packets".into()), ..Changes::default() },
    ];
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| engine.run_live(&stop, || {}));
        let stopping = Stop(&stop);
        thread::sleep(Duration::from_millis(100));
        let traffic = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                hosts.transfer(&hosts.a, server(&hosts.b, B4), 1_000_000);
                hosts.transfer(&hosts.b, server(&hosts.a, A4), 1_000_000);
            }
        });
        let finished = Stop(&done);
        for change in &changes {
            thread::sleep(Duration::from_millis(150));
            hosts.a.run(|| control::change(index, change)).unwrap().unwrap();
        }
        let status = hosts.a.run(|| control::status(index)).unwrap().unwrap();
        assert_eq!(status[0].scheduler, "run2c:limit=2000packets");
        assert_eq!((status[0].link.rate, status[0].link.overhead), (Rate(50_000_000), adsl));
        assert_eq!(status[1].link.rate, Rate(1_000_000_000));
        // What a live link does not tell is not made up.
        let srpt = Changes { scheduler: Some("srpt".into()), ..Changes::default() };
        let refused = hosts.a.run(|| control::change(index, &srpt)).unwrap();
        assert!(refused.unwrap_err().to_string().contains("srpt needs"));
        drop(finished);
        traffic.join().unwrap();
        drop(stopping);
        running.join().unwrap().unwrap()
    });
    assert_eq!(report.fault, None);
    report.directions.iter().for_each(adds_up);
    assert_eq!(hosts.left_behind(), [""; 0]);
}
