//! What the link could have sent while nothing was queued: it adds to the fair share of everybody.
//!
//! The link's rate is not known to a discipline. It is measured while packets are queued, over
//! stretches of at least 4 ms, so that a link which takes packets in batches does not count as
//! faster than it is.

use crate::interface::Nanos;

/// A stretch is at least 2^22 ns long, 4.2 ms.
const STRETCH_BITS: u32 = 22;
/// Of idle time more than 4.3 s does not count at once, and no rate above 16 Gbit/s.
const MOST_IDLE: u64 = 1 << 32;
const MOST_PACE: u64 = (1 << 31) - 1;

/// The link's pace, and what it could have sent.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Idle {
    /// Whether anything is credited.
    counts: bool,
    /// When the link last asked for a packet and there was one, or first found none after that.
    since: Nanos,
    found_none: bool,
    /// When the present stretch began, and bytes sent in it.
    began: Nanos,
    sent: u32,
    /// Bytes that the link sent in 2^[`STRETCH_BITS`] ns of the last stretch, in the fraction of
    /// the credit.
    pace: u64,
    /// Bytes that the link could have sent while nothing was queued, in all.
    credit: u64,
}

impl Idle {
    pub(super) fn new(counts: bool) -> Self {
        Self { counts, ..Self::default() }
    }

    /// What could have been sent, in the units of a stage's virtual time.
    #[inline]
    pub(super) const fn credit(&self) -> u64 {
        self.credit
    }

    /// The link asks for a packet.
    #[inline]
    pub(super) fn asked(&mut self, now: Nanos, finds_one: bool) {
        if finds_one || !self.found_none {
            self.since = now;
        }
        self.found_none = !finds_one;
        let stretch = now.since(self.began).0;
        if self.sent == 0 {
            self.began = now;
        } else if finds_one && stretch >> STRETCH_BITS > 0 {
            let sent = u64::from(self.sent) << super::stage::BITS;
            self.pace = ((sent << STRETCH_BITS) / stretch).min(MOST_PACE);
            (self.began, self.sent) = (now, 0);
        }
    }

    /// A packet leaves.
    #[inline]
    pub(super) fn sends(&mut self, size: u32) {
        self.sent = self.sent.saturating_add(size);
    }

    /// A packet comes, and nothing is queued.
    #[inline]
    pub(super) fn ends(&mut self, now: Nanos) {
        let idle = now.since(self.since).0.min(MOST_IDLE);
        if self.counts {
            self.credit += (idle * self.pace) >> STRETCH_BITS;
        }
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::BITS;
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sends `packets` of 1250 bytes, one a millisecond, from `now` on; returns when the last left.
    fn busy(idle: &mut Idle, now: Nanos, packets: u64) -> Nanos {
        idle.ends(now);
        for packet in 0..packets {
            idle.asked(Nanos(now.0 + packet * MS), true);
            idle.sends(1250);
        }
        Nanos(now.0 + packets * MS)
    }

    #[test]
    fn idle_time_is_worth_what_the_link_sends_in_it() {
        let mut idle = Idle::new(true);
        let left = busy(&mut idle, Nanos(5 * MS), 20);
        assert_eq!(idle.credit(), 0, "its pace was not known");
        idle.asked(left, false);
        idle.asked(Nanos(left.0 + 3 * MS), false);
        idle.ends(Nanos(left.0 + 8 * MS));
        let bytes = idle.credit() >> BITS;
        assert!((9_990..=10_000).contains(&bytes), "{bytes} of 8 ms at 10 Mbit/s");
    }

    #[test]
    fn a_link_that_does_not_say_that_it_is_free_has_sent_its_last_packet_at_once() {
        let mut idle = Idle::new(true);
        let left = busy(&mut idle, Nanos(0), 20);
        idle.ends(Nanos(left.0 + 8 * MS));
        let bytes = idle.credit() >> BITS;
        assert!((11_240..=11_250).contains(&bytes), "{bytes} of 9 ms at 10 Mbit/s");
    }

    #[test]
    fn batches_do_not_make_a_link_fast() {
        let mut idle = Idle::new(true);
        for batch in 0..20 {
            for _ in 0..4 {
                idle.asked(Nanos(batch * 4 * MS), true);
                idle.sends(1250);
            }
        }
        assert!(idle.pace <= (8 * 1250 << (BITS + STRETCH_BITS)) / (8 * MS), "{}", idle.pace);
    }

    #[test]
    fn neither_a_standing_clock_nor_ages_of_idling_overflow() {
        let mut idle = Idle::new(true);
        for _ in 0..100_000 {
            idle.asked(Nanos(1), true);
            idle.sends(u32::MAX);
        }
        idle.asked(Nanos(1 + (1 << STRETCH_BITS)), true);
        assert_eq!(idle.pace, MOST_PACE);
        idle.ends(Nanos::MAX);
        assert_eq!(idle.credit(), (MOST_IDLE * MOST_PACE) >> STRETCH_BITS);
    }
}
