use sched::{Backlog, FlowId, Qdisc, Spec};

use super::*;
use crate::status::Histogram;

/// A discipline and its observer, which are given packets by hand.
struct Bench {
    qdisc: Box<dyn Qdisc<Account<Live>>>,
    live: Account<Live>,
    next: u64,
}

fn key(flow: u64) -> FlowKey {
    let [a, b, ..] = flow.to_be_bytes()[6..] else { unreachable!("two bytes are left") };
    FlowKey {
        endpoints: Endpoints::V4([10, 0, a, b], [10, 9, 9, 9]),
        selector: Selector::Ports(1000, 80),
        protocol: 6,
        vlans: 0,
    }
}

impl Bench {
    fn new(spec: &str) -> Self {
        let spec: Spec = spec.parse().unwrap();
        Self { qdisc: spec.build(1), live: Live::account(2), next: 0 }
    }

    fn arrive(&mut self, flow: u64, size: u32, now: u64) {
        let packet = Packet::new(FlowId::new(flow), size).with_id(self.next);
        self.next += 1;
        Observer::arriving(&mut self.live, &packet, &key(flow), Nanos(now));
        self.qdisc.enqueue(packet, Nanos(now), &mut self.live);
    }

    fn leave(&mut self, now: u64) -> Option<Packet> {
        self.qdisc.dequeue(Nanos(now), &mut self.live).packet()
    }

    fn seen(&self, now: u64) -> Seen {
        self.live.seen(Nanos(now))
    }

    /// What the lanes count must be what the discipline says.
    fn check(&self) {
        let lanes = self.live.totals().lanes.iter();
        let counted = lanes.fold(Backlog::default(), |sum, lane| sum + lane.backlog);
        assert_eq!(counted, self.qdisc.backlog());
    }
}

#[test]
fn lanes_are_counted_with_their_times() {
    let mut bench = Bench::new("efd:threshold=2packets,limit=100packets");
    for n in 0..5 {
        bench.arrive(1, 1000, n);
        bench.check();
    }
    bench.arrive(2, 100, 10);
    let seen = bench.seen(10);
    assert_eq!(seen.totals.most_packets, 6);
    assert_eq!(seen.totals.flows_created, 2);
    assert!(seen.totals.demotions >= 1);
    while bench.leave(5000).is_some() {
        bench.check();
    }
    let [short, long] = &bench.seen(5000).lanes[..] else { panic!("two lanes") };
    assert_eq!(short.sent_packets + long.sent_packets, 6);
    assert_eq!(short.sent_bytes + long.sent_bytes, 5100);
    assert!(long.sent_packets >= 2, "{long:?}");
    for lane in [short, long] {
        assert_eq!(lane.enqueued_packets, lane.sent_packets);
        assert_eq!(lane.sojourn.packets(), lane.sent_packets);
        // All waited a little less than 5000 ns.
        assert_eq!(lane.sojourn.quantile(0.0), Nanos(8192));
        assert_eq!(Histogram::bound(3), Nanos(8192));
    }
}

#[test]
fn drops_are_counted_by_reason_and_lane() {
    let mut bench = Bench::new("efd:threshold=1packets,limit=4packets");
    for n in 0..6 {
        bench.arrive(1, 1000, n);
        bench.check();
    }
    // Short ones push out the long ones; then nobody has to make room.
    for flow in 2..9 {
        bench.arrive(flow, 100, 20);
        bench.check();
    }
    let seen = bench.seen(20);
    let of = |reason: &str, lane| {
        let found = seen.drops.iter().find(|d| d.reason == reason && d.lane == Some(lane));
        found.map_or(0, |drop| drop.packets)
    };
    assert_eq!((of("full", 1), seen.lanes[1].full), (2, 2));
    assert!(of("pushed-out", 1) > 0);
    assert_eq!(of("pushed-out", 1), seen.lanes[1].pushed_out);
    assert_eq!(of("full", 0), seen.lanes[0].full);
    let all: u64 = seen.drops.iter().map(|drop| drop.packets).sum();
    assert_eq!(all + bench.qdisc.backlog().packets, 13);
    // Their buffers are free.
    assert_eq!(bench.live.freed().len() as u64, all);
}

