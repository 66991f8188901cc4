//! Who is dropped when the buffer is full?

use crate::interface::parts::Buffer;
use crate::interface::{Amount, Lane, Packet, Share};

use super::queues::Queues;

/// What a full buffer does with an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// The arrival fits.
    Enough,
    /// The arrival fits once packets at the tail of the long lane are gone.
    PushOut,
    /// The arrival is dropped.
    None,
}

/// What the buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Limits {
    /// Both lanes together.
    pub(crate) whole: Amount,
    /// The short lane, in the unit of `whole`.
    pub(crate) short: u64,
}

impl Limits {
    /// The long lane's share of the link is its share of the buffer too: packets that were pushed
    /// out, or found no room, cannot be served.
    #[must_use]
    pub(crate) const fn new(whole: Amount, long_share: Share) -> Self {
        Self { whole, short: whole.value() - whole.part(long_share) }
    }
}

impl Buffer {
    /// Whether there is room for `packet`, which is to join `lane`.
    ///
    /// *Drop-tail*: one shared limit; an arrival that does not fit is dropped.
    ///
    /// *Knockout* (flow scheduler paper): at a full buffer a packet of a short flow pushes out the
    /// tail of the long lane; one of a long flow is dropped. Counted in packets this is the rule of
    /// EFD: insert, then drop the physical end. With super-packets or bytes the long lane gives as
    /// many packets as it takes. Where even an empty long lane would not make room, the arrival is
    /// dropped and nothing is removed.
    #[inline]
    pub(super) fn room(self, queues: &Queues, limits: Limits, packet: &Packet, lane: Lane) -> Room {
        if !queues.fits_lane(limits, packet, lane) {
            Room::None
        } else if queues.fits(limits, packet) {
            Room::Enough
        } else if self == Self::Knockout && lane == Lane::SHORT {
            Room::PushOut
        } else {
            Room::None
        }
    }
}
