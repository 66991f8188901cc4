//! Quantities over time.

use sched::Nanos;

/// A quantity over time: its integral and its peak.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeMean {
    since: Nanos,
    last: Nanos,
    value: u64,
    area: u128,
    peak: u64,
}

impl TimeMean {
    /// The quantity has this value from `now` on.
    #[inline]
    pub fn set(&mut self, value: u64, now: Nanos) {
        self.area += u128::from(self.value) * u128::from(now.since(self.last).0);
        self.last = now;
        self.value = value;
        self.peak = self.peak.max(value);
    }

    /// Forgets what was before `now`.
    pub fn restart(&mut self, now: Nanos) {
        *self = Self { since: now, last: now, value: self.value, area: 0, peak: self.value };
    }

    /// The mean until `now`; 0 over no time at all.
    #[must_use]
    pub fn mean(&self, now: Nanos) -> f64 {
        let span = now.since(self.since).0;
        if span == 0 { 0.0 } else { self.area(now) as f64 / span as f64 }
    }

    /// The integral until `now`, in units times nanoseconds.
    #[must_use]
    pub fn area(&self, now: Nanos) -> u128 {
        let mut closed = *self;
        closed.set(self.value, now);
        closed.area
    }

    /// The value that it has.
    #[inline]
    pub(crate) const fn value(&self) -> u64 {
        self.value
    }

    /// The largest value.
    #[must_use]
    pub const fn peak(&self) -> u64 {
        self.peak
    }
}

/// A small number over time: how long it had each value. Exact; a word for each value up to the
/// largest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeHistogram {
    since: Nanos,
    last: Nanos,
    value: usize,
    /// By value, from 0 to the largest that it had.
    spent: Vec<Nanos>,
}

impl Default for TimeHistogram {
    fn default() -> Self {
        Self { since: Nanos::ZERO, last: Nanos::ZERO, value: 0, spent: vec![Nanos::ZERO] }
    }
}

impl TimeHistogram {
    /// The number has this value from `now` on.
    #[inline]
    pub fn set(&mut self, value: usize, now: Nanos) {
        if value == self.value {
            return;
        }
        self.spent[self.value] += now.since(self.last);
        self.last = now;
        self.value = value;
        if value >= self.spent.len() {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.spent.resize(self.value + 1, Nanos::ZERO);
    }

    /// Forgets what was before `now`.
    pub fn restart(&mut self, now: Nanos) {
        (self.since, self.last) = (now, now);
        self.spent.clear();
        self.grow();
    }

    /// The mean until `now`; 0 over no time at all.
    #[must_use]
    pub fn mean(&self, now: Nanos) -> f64 {
        let area = |(value, spent): (u128, Nanos)| value * u128::from(spent.0);
        let span = now.since(self.since).0;
        let area: u128 = (0u128..).zip(self.until(now)).map(area).sum();
        if span == 0 { 0.0 } else { area as f64 / span as f64 }
    }

    /// The least value that it did not exceed for a part `q` of the time until `now`; `None` over
    /// no time at all.
    #[must_use]
    pub fn quantile(&self, q: f64, now: Nanos) -> Option<u64> {
        let span = now.since(self.since).0;
        let goal = ((q * span as f64) as u64).max(1);
        let mut passed = Nanos::ZERO;
        let value = self.until(now).position(|spent| {
            passed += spent;
            passed.0 >= goal
        });
        value.filter(|_| span > 0).map(|value| value as u64)
    }

    /// The largest value.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.spent.len() as u64 - 1
    }

    /// How long it had each value until `now`, from 0 to the largest.
    fn until(&self, now: Nanos) -> impl Iterator<Item = Nanos> {
        let open = now.since(self.last);
        let spent = self.spent.iter().enumerate();
        spent.map(move |(at, spent)| if at == self.value { *spent + open } else { *spent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_mean_weighs_by_time() {
        let mut mean = TimeMean::default();
        mean.set(4, Nanos(10));
        mean.set(1, Nanos(20));
        assert_eq!(mean.mean(Nanos(40)), 1.5);
        assert_eq!(mean.peak(), 4);
        mean.restart(Nanos(40));
        assert_eq!((mean.mean(Nanos(40)), mean.mean(Nanos(50)), mean.peak()), (0.0, 1.0, 1));
    }

    #[test]
    fn a_histogram_has_the_quantiles_of_the_time() {
        let mut entries = TimeHistogram::default();
        entries.set(2, Nanos(10)); // 0 for 10
        entries.set(7, Nanos(100)); // 2 for 90
        entries.set(3, Nanos(100)); // 7 for no time
        assert_eq!(entries.quantile(0.1, Nanos(200)), Some(2), "of 20, 10 at 0");
        assert_eq!(entries.quantile(0.05, Nanos(200)), Some(0));
        assert_eq!(entries.quantile(0.5, Nanos(200)), Some(2));
        assert_eq!(entries.quantile(0.51, Nanos(200)), Some(3));
        assert_eq!(entries.quantile(1.0, Nanos(200)), Some(3));
        assert_eq!((entries.mean(Nanos(200)), entries.peak()), (2.4, 7));
        entries.restart(Nanos(200));
        assert_eq!((entries.quantile(0.99, Nanos(200)), entries.peak()), (None, 3));
        entries.set(0, Nanos(250));
        assert_eq!(entries.quantile(0.5, Nanos(300)), Some(0));
        assert_eq!(entries.quantile(0.51, Nanos(300)), Some(3));
        assert_eq!(entries.mean(Nanos(300)), 1.5);
    }

    proptest! {
        #[test]
        fn a_histogram_has_the_mean_of_a_mean(
            steps in proptest::collection::vec((0u64..1000, 0usize..50), 0..50),
            restart in 0usize..50,
        ) {
            let (mut histogram, mut mean, mut now) =
                (TimeHistogram::default(), TimeMean::default(), Nanos(0));
            for (at, (gap, value)) in steps.into_iter().enumerate() {
                now += Nanos(gap);
                histogram.set(value, now);
                mean.set(value as u64, now);
                if at == restart {
                    histogram.restart(now);
                    mean.restart(now);
                }
            }
            let end = now + Nanos(17);
            prop_assert_eq!(histogram.mean(end), mean.mean(end));
            prop_assert_eq!(histogram.peak(), mean.peak());
            let spent = histogram.until(end).fold(Nanos::ZERO, |sum, spent| sum + spent);
            prop_assert_eq!(spent, end - histogram.since);
        }
    }
}
