//! COBALT: CoDel and BLUE side by side, on one queue.
//!
//! CoDel's half marks or drops when packets have waited longer than `target` for an `interval`,
//! and then after `interval / sqrt(n)` following the n-th signal. One timer serves for both, and n
//! is not forgotten when a packet is in time: it is counted down at the pace at which it was
//! counted up. BLUE's half is for flows that do not listen: every overflow raises a probability
//! with which packets are dropped, marked or not, and every look at the empty queue lowers it.

use crate::disciplines::codel;
use crate::interface::Nanos;

/// What an overflow adds to BLUE's probability, in units of 2^-32: 1/256.
const RISE: u32 = 1 << 24;
/// What a look at the empty queue takes away: 1/4096.
const FALL: u32 = 1 << 20;

/// The parameters of the law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Law {
    target: Nanos,
    interval: Nanos,
    /// Four of the largest packets' times on the link: a delay that is never signalled.
    spared: Nanos,
}

impl Law {
    /// For a round trip of `rtt` in front of a link that sends its largest packet in `mtu_time`.
    pub(super) fn new(rtt: Nanos, mtu_time: Nanos) -> Self {
        if rtt == Nanos::MAX {
            // Nothing is ever late, and nothing has to be remembered for a while.
            return Self { target: Nanos::MAX, interval: Nanos::ZERO, spared: Nanos::MAX };
        }
        let wanted = Nanos((rtt.0 / 20).max(1));
        let target = wanted.max(Nanos(mtu_time.0.saturating_mul(3) / 2));
        let interval = (rtt + (target - wanted)).max(target + target);
        Self { target, interval, spared: Nanos(mtu_time.0.saturating_mul(4)) }
    }

    fn spacing(&self, count: u32) -> Nanos {
        codel::spacing(self.interval, count)
    }
}

/// What happens to a packet that is about to leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// It is dropped, unless it is the last one.
    pub(super) drop: bool,
    /// If it leaves, it leaves with a mark.
    pub(super) mark: bool,
}

/// The state of the law for one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cobalt {
    /// When the next signal is due, or the count goes down.
    next: Nanos,
    /// When BLUE's probability last moved.
    moved: Nanos,
    /// Signals, less what has been counted down since.
    count: u32,
    /// BLUE's, in units of 2^-32.
    probability: u32,
    /// Whether the last packet was late.
    late: bool,
}

impl Cobalt {
    /// Judges a packet that has waited for `waited`, and is ECN-capable or not; `dice` says whether
    /// BLUE takes it, at a probability in units of 2^-32.
    #[inline]
    pub(super) fn judge(
        &mut self,
        law: &Law,
        now: Nanos,
        waited: Nanos,
        capable: bool,
        dice: impl FnOnce(u32) -> bool,
    ) -> Verdict {
        let late = waited > law.target && waited > law.spared;
        if !late && self.count == 0 && self.probability == 0 {
            self.late = false;
            self.next = now + law.interval;
            return Verdict::default();
        }
        self.act(law, now, late, capable, dice)
    }

    /// The same where something may be to do.
    #[cold]
    fn act(
        &mut self,
        law: &Law,
        now: Nanos,
        late: bool,
        capable: bool,
        dice: impl FnOnce(u32) -> bool,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let due = self.is_due(now);
        if late {
            if !self.late {
                self.next = now + law.spacing(self.count);
            }
            self.count = self.count.max(1);
        }
        self.late = late;
        if due && late {
            verdict = Verdict { drop: !capable, mark: capable };
            self.count = self.count.saturating_add(1);
            self.next += law.spacing(self.count);
        } else if !late {
            while self.is_due(now) {
                self.count_down(law);
            }
        }
        verdict.drop |= self.probability > 0 && dice(self.probability);
        if self.count == 0 {
            self.next = now + law.interval;
        } else if now > self.next && !verdict.drop {
            // What is late after a mark is not made up for: a packet carries one mark.
            self.next = now;
        }
        verdict
    }

