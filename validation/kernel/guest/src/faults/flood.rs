//! Floods: what is left of the link to flows that were there before.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::bench::{ADDRESS_THERE, Link, THERE, attach, drained};
use crate::namespace::HERE;
use crate::traffic::{Frames, Sparse, Varying, flood, sparse, tcp_bulk, tcp_sink};

const RATE: u64 = 4_000_000;
const DURATION: Duration = Duration::from_secs(10);
const TCP: u16 = 7001;
const UDP: u16 = 7002;

/// A flood, and the disciplines that it is tried on.
struct Case {
    what: &'static str,
    varying: Option<Varying>,
}

const CASES: [Case; 3] = [
    Case { what: "no flood", varying: None },
    Case { what: "one flow", varying: Some(Varying::Nothing(5)) },
    Case { what: "a new address each", varying: Some(Varying::Addresses) },
];

const DISCIPLINES: [&str; 5] = [
    "fifo",
    "efd",
    "efd:low-share=0.1",
    "run2c:flows=1024",
    "sb:flows=1024",
];

pub(crate) fn run(_: &[String]) -> Result<()> {
    let _link = Link::new(1)?;
    println!("flood: {:<20} {:<20} {:>9} {:>7} {:>7} {:>9} {:>9}", "discipline", "flood", "x rate",
        "tcp", "lost", "p50", "p99");
    for discipline in DISCIPLINES {
        for case in &CASES {
            one(discipline, case)?;
        }
    }
    Ok(())
}

fn one(discipline: &str, case: &Case) -> Result<()> {
    let instance = attach("v0", discipline, Some(RATE))?;
    let (sink, received) = tcp_sink(THERE, TCP)?;
    let bulk = tcp_bulk(HERE, SocketAddr::from((ADDRESS_THERE, TCP)));
    // Both flows are established before the flood begins.
    thread::sleep(Duration::from_secs(2));
    let begin = Instant::now();
    let tcp_before = received.load(Ordering::Relaxed);
    let sent_before = instance.status();
    let load = case.varying.map(|varying| {
        flood(HERE, "v0", Frames::new(64, varying), 256, Duration::ZERO)
    });
    let to = SocketAddr::from((ADDRESS_THERE, UDP));
    let sparse = sparse(HERE, (THERE, to), Duration::from_millis(20), DURATION)?;
    let elapsed = begin.elapsed();
    let tcp = received.load(Ordering::Relaxed) - tcp_before;
    let offered = load.map_or(Ok(0), |load| load.finish().map(|offered| offered.total()))?;
    drop(bulk.finish());
    sink.finish()?;
    let status = drained(&instance)?;
    let bits = |bytes: u64| bytes as f64 * 8.0 / elapsed.as_secs_f64() / RATE as f64;
    let Sparse { .. } = &sparse;
    println!(
        "flood: {discipline:<20} {:<20} {:>8.1}x {:>6.1}% {:>6.1}% {:>9.2?} {:>9.2?}  ({} packets/s, \
         {} flows at most, {} untracked, created {})",
        case.what,
        bits(offered * 64),
        bits(tcp) * 100.0,
        sparse.lost() * 100.0,
        sparse.delay(0.5),
        sparse.delay(0.99),
        offered / elapsed.as_secs(),
        status.most_flows,
        status.flows_untracked,
        status.flows_created - sent_before.flows_created,
    );
    ensure!(u64::from(status.most_flows) <= u64::from(status.flow_bound), "{status:?}");
    Ok(())
}