#[test]
fn marks_and_congestion_drops_are_counted() {
    let mut bench = Bench::new("codel");
    // A standing queue for a second.
    for n in 0..2000u64 {
        let now = n * 1_000_000;
        bench.arrive(1, 1500, now);
        if n % 2 == 0 {
            bench.leave(now);
        }
        bench.check();
    }
    let seen = bench.seen(0);
    assert!(seen.lanes[0].congested > 0, "{:?}", seen.drops);
    assert_eq!(seen.lanes[0].congested, seen.drops.iter().map(|d| d.packets).sum::<u64>());
}

#[test]
fn each_discipline_for_live_links_tells_what_the_lanes_count() {
    for info in sched::registry::ALL {
        if info.needs.of_no_link().is_some() {
            continue;
        }
        let mut bench = Bench::new(info.name);
        for n in 0..3000u64 {
            bench.arrive(n * 7919 % 23, 60 + (n as u32 * 37) % 1400, n * 10_000);
            if n % 3 == 0 {
                bench.leave(n * 10_000);
            }
            bench.check();
        }
        let seen = bench.seen(30_000_000);
        let sum = |of: fn(&LaneCounters) -> u64| seen.lanes.iter().map(of).sum::<u64>();
        let dropped: u64 = seen.drops.iter().map(|drop| drop.packets).sum();
        let sent = sum(|lane| lane.sent_packets);
        assert_eq!(sum(|lane| lane.sojourn.packets()), sent, "{}", info.name);
        assert_eq!(sent + dropped + bench.qdisc.backlog().packets, 3000, "{}", info.name);
        assert!(!seen.biggest.is_empty(), "{}", info.name);
        let of_flows = seen.biggest_flows().iter().map(|flow| flow.sent.packets).sum::<u64>();
        assert_eq!(of_flows, sent, "{}: 23 flows are all listed", info.name);
    }
}

#[test]
fn what_is_no_ip_and_what_is_a_fragment_is_counted() {
    let mut live = Live::account(1);
    let packet = Packet::new(FlowId::new(1), 60);
    let mac = FlowKey { endpoints: Endpoints::Mac([1; 6], [2; 6]), ..key(1) };
    let fragment = FlowKey { selector: Selector::Fragment, ..key(1) };
    for key in [mac, fragment, key(1)] {
        Observer::arriving(&mut live, &packet, &key, Nanos::ZERO);
    }
    let counters = live.seen(Nanos::ZERO).counters;
    assert_eq!((counters.not_ip, counters.fragments, counters.super_packets), (1, 1, 0));
}

#[test]
fn hosts_are_the_sums_of_their_flows_the_busiest_first() {
    let mut bench = Bench::new("fq-lanes:limit=1000packets");
    for n in 0..60 {
        bench.arrive(1 + n % 3, 1000, n);
        bench.arrive(1, 500, n);
        bench.leave(n);
    }
    let mut seen = bench.seen(100);
    let hosts = seen.busiest_hosts(false);
    let told: Vec<_> = hosts.iter().map(|host| (host.host.as_str(), host.flows)).collect();
    assert_eq!(told, [("10.0.0.1", 1), ("10.0.0.2", 1), ("10.0.0.3", 1)]);
    let [host] = &seen.busiest_hosts(true)[..] else { panic!("one destination") };
    assert_eq!((host.host.as_str(), host.flows, host.sent.packets), ("10.9.9.9", 3, 60));
    let rate: u64 = 60 * 1500 * 8_000_000_000 / (1 << 30);
    // Each flow is rounded down.
    assert!((rate - 3..=rate).contains(&host.arriving_bps), "{} of {rate}", host.arriving_bps);

    seen.look_up(|flow| bench.qdisc.standing(flow, Nanos(100)));
    let flows = seen.biggest_flows();
    assert!(flows.iter().all(|flow| flow.standing.is_some()), "{flows:?}");
    let excess: u64 = flows.iter().map(|flow| flow.standing.unwrap().excess_bytes).sum();
    assert!((1..=host.sent.bytes).contains(&excess), "{excess} of {}", host.sent.bytes);
}