    /// A packet of this queue had to go for want of room.
    pub(super) fn overflowed(&mut self, law: &Law, now: Nanos) {
        if now.since(self.moved) > law.target {
            self.probability = self.probability.saturating_add(RISE);
            self.moved = now;
        }
        self.late = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// The queue's turn came, and it was empty.
    pub(super) fn found_empty(&mut self, law: &Law, now: Nanos) {
        if self.probability > 0 && now.since(self.moved) > law.target {
            self.probability = self.probability.saturating_sub(FALL);
            self.moved = now;
        }
        self.late = false;
        if self.is_due(now) {
            self.count_down(law);
        }
    }

    /// Whether nothing is left to be remembered.
    pub(super) fn is_at_rest(&self, now: Nanos) -> bool {
        self.probability == 0 && self.count == 0 && now >= self.next
    }

    fn is_due(&self, now: Nanos) -> bool {
        self.count > 0 && now >= self.next
    }

    fn count_down(&mut self, law: &Law) {
        self.count -= 1;
        self.next += law.spacing(self.count);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const MS: u64 = 1_000_000;

    fn law() -> Law {
        Law::new(Nanos::from_millis(100), Nanos::ZERO)
    }

    /// A departure every millisecond: when it is signalled. All have waited for `waited`.
    fn signals(cobalt: &mut Cobalt, ms: core::ops::Range<u64>, waited: u64) -> Vec<u64> {
        let judge = |ms: &u64| {
            let (now, waited) = (Nanos(ms * MS), Nanos(waited * MS));
            cobalt.judge(&law(), now, waited, false, |_| unreachable!("BLUE is at rest")).drop
        };
        ms.filter(judge).collect()
    }

    #[test]
    fn the_floor_of_the_target_is_the_link() {
        let law = |rtt, mtu_time| Law::new(Nanos::from_millis(rtt), Nanos(mtu_time * MS));
        let of = |target, interval, spared| Law {
            target: Nanos(target * MS),
            interval: Nanos(interval * MS),
            spared: Nanos(spared * MS),
        };
        assert_eq!(law(100, 1), of(5, 100, 4));
        assert_eq!(law(100, 2), of(5, 100, 8), "not signalled, though above target");
        assert_eq!(law(100, 12), of(18, 113, 48), "the interval grows by as much");
        assert_eq!(law(20, 40), of(60, 120, 160), "and is two targets at least");
    }

    /// A signal an interval after the first late packet, then 100/sqrt(2), 100/sqrt(3) .. later:
    /// due at 100, 170.7, 228.4, 278.4, 323.2 ms.
    #[test]
    fn signals_come_after_an_interval_and_then_ever_faster() {
        let mut cobalt = Cobalt::default();
        assert_eq!(signals(&mut cobalt, 1000..1330, 6), [1100, 1171, 1229, 1279, 1324]);
        assert_eq!(cobalt.count, 6);
        // In time for 20 ms, less than until the next one: the pace is kept, and six spacings
        // are counted from the first packet that is late again.
        assert_eq!(signals(&mut cobalt, 1330..1350, 5), []);
        assert_eq!(signals(&mut cobalt, 1350..1430, 6), [1391, 1429]);
    }

    #[test]
    fn in_time_the_count_goes_down_at_the_pace_at_which_it_went_up() {
        let mut cobalt = Cobalt::default();
        signals(&mut cobalt, 1000..1330, 6);
        let counts: Vec<_> = [1363, 1364, 1408, 1410, 1460, 1518, 1589, 1688, 1689, 1789]
            .into_iter()
            .map(|ms| {
                signals(&mut cobalt, ms..ms + 1, 1);
                cobalt.count
            })
            .collect();
        // Due at 1363.99 ms, and then 100/sqrt(5), 100/sqrt(4) .. ms later: 1408.7, 1458.7, 1516.4,
        // 1587.2, 1687.2.
        assert_eq!(counts, [6, 5, 5, 4, 3, 2, 1, 0, 0, 0]);
        assert!(!cobalt.is_at_rest(Nanos(1888 * MS)) && cobalt.is_at_rest(Nanos(1889 * MS)));
    }

    #[test]
    fn a_mark_stands_for_a_drop_and_late_marks_are_not_made_up_for() {
        let mut cobalt = Cobalt::default();
        let mut judge = |ms: u64, capable| {
            let now = Nanos(ms * MS);
            cobalt.judge(&law(), now, Nanos(6 * MS), capable, |_| unreachable!("BLUE is at rest"))
        };
        let (pass, mark, drop) = (
            Verdict::default(),
            Verdict { drop: false, mark: true },
            Verdict { drop: true, mark: false },
        );
        assert_eq!(judge(1000, true), pass);
        assert_eq!(judge(1100, true), mark);
        // 1170.7, 1228.4, 1278.4 and 1323.2 are past: drops make up for all, one after another.
        for expected in [drop, drop, drop, drop, pass] {
            assert_eq!(judge(1324, false), expected);
        }
        assert_eq!(judge(1500, true), mark);
        assert_eq!(judge(1500, true), mark, "due at 1500, as the last mark was late");
    }

    #[test]
    fn blue_rises_with_overflows_and_falls_at_rest() {
        let mut cobalt = Cobalt::default();
        let mut dice = |now: u64, roll| {
            let (now, waited) = (Nanos(now * MS), Nanos::ZERO);
            cobalt.judge(&law(), now, waited, true, |probability| roll < probability).drop
        };
        assert!(!dice(1000, 0));
        cobalt.overflowed(&law(), Nanos(1000 * MS));
        cobalt.overflowed(&law(), Nanos(1005 * MS)); // within a target of the last one
        assert_eq!(cobalt.probability, RISE);
        let mut dice = |now: u64, roll| {
            let (now, waited) = (Nanos(now * MS), Nanos::ZERO);
            cobalt.judge(&law(), now, waited, true, |probability| roll < probability).drop
        };
        assert!(dice(1006, RISE - 1) && !dice(1006, RISE));
        for n in 1..=16 {
            cobalt.found_empty(&law(), Nanos((1000 + 6 * n) * MS));
            cobalt.found_empty(&law(), Nanos((1000 + 6 * n + 5) * MS));
            assert_eq!(cobalt.probability, RISE - n as u32 * FALL);
        }
        for _ in 0..300 {
            cobalt.moved = Nanos::ZERO;
            cobalt.overflowed(&law(), Nanos(9000 * MS));
        }
        assert_eq!(cobalt.probability, u32::MAX);
    }
}
