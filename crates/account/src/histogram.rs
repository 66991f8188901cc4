//! Distributions in bounded memory.

/// Values in buckets of the same relative width: 2 to the power of `BITS` for each power of two.
/// Number, sum and maximum are exact.
#[derive(Clone, Debug, Default)]
pub struct Histogram<const BITS: u32> {
    /// As long as the largest value so far takes.
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

/// The bucket of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket<const BITS: u32>(u16);

/// The values that share a bucket.
#[derive(Clone, Copy, Debug)]
struct Range {
    least: u64,
    most: u64,
}

impl Range {
    const fn middle(self) -> u64 {
        self.least + ((self.most - self.least) >> 1)
    }
}

impl<const BITS: u32> Bucket<BITS> {
    const PER_OCTAVE: u64 = 1 << BITS;

    /// The bucket of this value.
    #[inline]
    #[must_use]
    pub const fn of(value: u64) -> Self {
        // The leading bits after the first one, and how many more there are behind them.
        let behind = (64 - BITS - 1).saturating_sub(value.leading_zeros());
        Self((behind as u64 * Self::PER_OCTAVE + (value >> behind)) as u16)
    }

    const fn range(self) -> Range {
        let index = self.0 as u64;
        let behind = (index / Self::PER_OCTAVE).saturating_sub(1);
        let least = (index - behind * Self::PER_OCTAVE) << behind;
        Range { least, most: least + ((1 << behind) - 1) }
    }
}

impl<const BITS: u32> Histogram<BITS> {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.add_bucket(Bucket::of(value));
        self.add_moments(1, u128::from(value), value);
    }

    /// Adds to the distribution, and not to the moments.
    #[inline]
    pub fn add_bucket(&mut self, bucket: Bucket<BITS>) {
        let index = usize::from(bucket.0);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Adds to number, sum and maximum, and not to the distribution.
    pub fn add_moments(&mut self, count: u64, sum: u128, max: u64) {
        self.count += count;
        self.sum += sum;
        self.max = self.max.max(max);
    }

    /// Adds all values of another one.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, others) in self.counts.iter_mut().zip(&other.counts) {
            *mine += others;
        }
        self.add_moments(other.count, other.sum, other.max);
    }

    /// How many values there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their mean.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The greatest.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The value that a part `q` of all does not exceed: the middle of its bucket.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        Some(self.range(q)?.middle().min(self.max))
    }

    /// The same from above: no less than the value, by a bucket's width at most.
    #[must_use]
    pub fn quantile_above(&self, q: f64) -> Option<u64> {
        Some(self.range(q)?.most.min(self.max))
    }

    fn range(&self, q: f64) -> Option<Range> {
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let bucket = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        Some(Bucket::<BITS>(bucket as u16).range())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_narrow_and_holds_its_values(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let fine = Bucket::<9>::of(value).range();
            prop_assert!((fine.least..=fine.most).contains(&value));
            prop_assert!(fine.middle().abs_diff(value) as f64 <= value as f64 / 1000.0, "{fine:?}");
            let coarse = Bucket::<5>::of(value).range();
            prop_assert!((coarse.least..=coarse.most).contains(&value));
            prop_assert!((coarse.most - value) as f64 <= value as f64 / 32.0, "{coarse:?}");
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_values(
            mut values in proptest::collection::vec(0u64..10_000_000_000, 1..200),
            q in 0.0f64..=1.0,
        ) {
            let mut histogram = Histogram::<9>::default();
            values.iter().for_each(|value| histogram.add(*value));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).max(1);
            let (exact, found) = (values[rank - 1], histogram.quantile(q).unwrap());
            prop_assert!(found.abs_diff(exact) as f64 <= exact as f64 / 1000.0);
            prop_assert!(histogram.quantile_above(q).unwrap() >= exact);
            prop_assert_eq!(histogram.max(), values.last().copied());
        }

        #[test]
        fn buckets_are_in_the_order_of_values(a: u64, b: u64) {
            prop_assert!(Bucket::<9>::of(a.min(b)) <= Bucket::of(a.max(b)));
        }
    }

    #[test]
    fn nothing_has_no_quantiles() {
        let none = Histogram::<9>::default();
        assert_eq!((none.mean(), none.max(), none.quantile(0.5)), (None, None, None));
        assert_eq!(Bucket::<9>::of(u64::MAX), Bucket(54 * 512 + 1023));
    }

    #[test]
    fn quantiles_are_near() {
        let mut histogram = Histogram::<5>::default();
        (1..=1000).for_each(|value| histogram.add(value * 1000));
        let p95 = histogram.quantile_above(0.95).unwrap();
        assert!((950_000..=980_000).contains(&p95), "{p95}");
        assert_eq!(histogram.quantile_above(1.0), Some(1_000_000));
        assert_eq!(histogram.mean(), Some(500_500.0));
    }
}
