//! Routing: the links of a packet, and the feeders of a link.

use super::{END, World};
use crate::flow::Way;
use crate::network::{LinkId, NetworkError, NodeId};

/// Where the packets of a link come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feeder {
    Nobody,
    /// One other link, and nobody else.
    Link(LinkId),
    /// Hosts, or several links.
    Several,
}

impl World {
    /// Packets will go this way and back.
    pub(crate) fn expect(&mut self, from: NodeId, to: NodeId) -> Result<(), NetworkError> {
        self.expect_way(from, to)?;
        self.expect_way(to, from)
    }

    pub(super) fn expect_way(&mut self, from: NodeId, to: NodeId) -> Result<(), NetworkError> {
        if !self.ways.contains_key(&(from, to)) {
            let way = self.add_way(from, to)?;
            self.note_feeders(way, true);
        }
        Ok(())
    }

    /// The way from one node to another.
    pub(super) fn way(&mut self, from: NodeId, to: NodeId) -> Result<Way, NetworkError> {
        if let Some(way) = self.ways.get(&(from, to)) {
            return Ok(*way);
        }
        let way = self.add_way(from, to)?;
        self.note_feeders(way, false);
        Ok(way)
    }

    pub(super) fn add_way(&mut self, from: NodeId, to: NodeId) -> Result<Way, NetworkError> {
        let links = self.network.path(from, to)?;
        let way = Way(self.hops.len() as u32);
        self.hops.extend(links);
        self.hops.push(END);
        self.ways.insert((from, to), way);
        Ok(way)
    }

    /// Notes what feeds the links of a way. Only of expected ways it is known that nobody else
    /// does, or that the others are known too.
    pub(super) fn note_feeders(&mut self, way: Way, expected: bool) {
        let mut before = Feeder::Several;
        for at in way.0 as usize.. {
            let link = self.hops[at];
            if link == END {
                break;
            }
            let entry = &self.links[link.index()];
            // A discipline decides when it is asked, not before.
            let feeder = if entry.port().is_some() { Feeder::Several } else { before };
            let known = &mut self.feeders[link.index()];
            *known = match *known {
                Feeder::Nobody if expected => feeder,
                same if same == feeder => same,
                _ => Feeder::Several,
            };
            before = if entry.keeps_order() { Feeder::Link(link) } else { Feeder::Several };
        }
    }
}
