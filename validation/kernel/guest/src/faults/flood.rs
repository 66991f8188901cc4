//! Floods: what they leave of the link to flows that were there before.
//!
//! A TCP transfer and a flow of one small packet every 20 ms are established; then frames of 64
//! bytes come at several times the link's rate, of one flow, or each of another address.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::bench::{ADDRESS_THERE, Link, THERE, attach, drained, sent};
use crate::namespace::HERE;
use crate::traffic::{Frames, Varying, flood, sparse, tcp_bulk, tcp_sink};

const RATE: u64 = 4_000_000;
const SIZE: usize = 64;
const DURATION: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_millis(20);
const TCP_PORT: u16 = 7001;
const UDP_PORT: u16 = 7002;

const FLOODS: [(&str, Option<Varying>); 3] = [
    ("none", None),
    ("one flow", Some(Varying::Nothing(5))),
    ("new addresses", Some(Varying::Addresses)),
];

const DISCIPLINES: [&str; 6] =
    ["fifo", "fq-lanes", "efd", "efd:low-share=0.1", "run2c:flows=1024", "sb:flows=1024"];

/// What a flood left.
struct Left {
    tcp: f64,
    sparse_lost: f64,
}

pub(crate) fn run(_: &[String]) -> Result<()> {
    let _link = Link::new(1)?;
    println!("flood: of a link of {RATE} bit/s; the sparse flow's loss and delays");
    println!("flood: discipline           flood         offered   tcp   lost       p50       p99");
    for discipline in DISCIPLINES {
        for (what, varying) in FLOODS {
            let left = one(discipline, what, varying)?;
            // A flood of one flow is one long flow: EFD and fair queues keep it from a sparse one. The
            // others take a sparse flow for long too, once it has sent enough.
            let keeps = discipline.starts_with("efd") || discipline == "fq-lanes";
            if what == "one flow" && keeps {
                ensure!(left.sparse_lost < 0.1, "{discipline}: the sparse flow lost packets");
            }
            ensure!(what != "none" || left.tcp > 0.4, "{discipline}: TCP got {:.2}", left.tcp);
        }
    }
    Ok(())
}

fn one(discipline: &str, what: &str, varying: Option<Varying>) -> Result<Left> {
    let instance = attach("v0", discipline, Some(RATE))?;
    let (sink, received) = tcp_sink(THERE, TCP_PORT)?;
    let bulk = tcp_bulk(HERE, SocketAddr::from((ADDRESS_THERE, TCP_PORT)));
    thread::sleep(Duration::from_secs(2));
    let begin = Instant::now();
    let before = received.load(Ordering::Relaxed);
    let load =
        varying.map(|varying| flood(HERE, "v0", Frames::new(SIZE, varying), 256, Duration::ZERO));
    let to = SocketAddr::from((ADDRESS_THERE, UDP_PORT));
    let sparse = sparse(HERE, (THERE, to), INTERVAL, DURATION)?;
    let elapsed = begin.elapsed().as_secs_f64();
    let bytes = received.load(Ordering::Relaxed) - before;
    let offered = load.map_or(Ok(0), |load| load.finish().map(|offered| offered.total()))?;
    drop(bulk.finish());
    sink.finish()?;
    let status = drained(&instance)?;
    let of_rate = |bytes: u64| bytes as f64 * 8.0 / elapsed / RATE as f64;
    let left = Left { tcp: of_rate(bytes), sparse_lost: sparse.lost() };
    println!(
        "flood: {discipline:<20} {what:<13} {:>6.1}x {:>4.0}% {:>5.1}% {:>9.2?} {:>9.2?}; {:.0} \
         packets/s, {} sent, {} flows at most, {} untracked",
        of_rate(offered * SIZE as u64),
        left.tcp * 100.0,
        left.sparse_lost * 100.0,
        sparse.delay(0.5),
        sparse.delay(0.99),
        offered as f64 / elapsed,
        sent(&status),
        status.most_flows,
        status.flows_untracked,
    );
    ensure!(Some(status.most_flows) <= status.flow_bound, "the table is beyond its bound");
    Ok(left)
}
