//! One packet after the other at a rate, without rounding errors that add up.

use sched::{Nanos, Rate};

const NS_PER_S: u64 = 1_000_000_000;

/// When a link is free again.
///
/// A transmission ends at a real point in time; a transmission that follows without a pause
/// starts there, not at the next nanosecond. Times handed out are rounded up: whoever comes at a
/// whole nanosecond finds the link free exactly from then on.
#[derive(Clone, Debug)]
pub struct Transmitter {
    rate: Rate,
    /// The end of the last transmission, rounded down, and `fraction / rate` ns on top.
    end: Nanos,
    fraction: u64,
    /// Traffic has few packet sizes, each direction mostly one: how long the last one took.
    memo: Memo,
}

/// `whole + fraction / rate` nanoseconds for a packet of `size` bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Memo {
    size: u32,
    whole: u32,
    fraction: u64,
}

impl Transmitter {
    /// A transmitter of this rate; a rate of 0 counts as 1 bit/s.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self { rate: rate.max(Rate(1)), end: Nanos::ZERO, fraction: 0, memo: Memo::default() }
    }

    /// The rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// When the last bit of what has been started has left.
    #[inline]
    #[must_use]
    pub const fn free_at(&self) -> Nanos {
        Nanos(self.end.0 + (self.fraction > 0) as u64)
    }

    /// Starts a packet that could have started at `ready`, now or at the end of the one before,
    /// and says when its last bit has left.
    #[inline]
    pub fn start(&mut self, size: u32, ready: Nanos) -> Nanos {
        if ready > self.end {
            (self.end, self.fraction) = (ready, 0);
        }
        let (whole, fraction) = self.duration(size);
        self.end += Nanos(whole);
        self.fraction += fraction;
        if self.fraction >= self.rate.0 {
            self.fraction -= self.rate.0;
            self.end += Nanos(1);
        }
        self.free_at()
    }

    /// A transmission ends at `end`, which another clock than this rate has said.
    pub(crate) const fn busy_until(&mut self, end: Nanos) -> Nanos {
        (self.end, self.fraction) = (end, 0);
        end
    }

    #[inline]
    fn duration(&mut self, size: u32) -> (u64, u64) {
        if self.memo.size == size {
            return (u64::from(self.memo.whole), self.memo.fraction);
        }
        let (whole, fraction) = self.divide(size);
        if let Ok(whole) = u32::try_from(whole) {
            self.memo = Memo { size, whole, fraction };
        }
        (whole, fraction)
    }

    fn divide(&self, size: u32) -> (u64, u64) {
        let rate = self.rate.0;
        if let Some(bit_ns) = u64::from(size).checked_mul(8 * NS_PER_S) {
            return (bit_ns / rate, bit_ns % rate);
        }
        let bit_ns = u128::from(size) * 8 * u128::from(NS_PER_S);
        let rate = u128::from(rate);
        ((bit_ns / rate) as u64, (bit_ns % rate) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_packet_takes_its_bits_over_the_rate() {
        let mut link = Transmitter::new(Rate(10_000_000));
        assert_eq!(link.start(1500, Nanos(5)), Nanos(1_200_005));
        assert_eq!(link.start(1500, Nanos(5)), Nanos(2_400_005));
        assert_eq!(link.start(40, Nanos(9_000_000)), Nanos(9_032_000));
    }

    #[test]
    fn a_fraction_of_a_nanosecond_is_not_lost() {
        let mut link = Transmitter::new(Rate(3_000_000_000));
        let ends = [1, 1, 1].map(|size| link.start(size, Nanos::ZERO));
        assert_eq!(ends, [Nanos(3), Nanos(6), Nanos(8)], "8/3 ns each");
    }

    proptest! {
        #[test]
        fn a_busy_period_lasts_as_long_as_its_bits(
            rate in 1u64..=1_000_000_000_000,
            start in 0u64..1_000_000_000,
            sizes in proptest::collection::vec(1u32..100_000, 1..50),
        ) {
            let mut link = Transmitter::new(Rate(rate));
            let mut end = Nanos::ZERO;
            for size in &sizes {
                end = link.start(*size, Nanos(start));
            }
            let bits: u128 = sizes.iter().map(|size| u128::from(*size) * 8).sum();
            let exact = (bits * u128::from(NS_PER_S)).div_ceil(u128::from(rate)) as u64;
            prop_assert_eq!(end, Nanos(start + exact));
        }
    }
}
