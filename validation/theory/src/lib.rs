//! The simulator against the closed forms of the M/G/1 queue.
//!
//! Jobs are flows that arrive as a Poisson process, with all their bytes at once, at a link of
//! one byte a nanosecond. The disciplines send packets where the theory serves a fluid: every
//! case is simulated with packets of one size and of twice that, the same arrivals both times,
//! and what is compared is the time to which the two extrapolate, `2 T(q) - T(2q)`. What
//! packets change in proportion to their size is thereby taken out; [`study::Row::granularity`]
//! says how much that is.
#![forbid(unsafe_code)]

pub mod oracle;
pub mod report;
pub mod study;
mod trial;
