//! Web sessions: times of pages, connections, and the same pages under every discipline.

mod common;

use std::collections::BTreeMap;

use common::{Line, broken_line, discipline, line};
use sched::Nanos;
use sim::sources::{Visitors, Web, WebConfig, WebIndex};
use sim::{Exchange, ExchangeKind, FlowReport, Recorder, Simulation};
use tcp::Config;
use workload::Random;

#[derive(Default)]
struct Seen {
    flows: Vec<FlowReport>,
    exchanges: Vec<Exchange>,
}

impl Recorder for Seen {
    fn flow(&mut self, report: &FlowReport) {
        self.flows.push(report.clone());
    }
    fn exchange(&mut self, exchange: &Exchange) {
        self.exchanges.push(*exchange);
    }
}

impl Seen {
    fn pages(&self) -> Vec<&Exchange> {
        self.exchanges.iter().filter(|e| e.kind == ExchangeKind::Page).collect()
    }
}

const MS: u64 = 1_000_000;
/// 40 bytes take 3.2 us on an access link, 32 us on the bottleneck, and 1 ms on each link.
const SMALL: u64 = 3 * MS + 2 * 3_200 + 32_000;
/// A handshake, a request of 100 bytes behind the handshake's acknowledgment, 1460 bytes.
const OBJECT: u64 =
    2 * SMALL + (3 * MS + 3_200 + 32_000 + 112_000 + 11_200) + (3 * MS + 2 * 120_000 + 1_200_000);

/// Runs a web of a client and a server for some seconds.
fn run(seed: u64, queue: &str, seconds: u64, change: impl FnOnce(&mut WebConfig)) -> Seen {
    run_on(line(10_000_000, discipline(queue)), seed, seconds, change)
}

fn run_on(line: Line, seed: u64, seconds: u64, change: impl FnOnce(&mut WebConfig)) -> Seen {
    let mut simulation = Simulation::new(line.network, 1);
    let tcp = Config { mss: 1460, syn_tries: 1, ..Config::ns2() };
    let tcp = simulation.add_tcp(tcp).expect("a good configuration");
    let mut config = WebConfig {
        visitors: Visitors::Users(1),
        clients: vec![line.there.receiver],
        servers: vec![line.there.sender],
        tcp,
        objects: "fixed:count=1".parse().expect("a law"),
        object_bytes: "fixed:size=1460b".parse().expect("a law"),
        request_bytes: 100,
        between_objects: "fixed:time=0s".parse().expect("a law"),
        think: "fixed:time=100ms".parse().expect("a law"),
        connections: 1,
        persistent: false,
        from: Nanos(5 * MS),
        until: Nanos::from_secs(seconds),
    };
    change(&mut config);
    simulation.add_source(Box::new(Web::new(config, Random::new(seed))));
    let mut seen = Seen::default();
    simulation.run_until(Nanos::from_secs(seconds), &mut seen).expect("it runs");
    simulation.finish(&mut seen);
    seen.flows.sort_by_key(|flow| flow.index);
    seen
}

fn index(session: u32, page: u32, object: u32) -> u64 {
    WebIndex { session, page, object }.into()
}

#[test]
fn an_index_comes_back() {
    for (session, page, object) in [(0, 0, 0), (3, 2, 1), (1 << 23, (1 << 20) - 1, (1 << 20) - 1)] {
        let expected = WebIndex { session, page, object };
        assert_eq!(WebIndex::from(u64::from(expected)), expected);
    }
}

#[test]
fn a_user_thinks_and_fetches_a_page_in_turn() {
    let seen = run(1, "fifo", 1, |_| {});
    let pages = seen.pages();
    // Pages begin every 100 ms and what a page takes, from 105 ms on.
    assert_eq!(pages.len(), 8);
    for (number, page) in (0..).zip(&pages) {
        let begin = 105 * MS + u64::from(number) * (OBJECT + 100 * MS);
        assert_eq!(page.index, index(0, number, 0));
        assert_eq!((page.due, page.sent), (Nanos(begin), Some(Nanos(begin))));
        assert_eq!(page.completed, Some(Nanos(begin + OBJECT)), "page {number}");
        let flow = &seen.flows[number as usize];
        assert_eq!((flow.index, flow.received), (page.index, 1460));
        assert_eq!((flow.started, flow.completed), (page.due, page.completed));
        assert_eq!(flow.label.to_string().split(' ').next_back(), Some("tcp"));
    }
}

#[test]
fn objects_wait_for_a_free_connection() {
    let seen = run(1, "fifo", 1, |config| {
        config.objects = "fixed:count=5".parse().expect("a law");
        config.connections = 2;
        config.think = "fixed:time=600ms".parse().expect("a law");
    });
    let [page] = seen.pages()[..] else { panic!("one page") };
    let times: Vec<(Nanos, Nanos)> =
        seen.flows.iter().map(|f| (f.started, f.completed.expect("complete"))).collect();
    assert_eq!(times.len(), 5);
    assert_eq!((times[0].0, times[1].0), (page.due, page.due));
    for later in 2..5 {
        // It starts when one before is complete, and then exactly one is under way.
        let start = times[later].0;
        assert!(times[..later].iter().any(|(_, completed)| *completed == start), "{later}");
        let open = times[..later].iter().filter(|(_, completed)| *completed > start).count();
        assert_eq!(open, 1);
    }
    assert_eq!(page.completed, times.iter().map(|(_, completed)| *completed).max());
    assert_eq!(page.bytes, 5 * 1460);
}

