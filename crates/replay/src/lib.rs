//! Captured traffic, open loop, through queue disciplines.
//!
//! What would this traffic have felt on a slower link, under this discipline and that? Every
//! packet of a capture arrives when it was captured, at each discipline in front of a link of its
//! own, all in one pass over the file and in bounded memory.
//!
//! * [`capture::Capture`] reads pcap and pcapng, also compressed, and survives what is wrong with
//!   them.
//! * [`run()`] does what a [`Config`] says and gives a [`Report`]; [`text`] shows it on a terminal.
//! * [`Tables`] takes the rows of the results schema and the packet events, if they are wanted.
#![forbid(unsafe_code)]

pub mod capture;
mod config;
mod events;
mod facts;
mod flows;
mod report;
mod rows;
mod run;
mod spool;
mod tables;
pub mod text;
mod timeline;
mod trial;

pub use config::{Config, ConfigError};
pub use facts::{CaptureFacts, LinkTypeCount};
pub use report::{ClassReport, DelayReport, DropReport, LaneReport, Report, SchedulerReport};
pub use rows::RUN;
pub use run::{Progress, run};
pub use tables::Tables;
