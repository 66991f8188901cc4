//! Errors of a role that cannot start.

use std::io;

/// Why a role could not begin. What goes wrong later is in the reports.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan contradicts itself, or is not one.
    #[error("bad traffic plan: {0}")]
    Plan(String),
    /// The epoch had passed before the role was ready to begin.
    #[error("the plan's epoch had passed by {0} us when this side was ready: leave it more time")]
    Late(u64),
    /// The kernel refused a congestion control.
    #[error(
        "TCP congestion control '{wanted}' cannot be used ({source}); this kernel offers {offered}"
    )]
    Congestion {
        /// The one asked for.
        wanted: &'static str,
        /// Those of `net.ipv4.tcp_available_congestion_control`.
        offered: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A socket could not be had.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: names what was tried.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
