//! What the link could have sent while nothing was queued: everybody's fair share of that time.
//!
//! So a stream of less than half of an idle link never ages.
//!
//! The link's rate is not known to a discipline. It is measured while packets are queued: over
//! stretches of at least 8 ms, since a link may take packets in batches, and not in the first 17 ms,
//! when a shaper may catch up for idle time.

use super::stage::BITS;
use crate::interface::Nanos;

/// A stretch is at least 2^23 ns long, and what has just begun settles for 2^24.
const STRETCH_BITS: u32 = 23;
const SETTLING: Nanos = Nanos(1 << 24);
/// Of idle time more than 4.3 s does not count at once, and no rate above 8 Gbit/s.
const MOST_IDLE: u64 = 1 << 32;
const MOST_PACE: u64 = (1 << 31) - 1;

/// The link's pace, and what it could have sent.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Idle {
    /// Whether anything is credited.
    counts: bool,
    /// When the link took its last packet, and the bytes of that.
    taken: Nanos,
    last: u32,
    /// Until when nothing is measured.
    settled: Nanos,
    /// When the present stretch began, if one has, and bytes sent in it.
    began: Option<Nanos>,
    sent: u32,
    /// Bytes that the link sent in 2^[`STRETCH_BITS`] ns of the last stretch, in the fraction of
    /// the credit.
    pace: u64,
    /// Bytes that are credited, in all.
    credit: u64,
}

impl Idle {
    pub(super) fn new(counts: bool) -> Self {
        Self { counts, ..Self::default() }
    }

    /// What is credited, in all, in the units of a stage's virtual time.
    #[inline]
    pub(super) const fn credit(&self) -> u64 {
        self.credit
    }

    /// The link takes a packet of `size` bytes.
    #[inline]
    pub(super) fn takes(&mut self, size: u32, now: Nanos) {
        (self.taken, self.last) = (now, size);
        if now < self.settled {
            return;
        }
        let stretch = self.began.map_or(0, |began| now.since(began).0);
        let is_over = stretch >> STRETCH_BITS > 0;
        if is_over {
            let sent = u64::from(self.sent) << BITS;
            self.pace = ((sent << STRETCH_BITS) / stretch).min(MOST_PACE);
        }
        if is_over || self.began.is_none() {
            (self.began, self.sent) = (Some(now), 0);
        }
        self.sent = self.sent.saturating_add(size);
    }

    /// A packet comes, and nothing is queued. The link was idle once it had sent its last one.
    #[inline]
    pub(super) fn ends(&mut self, now: Nanos) {
        if self.counts {
            let time = now.since(self.taken).0.min(MOST_IDLE);
            let could = (time * self.pace) >> STRETCH_BITS;
            let last = u64::from(self.last) << BITS;
            self.credit += could.saturating_sub(last);
        }
        (self.settled, self.began) = (now + SETTLING, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sends `packets` of 1250 bytes, one a millisecond, from `now` on; returns when the last left.
    fn busy(idle: &mut Idle, now: Nanos, packets: u64) -> Nanos {
        idle.ends(now);
        for packet in 0..packets {
            idle.takes(1250, Nanos(now.0 + packet * MS));
        }
        Nanos(now.0 + packets * MS)
    }

    fn credited(idle: &Idle) -> u64 {
        idle.credit() >> BITS
    }

    #[test]
    fn idle_time_is_worth_what_the_link_sends_in_it() {
        let mut idle = Idle::new(true);
        let left = busy(&mut idle, Nanos(5 * MS), 30);
        assert_eq!(credited(&idle), 0, "its pace was not known");
        idle.ends(Nanos(left.0 + 8 * MS));
        assert!((9_980..=10_000).contains(&credited(&idle)), "8 ms at 10 Mbit/s: {idle:?}");
    }

    #[test]
    fn a_busy_link_is_not_idle_because_nothing_is_queued() {
        let mut idle = Idle::new(true);
        let mut now = busy(&mut idle, Nanos(0), 30);
        for _ in 0..100 {
            idle.ends(now);
            idle.takes(1250, now);
            now.0 += MS;
        }
        assert!(credited(&idle) < 200, "{idle:?}");
    }

    #[test]
    fn neither_batches_nor_a_burst_after_idleness_make_a_link_fast() {
        let mut idle = Idle::new(true);
        idle.ends(Nanos(0));
        (0..10).for_each(|_| idle.takes(1250, Nanos(0)));
        for batch in 1..20 {
            (0..4).for_each(|_| idle.takes(1250, Nanos(batch * 4 * MS)));
        }
        let bytes = (idle.pace * 12 * MS) >> (BITS + STRETCH_BITS);
        assert!((14_900..=15_000).contains(&bytes), "{bytes} in 12 ms");
    }

    #[test]
    fn neither_a_standing_clock_nor_ages_of_idling_overflow() {
        let mut idle = Idle::new(true);
        (0..100_000).for_each(|_| idle.takes(u32::MAX, Nanos(1)));
        idle.takes(1, Nanos(1 + (1 << STRETCH_BITS)));
        assert_eq!(idle.pace, MOST_PACE);
        idle.ends(Nanos::MAX);
        let most = (MOST_IDLE * MOST_PACE) >> STRETCH_BITS;
        assert_eq!(idle.credit(), most - (1 << BITS));
    }
}