#[test]
fn objects_start_when_the_browser_knows_of_them() {
    let seen = run(1, "fifo", 1, |config| {
        config.objects = "fixed:count=3".parse().expect("a law");
        config.between_objects = "fixed:time=30ms".parse().expect("a law");
        config.think = "fixed:time=600ms".parse().expect("a law");
    });
    let starts: Vec<u64> = seen.flows.iter().map(|flow| flow.started.0 / MS).collect();
    assert_eq!(starts, [605, 635, 665]);
    assert_eq!(seen.pages()[0].completed, Some(Nanos(665 * MS + OBJECT)));
}

#[test]
fn a_connection_that_stays_open_saves_handshakes() {
    let seen = run(1, "fifo", 1, |config| {
        config.objects = "fixed:count=3".parse().expect("a law");
        config.persistent = true;
    });
    let [flow] = seen.flows.as_slice() else { panic!("one connection for all pages") };
    assert_eq!(flow.index, index(0, 0, 0));
    let objects: Vec<&Exchange> =
        seen.exchanges.iter().filter(|e| e.kind == ExchangeKind::Object).collect();
    assert_eq!(objects[0].completed, Some(Nanos(105 * MS + OBJECT)));
    // Every object but the first does without a handshake; the second goes out just behind the
    // acknowledgment of the first.
    assert_eq!(objects[1].sent, objects[0].completed);
    let took = |e: &Exchange| e.completed.expect("complete").since(e.sent.expect("sent")).0;
    assert_eq!(took(objects[1]), OBJECT - 2 * SMALL);
    assert!(objects.len() > 9 && objects[3..9].iter().all(|e| took(e) <= OBJECT - 2 * SMALL));
    let pages = seen.pages();
    assert_eq!((pages[0].completed, pages[0].bytes), (objects[2].completed, 3 * 1460));
    assert_eq!(
        flow.received,
        1460 * objects.iter().filter(|e| e.completed.is_some()).count() as u64
    );
}

#[test]
fn sessions_come_and_go() {
    let seen = run(3, "fifo", 60, |config| {
        let pages = "fixed:count=2".parse().expect("a law");
        config.visitors = Visitors::Sessions { per_second: 5.0, pages };
        config.until = Nanos::from_secs(50);
    });
    let sessions: BTreeMap<u32, u32> = seen.pages().iter().fold(BTreeMap::new(), |mut of, page| {
        *of.entry(WebIndex::from(page.index).session).or_default() += 1;
        of
    });
    // 250 are expected; four standard deviations.
    assert!((186..=314).contains(&sessions.len()), "{}", sessions.len());
    // Each has two pages, but for those that end at the end.
    let shorter = sessions.values().filter(|pages| **pages != 2).count();
    assert!(shorter <= 3, "{shorter}");
    assert!(seen.flows.iter().all(|flow| flow.closed.is_some()));
}

#[test]
fn every_discipline_sees_the_same_pages() {
    let busy = |queue: &str| {
        let seen = run(9, queue, 30, |config| {
            config.visitors = Visitors::Users(40);
            config.objects = "uniform:min=2,max=7".parse().expect("a law");
            config.object_bytes =
                "bounded-pareto:shape=1.2,min=2kb,max=2mb".parse().expect("a law");
            config.between_objects = "exponential:mean=50ms".parse().expect("a law");
            config.think = "exponential:mean=1s".parse().expect("a law");
            config.connections = 4;
        });
        let sizes = |index: u64, bytes| (index, bytes);
        let pages: BTreeMap<u64, u64> =
            seen.pages().iter().map(|page| sizes(page.index, page.bytes)).collect();
        let objects: BTreeMap<u64, u64> =
            seen.flows.iter().map(|flow| sizes(flow.index, flow.bytes)).collect();
        let took: u64 =
            seen.flows.iter().filter_map(|f| Some(f.completed?.since(f.started).0)).sum();
        (pages, objects, took)
    };
    let (fifo, las) = (busy("fifo:limit=50packets"), busy("las:limit=50packets"));
    assert_ne!(fifo.2, las.2, "they do differ");
    let common = |a: &BTreeMap<u64, u64>, b: &BTreeMap<u64, u64>| {
        let both = a.keys().filter(|index| b.contains_key(index)).count();
        assert!(a.iter().all(|(index, bytes)| b.get(index).is_none_or(|other| other == bytes)));
        both
    };
    assert!(common(&fifo.0, &las.0) > 200);
    assert!(common(&fifo.1, &las.1) > 1000);
}

#[test]
fn pages_that_are_not_complete_are_told_at_the_end() {
    let seen = run(1, "fifo", 1, |config| {
        config.object_bytes = "fixed:size=100mb".parse().expect("a law");
    });
    let [page] = seen.pages()[..] else { panic!("one page") };
    assert_eq!((page.due, page.completed), (Nanos(105 * MS), None));
}

#[test]
fn a_page_whose_connections_fail_is_given_up_and_the_user_goes_on() {
    for persistent in [false, true] {
        let seen = run_on(broken_line(), 1, 10, |config| {
            config.objects = "fixed:count=2".parse().expect("a law");
            config.connections = 2;
            config.persistent = persistent;
        });
        // A SYN is given up after 3 s.
        let begins: Vec<u64> = seen.pages().iter().map(|page| page.due.0 / MS).collect();
        assert_eq!(begins, [105, 3205, 6305, 9405]);
        assert!(seen.pages().iter().all(|page| page.completed.is_none()));
        assert_eq!(seen.flows.len(), 8);
        let objects = seen.exchanges.iter().filter(|e| e.kind == ExchangeKind::Object).count();
        assert_eq!(objects, if persistent { 8 } else { 0 });
    }
}
