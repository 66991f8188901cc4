//! Round trips of TCP, between frames and a clock of one's own.

use autorate::Trip;
use frame::{Fingerprinter, LinkType};
use sched::Nanos;

use crate::datapath::trips::Trips;

/// What is timed of the TCP segments that leave and come.
pub struct RoundTrips {
    trips: Trips,
    link: LinkType,
}

impl RoundTrips {
    /// On a link whose frames begin so.
    #[must_use]
    pub fn new(link: LinkType) -> Self {
        Self { trips: Trips::new(Fingerprinter::from_seed(1)), link }
    }

    /// A frame leaves for the link, behind so many bytes.
    pub fn leaves(&self, frame: &[u8], bytes_before: u64, now: Nanos) {
        self.trips.leaves(self.link, frame, bytes_before, now);
    }

    /// A frame comes from the link.
    pub fn comes(&self, frame: &[u8], now: Nanos) {
        self.trips.comes(self.link, frame, now);
    }

    /// The next round trip that was found.
    #[must_use]
    pub fn take(&self) -> Option<Trip> {
        self.trips.take()
    }
}
