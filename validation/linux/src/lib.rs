//! The simulator's TCP against this kernel's, through the same bottleneck.
//!
//! A [`Case`] is a FIFO in front of a slow link, and what goes through it. [`kernel`] sends it
//! through the lab, with real sockets, [`simulated`] through the simulator; both give an
//! [`Outcome`], and [`compare`] sets them against each other, round by round.
#![forbid(unsafe_code)]

pub mod case;
pub mod compare;
pub mod kernel;
pub mod outcome;
pub mod record;
pub mod report;
pub mod simulated;

pub use case::{Case, Work};
pub use outcome::Outcome;
