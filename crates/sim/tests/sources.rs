//! What sources send, by hand calculation on an idle line.

mod common;

use common::{broken_line, discipline, line};
use sched::Nanos;
use sim::sources::{
    Bursts, DatagramStream, FlowPlan, Opener, RequestStream, Trace, Transfers, in_turn,
};
use sim::{ENDLESS, Exchange, ExchangeKind, FlowReport, Probe, Recorder, Simulation};
use tcp::Config;
use workload::{
    Cbr, Datagram, DatagramList, OnOff, Random, Requests, TimeLaw, Transfer, TransferList,
};

#[derive(Default)]
struct Seen {
    flows: Vec<FlowReport>,
    probes: Vec<Probe>,
    exchanges: Vec<Exchange>,
}

impl Recorder for Seen {
    fn flow(&mut self, report: &FlowReport) {
        self.flows.push(report.clone());
    }
    fn probe(&mut self, probe: &Probe) {
        self.probes.push(*probe);
    }
    fn exchange(&mut self, exchange: &Exchange) {
        self.exchanges.push(*exchange);
    }
}

const MS: u64 = 1_000_000;
const SECOND: Nanos = Nanos::from_secs(1);

/// 40 bytes take 3.2 us on an access link, 32 us on the bottleneck, and 1 ms on each link.
const SMALL: u64 = 3 * MS + 2 * 3_200 + 32_000;
/// 1500 bytes take 120 us and 1.2 ms.
const LARGE: u64 = 3 * MS + 2 * 120_000 + 1_200_000;

fn config() -> Config {
    Config { mss: 1460, ..Config::ns2() }
}

#[test]
fn a_burst_is_complete_when_its_last_datagram_is() {
    for (queue, completed) in [("fifo", true), ("fifo:limit=1packets", false)] {
        let line = line(10_000_000, discipline(queue));
        let mut simulation = Simulation::new(line.network, 1);
        let plan = |ms, bytes| FlowPlan { start: Nanos(ms * MS), bytes, pair: line.there };
        let plans = [plan(1, 2500), plan(100, 1000)];
        simulation.add_source(Box::new(Bursts::new(plans.into_iter(), 1000)));
        let mut seen = Seen::default();
        simulation.run_until(SECOND, &mut seen).expect("it runs");
        let [first, second] = seen.flows.as_slice() else { panic!("two flows") };
        // 1000, 1000 and 500 bytes leave the access link after 80, 160 and 200 us. On the
        // bottleneck they are sent without a pause from 1.08 ms on, for 0.8, 0.8 and 0.4 ms.
        let last = Nanos(MS + 1_080_000 + 2 * MS + MS + 40_000 + MS);
        assert_eq!(first.completed, completed.then_some(last), "{queue}");
        assert_eq!((first.bytes, first.received), (2500, if completed { 2500 } else { 2000 }));
        assert_eq!(second.completed, Some(Nanos(100 * MS + 3 * MS + 2 * 80_000 + 800_000)));
        assert_eq!((first.index, second.index), (0, 1));
    }
}

#[test]
fn a_download_takes_a_handshake_a_request_and_the_data() {
    let line = line(10_000_000, discipline("fifo"));
    let mut simulation = Simulation::new(line.network, 1);
    let tcp = simulation.add_tcp(config()).expect("a good configuration");
    let list = TransferList::new(vec![Transfer { start: Nanos(7), size_bytes: 1460 }]);
    let transfers = Transfers::planned(in_turn(list, vec![line.there]), tcp)
        .opened_by(Opener::Receiver { request_bytes: 100 });
    simulation.add_source(Box::new(transfers));
    let mut seen = Seen::default();
    simulation.run_until(SECOND, &mut seen).expect("it runs");
    let [report] = seen.flows.as_slice() else { panic!("one flow") };
    // The request follows the handshake's last acknowledgment: on the bottleneck it waits for
    // it, and is sent from 32 us after the acknowledgment's arrival on, for 112 us.
    let request = 3 * MS + 3_200 + 32_000 + 112_000 + 11_200;
    assert_eq!(report.connected, Some(Nanos(7 + 2 * SMALL)));
    assert_eq!(report.completed, Some(Nanos(7 + 2 * SMALL + request + LARGE)));
    assert_eq!((report.bytes, report.received), (1460, 1460));
    assert_eq!(report.label.to_string(), "10.0.0.1:80 > 10.0.0.4:1024 tcp");
}

