//! Rows of results on their way from a run to files.

use measure::{Advance, AnyRow, Block, DropCount, Flow, LinkUse, PacketEvent, Probe, Sample};

/// A row of some table.
#[derive(Clone, Debug)]
pub enum Row {
    /// Of table `blocks`.
    Block(Box<Block>),
    /// Of table `links`.
    Link(Box<LinkUse>),
    /// Of table `flows`.
    Flow(Box<Flow>),
    /// Of table `progress`.
    Advance(Advance),
    /// Of table `probes`.
    Probe(Probe),
    /// Of table `samples`.
    Sample(Sample),
    /// Of table `drops`.
    Drop(DropCount),
    /// A packet's fate, for `--events`.
    Event(Box<PacketEvent>),
}

impl Row {
    /// The row, whatever its table.
    #[must_use]
    pub fn any(&self) -> AnyRow<'_> {
        match self {
            Self::Block(row) => AnyRow::Block(row),
            Self::Link(row) => AnyRow::LinkUse(row),
            Self::Flow(row) => AnyRow::Flow(row),
            Self::Advance(row) => AnyRow::Advance(row),
            Self::Probe(row) => AnyRow::Probe(row),
            Self::Sample(row) => AnyRow::Sample(row),
            Self::Drop(row) => AnyRow::DropCount(row),
            Self::Event(row) => AnyRow::PacketEvent(row),
        }
    }
}
