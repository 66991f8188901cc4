//! What is sent: fetches, long flows, voice and video, pings.

use lab::traffic::{Cbr, Pings, Plan, Stream, Tcp, Transfer, monotonic_ns};
use workload::Random;

use super::path::{Path, Place};

const MS: u64 = 1_000_000;
/// Both ends must be ready by then.
const LEAD: u64 = 500 * MS;
/// Long flows find their rate.
pub(super) const WARM_UP: u64 = 3_000 * MS;
/// After the last fetch may start the long flows go on for this long.
const TAIL: u64 = 500 * MS;
/// What is then not finished never will be.
const DRAIN: u64 = 3_000 * MS;

/// One kind of traffic on one kind of link.
#[derive(Clone, Copy)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) part: &'static str,
    /// Whether all schedulers run it, or the few that say most.
    pub(super) all_settings: bool,
    pub(super) place: Place,
    pub(super) rate_bps: u64,
    pub(super) rtt_ms: u64,
    pub(super) downloads: &'static [(Tcp, usize)],
    pub(super) uploads: &'static [(Tcp, usize)],
    /// Downloads of another host.
    pub(super) neighbour: usize,
    /// Sizes in bytes, and one fetch in how many milliseconds.
    pub(super) fetches: &'static [(u64, u64)],
    pub(super) measured_ms: u64,
}

const MBIT: u64 = 1_000_000;
const ROUTER: Place = Place::Router { gro: false };
const FETCHES: &[(u64, u64)] = &[(5_000, 500), (20_000, 500), (100_000, 2_000)];
const LARGE: &[(u64, u64)] = &[(20_000, 1_000), (1_000_000, 10_000), (5_000_000, 20_000)];

const BASE: Workload = Workload {
    name: "2 cubic",
    part: "core",
    all_settings: false,
    place: ROUTER,
    rate_bps: 10 * MBIT,
    rtt_ms: 40,
    downloads: &[(Tcp::Cubic, 2)],
    uploads: &[],
    neighbour: 0,
    fetches: FETCHES,
    measured_ms: 8_000,
};

pub(super) const WORKLOADS: &[Workload] = &[
    Workload { name: "2 cubic, no delay", all_settings: true, rtt_ms: 0, ..BASE },
    Workload { all_settings: true, ..BASE },
    Workload { name: "idle", downloads: &[], ..BASE },
    Workload { name: "1 cubic", downloads: &[(Tcp::Cubic, 1)], ..BASE },
    Workload { name: "4 cubic", downloads: &[(Tcp::Cubic, 4)], ..BASE },
    Workload { name: "16 cubic", downloads: &[(Tcp::Cubic, 16)], ..BASE },
    // 100 kB of 12.3 Mbit/s in all beside the long flows.
    Workload {
        name: "overload",
        part: "overload",
        rtt_ms: 0,
        fetches: &[(5_000, 500), (20_000, 500), (100_000, 65)],
        ..BASE
    },
    // One download and the rest beside 32 downloads of somebody else.
    Workload { name: "hosts", part: "hosts", downloads: &[(Tcp::Cubic, 1)], neighbour: 32, ..BASE },
    Workload { name: "2 reno", part: "tcp", downloads: &[(Tcp::Reno, 2)], ..BASE },
    Workload { name: "2 bbr", part: "tcp", downloads: &[(Tcp::Bbr, 2)], ..BASE },
    Workload {
        name: "1 bbr, 1 cubic",
        part: "tcp",
        downloads: &[(Tcp::Bbr, 1), (Tcp::Cubic, 1)],
        ..BASE
    },
    Workload { name: "2 down, 2 up", part: "paths", uploads: &[(Tcp::Cubic, 2)], ..BASE },
    Workload { name: "router, GRO", part: "paths", place: Place::Router { gro: true }, ..BASE },
    Workload { name: "host, TSO", part: "paths", place: Place::Host { tso: true }, ..BASE },
    Workload { name: "host, no TSO", part: "paths", place: Place::Host { tso: false }, ..BASE },
    Workload { name: "large", part: "large", fetches: LARGE, measured_ms: 20_000, ..BASE },
    Workload {
        name: "50 Mbit/s, 2 cubic",
        part: "fast",
        rate_bps: 50 * MBIT,
        measured_ms: 6_000,
        ..BASE
    },
    Workload {
        name: "50 Mbit/s, 2 cubic, GRO",
        part: "fast",
        place: Place::Router { gro: true },
        rate_bps: 50 * MBIT,
        measured_ms: 6_000,
        ..BASE
    },
];

impl Workload {
    /// When measuring ends and no further fetch starts.
    pub(super) fn end_ns(&self) -> u64 {
        WARM_UP + self.measured_ms * MS
    }

    /// The traffic of a round, the same for every scheduler.
    pub(super) fn plan(&self, seed: u64) -> Plan {
        let (server, client) = Path::addresses(self.place);
        let mut plan = Plan::new(server, client);
        let end = self.end_ns();
        plan.epoch_ns = monotonic_ns() + LEAD;
        plan.arrivals_end_ns = end;
        plan.drain_end_ns = end + DRAIN;
        plan.datagram_wait_ns = 2_000 * MS;
        plan.downloads = streams(self.downloads, 100 * MS, end + TAIL);
        plan.uploads = streams(self.uploads, 100 * MS, end + TAIL);
        plan.transfers = self.transfers(seed);
        for (name, rate_bps, packet_bytes) in [("voice", 64_000, 160), ("video", 500_000, 1_250)] {
            let name = name.to_owned();
            plan.cbr.push(Cbr { name, rate_bps, packet_bytes, start_ns: WARM_UP, stop_ns: end });
        }
        plan.pings.push(Pings {
            id: 0,
            packet_bytes: 64,
            period_ns: 25 * MS,
            // Not in step with the others.
            start_ns: WARM_UP + 7 * MS,
            stop_ns: end,
        });
        plan
    }

    /// What the other host does meanwhile, if there is one.
    pub(super) fn neighbour(&self, plan: &Plan) -> Option<Plan> {
        let (server, client) = Path::neighbours();
        let end = self.end_ns();
        (self.neighbour > 0).then(|| Plan {
            epoch_ns: plan.epoch_ns,
            arrivals_end_ns: end,
            drain_end_ns: end + DRAIN,
            downloads: streams(&[(Tcp::Cubic, self.neighbour)], 30 * MS, end + TAIL),
            ..Plan::new(server, client)
        })
    }

    /// One fetch of each size in every period, at a random time in it.
    fn transfers(&self, seed: u64) -> Vec<Transfer> {
        let mut transfers = Vec::new();
        for &(size_bytes, period_ms) in self.fetches {
            let mut random = Random::of(seed, &format!("{} {size_bytes}", self.name));
            for period in 0..self.measured_ms / period_ms {
                let within = (random.unit() * (period_ms * MS) as f64) as u64;
                let start_ns = WARM_UP + period * period_ms * MS + within;
                let id = transfers.len() as u32;
                transfers.push(Transfer { id, start_ns, size_bytes, tcp: Tcp::Cubic });
            }
        }
        transfers
    }
}

/// Flows that start one after the other, so far apart.
fn streams(groups: &[(Tcp, usize)], apart_ns: u64, stop_ns: u64) -> Vec<Stream> {
    let flows = groups.iter().flat_map(|&(tcp, count)| std::iter::repeat_n(tcp, count));
    let stream = |(id, tcp)| Stream { id, tcp, start_ns: u64::from(id) * apart_ns, stop_ns };
    (0..).zip(flows).map(stream).collect()
}
