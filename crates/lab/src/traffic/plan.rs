//! The plan that both roles follow: which data are sent when.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use units::{Nanos, Rate};

use super::error::Error;
use super::wire;

/// All traffic of one run; both roles get the same one.
///
/// Times count from the epoch. A plan is built field by field from
/// [`Plan::new`]; the roles check it before they begin.
///
/// ```
/// use lab::traffic::{Cbr, Pings, Plan, Stream, Tcp, Transfer, monotonic};
/// use units::{Nanos, Rate};
///
/// let mut plan = Plan::new("10.0.2.1".parse().unwrap(), "10.0.1.1".parse().unwrap());
/// plan.epoch = monotonic() + Nanos::from_millis(300); // both sides must be ready by then
/// plan.arrivals_end = Nanos::from_secs(10);
/// plan.drain_end = Nanos::from_secs(15);
/// let (start, stop) = (Nanos::ZERO, plan.arrivals_end);
/// plan.transfers.push(Transfer { id: 1, start, size_bytes: 20_000, tcp: Tcp::Cubic });
/// plan.downloads.push(Stream { id: 1, tcp: Tcp::Bbr, start, stop });
/// let (name, rate) = ("voice".into(), Rate(64_000));
/// plan.cbr.push(Cbr { name, rate, packet_bytes: 200, start: Nanos::from_millis(5), stop });
/// let (period, start) = (Nanos::from_millis(50), Nanos::from_millis(10));
/// plan.pings.push(Pings { id: 1, packet_bytes: 64, period, start, stop });
/// plan.check().unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The server's address.
    pub server: IpAddr,
    /// The client's address, of the same family.
    pub client: IpAddr,
    /// The server's port for TCP and UDP. CBR stream *i* goes to the client's UDP port
    /// `port + 1 + i`, so all of them should lie below the ephemeral ports (32768).
    pub port: u16,
    /// `CLOCK_MONOTONIC` at time 0 of the plan (see [`monotonic`](super::monotonic)).
    pub epoch: Nanos,
    /// From here on no transfer starts.
    pub arrivals_end: Nanos,
    /// The hard stop: what is not finished by then is incomplete.
    pub drain_end: Nanos,
    /// How long after its last packet was due a CBR or ping socket waits for packets that are
    /// still missing, before the hard stop; more than the queue can hold.
    pub datagram_wait: Nanos,
    /// Time resolution of [`Series`](super::Series).
    pub sample_every: Nanos,
    /// Transfers from server to client, each on a TCP connection of its own.
    pub transfers: Vec<Transfer>,
    /// Long downloads.
    pub downloads: Vec<Stream>,
    /// Long uploads.
    pub uploads: Vec<Stream>,
    /// Requests on persistent connections.
    pub sessions: Vec<Session>,
    /// Browsers.
    pub visitors: Vec<Visitor>,
    /// Constant bit rate UDP from server to client.
    pub cbr: Vec<Cbr>,
    /// Small UDP requests from the client, answered by the server.
    pub pings: Vec<Pings>,
}

/// The congestion control of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tcp {
    /// CUBIC (RFC 9438), Linux's default.
    #[default]
    Cubic,
    /// NewReno (RFC 6582).
    Reno,
    /// BBR as in the kernel.
    Bbr,
}

impl Tcp {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cubic, Self::Reno, Self::Bbr];

    /// The kernel's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
        }
    }
}

impl fmt::Display for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One transfer: the client connects, asks for `size_bytes` and gets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Its name in the reports, unique among transfers.
    pub id: u32,
    /// When the client connects.
    pub start: Nanos,
    /// Bytes of payload.
    pub size_bytes: u64,
    /// The server's congestion control.
    pub tcp: Tcp,
}

/// A TCP connection that sends as much as it can from `start` to `stop`.
///
/// At `stop` it is reset, so that a full send buffer does not go on filling the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Its name in the reports, unique among streams of its direction.
    pub id: u32,
    /// The sender's congestion control.
    pub tcp: Tcp,
    /// When the client connects.
    pub start: Nanos,
    /// When the client ends it.
    pub stop: Nanos,
}

/// A persistent connection on which the client asks for `size_bytes` again and again.
///
/// A request is sent when it is due, also while earlier answers are outstanding: a slow answer
/// does not thin out the requests behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its name in the reports, unique among sessions.
    pub id: u32,
    /// The server's congestion control.
    pub tcp: Tcp,
    /// When requests are due, at least one; the client connects when the first is.
    pub due: Vec<Nanos>,
    /// Bytes of each answer.
    pub size_bytes: u64,
}

