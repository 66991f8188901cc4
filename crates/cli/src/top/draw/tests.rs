//! Frames of made-up statuses.

use engine::status::{DropCounter, Heading, Host, LaneCounters, Process, Seen, Standing, Tally};
use engine::{Framing, LinkSettings};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use sched::Nanos;

use super::*;

fn flow(n: u64, lane: u8) -> Flow {
    Flow {
        flow: format!("10.0.0.1:{} > 192.0.2.7:443 tcp", 40_000 + n),
        lane: Some(lane),
        standing: None,
        arrived: Tally { packets: 10, bytes: 15_000 },
        sent: Tally { packets: 9, bytes: 13_500 * n },
        dropped_packets: n,
        marked_packets: 0,
        arriving_bps: 1_230_000 * n,
        age: Nanos::from_millis(n * 1500),
        idle: Nanos::ZERO,
    }
}

fn lane(packets: u64, wait_ns: u64) -> LaneCounters {
    let mut lane = LaneCounters {
        enqueued_packets: packets,
        sent_packets: packets,
        sent_bytes: packets * 1500,
        backlog_packets: 3,
        backlog_bytes: 4500,
        ..LaneCounters::default()
    };
    (0..packets).for_each(|_| lane.sojourn.count(Nanos(wait_ns)));
    lane
}

/// So many seconds after it was attached, 250 short and 750 long packets a second.
pub(in crate::top) fn status(seconds: u64, direction: Heading) -> Status {
    Status {
        device: "eth0".into(),
        ifindex: 2,
        engine: EngineKind::Userspace,
        direction,
        scheduler: "efd:threshold=30packets".into(),
        limit: Some("300packets".into()),
        link: LinkSettings {
            rate: Rate(20_000_000),
            overhead: "docsis".parse().unwrap(),
            burst_time: Nanos::from_millis(1),
        },
        framing: Framing { mpu: 64, ..Framing::bytes(4) },
        uptime: Nanos::from_secs(seconds),
        attached_at: Nanos(7),
        lanes: vec![lane(250 * seconds, 700_000), lane(750 * seconds, 50_000_000)],
        drops: vec![DropCounter { reason: "full".into(), lane: Some(1), packets: 5 * seconds }],
        most_packets: 100,
        flows: 12,
        most_flows: 40,
        flow_bound: Some(4096),
        flows_created: 50,
        flows_removed: 38,
        demoted: 2 * seconds,
        promoted: seconds,
        process: Some(Process {
            pid: 17,
            realtime: true,
            nat_revealed: true,
            ..Process::default()
        }),
        seen: Some(Seen {
            biggest_flows: (1..=9).rev().map(|n| flow(n, 1)).collect(),
            newest_flows: (20..=29).map(|n| flow(n, 0)).collect(),
            ..Seen::default()
        }),
        ..Status::default()
    }
}

fn after(looks: u64) -> View {
    let mut view = View::new(vec![status(1, Heading::Egress)]);
    (2..=looks).for_each(|second| view.update(vec![status(second, Heading::Egress)]));
    view
}

