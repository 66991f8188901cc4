//! Distributions of delays in bounded memory.

/// Delays in buckets of the same relative width: 512 to each power of two, so that a quantile is
/// off by at most 0.1 %. Sum and maximum are exact.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    /// As long as the largest delay so far takes.
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

/// The bucket of a delay; the number of buckets is below 2^16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket(u16);

const BITS: u32 = 9;
const PER_OCTAVE: u64 = 1 << BITS;

impl Bucket {
    #[inline]
    pub(crate) fn of(ns: u64) -> Self {
        // The leading bits after the first one, and how many more there are behind them.
        let behind = (64 - BITS - 1).saturating_sub(ns.leading_zeros());
        Self((u64::from(behind) * PER_OCTAVE + (ns >> behind)) as u16)
    }

    /// The middle of its delays.
    fn middle_ns(self) -> u64 {
        let index = u64::from(self.0);
        let behind = (index / PER_OCTAVE).saturating_sub(1);
        let least = (index - behind * PER_OCTAVE) << behind;
        least + (((1u64 << behind) - 1) >> 1)
    }
}

impl Delays {
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        self.add_bucket(Bucket::of(ns));
        self.add_moments(1, u128::from(ns), ns);
    }

    /// Adds to the distribution, and not to the moments.
    #[inline]
    pub(crate) fn add_bucket(&mut self, bucket: Bucket) {
        let index = usize::from(bucket.0);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Adds to number, sum and maximum, and not to the distribution.
    pub(crate) fn add_moments(&mut self, count: u64, sum_ns: u128, max_ns: u64) {
        self.count += count;
        self.sum_ns += sum_ns;
        self.max_ns = self.max_ns.max(max_ns);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, others) in self.counts.iter_mut().zip(&other.counts) {
            *mine += others;
        }
        self.add_moments(other.count, other.sum_ns, other.max_ns);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    pub(crate) fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// The delay that a part of `q` of all does not exceed.
    pub(crate) fn quantile_ns(&self, q: f64) -> Option<u64> {
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let bucket = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        Some(Bucket(bucket as u16).middle_ns().min(self.max_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_narrow(ns: u64, shift in 0u32..64) {
            let ns = ns >> shift;
            let middle = Bucket::of(ns).middle_ns();
            prop_assert_eq!(Bucket::of(middle), Bucket::of(ns));
            prop_assert!(middle.abs_diff(ns) as f64 <= ns as f64 / 1000.0, "{} for {}", middle, ns);
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_values(
            mut values in proptest::collection::vec(0u64..10_000_000_000, 1..200),
            q in 0.0f64..=1.0,
        ) {
            let mut delays = Delays::default();
            values.iter().for_each(|ns| delays.add(*ns));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).max(1);
            let (exact, found) = (values[rank - 1], delays.quantile_ns(q).unwrap());
            prop_assert!(found.abs_diff(exact) as f64 <= exact as f64 / 1000.0);
            prop_assert_eq!(delays.max_ns(), values.last().copied());
        }

        #[test]
        fn buckets_are_in_the_order_of_delays(a: u64, b: u64) {
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(Bucket::of(low).0 <= Bucket::of(high).0);
        }
    }

    #[test]
    fn nothing_has_no_quantiles() {
        let none = Delays::default();
        assert_eq!((none.mean_ns(), none.max_ns(), none.quantile_ns(0.5)), (None, None, None));
        assert_eq!(Bucket::of(u64::MAX), Bucket(54 * 512 + 1023));
    }
}
