//! Rows of results on their way from a run to files.

use measure::{Advance, Block, DropCount, Flow, LinkUse, PacketEvent, Probe, Sample};

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
