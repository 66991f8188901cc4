//! One account of a queue: what arrived, what left, what was lost, and how long it waited.
//!
//! An [`Account`] is the sink of a discipline. It keeps what every user wants ([`Totals`]), and
//! hands the rest to a [`Book`]: the simulator's ledger and packet log, the engine's records of
//! flows and its table of the flows that `top` shows are books.
#![forbid(unsafe_code)]

mod histogram;
mod sink;
mod tally;

pub use histogram::{Bucket, Histogram};
pub use sink::{Account, Book, Held};
pub use tally::{Drops, LaneTotals, Tally, Totals};
