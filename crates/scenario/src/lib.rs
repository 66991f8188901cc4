//! An experiment as one TOML file.
#![forbid(unsafe_code)]

pub mod draw;
mod error;
mod idle;
mod job;
mod key;
pub mod library;
mod period;
mod reader;
mod record;
mod rows;
mod scenario;
mod sections;
pub mod seeds;
mod sources;
mod summary;
mod tally;
mod tcp_keys;
pub mod text;
mod topology;
mod traffic;
mod work;

pub use error::ScenarioError;
pub use period::Period;
pub use record::Wanted;
pub use rows::Row;
pub use scenario::{Overrides, Record, Scenario};
pub use summary::*;
pub use topology::{Link, Queue, Topology};
pub use traffic::{Arrivals, Kind, Pick, Stream, Traffic};
pub use work::{Finished, Observer, Progress, run};
