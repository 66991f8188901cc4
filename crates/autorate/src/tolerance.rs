//! Delay that a lower rate does not cure.

use units::Nanos;

/// A lower rate empties a queue of the link, so more gets through than is sent, or, if the link has
/// slowed down again, less. Within these parts of what is sent there is none.
const AS_MUCH: core::ops::RangeInclusive<f64> = 0.9..=1.1;
/// Beyond the delay that stayed.
const MARGIN: Nanos = Nanos::from_millis(20);
const MOST: Nanos = Nanos::from_millis(50);
/// Of the tolerance this part is left after each second: half after 44 of them.
const SECOND: Nanos = Nanos::from_secs(1);
const FADES: u64 = 64;

/// Extra delay above the threshold that is no queue of the link.
#[derive(Clone, Debug)]
pub(crate) struct Tolerance {
    extra: Nanos,
    faded: Nanos,
}

impl Tolerance {
    pub(crate) const fn new(now: Nanos) -> Self {
        Self { extra: Nanos::ZERO, faded: now }
    }

    pub(crate) const fn get(&self) -> Nanos {
        self.extra
    }

    /// Time passes: the path may have become calm.
    pub(crate) fn fade(&mut self, now: Nanos) {
        if now.since(self.faded) >= SECOND {
            self.faded = now;
            self.extra = self.extra - Nanos(self.extra.0.div_ceil(FADES));
        }
    }

    /// Less than the rate gets through, with a queue of `length`. If that is more than may be
    /// tolerated, the link has slowed down, and makes queues of its own.
    pub(crate) fn doubt(&mut self, length: Nanos) {
        if length > MOST {
            self.extra = Nanos(self.extra.0 / 2);
        }
    }

    /// The rate was lowered for a queue of `found`, above a threshold that includes the tolerance,
    /// and the delay has stayed. Whether it is tolerated from now on.
    pub(crate) fn learn(
        &mut self,
        found: Nanos,
        threshold: Nanos,
        (sent, delivered): (u64, Option<u64>),
    ) -> bool {
        let part = delivered.map(|delivered| delivered as f64 / sent as f64);
        let stays = part.is_some_and(|part| AS_MUCH.contains(&part));
        if stays {
            self.extra = MOST.min(self.extra + (found + MARGIN).since(threshold));
        }
        stays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_that_stays_is_tolerated_for_a_while() {
        let at = Nanos::from_millis;
        let mut tolerance = Tolerance::new(Nanos::ZERO);
        // The queue empties, the link has slowed down again, or nobody knows.
        for delivered in [Some(12_000_000), Some(8_000_000), None] {
            assert!(!tolerance.learn(at(30), at(22), (10_000_000, delivered)));
            assert_eq!(tolerance.get(), Nanos::ZERO);
        }
        assert!(tolerance.learn(at(30), at(22), (10_000_000, Some(10_500_000))));
        assert_eq!(tolerance.get(), at(28));
        // The same delay is below the threshold now; a longer one adds to it, up to a limit.
        assert!(tolerance.learn(at(48), at(22 + 28), (10_000_000, Some(10_000_000))));
        assert_eq!(tolerance.get(), at(46));
        assert!(tolerance.learn(at(300), at(22 + 46), (10_000_000, Some(10_000_000))));
        assert_eq!(tolerance.get(), MOST);
        tolerance.doubt(MOST);
        assert_eq!(tolerance.get(), MOST);
        tolerance.doubt(at(60));
        assert_eq!(tolerance.get(), at(25));
        for second in 1..=44 {
            tolerance.fade(Nanos::from_secs(second));
        }
        assert!(tolerance.get().0.abs_diff(at(25).0 / 2) < at(1).0);
        for second in 45..2_000 {
            tolerance.fade(Nanos::from_secs(second));
        }
        assert_eq!(tolerance.get(), Nanos::ZERO);
    }
}
