//! What the qdiscs of a router count, read at regular times.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use engine::report::{Sample, Tally};
use measure::{DropCount, Key, LinkUse};
use netdev::tc::{TcStats, TrafficControl};
use sched::{Nanos, Rate};

use crate::traffic::monotonic;

/// As often as the userspace engine samples its queues.
const EVERY: Nanos = Nanos::from_millis(10);

/// What a queue counted from the start of a block to the end of its plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    arrived: Tally,
    sent: Tally,
    dropped_packets: u64,
    pub(crate) samples: Vec<Sample>,
}

/// A queue's device, and the one that its packets come in at.
type Ends<'a> = (&'a str, &'a str);

#[derive(Clone, Copy)]
struct Reading {
    stats: TcStats,
    arrived: Tally,
}

/// Counts two queues of the calling thread's namespace until `done`.
pub(super) fn both(
    queues: [Ends<'_>; 2],
    done: &AtomicBool,
    epoch: Nanos,
    end: Nanos,
) -> io::Result<[Counted; 2]> {
    let mut tc = TrafficControl::open()?;
    let index = |(device, _): &Ends<'_>| netdev::link::index_of(device);
    let indices = [index(&queues[0])?, index(&queues[1])?];
    let mut read = || -> io::Result<[Reading; 2]> {
        let arrivals = fs::read_to_string("/proc/thread-self/net/dev")?;
        let mut one = |at: usize| -> io::Result<Reading> {
            let root =
                tc.root(indices[at]).map_err(|refusal| io::Error::other(refusal.to_string()))?;
            let root = root.ok_or_else(|| io::Error::other("the bottleneck has lost its qdisc"))?;
            let arrived = received(&arrivals, queues[at].1)
                .ok_or_else(|| io::Error::other("/proc/net/dev does not list the bottleneck"))?;
            Ok(Reading { stats: root.stats, arrived })
        };
        Ok([one(0)?, one(1)?])
    };
    wait_until(epoch, done);
    let first = read()?;
    let (mut last, mut counted) = (first, [Counted::default(), Counted::default()]);
    let mut at = Nanos::ZERO;
    while !done.load(Ordering::Relaxed) {
        let now = read()?;
        // A late reading is of when it was made.
        let t = monotonic() - epoch;
        if t <= end {
            last = now;
            for ((counted, reading), first) in counted.iter_mut().zip(now).zip(first) {
                counted.samples.push(Sample {
                    t_ns: t.0,
                    packets: reading.stats.qlen.into(),
                    bytes: reading.stats.backlog.into(),
                    short_lane_packets: 0,
                    flows: 0,
                    sent_bytes: reading.stats.bytes - first.stats.bytes,
                });
            }
        }
        at = (at + EVERY).max(t);
        wait_until(epoch + at, done);
    }
    for ((counted, first), last) in counted.iter_mut().zip(first).zip(last) {
        counted.arrived = less(last.arrived, first.arrived);
        let tally = |stats: TcStats| Tally { packets: stats.packets, bytes: stats.bytes };
        counted.sent = less(tally(last.stats), tally(first.stats));
        counted.dropped_packets = last.stats.drops.wrapping_sub(first.stats.drops).into();
    }
    Ok(counted)
}

fn less(a: Tally, b: Tally) -> Tally {
    Tally { packets: a.packets - b.packets, bytes: a.bytes - b.bytes }
}

pub(super) fn wait_until(at: Nanos, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let left = at - monotonic();
        if left == Nanos::ZERO {
            return;
        }
        thread::sleep(Duration::from_nanos(left.0).min(Duration::from_millis(50)));
    }
}

/// What an interface has received, by the text of `/proc/net/dev`.
fn received(text: &str, interface: &str) -> Option<Tally> {
    let line =
        text.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))?;
    let mut numbers = line.split_whitespace().map(str::parse);
    let (bytes, packets) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(Tally { packets, bytes })
}

impl Counted {
    /// Its row of table `links`.
    pub(crate) fn link_use(
        &self,
        key: &Key,
        link: &str,
        rate: Rate,
        warm_up: Nanos,
        utilisation: Option<f64>,
    ) -> LinkUse {
        let during = self.samples.iter().filter(|sample| sample.t_ns >= warm_up.0);
        let backlog: Vec<u64> = during.map(|sample| sample.packets).collect();
        let mean = backlog.iter().sum::<u64>() as f64 / backlog.len() as f64;
        LinkUse {
            key: key.clone(),
            link: link.into(),
            rate_bps: rate.0,
            arrived_packets: self.arrived.packets,
            arrived_bytes: self.arrived.bytes,
            sent_packets: self.sent.packets,
            sent_bytes: self.sent.bytes,
            dropped_packets: self.dropped_packets,
            utilisation,
            backlog_mean_packets: (!backlog.is_empty()).then_some(mean),
            backlog_peak_packets: backlog.into_iter().max(),
            ..LinkUse::default()
        }
    }

    /// Its rows of table `drops`: a qdisc counts packets, and tells neither why nor whose.
    pub(crate) fn drop_count(&self, key: &Key, link: &str) -> Option<DropCount> {
        (self.dropped_packets > 0).then(|| DropCount {
            key: key.clone(),
            link: link.into(),
            reason: "qdisc".into(),
            packets: self.dropped_packets,
            bytes: (self.arrived.bytes).saturating_sub(self.sent.bytes + self.waiting()),
            ..DropCount::default()
        })
    }

    fn waiting(&self) -> u64 {
        self.samples.last().map_or(0, |sample| sample.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_in_stands_first_in_the_line_of_an_interface() {
        let text = "Inter-|   Receive\n face |bytes packets\n    lo:  1 2 3\nclients: 1514 1 0 0\n";
        assert_eq!(received(text, "clients"), Some(Tally { packets: 1, bytes: 1514 }));
        assert_eq!(received(text, "client"), None);
    }
}
