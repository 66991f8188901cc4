//! Why there is no result.

use std::io;

use thiserror::Error;

/// What went wrong, told with what was found.
#[derive(Debug, Error)]
pub enum Error {
    /// Where the server should be is none that answers.
    #[error("{address}: {source}; `shortlane test --server` runs one")]
    Unreachable {
        /// Where it should be.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// Something answers that is no server of this test.
    #[error("{address} is not a responsiveness server: {found}")]
    Foreign {
        /// Where it is.
        address: String,
        /// What it said.
        found: String,
    },
    /// The server stopped taking part.
    #[error("{phase}: the server no longer takes part: {found}")]
    Gone {
        /// During which phase.
        phase: &'static str,
        /// How that was noticed.
        found: String,
    },
    /// Load passes, but what waits behind it takes longer than the phase.
    #[error(
        "{phase}: no probe was answered within {seconds} s; a longer --duration waits for longer"
    )]
    Slow {
        /// During which phase.
        phase: &'static str,
        /// What was waited for an answer.
        seconds: usize,
    },
    /// The server cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where it should.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// The system refuses something else.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
}
