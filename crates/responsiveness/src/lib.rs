//! Responsiveness under working conditions: what a new request feels while a link is busy.
//!
//! Client and server of draft-ietf-ippm-responsiveness-09, by HTTP/2 over TLS, or without TLS where
//! that is too much for a machine. Where the draft leaves a choice, or takes longer than somebody
//! waits, the constants say what is done here.
#![deny(unsafe_op_in_unsafe_fn)]

mod body;
mod client;
mod document;
mod error;
#[cfg(feature = "harness")]
pub mod harness;
mod phase;
mod score;
mod server;
mod socket;

use std::net::SocketAddr;

pub use error::Error;
pub use phase::{Confidence, Interval, Load, Measured};
pub use score::{Class, Samples, grade, quantile};
pub use server::Server;

use client::Target;

/// What may be under way unread on a connection, in bytes: more than any queue worth a name.
const WINDOW_BYTES: u32 = 16 << 20;

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// HTTP/2 with prior knowledge, for machines that encrypt more slowly than they forward.
    Plain,
    /// HTTP/2 over TLS, as the draft wants it.
    Tls,
}

impl Security {
    const fn scheme(self) -> &'static str {
        match self {
            Self::Plain => "http",
            Self::Tls => "https",
        }
    }

    /// The port of its scheme.
    const fn port(self) -> u16 {
        match self {
            Self::Plain => 80,
            Self::Tls => 443,
        }
    }
}

/// A client that has found its server.
pub struct Client {
    target: Target,
}

impl Client {
    /// Asks a server, a host and a port, for where it has what.
    ///
    /// # Errors
    /// If nobody answers there, or something that is no server of this test.
    pub async fn find(server: &str, security: Security) -> Result<Self, Error> {
        Ok(Self { target: Target::find(server, security).await? })
    }

    /// Where the server is.
    #[must_use]
    pub const fn server(&self) -> SocketAddr {
        self.target.address()
    }

    /// Measures under a load, in this many seconds.
    ///
    /// # Errors
    /// If the server stops taking part, as the draft demands; or the system refuses a connection.
    pub async fn measure(&self, load: Load, seconds: usize) -> Result<Measured, Error> {
        phase::run(&self.target, load, seconds).await
    }
}