#[test]
fn persistent_flows_start_one_after_another_and_never_end() {
    let line = line(10_000_000, discipline("drr"));
    let mut simulation = Simulation::new(line.network, 1);
    let tcp = simulation.add_tcp(Config::linux()).expect("a good configuration");
    let (from, spacing) = (Nanos(5 * MS), Nanos(10 * MS));
    let flows = Transfers::persistent(2, from, spacing, vec![line.there], tcp);
    simulation.add_source(Box::new(flows));
    let mut seen = Seen::default();
    simulation.run_until(Nanos::from_secs(10), &mut seen).expect("it runs");
    assert!(seen.flows.is_empty());
    simulation.finish(&mut seen);
    let [first, second] = seen.flows.as_slice() else { panic!("two flows") };
    assert_eq!((first.started, second.started), (Nanos(5 * MS), Nanos(15 * MS)));
    for report in [first, second] {
        assert_eq!((report.bytes, report.completed, report.closed), (ENDLESS, None, None));
    }
    // 10 s at 10 Mbit/s, less headers, the start, and what is queued behind a hole.
    let received = first.received + second.received;
    assert!((11_000_000..12_166_667).contains(&received), "{received}");
}

#[test]
fn periodic_transfers_start_on_time_between_their_pairs_in_turn() {
    let line = line(10_000_000, discipline("fifo"));
    let mut simulation = Simulation::new(line.network, 1);
    let tcp = simulation.add_tcp(config()).expect("a good configuration");
    let list = TransferList::periodic(5000, 2, Nanos(300 * MS), Nanos(100 * MS), SECOND);
    simulation.add_source(Box::new(Transfers::planned(in_turn(list, vec![line.there]), tcp)));
    let mut seen = Seen::default();
    simulation.run_until(Nanos::from_secs(10), &mut seen).expect("it runs");
    seen.flows.sort_by_key(|report| report.index);
    let starts: Vec<u64> = seen.flows.iter().map(|report| report.started.0 / MS).collect();
    assert_eq!(starts, [100, 100, 400, 400, 700, 700]);
    assert!(seen.flows.iter().all(|report| report.received == 5000));
}

#[test]
fn an_on_off_stream_sends_in_its_periods() {
    let line = line(10_000_000, discipline("fifo"));
    let mut simulation = Simulation::new(line.network, 1);
    let law = |text: &str| text.parse::<TimeLaw>().expect("a law");
    let (on, off) = (law("fixed:time=45ms"), law("fixed:time=100ms"));
    let stream = OnOff { peak: Cbr::VOICE, on, off };
    let times = (Nanos(5 * MS), Nanos(290 * MS));
    let source = DatagramStream::on_off(stream, line.there, 3, times, Random::new(1));
    simulation.add_source(Box::new(source));
    let mut seen = Seen::default();
    simulation.run_until(SECOND, &mut seen).expect("it runs");
    let sent: Vec<u64> = seen.probes.iter().map(|probe| probe.sent.0 / MS).collect();
    assert_eq!(sent, [105, 125, 145, 265, 285]);
    // 160 bytes take 12.8 us on an access link and 128 us on the bottleneck.
    let delay = Nanos(3 * MS + 2 * 12_800 + 128_000);
    assert!(seen.probes.iter().all(|probe| probe.arrived == Some(probe.sent + delay)));
    let [report] = seen.flows.as_slice() else { panic!("it is closed at its end") };
    assert_eq!((report.index, report.received), (3, 5 * 160));
}

#[test]
fn a_trace_sends_what_is_listed() {
    let line = line(10_000_000, discipline("fifo"));
    let mut simulation = Simulation::new(line.network, 1);
    let datagram = |ms, packet_bytes, stream| {
        let time = Nanos::from_millis(ms);
        Datagram { time, packet_bytes, stream }
    };
    let list = [datagram(9, 40, 7), datagram(1, 1500, 2), datagram(1, 40, 7)];
    simulation.add_source(Box::new(Trace::new(DatagramList::new(list.to_vec()), line.there)));
    let mut seen = Seen::default();
    simulation.run_until(SECOND, &mut seen).expect("it runs");
    let fates: Vec<(u64, u64, u64, Option<Nanos>)> =
        seen.probes.iter().map(|p| (p.index, p.seq, p.sent.0 / MS, p.arrived)).collect();
    // The second follows the first and arrives a small packet's time on the last link later.
    let second = MS + 120_000 + MS + 1_200_000 + 32_000 + MS + 3_200 + MS;
    let expected = [
        (2, 0, 1, Some(Nanos(MS + LARGE))),
        (7, 0, 1, Some(Nanos(second.max(MS + LARGE + 3_200)))),
        (7, 1, 9, Some(Nanos(9 * MS + SMALL))),
    ];
    assert_eq!(fates, expected);
    let received: Vec<(u64, u64)> = seen.flows.iter().map(|f| (f.index, f.received)).collect();
    assert_eq!(received, [(2, 1500), (7, 80)]);
}

