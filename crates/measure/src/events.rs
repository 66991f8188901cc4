//! The fate of every packet at a bottleneck: the table of `--events`.

use std::path::Path;
use std::sync::LazyLock;

use crate::file::WriteError;
use crate::table::{Cell, Column, Kind, Row, Text, Value, table};
use crate::writer::{Format, TableWriter};

/// What became of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketOutcome {
    /// Its last bit has left.
    Departed,
    /// It was dropped.
    Dropped,
    /// It was queued when the run ended.
    #[default]
    Queued,
}

impl PacketOutcome {
    /// Its name in tables and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Departed => "departed",
            Self::Dropped => "dropped",
            Self::Queued => "queued",
        }
    }
}

impl Cell for PacketOutcome {
    const KIND: Kind = Kind::Text;
    fn value(&self) -> Value {
        // There are millions of them: the names are shared.
        static NAMES: LazyLock<[Text; 3]> = LazyLock::new(|| {
            use PacketOutcome::{Departed, Dropped, Queued};
            [Departed, Dropped, Queued].map(|outcome| outcome.name().into())
        });
        Value::Text(Text::clone(&NAMES[*self as usize]))
    }
}

table! {
    /// One row per scheduler and packet that reached the bottleneck, in the order of arrival.
    PacketEvent {
        /// The scheduler with the parameters that were given.
        scheduler: Text [""],
        /// The packet's place among those of the capture or run, from 0.
        index: u64 ["number"],
        /// When it arrived; the clock starts at the first packet.
        arrival_ns: u64 ["ns"],
        /// Its original length on the wire.
        size_bytes: u64 ["bytes"],
        /// The 5-tuple as text.
        flow: Text [""],
        /// The lane it was in, or would have joined: 0 is the short lane, and the only one of
        /// schedulers without lanes.
        lane: Option<u64> ["number"],
        /// Its fate: `departed`, `dropped` or, at the end of a run, `queued`.
        outcome: PacketOutcome [""],
        /// Why it was dropped: `full`, `pushed-out`, `congested`.
        reason: Option<Text> [""],
        /// When its last bit had left.
        departure_ns: Option<u64> ["ns"],
    }
}

/// These rows say themselves what they belong to: they have no columns of [`crate::Key`].
impl Row for PacketEvent {
    const TABLE: &'static str = "events";
    const ABOUT: &'static [&'static str] =
        &["One row per scheduler and packet that reached the bottleneck, in the order of arrival."];

    fn columns() -> Vec<Column> {
        Self::OWN_COLUMNS.to_vec()
    }

    fn cells(&self, put: &mut dyn FnMut(Value)) {
        self.own_cells(put);
    }
}

/// A file of packet events; its name says the format.
pub type EventWriter = TableWriter<PacketEvent>;

impl EventWriter {
    /// Opens a temporary file beside `path`, which must end in `.csv` or `.parquet`; `None` if it
    /// does not.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn for_path(path: &Path) -> Option<Result<Self, WriteError>> {
        Format::of_path(path).map(|format| Self::create(path, format))
    }
}
