//! Seeded workloads: what is sent, how much of it, and when.
//!
//! * [`SizeLaw`] is a law of transfer sizes, read from text such as
//!   `zipf:alpha=1.1,max=1000packets`; [`TimeLaw`] and [`CountLaw`] are the same for think times
//!   and numbers of objects.
//! * [`TransferList`] is a list of transfers (start, size), drawn from a law at a chosen load or
//!   read from a CSV file.
//! * [`DatagramList`] is a list of datagrams (time, size, stream).
//! * [`Cbr`], [`OnOff`] and [`Requests`] say when streams send and when a client asks; [`Page`]s are
//!   what a browser fetches.
//!
//! Everything is a function of its parameters and a seed, the same on every machine: random
//! numbers come from one named generator, and logarithms and powers from `libm` rather than
//! from the system.
//!
//! ```
//! use units::{Nanos, Rate};
//! use workload::{Offered, SizeLaw, TransferList};
//!
//! let law: SizeLaw = "zipf:alpha=1.1,max=1000packets".parse()?;
//! let (rate, duration) = (Rate(10_000_000), Nanos::from_secs(60));
//! let offered = Offered { load: 0.8, rate, duration };
//! let list = TransferList::generate(&law, &offered, 1)?;
//! assert!(list.transfers().iter().all(|t| t.start < duration));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod csv_table;
mod datagrams;
mod law;
mod law_text;
mod pages;
mod random;
mod streams;
mod transfers;
mod transfers_csv;

pub use csv_table::CsvError;
pub use datagrams::{Datagram, DatagramList};
pub use law::{Bytes, Count, CountLaw, Law, PAYLOAD_BYTES, SizeLaw, Time, TimeLaw};
pub use law_text::{LawError, Unit};
pub use pages::{Object, Page, PageLaw};
pub use random::Random;
pub use streams::{Cbr, OnOff, Requests};
pub use transfers::{Offered, Transfer, TransferError, TransferList};
