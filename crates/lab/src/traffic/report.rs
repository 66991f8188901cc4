//! The roles' observations: raw rows, in times since the epoch.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use units::Nanos;

use super::cause::{Cause, Failures};
use super::plan::Tcp;
use super::series::Series;
use super::tcp_info::TcpInfo;

/// What the client measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientReport {
    /// One row per transfer of the plan, in the plan's order.
    pub transfers: Vec<TransferRow>,
    /// One row per object that was asked for, visitor by visitor, in the plan's order.
    pub objects: Vec<TransferRow>,
    /// One row per download.
    pub downloads: Vec<DownloadRow>,
    /// One row per upload: the sender's side; what arrived is in the server's report.
    pub uploads: Vec<UploadRow>,
    /// One row per session.
    pub sessions: Vec<SessionRow>,
    /// One row per CBR stream: what arrived. See [`cbr_packets`].
    pub cbr: Vec<CbrReceived>,
    /// One row per ping stream.
    pub pings: Vec<PingsRow>,
    /// Connections that did not end as planned, by cause.
    pub failures: Failures,
    /// How late the client began what was due, at worst: its own lag, not the network's.
    pub worst_late: Nanos,
}

impl ClientReport {
    /// All connections of the report, with what went wrong.
    pub(crate) fn connections(&self) -> impl Iterator<Item = (&Link, Option<Cause>)> {
        let transfers = self.transfers.iter().chain(&self.objects);
        let transfers = transfers.map(|row| (&row.link, row.failure));
        let downloads = self.downloads.iter().map(|row| (&row.link, row.failure));
        let uploads = self.uploads.iter().map(|row| (&row.link, row.failure));
        let sessions = self.sessions.iter().map(|row| (&row.link, row.failure));
        transfers.chain(downloads).chain(uploads).chain(sessions)
    }
}

/// A connection, as the client opened it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The 5-tuple in the direction of the data, `server:port > client:port tcp`, of an upload
    /// `client:port > server:port tcp`; none if the connection never had a port.
    pub flow: Option<String>,
    /// When the plan has it start.
    pub due: Nanos,
    /// Just before `connect()`: where the clock of a completion time starts.
    pub start: Nanos,
    /// When the connection stood.
    pub connected: Option<Nanos>,
}

impl Link {
    fn due(due: Nanos) -> Self {
        Self { due, ..Self::default() }
    }

    /// How late the client began it: its own lag, not the network's.
    #[must_use]
    pub fn late(&self) -> Nanos {
        self.start - self.due
    }
}

/// One transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferRow {
    /// The transfer.
    pub id: u32,
    /// Its connection.
    pub link: Link,
    /// When the first bytes were read.
    pub first_byte: Option<Nanos>,
    /// When the last byte was read; none if the transfer is incomplete.
    pub end: Option<Nanos>,
    /// Bytes received.
    pub bytes: u64,
    /// Why it is incomplete.
    pub failure: Option<Cause>,
}

impl TransferRow {
    pub(crate) fn new(id: u32, due: Nanos) -> Self {
        let link = Link::due(due);
        Self { id, link, first_byte: None, end: None, bytes: 0, failure: None }
    }

    /// From `connect()` to the last byte; none if it is incomplete.
    #[must_use]
    pub fn completion(&self) -> Option<Nanos> {
        self.end.map(|end| end - self.link.start)
    }
}

/// One long download, as its receiver saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DownloadRow {
    /// The download.
    pub id: u32,
    /// Its connection.
    pub link: Link,
    /// Bytes received over time.
    pub received: Series,
    /// Why it ended before its time.
    pub failure: Option<Cause>,
}

impl DownloadRow {
    pub(crate) fn new(id: u32, due: Nanos, sample_every: Nanos) -> Self {
        Self { id, link: Link::due(due), received: Series::new(sample_every), failure: None }
    }
}

/// One long upload, as its sender saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UploadRow {
    /// The upload.
    pub id: u32,
    /// Its connection.
    pub link: Link,
    /// The congestion control it was sent with, as the kernel had it at the end.
    pub tcp: Tcp,
    /// The sender's TCP at its end.
    pub info: Option<TcpInfo>,
    /// Why it ended before its time.
    pub failure: Option<Cause>,
}

impl UploadRow {
    pub(crate) fn new(id: u32, due: Nanos, tcp: Tcp) -> Self {
        Self { id, link: Link::due(due), tcp, info: None, failure: None }
    }
}

/// One session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRow {
    /// The session.
    pub id: u32,
    /// Its connection.
    pub link: Link,
    /// One row per request that was sent.
    pub answers: Vec<Answer>,
    /// Why it ended before all answers were in.
    pub failure: Option<Cause>,
}

impl SessionRow {
    pub(crate) fn new(id: u32, due: Nanos) -> Self {
        Self { id, link: Link::due(due), answers: Vec::new(), failure: None }
    }
}

/// One request of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// When the request was due.
    pub due: Nanos,
    /// When it was handed to the kernel. Later than due only if the connection or the client
    /// was; a response time that hides nothing counts from `due`.
    pub sent: Nanos,
    /// When the answer's first byte was read.
    pub first_byte: Option<Nanos>,
    /// When its last byte was read.
    pub end: Option<Nanos>,
}

