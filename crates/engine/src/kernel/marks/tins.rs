//! CAKE's tins by their names.
//!
//! The kernel numbers tins; `tc` has their names, by the diffserv mode. A wrong number is a disaster:
//! with long flows in Best Effort and short ones in Bulk, 20 kB took 3.3 s at 10 Mbit/s. So the names
//! are held against what the kernel tells of each tin: Bulk has a sixteenth of the rate.

use netdev::netlink::attributes;
use netdev::tc::Qdisc;
use sched::Rate;

use super::queues::Classes;
use crate::status::TcStats;

/// `TCA_CAKE_*`.
pub(super) const BASE_RATE64: u16 = 2;
pub(super) const DIFFSERV_MODE: u16 = 3;
pub(super) const DIFFSERV3: u32 = 0;
const DIFFSERV4: u32 = 1;
const FLOW_MODE: u16 = 5;
/// Bits of it: to share among sources, and among destinations.
const BY_HOST: u64 = 3;
/// `TCA_CAKE_STATS_TIN_STATS`.
const TIN_STATS: u16 = 10;
/// `TCA_CAKE_TIN_STATS_*`.
const SENT_PACKETS: u16 = 2;
const SENT_BYTES64: u16 = 3;
const DROPPED_PACKETS: u16 = 4;
const ACKS_DROPPED_PACKETS: u16 = 6;
const ECN_MARKED_PACKETS: u16 = 8;
const BACKLOG_BYTES: u16 = 11;
const THRESHOLD_RATE64: u16 = 12;

/// The tins of a CAKE, in the order in which a packet's priority counts them from 1.
pub(super) struct Tins {
    pub(super) rate: Option<Rate>,
    names: &'static [&'static str],
    pub(super) tins: Vec<Tin>,
}

/// What a tin has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tin {
    pub(super) stats: TcStats,
    pub(super) marked: u64,
    /// Bytes per second.
    threshold: u64,
}

impl Tins {
    /// Of a qdisc; or why they are not to be trusted.
    pub(super) fn of(qdisc: &Qdisc) -> Result<Self, String> {
        let options = attributes(qdisc.options.as_deref().unwrap_or_default());
        let options = options.map_err(|error| error.to_string())?;
        let mode = find(&options, DIFFSERV_MODE);
        let names: &[&str] = match mode.map(|mode| mode as u32) {
            Some(DIFFSERV3) => &["Bulk", "Best Effort", "Voice"],
            Some(DIFFSERV4) => &["Bulk", "Best Effort", "Video", "Voice"],
            _ => {
                return Err("it has no tin named Bulk; `tc qdisc change DEV root cake diffserv3` \
                            gives it one"
                    .into());
            }
        };
        let stats = attributes(&qdisc.own_stats).map_err(|error| error.to_string())?;
        let (_, tins) = stats
            .into_iter()
            .find(|(kind, _)| kind & NESTED == TIN_STATS)
            .ok_or("the kernel tells nothing of its tins")?;
        let tins = attributes(&tins).map_err(|error| error.to_string())?;
        let tins: Vec<Tin> = tins.iter().map(|(_, tin)| Tin::read(tin)).collect();
        let rate = find(&options, BASE_RATE64).filter(|rate| *rate > 0);
        let found = Self { rate: rate.map(|bytes| Rate(bytes * 8)), names, tins };
        found.check(rate)?;
        Ok(found)
    }

