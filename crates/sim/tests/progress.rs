//! How transfers get on: every new byte where that is asked for, the longest wait for one always.

mod common;

use common::{broken_line, discipline, line};
use sched::{Nanos, Rate};
use sim::sources::{Opener, Pair, Transfers};
use sim::{Advance, FlowReport, Network, Recorder, Simulation};
use tcp::Config;
use workload::{Offered, Random, TransferList};

/// Reports, and the progress of what is watched.
#[derive(Default)]
struct Told {
    reports: Vec<FlowReport>,
    advances: Vec<Advance>,
}

impl Recorder for Told {
    fn flow(&mut self, report: &FlowReport) {
        self.reports.push(report.clone());
    }

    fn advance(&mut self, advance: &Advance) {
        self.advances.push(*advance);
    }
}

const END: Nanos = Nanos::from_secs(15);

/// Transfers at more than the link carries, until `END`, of which those below `watched` are watched.
fn run(network: Network, pair: Pair, opener: Opener, watched: u64) -> Told {
    let mut simulation = Simulation::new(network, 1);
    let tcp = simulation.add_tcp(Config::ns2()).expect("a preset works");
    let law = "zipf:alpha=1.1,max=300packets".parse().expect("a law");
    let offered = Offered { load: 1.3, rate: Rate(2_000_000), duration: Nanos::from_secs(12) };
    let list = TransferList::generate(&law, &offered, 1).expect("a list");
    let transfers = Transfers::new(list, vec![pair], tcp, Random::new(2)).opened_by(opener);
    let source = simulation.add_source(Box::new(transfers));
    (0..watched).for_each(|index| simulation.watch(source, index));
    let mut told = Told::default();
    simulation.run_until(END, &mut told).expect("it runs");
    simulation.finish(&mut told);
    told.reports.sort_by_key(|report| report.index);
    told
}

/// The longest wait, from the advances of the transfer.
fn longest_stall(report: &FlowReport, advances: &[Advance]) -> Option<Nanos> {
    let mut since = report.connected?;
    let mut longest = Nanos::ZERO;
    let ends = advances.iter().map(|advance| advance.at);
    for at in ends.chain(report.completed.is_none().then_some(report.closed.unwrap_or(END))) {
        longest = longest.max(at.since(since));
        since = at;
    }
    Some(longest)
}

#[test]
fn what_is_watched_tells_every_new_byte_and_stalls_are_the_gaps_between() {
    let asks = Opener::Receiver { request_bytes: 300 };
    for (queue, opener) in
        [("fifo", Opener::Sender), ("las", Opener::Sender), ("efd", Opener::Sender), ("fifo", asks)]
    {
        let network = || line(2_000_000, discipline(&format!("{queue}:limit=40packets")));
        let told = run(network().network, network().there, opener, 10_000);
        let (mut complete, mut longest) = (0, Nanos::ZERO);
        for report in &told.reports {
            let of_it = |advance: &&Advance| advance.index == report.index;
            let own: Vec<Advance> = told.advances.iter().filter(of_it).copied().collect();
            assert!(own.is_sorted_by(|a, b| a.received < b.received && a.at <= b.at), "{own:?}");
            assert_eq!(own.last().map_or(0, |last| last.received), report.received);
            assert_eq!(report.longest_stall, longest_stall(report, &own), "{queue} {report:?}");
            if let Some(completed) = report.completed {
                assert_eq!(own.last().map(|last| last.at), Some(completed));
                complete += 1;
            }
            longest = longest.max(report.longest_stall.unwrap_or_default());
        }
        let under_way = told.reports.len() - complete;
        assert!(complete > 20 && under_way > 3, "{queue}: {complete}, {under_way}");
        assert!(longest > Nanos::from_secs(1), "{queue} stalls some in an overload: {longest:?}");
        // Watching changes nothing.
        let unwatched = run(network().network, network().there, opener, 0);
        assert_eq!(format!("{:?}", unwatched.reports), format!("{:?}", told.reports), "{queue}");
        assert_eq!(unwatched.advances, []);
        let two = run(network().network, network().there, opener, 2);
        let of_two = |advance: &&Advance| advance.index < 2;
        let expected: Vec<Advance> = told.advances.iter().filter(of_two).copied().collect();
        assert_eq!(two.advances, expected);
    }
}

#[test]
fn where_no_connection_stands_nothing_stalls() {
    let line = broken_line();
    let told = run(line.network, line.there, Opener::Sender, 1);
    assert!(told.reports.len() > 20);
    assert!(told.reports.iter().all(|report| report.longest_stall.is_none()));
    assert_eq!(told.advances, []);
}