/// What arrived of a CBR stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CbrReceived {
    /// The stream.
    pub name: String,
    /// `server:port > client:port udp`.
    pub flow: String,
    /// The first arrival of each packet, in order of arrival.
    pub arrivals: Vec<CbrArrival>,
    /// Further arrivals of a packet.
    pub duplicates: u64,
    /// Packets that arrived after one that was sent later.
    pub reordered: u64,
}

/// The arrival of a CBR packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CbrArrival {
    /// Its number, from 0.
    pub seq: u32,
    /// When the server sent it.
    pub sent: Nanos,
    /// When the client read it.
    pub received: Nanos,
}

/// What was sent of a CBR stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CbrSent {
    /// The stream.
    pub name: String,
    /// When each packet was sent, by number. Shorter than planned if the run was cut short.
    pub sent: Vec<Nanos>,
    /// Numbers of those that the kernel refused to send, ascending.
    pub refused: Vec<u32>,
}

/// One packet of a CBR stream: both sides of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CbrPacket {
    /// Its number, from 0.
    pub seq: u32,
    /// When it was sent.
    pub sent: Nanos,
    /// When it was received; none if it was lost.
    pub received: Option<Nanos>,
}

impl CbrPacket {
    /// One-way delay.
    #[must_use]
    pub fn delay(&self) -> Option<Nanos> {
        self.received.map(|at| at - self.sent)
    }
}

/// One row per packet that was sent, by number: what was sent joined with what arrived.
#[must_use]
pub fn cbr_packets(sent: &CbrSent, received: &CbrReceived) -> Vec<CbrPacket> {
    let mut arrivals: BTreeMap<u32, Nanos> =
        received.arrivals.iter().map(|a| (a.seq, a.received)).collect();
    (0..)
        .zip(&sent.sent)
        .filter(|(seq, _)| sent.refused.binary_search(seq).is_err())
        .map(|(seq, &sent)| CbrPacket { seq, sent, received: arrivals.remove(&seq) })
        .collect()
}

/// A stream of pings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingsRow {
    /// The stream.
    pub id: u32,
    /// The answers' direction, `server:port > client:port udp`.
    pub flow: String,
    /// One row per request, by number.
    pub rows: Vec<PingRow>,
    /// Further answers to one request.
    pub duplicates: u64,
}

/// One ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingRow {
    /// When the request was sent.
    pub sent: Nanos,
    /// When the server answered it; known only if the answer arrived.
    pub answered: Option<Nanos>,
    /// When the answer was read; none if request or answer was lost.
    pub received: Option<Nanos>,
}

/// What the server saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// One row per connection on which the server sent, in order of their ends.
    pub connections: Vec<ConnectionRow>,
    /// What arrived of each upload.
    pub uploads: Vec<UploadReceived>,
    /// What was sent of each CBR stream, in the plan's order.
    pub cbr: Vec<CbrSent>,
    /// Connections that did not end as planned, by cause.
    pub failures: Failures,
    /// How late a CBR packet was sent, at worst: the server's own lag, not the network's.
    pub worst_late: Nanos,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionKind {
    /// Tells the server that the client is there.
    Control,
    /// A transfer.
    Transfer,
    /// A long download.
    Download,
    /// A long upload.
    Upload,
    /// A session.
    Session,
}

/// A connection on which the server sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionRow {
    /// What it is for.
    pub kind: ConnectionKind,
    /// The transfer, download or session of that id.
    pub id: u32,
    /// `server:port > client:port tcp`, as in the client's row.
    pub flow: String,
    /// The congestion control it was sent with, as the kernel had it at the end.
    pub tcp: Tcp,
    /// The sender's TCP at the connection's end, or at the hard stop.
    pub info: Option<TcpInfo>,
    /// Why it ended before all was sent and acknowledged. A long download is ended by the
    /// client, so the end that the plan asks for is none.
    pub failure: Option<Cause>,
}

/// What arrived of an upload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UploadReceived {
    /// The upload.
    pub id: u32,
    /// `client:port > server:port tcp`, as in the client's row.
    pub flow: String,
    /// Bytes received over time.
    pub received: Series,
}

/// A 5-tuple in the direction of the data.
pub(crate) fn flow(from: SocketAddr, to: SocketAddr, protocol: &str) -> String {
    format!("{from} > {to} {protocol}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_packet_has_a_row_and_a_refused_one_has_none() {
        let sent = CbrSent {
            name: "v".into(),
            sent: [10, 20, 30, 40].map(Nanos).to_vec(),
            refused: vec![2],
        };
        let arrival = |seq, ns| CbrArrival { seq, sent: Nanos::ZERO, received: Nanos(ns) };
        let received = CbrReceived {
            name: "v".into(),
            flow: String::new(),
            arrivals: vec![arrival(3, 47), arrival(0, 48)],
            duplicates: 0,
            reordered: 1,
        };
        let packets = cbr_packets(&sent, &received);
        let rows: Vec<_> =
            packets.iter().map(|p| (p.seq, p.sent.0, p.delay().map(|d| d.0))).collect();
        assert_eq!(rows, [(0, 10, Some(38)), (1, 20, None), (3, 40, Some(7))]);
    }
}
