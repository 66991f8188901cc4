//! What is compared.

use lab::traffic::Tcp;
use sched::{Nanos, Spec};
use workload::{Offered, Random, SizeLaw, TransferList};

/// A bottleneck, and what goes through it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name in results.
    pub name: String,
    /// What it is about.
    pub kind: Kind,
    /// Congestion control of all flows.
    pub tcp: Tcp,
    /// Rate of the bottleneck, in both directions, in bit/s. Frames count with their Ethernet header.
    pub rate_bps: u64,
    /// Packets that its FIFO holds, in each direction.
    pub limit: u32,
    /// Round-trip time of the empty path.
    pub rtt: Nanos,
    /// Before this, nothing is measured (and no transfer starts).
    pub warm_up: Nanos,
    /// The end of the measured time: from here on no transfer starts.
    pub measured: Nanos,
    /// The end.
    pub end: Nanos,
}

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// One flow without end.
    Endless,
    /// Two of them, the second with this round-trip time.
    Shares {
        /// Longer than that of the first.
        far_rtt: Nanos,
    },
    /// Transfers beside one flow without end.
    Transfers {
        /// Offered by the transfers, as a fraction of the link.
        load: f64,
    },
}

/// What goes through the bottleneck in one round of a case.
#[derive(Clone, Debug)]
pub struct Work {
    /// When the first flow without end starts.
    pub near: Nanos,
    /// When the one with the longer round-trip time starts, if there is one.
    pub far: Option<Nanos>,
    /// Transfers.
    pub transfers: TransferList,
}

/// Ethernet's header, which `tc` and the engine count.
pub const ETHERNET_BYTES: u32 = 14;
/// A full packet as the bottleneck counts it.
pub const FRAME_BYTES: u32 = 1500 + ETHERNET_BYTES;
/// Of it, data.
pub const PAYLOAD_BYTES: u32 = 1448;

const SIZES: &str = "zipf:alpha=1.1,max=1000packets";
const RATE_BPS: u64 = 10_000_000;

impl Case {
    /// All of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for tcp in [Tcp::Cubic, Tcp::Reno] {
            for (rtt, limits) in [(20, [5, 17, 50]), (60, [15, 50, 150])] {
                cases.extend(limits.map(|limit| Self::new(Kind::Endless, tcp, rtt, limit)));
            }
            for far_rtt in [40, 60].map(Nanos::from_millis) {
                cases.push(Self::new(Kind::Shares { far_rtt }, tcp, 20, 50));
            }
            cases.push(Self::new(Kind::Transfers { load: 0.4 }, tcp, 20, 100));
        }
        cases
    }

    fn new(kind: Kind, tcp: Tcp, rtt_ms: u64, limit: u32) -> Self {
        let (what, seconds) = match kind {
            Kind::Endless => (String::new(), [2, 22, 22]),
            Kind::Shares { far_rtt } => (format!(" and {} ms", far_rtt.0 / 1_000_000), [5, 35, 35]),
            Kind::Transfers { .. } => (" with transfers".into(), [5, 25, 32]),
        };
        let [warm_up, measured, end] = seconds.map(Nanos::from_secs);
        let name = format!("{tcp}, {rtt_ms} ms{what}, {limit} packets");
        let (rate_bps, rtt) = (RATE_BPS, Nanos::from_millis(rtt_ms));
        Self { name, kind, tcp, rate_bps, limit, rtt, warm_up, measured, end }
    }

    /// The FIFO.
    #[must_use]
    pub fn spec(&self) -> Spec {
        format!("fifo:limit={}packets", self.limit).parse().expect("a FIFO with a limit")
    }

    /// How much longer the way to the second flow's sender is, there and back.
    #[must_use]
    pub fn detour(&self) -> Nanos {
        match self.kind {
            Kind::Shares { far_rtt } => far_rtt.since(self.rtt),
            _ => Nanos::ZERO,
        }
    }

    /// Half of the round-trip time, less the transmission time of a packet: the engine releases a
    /// frame `delay` after its transmission has started, the simulator after it has ended.
    #[must_use]
    pub fn propagation(&self, packet_bytes: u32) -> Nanos {
        let transmission = u64::from(packet_bytes) * 8_000_000_000 / self.rate_bps;
        Nanos((self.rtt.0 / 2).saturating_sub(transmission))
    }

    /// What is sent in a round; the same for kernel and simulator.
    #[must_use]
    pub fn work(&self, round: u64) -> Work {
        let random = &mut Random::of(round, "starts");
        let mut within_a_second = || Nanos(random.below(1_000_000_000));
        let (near, far, transfers) = match self.kind {
            Kind::Endless => (Nanos::ZERO, None, TransferList::default()),
            Kind::Shares { .. } => {
                (within_a_second(), Some(within_a_second()), TransferList::default())
            }
            Kind::Transfers { load } => (Nanos::ZERO, None, self.transfers(load, round)),
        };
        Work { near, far, transfers }
    }

    fn transfers(&self, load: f64, round: u64) -> TransferList {
        let payload = self.rate_bps * u64::from(PAYLOAD_BYTES) / u64::from(FRAME_BYTES);
        let duration_ns = self.measured.since(self.warm_up).0;
        let offered = Offered { load, rate_bps: payload, duration_ns };
        let law: SizeLaw = SIZES.parse().expect("a constant law");
        let list = TransferList::generate(&law, &offered, round).expect("a constant load");
        let late = |transfer: &workload::Transfer| workload::Transfer {
            start_ns: transfer.start_ns + self.warm_up.0,
            ..*transfer
        };
        TransferList::new(list.transfers().iter().map(late).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_differ_in_name_and_rounds_in_work() {
        let cases = Case::all();
        let names: std::collections::HashSet<_> = cases.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), cases.len());
        let with_transfers = cases.last().expect("there are cases");
        let (first, again) = (with_transfers.work(1), with_transfers.work(1));
        assert_eq!(first.transfers, again.transfers);
        assert_ne!(first.transfers, with_transfers.work(2).transfers);
        let starts = first.transfers.transfers().iter().map(|transfer| transfer.start_ns);
        let (warm_up, measured) = (with_transfers.warm_up.0, with_transfers.measured.0);
        assert!(starts.into_iter().all(|start| (warm_up..measured).contains(&start)));
    }

    #[test]
    fn a_full_packet_takes_half_the_round_trip_to_arrive() {
        let case = &Case::all()[0];
        // 1514 bytes at 10 Mbit/s take 1.2112 ms.
        assert_eq!(case.propagation(FRAME_BYTES), Nanos(10_000_000 - 1_211_200));
    }
}
