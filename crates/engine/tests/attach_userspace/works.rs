//! What is attached shapes, and loses nothing but what the discipline drops.

use super::HOOKS;
use super::hosts::{A4, A6, B4, B6, Hosts, adds_up, link, server};

const AMPLE: u64 = 200_000_000;

#[test]
fn tcp_passes_both_directions_over_ipv4_and_ipv6() {
    let Some(hosts) = Hosts::new() else { return };
    for hook in HOOKS {
        for (near, far) in [(A4, B4), (A6, B6)] {
            let fifo = || link("fifo:limit=10000packets", AMPLE);
            let ((), report) = hosts.while_attached(fifo(), fifo(), hook, || {
                hosts.transfer(&hosts.a, server(&hosts.b, far), 3_000_000);
                hosts.transfer(&hosts.b, server(&hosts.a, near), 3_000_000);
            });
            assert_eq!(report.fault, None);
            for direction in &report.directions {
                adds_up(direction);
                assert!(direction.received.bytes > 3_000_000, "{direction:#?}");
                assert_eq!(direction.dropped().packets, 0, "{direction:#?}");
                assert_eq!(direction.lost_in_kernel, 0, "{direction:#?}");
                assert_eq!(direction.queued.packets, 0, "{direction:#?}");
            }
            assert_eq!(hosts.left_behind(), [""; 0]);
        }
    }
}