    /// Whether each tin is what its name says.
    fn check(&self, rate: Option<u64>) -> Result<(), String> {
        if self.tins.len() != self.names.len() {
            return Err(format!("it has {} tins instead of {}", self.tins.len(), self.names.len()));
        }
        let (Some(rate), Some(bulk)) = (rate, self.named("Bulk")) else { return Ok(()) };
        let is_near = |found: u64, wanted: u64| found.abs_diff(wanted) <= wanted / 50 + 1;
        let full = self.named("Best Effort").map_or(0, |tin| tin.threshold);
        if !is_near(bulk.threshold, rate / 16) || !is_near(full, rate) {
            return Err(format!(
                "Bulk has {} of {rate} bytes a second, and Best Effort {full}: not what the names \
                 say",
                bulk.threshold
            ));
        }
        Ok(())
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|there| *there == name)
    }

    fn named(&self, name: &str) -> Option<&Tin> {
        self.tins.get(self.place(name)?)
    }

    /// Where packets of short flows and of long ones go.
    pub(super) fn classes(&self, handle: u32) -> Classes {
        let minor = |name| self.place(name).map_or(0, |place| place as u32 + 1);
        Classes { short: handle | minor("Best Effort"), long: handle | minor("Bulk") }
    }

    /// Of all tins but Bulk, and of Bulk: what has left them, as the other queues count.
    ///
    /// A tin counts what came in, dropped or not, and tells of what waits in bytes only. The qdisc
    /// as a whole has the rest, which is dealt out: packets that wait by the bytes that do, bytes
    /// that were dropped by the packets that were.
    pub(super) fn short_and_long(&self, all: &TcStats) -> [Tin; 2] {
        let mut both = [Tin::default(); 2];
        for (name, tin) in self.names.iter().zip(&self.tins) {
            both[usize::from(*name == "Bulk")].add(tin);
        }
        let sum = |of: fn(&TcStats) -> u64| both.iter().map(|tin| of(&tin.stats)).sum::<u64>();
        let queued = sum(|stats| stats.backlog.into());
        let dropped = sum(|stats| stats.drops.into());
        let lost = sum(|stats| stats.bytes).saturating_sub(queued + all.bytes);
        let part = |all: u64, part: u32, of: u64| {
            u128::from(all) * u128::from(part) / u128::from(of.max(1))
        };
        let long = both[1].stats;
        let long_waiting = part(all.qlen.into(), long.backlog, queued) as u32;
        let long_lost = part(lost, long.drops, dropped) as u64;
        let [short, long] = &mut both;
        short.has_left(all.qlen - long_waiting, lost - long_lost);
        long.has_left(long_waiting, long_lost);
        both
    }
}

/// Whether it is a CAKE that shares among hosts.
pub(super) fn shares_among_hosts(qdisc: &Qdisc) -> bool {
    let options = attributes(qdisc.options.as_deref().unwrap_or_default()).unwrap_or_default();
    qdisc.kind == "cake" && find(&options, FLOW_MODE).is_some_and(|mode| mode & BY_HOST != 0)
}

/// Without the bit that says that there are attributes within.
const NESTED: u16 = 0x7fff;

fn find(attributes: &[(u16, Vec<u8>)], kind: u16) -> Option<u64> {
    let (_, value) = attributes.iter().find(|(found, _)| *found == kind)?;
    match value.len() {
        4 => Some(u32::from_ne_bytes(value[..4].try_into().ok()?).into()),
        8 => Some(u64::from_ne_bytes(value[..8].try_into().ok()?)),
        _ => None,
    }
}

impl Tin {
    /// A class of another qdisc's.
    pub(super) fn of(stats: TcStats) -> Self {
        Self { stats, ..Self::default() }
    }

    fn read(bytes: &[u8]) -> Self {
        let told = attributes(bytes).unwrap_or_default();
        let get = |kind| find(&told, kind).unwrap_or(0);
        Self {
            stats: TcStats {
                bytes: get(SENT_BYTES64),
                packets: get(SENT_PACKETS),
                drops: (get(DROPPED_PACKETS) + get(ACKS_DROPPED_PACKETS)) as u32,
                backlog: get(BACKLOG_BYTES) as u32,
                ..TcStats::default()
            },
            marked: get(ECN_MARKED_PACKETS),
            threshold: get(THRESHOLD_RATE64),
        }
    }

    fn add(&mut self, other: &Self) {
        let (to, from) = (&mut self.stats, &other.stats);
        to.bytes += from.bytes;
        to.packets += from.packets;
        to.drops += from.drops;
        to.backlog += from.backlog;
        self.marked += other.marked;
    }

