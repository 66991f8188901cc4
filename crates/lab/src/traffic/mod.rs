//! The lab's traffic: two processes with real sockets, one on each side of the bottleneck.
//!
//! The *server* stands behind the bottleneck and sends: transfers, long downloads, answers of
//! sessions, CBR streams. The *client* asks and measures. Both follow one [`Plan`], on one
//! clock: the two processes share a machine, so `CLOCK_MONOTONIC` makes one-way delays exact.
//! Every time in a plan and in a report counts from the plan's epoch.
//!
//! * [`run_server`] and [`run_client`] play a role in the calling process and network
//!   namespace and return when the plan is done, at the latest a second after its hard stop.
//! * [`serve_agent`] and [`client_agent`] are the same for a process that was started to do
//!   only this: plan on standard input, [`Message`]s on standard output.
//! * [`ClientReport`] and [`ServerReport`] hold raw rows. A client's row and a server's row of
//!   one connection share their `id`, and `flow` names the direction of the data as a 5-tuple
//!   (`10.0.2.1:5000 > 10.0.1.1:40312 tcp`), which joins both with a per-flow ledger of the
//!   bottleneck.
//!
//! Beside what the plan asks for, one idle *control* connection is opened before the epoch and
//! closed at the end. It tells the server that the client is done, or dead.
//!
//! A failed connection is a row with its [`Cause`], never the end of a run. An [`Error`] means
//! that the role could not begin.

mod agent;
mod cause;
mod cbr;
mod client;
mod clock;
mod error;
mod pings;
mod plan;
mod report;
mod role;
mod series;
mod server;
mod tcp;
mod tcp_info;
mod udp;
mod wire;

pub use agent::{Message, client_agent, serve_agent};
pub use cause::{Cause, Failures};
pub use client::run_client;
pub use clock::monotonic;
pub use error::Error;
pub use plan::{Cbr, Pings, Plan, Session, Stream, Tcp, Transfer, VisitedPage, Visitor};
pub use report::{
    Answer, CbrArrival, CbrPacket, CbrReceived, CbrSent, ClientReport, ConnectionKind,
    ConnectionRow, DownloadRow, Link, PingRow, PingsRow, ServerReport, SessionRow, TransferRow,
    UploadReceived, UploadRow, cbr_packets,
};
pub use series::Series;
pub use server::run_server;
pub use tcp_info::TcpInfo;
