//! Quantities as types: times, rates, amounts of traffic, shares.
//!
//! Each is an integer inside (nanoseconds, bit/s, packets or bytes, parts per billion), is read and
//! written as `tc` users write it (`5ms`, `10mbit`, `300packets`, `30kb`, `0.8`), and says
//! "unlimited" in one way: a constant of its type, written `inf`.
//!
//! ```
//! use units::{Amount, Nanos, Rate};
//!
//! let rate: Rate = "12mbit".parse().unwrap();
//! assert_eq!(rate.time_of(1500), Nanos::from_millis(1));
//! assert_eq!("30kb".parse(), Ok(Amount::Bytes(30 * 1024)));
//! assert_eq!("inf".parse(), Ok(Rate::UNLIMITED));
//! assert_eq!(Rate::UNLIMITED.to_string(), "inf");
//! ```
//!
//! The crate is `no_std` + `alloc` and depends on nothing. The feature `serde`, off by default,
//! writes times and rates into files as their number.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod amount;
#[cfg(any(test, kani))]
mod proofs;
mod rate;
mod share;
mod spelling;
mod time;

pub use amount::{Amount, Level};
pub use rate::Rate;
pub use share::{Factor, Share};
pub use spelling::Misspelt;
pub use time::Nanos;
