//! An experiment as one TOML file.
#![forbid(unsafe_code)]

pub mod draw;
mod error;
mod key;
mod period;
mod reader;
mod scenario;
mod sections;
pub mod seeds;
mod tcp_keys;
mod topology;
mod traffic;

pub use error::ScenarioError;
pub use period::Period;
pub use scenario::{Overrides, Record, Scenario};
pub use topology::{Link, Queue, Topology};
pub use traffic::{Arrivals, Kind, Pick, Stream, Traffic};
