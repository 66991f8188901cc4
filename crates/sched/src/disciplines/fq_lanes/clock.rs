//! What a packet is stamped with when it arrives: the lane of its flow, and the time by two clocks.

use crate::interface::{Lane, Nanos};

/// Real time, and the clock of the oldest, which stands while younger packets are sent.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Clock {
    /// Whether it ever stands.
    stands: bool,
    /// When the link was last asked for a packet.
    last: Nanos,
    /// For how long the clock stood, in all.
    stood: u64,
    /// Whether younger packets are being sent since `last`.
    younger: bool,
}

/// A stamp: from the lowest bits on real time, in ns, which wraps after 18 minutes; the time that
/// the clock stood, which wraps after 4 1/2; the lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp(pub(super) u64);

const REAL_BITS: u32 = 40;
const STOOD_BITS: u32 = 22;
const REAL_MASK: u64 = (1 << REAL_BITS) - 1;
const STOOD_MASK: u64 = (1 << STOOD_BITS) - 1;
/// The time that the clock stood is stamped in units of 2^16 ns, a 15th of a millisecond.
const COARSE: u32 = 16;

impl Stamp {
    /// The lane that the packet joined.
    #[inline]
    pub(super) const fn lane(self) -> Lane {
        Lane((self.0 >> (REAL_BITS + STOOD_BITS)) as u8)
    }
}

impl Clock {
    pub(super) const fn new(stands: bool) -> Self {
        Self { stands, last: Nanos::ZERO, stood: 0, younger: false }
    }

    /// The stamp of a packet that joins `lane` now.
    #[inline]
    pub(super) const fn stamp(&self, now: Nanos, lane: Lane) -> Stamp {
        let stood = (self.stood >> COARSE) & STOOD_MASK;
        let lane = (lane.0 as u64) << (REAL_BITS + STOOD_BITS);
        Stamp(now.0 & REAL_MASK | stood << REAL_BITS | lane)
    }

    /// How long a packet has waited, by the clock of the oldest or by the real one.
    #[inline]
    pub(super) const fn sojourn(&self, stamp: Stamp, now: Nanos, oldest: bool) -> Nanos {
        let waited = now.0.wrapping_sub(stamp.0) & REAL_MASK;
        if !oldest {
            return Nanos(waited);
        }
        let stood = (self.stood >> COARSE).wrapping_sub(stamp.0 >> REAL_BITS) & STOOD_MASK;
        Nanos(waited.saturating_sub(stood << COARSE))
    }

    /// The link asks for a packet.
    #[inline]
    pub(super) fn asked(&mut self, now: Nanos) {
        if self.younger {
            self.stood += now.since(self.last).0;
        }
        (self.last, self.younger) = (now, false);
    }

    /// A packet is sent from now on.
    #[inline]
    pub(super) fn sends(&mut self, oldest: bool) {
        self.younger = self.stands && !oldest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_the_oldest_stands_while_younger_are_sent() {
        let mut clock = Clock::new(true);
        let at = Nanos::from_millis;
        clock.asked(at(10));
        clock.sends(false);
        let stamp = clock.stamp(at(10), Lane(2));
        clock.asked(at(50));
        clock.sends(true);
        clock.asked(at(65));
        assert_eq!(clock.sojourn(stamp, at(65), false), at(55));
        let by_clock = clock.sojourn(stamp, at(65), true);
        assert!(by_clock.0.abs_diff(at(15).0) < 1 << COARSE, "{by_clock:?}");
        assert_eq!(stamp.lane(), Lane(2));
    }

    #[test]
    fn stamps_wrap_and_short_waits_do_not_mind() {
        let mut clock = Clock::new(true);
        let seconds = Nanos::from_secs;
        for half_minute in 0..200 {
            let now = seconds(half_minute * 30);
            clock.asked(now);
            let stamp = clock.stamp(now, Lane(1));
            clock.sends(false);
            clock.asked(now + seconds(20));
            clock.sends(true);
            let later = now + seconds(25);
            assert_eq!(clock.sojourn(stamp, later, false), seconds(25));
            let by_clock = clock.sojourn(stamp, later, true);
            assert!(by_clock.0.abs_diff(seconds(5).0) < 1 << COARSE, "{by_clock:?}");
            clock.asked(later);
        }
    }
}