/// A browser: pages one after another, each object on a connection of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visitor {
    /// What the numbers of its objects in results begin with.
    pub number: u64,
    /// The server's congestion control.
    pub tcp: Tcp,
    /// When the first page begins.
    pub start: Nanos,
    /// From here on no page begins.
    pub stop: Nanos,
    /// Connections at a time.
    pub connections: u32,
    /// More pages than there is time for.
    pub pages: Vec<VisitedPage>,
}

/// A page of a [`Visitor`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitedPage {
    /// Its objects, at least one; `start` counts from the begin of the page. Ids are unique among
    /// all transfers.
    pub objects: Vec<Transfer>,
    /// From its end to the begin of the next page.
    pub think: Nanos,
}

/// A constant bit rate UDP stream from server to client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cbr {
    /// Its name in the reports, unique among CBR streams.
    pub name: String,
    /// Its rate, IP and UDP headers included.
    pub rate: Rate,
    /// Size of each IP packet, headers included.
    pub packet_bytes: u16,
    /// When the first packet is due.
    pub start: Nanos,
    /// From here on no packet is due.
    pub stop: Nanos,
}

impl Cbr {
    /// When packet `seq` (from 0) is due.
    #[must_use]
    pub fn due(&self, seq: u32) -> Nanos {
        self.start + self.rate.time_of(u64::from(seq) * u64::from(self.packet_bytes))
    }

    /// Packets due before `stop`.
    #[must_use]
    pub fn packets(&self) -> u32 {
        let bits = u128::from((self.stop - self.start).0) * u128::from(self.rate.0);
        let packet = u128::from(self.packet_bytes.max(1)) * 8 * 1_000_000_000;
        u32::try_from(bits.div_ceil(packet)).unwrap_or(u32::MAX)
    }
}

/// Small UDP requests, each answered by one packet of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pings {
    /// Its name in the reports, unique among pings.
    pub id: u32,
    /// Size of each IP packet, headers included.
    pub packet_bytes: u16,
    /// Time from request to request.
    pub period: Nanos,
    /// When the first request is due.
    pub start: Nanos,
    /// From here on no request is due.
    pub stop: Nanos,
}

impl Pings {
    /// When request `seq` (from 0) is due.
    #[must_use]
    pub fn due(&self, seq: u32) -> Nanos {
        self.start + self.period * u64::from(seq)
    }

    /// Requests due before `stop`.
    #[must_use]
    pub fn requests(&self) -> u32 {
        let span = (self.stop - self.start).0;
        u32::try_from(span.div_ceil(self.period.0.max(1))).unwrap_or(u32::MAX)
    }
}

/// More datagrams than this in one stream are refused: each has a row in a report.
const MOST_DATAGRAMS: u32 = 10_000_000;

impl Plan {
    /// A plan without traffic between two addresses: port 5000, samples every 100 ms.
    #[must_use]
    pub fn new(server: IpAddr, client: IpAddr) -> Self {
        Self {
            server,
            client,
            port: 5000,
            epoch: Nanos::ZERO,
            arrivals_end: Nanos::ZERO,
            drain_end: Nanos::ZERO,
            datagram_wait: Nanos::from_secs(1),
            sample_every: Nanos::from_millis(100),
            transfers: Vec::new(),
            downloads: Vec::new(),
            uploads: Vec::new(),
            sessions: Vec::new(),
            visitors: Vec::new(),
            cbr: Vec::new(),
            pings: Vec::new(),
        }
    }

    /// Where the server listens, on TCP and UDP.
    #[must_use]
    pub fn server_address(&self) -> SocketAddr {
        SocketAddr::new(self.server, self.port)
    }

    /// Where the client receives CBR stream `index`.
    #[must_use]
    pub fn cbr_address(&self, index: usize) -> SocketAddr {
        let offset = u16::try_from(index).unwrap_or(u16::MAX);
        SocketAddr::new(self.client, self.port.saturating_add(1).saturating_add(offset))
    }

    /// When the last datagram that is still missing is given up.
    pub(crate) fn give_up(&self, stop: Nanos) -> Nanos {
        (stop + self.datagram_wait).min(self.drain_end)
    }

