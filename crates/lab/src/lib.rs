//! The lab: this machine's own TCP and UDP through a queue discipline.
//!
//! For every block two hosts and a bottleneck are made in network namespaces of their own, which
//! no name in the file system holds: they vanish with the last process in them, however it ends.
//! The kernel's own TCP sends the same seeded traffic through every discipline, in short blocks
//! in interleaved order, and what each did is compared in pairs.
//!
//! * [`Config`] says what runs; [`run()`] runs it and hands out the rows of the results schema;
//!   [`Summary`] says what they mean, [`text`] for a terminal.
//! * [`traffic`] holds the two roles, client and server.

mod agents;
mod block;
pub mod config;
mod hosts;
mod idle;
mod kernel;
mod plan;
mod rows;
mod run;
pub mod scenario;
pub mod scheduler;
mod summary;
mod sweep;
pub mod text;
pub mod traffic;

pub use agents::AgentError;
pub use block::BlockError;
pub use config::{
    AgentProgram, Bottleneck, Config, ConfigError, Ends, Labels, Round, Timing, Traffic, Transfers,
};
pub use idle::IdleTimes;
pub use rows::Rows;
pub use run::{Finished, Progress, run};
pub use scheduler::{Engine, Scheduler};
pub use summary::{ClassSummary, DropSummary, SchedulerSummary, StreamSummary, Summary};
pub use sweep::{Cell, CellResult, Sweep};
