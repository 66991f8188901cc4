//! Why connections fail.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// Failure counts by [`Cause`], in words.
pub type Failures = BTreeMap<String, u64>;

/// Why a connection did not end as planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// No local port was free (`EADDRNOTAVAIL`).
    PortsUsedUp,
    /// No file descriptor was free.
    FilesUsedUp,
    /// Nobody listened.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The kernel gave up (`ETIMEDOUT`).
    TimedOut,
    /// There was no way to the peer.
    Unreachable,
    /// The peer closed before all bytes were there.
    ClosedEarly,
    /// The plan's hard stop came first.
    HardStop,
    /// A connection began with something that is no request.
    NoRequest,
    /// Any other error, by its `errno`.
    Errno(i32),
}

impl From<&io::Error> for Cause {
    fn from(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EADDRNOTAVAIL) => Self::PortsUsedUp,
            Some(libc::EMFILE | libc::ENFILE) => Self::FilesUsedUp,
            Some(libc::ECONNREFUSED) => Self::Refused,
            Some(libc::ECONNRESET | libc::EPIPE) => Self::Reset,
            Some(libc::ETIMEDOUT) => Self::TimedOut,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN) => Self::Unreachable,
            Some(errno) => Self::Errno(errno),
            // The roles make no other error of their own than an early end of file.
            None => Self::ClosedEarly,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PortsUsedUp => "local ports used up",
            Self::FilesUsedUp => "file descriptors used up",
            Self::Refused => "connection refused",
            Self::Reset => "connection reset",
            Self::TimedOut => "connection timed out",
            Self::Unreachable => "no route",
            Self::ClosedEarly => "closed early",
            Self::HardStop => "not finished at the hard stop",
            Self::NoRequest => "no request",
            Self::Errno(errno) => return io::Error::from_raw_os_error(*errno).fmt(f),
        })
    }
}

/// Counts causes.
pub(crate) fn count_failures(causes: impl Iterator<Item = Cause>) -> Failures {
    let mut failures = Failures::new();
    for cause in causes {
        *failures.entry(cause.to_string()).or_default() += 1;
    }
    failures
}