    /// Of what came in, these packets wait and these bytes were dropped.
    fn has_left(&mut self, waiting: u32, dropped_bytes: u64) {
        let stats = &mut self.stats;
        stats.qlen = waiting;
        stats.packets = stats.packets.saturating_sub(u64::from(stats.drops) + u64::from(waiting));
        stats.bytes = stats.bytes.saturating_sub(u64::from(stats.backlog) + dropped_bytes);
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{DefaultNla, Emitable};

    use super::*;

    fn nlas(nlas: &[DefaultNla]) -> Vec<u8> {
        let mut bytes = vec![0; nlas.buffer_len()];
        nlas.emit(&mut bytes);
        bytes
    }

    fn long(kind: u16, value: u64) -> DefaultNla {
        DefaultNla::new(kind, value.to_ne_bytes().into())
    }

    /// A CAKE of 10 Mbit/s whose tins have these thresholds, as the kernel tells it.
    fn cake(mode: u32, thresholds: &[u64]) -> Qdisc {
        let tin = |(at, threshold): (usize, &u64)| {
            let sent = DefaultNla::new(SENT_PACKETS, (at as u32 + 1).to_ne_bytes().into());
            DefaultNla::new(at as u16 + 1, nlas(&[sent, long(THRESHOLD_RATE64, *threshold)]))
        };
        let tins: Vec<DefaultNla> = thresholds.iter().enumerate().map(tin).collect();
        Qdisc {
            kind: "cake".into(),
            handle: 0x8001_0000,
            parent: u32::MAX,
            options: Some(nlas(&[
                long(BASE_RATE64, 1_250_000),
                DefaultNla::new(DIFFSERV_MODE, mode.to_ne_bytes().into()),
            ])),
            size_table: false,
            stats: TcStats::default(),
            own_stats: nlas(&[DefaultNla::new(TIN_STATS | 0x8000, nlas(&tins))]),
        }
    }

    #[test]
    fn tins_are_found_by_name() {
        for (mode, thresholds) in [
            (DIFFSERV3, &[78_125, 1_250_000, 312_500][..]),
            (DIFFSERV4, &[78_125, 1_250_000, 625_000, 312_500]),
        ] {
            let tins = Tins::of(&cake(mode, thresholds)).unwrap();
            assert_eq!(tins.rate, Some(Rate(10_000_000)));
            assert_eq!(
                tins.classes(0x8001_0000),
                Classes { short: 0x8001_0002, long: 0x8001_0001 }
            );
            let [short, bulk] = tins.short_and_long(&TcStats::default());
            assert_eq!(bulk.stats.packets, 1);
            assert_eq!(short.stats.packets, (2..=thresholds.len() as u64).sum::<u64>());
        }
    }

    #[test]
    fn what_a_tin_has_dropped_and_what_waits_in_it_was_not_sent() {
        let tin = |packets, bytes, drops, backlog| Tin {
            stats: TcStats { packets, bytes, drops, backlog, ..TcStats::default() },
            ..Tin::default()
        };
        let names = &["Bulk", "Best Effort", "Voice"];
        let tins =
            vec![tin(100, 100_000, 20, 30_000), tin(50, 50_000, 10, 0), tin(30, 30_000, 0, 10_000)];
        let tins = Tins { rate: None, names, tins };
        let all =
            TcStats { packets: 110, bytes: 110_000, drops: 30, qlen: 40, ..TcStats::default() };
        let [short, long] = tins.short_and_long(&all).map(|tin| tin.stats);
        assert_eq!((short.packets, short.bytes, short.drops, short.qlen), (60, 60_000, 10, 10));
        assert_eq!((long.packets, long.bytes, long.drops, long.qlen), (50, 50_000, 20, 30));
    }

    #[test]
    fn tins_that_are_not_what_their_names_say_are_refused() {
        let refused = |mode, thresholds: &[u64]| Tins::of(&cake(mode, thresholds)).err().unwrap();
        let order = refused(DIFFSERV3, &[1_250_000, 78_125, 312_500]);
        assert!(order.contains("not what the names say"), "{order}");
        let few = refused(DIFFSERV3, &[78_125, 1_250_000]);
        assert_eq!(few, "it has 2 tins instead of 3");
        // besteffort, diffserv8, precedence
        for mode in [2, 3, 4] {
            assert!(refused(mode, &[1_250_000]).contains("no tin named Bulk"));
        }
    }
}
