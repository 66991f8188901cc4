//! What a direction carries.

use units::Nanos;

/// Looks that are kept.
const LOOKS: usize = 16;

/// A counter of bytes that is looked at now and then, as a rate.
#[derive(Clone, Debug)]
pub struct Meter {
    looks: [(Nanos, u64); LOOKS],
    /// How many there have been.
    count: usize,
}

impl Default for Meter {
    fn default() -> Self {
        Self { looks: [(Nanos::ZERO, 0); LOOKS], count: 0 }
    }
}

impl Meter {
    /// The counter stands there. A clock or a counter that goes back begins anew.
    pub fn look(&mut self, now: Nanos, bytes: u64) {
        if self.count > 0 {
            let (at, before) = self.looks[(self.count - 1) % LOOKS];
            if now < at || bytes < before {
                *self = Self::default();
            }
        }
        self.looks[self.count % LOOKS] = (now, bytes);
        self.count += 1;
    }

    /// Bit/s since the look that is about so long ago; none with fewer than two looks.
    #[must_use]
    pub fn over(&self, span: Nanos) -> Option<u64> {
        let newest = self.count.checked_sub(1)?;
        let (end, last) = self.looks[newest % LOOKS];
        let oldest = newest.saturating_sub(LOOKS - 1);
        let mut rate = None;
        for look in (oldest..newest).rev() {
            let (at, bytes) = self.looks[look % LOOKS];
            rate = bits_per_second(last - bytes, end - at).or(rate);
            if end - at >= span {
                break;
            }
        }
        rate
    }
}

/// None in no time.
pub(crate) fn bits_per_second(bytes: u64, time: Nanos) -> Option<u64> {
    let rate = (u128::from(bytes) * 8_000_000_000).checked_div(u128::from(time.0))?;
    Some(u64::try_from(rate).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_latest_span() {
        let mut meter = Meter::default();
        assert_eq!(meter.over(Nanos::from_millis(100)), None);
        // 1 Mbit/s for a second, then 8 Mbit/s.
        for step in 0..=40 {
            meter.look(Nanos::from_millis(step * 25), step * 3_125);
        }
        assert_eq!(meter.over(Nanos::from_millis(100)), Some(1_000_000));
        for step in 1..=4 {
            meter.look(Nanos::from_millis(1_000 + step * 25), 125_000 + step * 25_000);
        }
        assert_eq!(meter.over(Nanos::from_millis(100)), Some(8_000_000));
        assert_eq!(meter.over(Nanos::from_millis(200)), Some(4_500_000));
        // No more than it remembers.
        assert!(meter.over(Nanos::from_secs(100)).unwrap() > 1_000_000);
    }

    #[test]
    fn a_clock_that_jumps_back_begins_anew() {
        let mut meter = Meter::default();
        meter.look(Nanos::from_secs(9), 1_000);
        meter.look(Nanos::from_secs(3), 2_000);
        assert_eq!(meter.over(Nanos::from_secs(1)), None);
        meter.look(Nanos::from_secs(4), 2_000);
        assert_eq!(meter.over(Nanos::from_secs(1)), Some(0));
        // No time has passed since the look before.
        meter.look(Nanos::from_secs(4), 9_000);
        assert_eq!(meter.over(Nanos(1)), Some(56_000));
    }
}