    /// Checks the plan.
    ///
    /// # Errors
    /// With the first thing that contradicts another, and what would be accepted.
    pub fn check(&self) -> Result<(), Error> {
        self.check_frame()?;
        let objects = || self.visitors.iter().flat_map(|v| &v.pages).flat_map(|p| &p.objects);
        unique("transfers", self.transfers.iter().chain(objects()).map(|t| t.id))?;
        for t in self.transfers.iter().chain(objects()) {
            require(t.size_bytes > 0, || {
                format!("transfer {}: size_bytes is 0; at least 1", t.id)
            })?;
        }
        for t in &self.transfers {
            let what = || format!("transfer {}", t.id);
            require(t.start < self.arrivals_end, || {
                format!("{}: start_ns {} is not before arrivals_end_ns", what(), t.start.0)
            })?;
        }
        for (kind, streams) in [("download", &self.downloads), ("upload", &self.uploads)] {
            unique(kind, streams.iter().map(|s| s.id))?;
            for s in streams {
                self.check_span(&format!("{kind} {}", s.id), s.start, s.stop)?;
            }
        }
        unique("sessions", self.sessions.iter().map(|s| s.id))?;
        for s in &self.sessions {
            let what = format!("session {}", s.id);
            require(s.size_bytes > 0, || format!("{what}: size_bytes is 0; at least 1"))?;
            let last = s.due.last().copied().unwrap_or(Nanos::MAX);
            require(s.due.is_sorted() && last < self.drain_end, || {
                format!("{what}: due_ns is empty, not ascending, or goes on beyond drain_end_ns")
            })?;
        }
        for v in &self.visitors {
            self.check_span("visitor", v.start, v.stop)?;
            require(v.connections > 0, || "visitor: connections is 0; at least 1".into())?;
        }
        unique("cbr", self.cbr.iter().map(|c| c.name.as_str()))?;
        for c in &self.cbr {
            let what = format!("cbr {}", c.name);
            self.check_span(&what, c.start, c.stop)?;
            require(c.rate > Rate(0), || format!("{what}: rate_bps is 0; at least 1"))?;
            self.check_datagrams(&what, c.packet_bytes, c.packets())?;
        }
        unique("pings", self.pings.iter().map(|p| p.id))?;
        for p in &self.pings {
            let what = format!("pings {}", p.id);
            self.check_span(&what, p.start, p.stop)?;
            require(p.period > Nanos::ZERO, || format!("{what}: period_ns is 0; at least 1"))?;
            self.check_datagrams(&what, p.packet_bytes, p.requests())?;
        }
        Ok(())
    }

    fn check_frame(&self) -> Result<(), Error> {
        require(self.server.is_ipv4() == self.client.is_ipv4(), || {
            format!("server {} and client {} differ in family", self.server, self.client)
        })?;
        let last_port = usize::from(self.port) + self.cbr.len();
        require(self.port > 0 && last_port <= 65535, || {
            format!("port {} with {} cbr streams; 1 to 65535", self.port, self.cbr.len())
        })?;
        require(self.sample_every > Nanos::ZERO, || "sample_ns is 0; at least 1".into())?;
        require(self.arrivals_end <= self.drain_end, || {
            let (end, drain) = (self.arrivals_end.0, self.drain_end.0);
            format!("arrivals_end_ns {end} is after drain_end_ns {drain}")
        })
    }

    fn check_span(&self, what: &str, start: Nanos, stop: Nanos) -> Result<(), Error> {
        require(start < stop && stop <= self.drain_end, || {
            let [start, stop, drain] = [start, stop, self.drain_end].map(|at| at.0);
            format!("{what}: start_ns {start}, stop_ns {stop}; start < stop <= {drain}")
        })
    }

    fn check_datagrams(&self, what: &str, bytes: u16, count: u32) -> Result<(), Error> {
        let least = wire::headers(self.server) + wire::DATAGRAM;
        require(usize::from(bytes) >= least, || {
            format!("{what}: packet_bytes is {bytes}; {least} to 65535")
        })?;
        require(count <= MOST_DATAGRAMS, || {
            format!("{what}: {count} packets; at most {MOST_DATAGRAMS}")
        })
    }
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::Plan(otherwise())) }
}

fn unique<T: Eq + Hash + fmt::Display + Copy>(
    kind: &str,
    ids: impl Iterator<Item = T>,
) -> Result<(), Error> {
    let mut seen = HashSet::new();
    for id in ids {
        require(seen.insert(id), || format!("{kind}: '{id}' occurs twice"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
