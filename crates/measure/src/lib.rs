//! The one results schema of Shortlane, its writers, and the statistics on it.
//!
//! Lab, simulator, replay and live engine all write the same tables, so that every summary,
//! plot and report works on all of them.
//!
//! * [`Flow`], [`Advance`], [`Probe`], [`Sample`], [`DropCount`], [`LinkUse`], [`Block`] are the
//!   rows; a column is defined once, here, and `docs/results.md` is made from the definitions.
//! * [`PacketEvent`] is a row per packet of a bottleneck.
//! * [`Results`] writes a directory of tables and its `run.json`, [`TableWriter`] one table.
//!   A file appears under its name whole or not at all.
//! * [`stats`] summarises: means with intervals, quantiles that `n` can carry, paired ratios.
//! * [`text`] lays tables and sentences out for a terminal.
#![forbid(unsafe_code)]

mod any;
mod doc;
mod events;
mod file;
mod run;
mod schema;
pub mod stats;
mod table;
pub mod text;
mod writer;

pub use any::{AnyRow, Table, tables};
pub use doc::schema_markdown;
pub use events::{EventWriter, PacketEvent, PacketOutcome};
pub use file::{WriteError, write_json};
pub use run::{AnyResults, Machine, Results, RunInfo, SCHEMA_VERSION};
pub use schema::{
    Advance, Block, DropCount, Flow, FlowKind, Key, LinkUse, Probe, Sample, SizeClass,
};
pub use table::{Cell, Column, Kind, Row, Text, Value};
pub use writer::{AnyWriter, Format, TableWriter};
