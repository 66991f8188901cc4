//! What a queue inside the kernel has sent and received, by what it counts.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use netdev::netlink::Refusal;
use netdev::tc::{TcStats, TrafficControl};

use crate::datapath::follow::Gauge;
use crate::settings::framing::Framing;

/// The root qdisc of a device.
pub(super) struct Counter {
    ifindex: u32,
    handle: u32,
    framing: Framing,
    gauge: Arc<Gauge>,
    looked: Mutex<Looked>,
}

struct Looked {
    tc: TrafficControl,
    at: TcStats,
    /// Bytes of packets that were dropped, which are not counted: as large as those that were sent.
    dropped: u64,
}

impl Counter {
    /// # Errors
    /// If there is no qdisc of somebody's, or the kernel does not tell.
    pub(super) fn new(ifindex: u32, framing: Framing, gauge: Arc<Gauge>) -> io::Result<Self> {
        let mut tc = TrafficControl::open()?;
        let root = tc.root(ifindex).map_err(refused)?;
        let root = root.filter(|root| root.is_configured()).ok_or_else(gone)?;
        let looked = Mutex::new(Looked { tc, at: root.stats, dropped: 0 });
        Ok(Self { ifindex, handle: root.handle, framing, gauge, looked })
    }

    /// Brings the gauge up to date.
    ///
    /// # Errors
    /// If it is another qdisc, or none, or the kernel does not tell.
    pub(super) fn look(&self) -> io::Result<()> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let root = looked.tc.root(self.ifindex).map_err(refused)?;
        let now = root.filter(|root| root.handle == self.handle).ok_or_else(gone)?.stats;
        let before = std::mem::replace(&mut looked.at, now);
        let grown = Grown::between(&before, &now);
        looked.dropped += grown.dropped;
        self.gauge.sent.fetch_add(grown.on_link(self.framing), Ordering::Relaxed);
        // What is queued has come as well.
        let came = now.bytes + u64::from(now.backlog) + looked.dropped;
        self.gauge.received.fetch_max(came, Ordering::Relaxed);
        Ok(())
    }
}

fn refused(refusal: Refusal) -> io::Error {
    io::Error::other(refusal.to_string())
}

fn gone() -> io::Error {
    io::Error::other("the queue has been removed or replaced")
}

/// What has left a queue between two looks.
#[derive(Debug, PartialEq, Eq)]
struct Grown {
    bytes: u64,
    packets: u64,
    /// In bytes.
    dropped: u64,
}

impl Grown {
    fn between(before: &TcStats, now: &TcStats) -> Self {
        let bytes = now.bytes.saturating_sub(before.bytes);
        let packets = now.packets.saturating_sub(before.packets);
        let mean = now.bytes.checked_div(now.packets).unwrap_or(0);
        let dropped = u64::from(now.drops.wrapping_sub(before.drops)) * mean;
        Self { bytes, packets, dropped }
    }

    /// What was sent, as it counts on the link: as if all packets had been of one size.
    fn on_link(&self, framing: Framing) -> u64 {
        let mean = self.bytes.checked_div(self.packets).unwrap_or(0);
        let each = u64::from(framing.on_link(u32::try_from(mean).unwrap_or(u32::MAX)));
        self.bytes + self.packets * each - self.packets * mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_counts_with_its_overhead() {
        let before = TcStats { bytes: 1_000, packets: 10, drops: u32::MAX, ..TcStats::default() };
        let now = TcStats { bytes: 4_000, packets: 40, drops: 1, ..before };
        let grown = Grown::between(&before, &now);
        assert_eq!(grown, Grown { bytes: 3_000, packets: 30, dropped: 200 });
        assert_eq!(grown.on_link(Framing::bytes(-4)), 30 * 96);
        assert_eq!(grown.on_link(Framing { mpu: 150, ..Framing::NONE }), 30 * 150);
        let none = Grown::between(&now, &now);
        assert_eq!(none.on_link(Framing::bytes(20)), 0);
    }
}
