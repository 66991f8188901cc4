//! An experiment as one TOML file: read, checked, simulated, summarised.
//!
//! * [`Scenario::parse`] reads a file; an error names line, key, what was found and what is accepted.
//!   Every key is defined once, and [`reference_markdown`] is made from the definitions.
//! * [`run`] runs every scheduler with every seed in parallel and hands out rows of the results schema
//!   in an order that depends on the scenario alone.
//! * [`Summary`] compares the schedulers, [`text`] shows it.
//! * [`library`] has ready scenarios.
#![forbid(unsafe_code)]

pub mod draw;
mod error;
#[cfg(feature = "harness")]
pub mod harness;
mod idle;
mod input;
mod job;
mod key;
pub mod library;
mod place;
mod rate_trace;
mod reader;
mod record;
mod reference;
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
mod varying;
mod watched;
mod work;

pub use error::ScenarioError;
pub use input::Input;
pub use record::Wanted;
pub use reference::{reference, reference_markdown};
pub use rows::Row;
pub use scenario::{Overrides, Record, Scenario};
pub use sim::Varying;
pub use summary::{
    ClassSummary, LinkSummary, PagesSummary, SchedulerSummary, Summary, TimesSummary, TrafficKind,
    TrafficSummary,
};
pub use topology::{Link, Queue, Topology};
pub use traffic::{Arrivals, Kind, Pick, Stream, Traffic};
pub use varying::{Rates, Walk};
pub use work::{Finished, Observer, Progress, run};