#[test]
fn a_frame_of_80_by_24_has_everything() {
    let text = plain(&after(40), LEAST_SIZE);
    assert_eq!(text.lines().count(), 24, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in [
        "eth0 egress: efd:threshold=30packets, userspace engine, up 40s",
        "rate 12.0mbit of 20mbit (60 %)   overhead docsis   limit 300packets",
        // Of the last second: 250 packets of 1000, below the bounds of their buckets.
        "short      25.0 %        10000p          3p      4.39kb    < 1.05ms    < 1.05ms",
        "long       75.0 %        30000p          3p      4.39kb    < 67.1ms    < 67.1ms",
        "dropped full 200 (+5)",
        "flows 12 of 4096, became long 80 (+2), short again 40 (+1), marked 0",
        "biggest flows",
        "10.0.0.1:40009 > 192.0.2.7:443 tcp            long 11.1mbit  119kb    9   13.5s",
        "newest flows",
        "10.0.0.1:40020 > 192.0.2.7:443 tcp           short 24.6mbit  264kb   20   30.0s",
        "q quit   p pause",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    let sparks: Vec<&str> = text.lines().skip(2).take(3).collect();
    // 60 % of three lines: one full, one four fifths, one empty.
    assert_eq!(sparks[2].trim(), "█".repeat(39), "{text}");
    assert_eq!(sparks[0].trim(), "", "{text}");
}

#[test]
fn of_flows_that_age_it_says_why_they_are_where_they_are() {
    let mut aged = status(2, Heading::Egress);
    aged.scheduler = "fq-lanes".into();
    aged.lanes.push(lane(1, 1));
    let seen = aged.seen.as_mut().unwrap();
    seen.biggest_flows[0].standing = Some(Standing { lane: 1, tier: 3, excess_bytes: 200_000 });
    seen.busiest_hosts = (2..=9)
        .map(|n| Host { host: format!("10.0.0.{n}"), arriving_bps: 1_000_000, ..Host::default() })
        .collect();
    let text = plain(&View::new(vec![aged]), LEAST_SIZE);
    for part in [
        "\nflows 12 of 4096, marked 0\n",
        "hosts: 10.0.0.2 1.00mbit, 10.0.0.3 1.00mbit, 10.0.0.4 1.00mbit\n",
        "biggest flows                                 lane      now   sent drop  excess\n",
        "10.0.0.1:40009 > 192.0.2.7:443 tcp         young 3 11.1mbit  119kb    9   195kb\n",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn what_does_not_fit_is_cut_off() {
    let view = after(3);
    for (width, height) in [(0, 0), (1, 1), (20, 5), (79, 12), (200, 60)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(&view, frame.area(), frame.buffer_mut())).unwrap();
    }
    let high = plain(&view, Size::new(200, 60));
    assert!(high.contains("40001 >") && high.contains("40029 >"), "{high}");
}

#[test]
fn paused_it_stays_as_it_is() {
    let mut view = after(5);
    let before = plain(&view, LEAST_SIZE);
    view.pause();
    view.update(vec![status(9, Heading::Egress)]);
    let paused = plain(&view, LEAST_SIZE);
    assert!(paused.contains("up 5s") && paused.contains("PAUSED"), "{paused}");
    view.pause();
    assert_eq!(plain(&view, LEAST_SIZE), before);
}

#[test]
fn the_other_direction_has_a_page_of_its_own() {
    let both = |second| vec![status(second, Heading::Egress), status(second, Heading::Ingress)];
    let mut view = View::new(both(1));
    view.update(both(2));
    assert!(plain(&view, LEAST_SIZE).contains("d other direction (1 of 2)"));
    view.turn();
    let text = plain(&view, LEAST_SIZE);
    assert!(text.contains("eth0 ingress:") && text.contains("rate 12.0mbit"), "{text}");
    // It goes away; the other one is shown.
    view.update(vec![status(3, Heading::Egress)]);
    assert!(plain(&view, LEAST_SIZE).contains("eth0 egress:"));
    view.update(Vec::new());
    assert!(plain(&view, LEAST_SIZE).contains("q quit"));
}

#[test]
fn attached_anew_it_counts_anew() {
    let mut view = after(9);
    let anew = Status { attached_at: Nanos(8), ..status(1, Heading::Egress) };
    view.update(vec![anew]);
    let text = plain(&view, LEAST_SIZE);
    assert!(text.contains("up 1s") && text.contains("rate - of 20mbit"), "{text}");
    assert!(!text.contains("(+"), "{text}");
}

#[test]
fn inside_the_kernel_a_discipline_may_not_tell_single_flows() {
    let mut kernel = status(1, Heading::Egress);
    (kernel.engine, kernel.process, kernel.seen) = (EngineKind::Kernel, None, None);
    (kernel.link.rate, kernel.drops) = (Rate::UNLIMITED, Vec::new());
    let text = plain(&View::new(vec![kernel]), LEAST_SIZE);
    for part in
        ["kernel engine", ", unlimited", "dropped none", "fq-lanes alone tells single flows"]
    {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn marks_have_names_for_long_flows() {
    let mut marks = status(1, Heading::Egress);
    (marks.engine, marks.process) = (EngineKind::Marks, None);
    marks.seen = Some(Seen { biggest_flows: vec![flow(9, 1)], ..Seen::default() });
    let text = plain(&View::new(vec![marks]), LEAST_SIZE);
    assert!(text.contains("long flows") && !text.contains("newest"), "{text}");
    assert!(text.contains("10.0.0.1:40009 > 192.0.2.7:443 tcp            long 11.1mbit"), "{text}");
}