/// 104 bytes, a request or an answer of 64 bytes, take 8.32 us and 83.2 us.
const PING: u64 = 3 * MS + 2 * 8_320 + 83_200;
/// A request that follows an acknowledgment waits for it on the bottleneck.
const PING_AFTER_ACK: u64 = 3 * MS + 3_200 + 32_000 + 83_200 + 8_320;

fn requests(until: Nanos) -> Seen {
    let line = line(10_000_000, discipline("fifo"));
    let mut simulation = Simulation::new(line.network, 1);
    let tcp = simulation.add_tcp(config()).expect("a good configuration");
    let due = [0, 1, 100].map(|ms| Nanos(ms * MS)).into_iter();
    let (client, server) = (line.there.receiver, line.there.sender);
    let stream = RequestStream::new(Requests::PING, client, server, tcp, due);
    simulation.add_source(Box::new(stream));
    let mut seen = Seen::default();
    simulation.run_until(until, &mut seen).expect("it runs");
    simulation.finish(&mut seen);
    seen
}

#[test]
fn a_request_waits_for_the_one_before_and_its_wait_counts() {
    let seen = requests(SECOND);
    let first = 2 * SMALL + PING_AFTER_ACK + PING;
    let second = first + PING_AFTER_ACK + PING;
    let third = 100 * MS + 2 * PING;
    let times: Vec<_> =
        seen.exchanges.iter().map(|e| (e.index, e.due, e.sent, e.completed)).collect();
    let expected = [(0, 0, 0, first), (1, MS, first, second), (2, 100 * MS, 100 * MS, third)];
    let expected = expected.map(|(index, due, sent, completed)| {
        (index, Nanos(due), Some(Nanos(sent)), Some(Nanos(completed)))
    });
    assert_eq!(times, expected);
    for exchange in &seen.exchanges {
        assert_eq!((exchange.kind, exchange.bytes), (ExchangeKind::Request, 64));
        let label = exchange.label.expect("it has a connection").to_string();
        assert_eq!(label, "10.0.0.1:80 > 10.0.0.4:1024 tcp");
    }
    let [connection] = seen.flows.as_slice() else { panic!("one connection") };
    assert_eq!(connection.received, 3 * 64);
    assert!(connection.closed.is_some(), "it is closed after the last");
}

#[test]
fn requests_without_an_answer_are_told_at_the_end() {
    let fates = |until| -> Vec<_> {
        let seen = requests(until);
        seen.exchanges.iter().map(|e| (e.index, e.sent.is_some(), e.completed.is_some())).collect()
    };
    assert_eq!(fates(Nanos(13 * MS)), [(0, true, true), (1, true, false)]);
    assert_eq!(fates(Nanos(5 * MS)), [(0, true, false), (1, false, false)]);
}

#[test]
fn a_connection_that_fails_leaves_its_request_unanswered_and_the_next_opens_another() {
    let line = broken_line();
    let mut simulation = Simulation::new(line.network, 1);
    // It gives up 3 s after its only SYN.
    let tcp = simulation.add_tcp(Config { syn_tries: 1, ..config() }).expect("a configuration");
    let due = [0, 1, 10].map(Nanos::from_secs).into_iter();
    let (client, server) = (line.there.sender, line.there.receiver);
    let stream = RequestStream::new(Requests::CALL, client, server, tcp, due);
    simulation.add_source(Box::new(stream));
    let mut seen = Seen::default();
    simulation.run_until(Nanos::from_secs(20), &mut seen).expect("it runs");
    let fates: Vec<_> = seen.exchanges.iter().map(|e| (e.index, e.sent, e.completed)).collect();
    let expected = [(0, 0), (1, 3), (2, 10)];
    assert_eq!(fates, expected.map(|(index, at)| (index, Some(Nanos::from_secs(at)), None)));
    assert_eq!(seen.flows.len(), 3);
    assert!(seen.flows.iter().all(|flow| flow.failure == Some(tcp::Failure::Handshake)));
}
