//! What frames are like between two places.

use frame::LinkType;

/// What frames are like, and what becomes of some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medium {
    /// How they begin.
    pub(crate) link_type: LinkType,
    /// The largest that the output takes, but for super-packets.
    pub(crate) largest: u32,
    /// Bytes of a frame that lie together, headers included.
    pub(crate) head: usize,
    /// Whether the input splits super-packets that would take too long, so that none is refused.
    pub(crate) splits: bool,
    /// Whether frames are dropped while the output is down, rather than the engine ended.
    pub(crate) outlives_down: bool,
}

impl Medium {
    /// Between two interfaces, of which the far one has this MTU.
    pub(crate) fn bridged(mtu: u32) -> Self {
        let largest = mtu + HEADER;
        Self {
            link_type: LinkType::Ethernet,
            largest,
            head: largest as usize,
            splits: false,
            outlives_down: false,
        }
    }
}

/// Room for the Ethernet header and two VLAN tags beside the MTU.
pub(crate) const HEADER: u32 = 14 + 2 * 4;
