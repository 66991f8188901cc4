//! Statistics: what may be said about a sample, with its 95 % interval; [`Confidence`] has the
//! same with others.
//!
//! Samples are finite numbers; a statistic that does not exist is `None`, never a stand-in.

mod bootstrap;
mod confidence;
mod paired;

pub use bootstrap::bca;
pub use confidence::Confidence;
pub use paired::{Match, Matches, geometric_ratio, ratio_of_sums};

use serde::Serialize;
use statrs::distribution::{Binomial, DiscreteCDF};

/// A number estimated from a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its interval, lower and upper end, of 95 % unless another was asked for; `None` where the
    /// sample is too small for one.
    pub interval: Option<(f64, f64)>,
    /// How many independent observations stand behind it.
    pub n: u64,
}

impl Estimate {
    /// Whether the interval lies wholly below `bound`.
    #[must_use]
    pub fn is_below(&self, bound: f64) -> bool {
        self.interval.is_some_and(|(_, high)| high < bound)
    }

    /// Whether the interval lies wholly above `bound`.
    #[must_use]
    pub fn is_above(&self, bound: f64) -> bool {
        self.interval.is_some_and(|(low, _)| low > bound)
    }
}

/// What is printed about a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many values there are.
    pub n: u64,
    /// Their mean.
    pub mean: Option<Estimate>,
    /// Their median.
    pub median: Option<Estimate>,
    /// Their 95th percentile.
    pub p95: Option<Estimate>,
}

impl Summary {
    /// The summary of a sample.
    #[must_use]
    pub fn of(sample: &[f64]) -> Self {
        Self {
            n: sample.len() as u64,
            mean: mean(sample),
            median: quantile(sample, 0.5),
            p95: quantile(sample, 0.95),
        }
    }
}

/// The mean, with an interval by Student's t; `None` of nothing.
///
/// The interval takes the values for independent: values of one block are not, block means are.
#[must_use]
pub fn mean(sample: &[f64]) -> Option<Estimate> {
    Confidence::P95.mean(sample)
}

/// The `q`-quantile, with an interval between two order statistics that holds for any
/// distribution. `None` where `n` cannot carry it: below [`least_n`] values, no such interval
/// exists, since one end of it would lie outside the sample.
///
/// The estimate interpolates between the two nearest values (type 7 of Hyndman and Fan).
#[must_use]
pub fn quantile(sample: &[f64], q: f64) -> Option<Estimate> {
    Confidence::P95.quantile(sample, q)
}

/// How many values it takes for the `q`-quantile to have a 95 % interval: the least `n` with
/// `max(q, 1 - q)^n <= 0.025`. 6 for the median, 72 for p95, 368 for p99. `None` unless
/// `0 < q < 1`.
#[must_use]
pub fn least_n(q: f64) -> Option<u64> {
    Confidence::P95.least_n(q)
}

impl Confidence {
    /// As [`mean()`].
    #[must_use]
    pub fn mean(self, sample: &[f64]) -> Option<Estimate> {
        let n = sample.len() as u64;
        let mean = plain_mean(sample)?;
        let interval = standard_error(sample, mean).map(|error| {
            let reach = self.t_quantile(n - 1) * error;
            (mean - reach, mean + reach)
        });
        Some(Estimate { value: mean, interval, n })
    }

    /// As [`quantile()`].
    #[must_use]
    pub fn quantile(self, sample: &[f64], q: f64) -> Option<Estimate> {
        let n = sample.len() as u64;
        if n < self.least_n(q)? {
            return None;
        }
        let mut sorted = sample.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let below = Binomial::new(q, n).ok()?;
        // P(at most k of n values lie below the quantile) rises with k.
        let low = first_in(0, n, |k| below.cdf(k) > self.tail());
        let high = first_in(0, n, |k| below.cdf(k) >= 1.0 - self.tail());
        let ends = (low.checked_sub(1)?, high);
        let at = |index: u64| sorted.get(index as usize).copied();
        let place = q * (n - 1) as f64;
        let (left, right) = (at(place.floor() as u64)?, at(place.ceil() as u64)?);
        let value = left + (right - left) * place.fract();
        Some(Estimate { value, interval: Some((at(ends.0)?, at(ends.1)?)), n })
    }

    /// As [`least_n()`], with another tail than 0.025.
    #[must_use]
    pub fn least_n(self, q: f64) -> Option<u64> {
        let larger = q.max(1.0 - q);
        (q > 0.0 && q < 1.0).then(|| (self.tail().ln() / larger.ln()).ceil() as u64)
    }
}

/// Jain's index of fairness, `(sum x)^2 / (n sum x^2)`: 1 where all shares are equal, `1 / n`
/// where one has everything. `None` where there are no shares, or all are 0.
#[must_use]
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

fn plain_mean(sample: &[f64]) -> Option<f64> {
    (!sample.is_empty()).then(|| sample.iter().sum::<f64>() / sample.len() as f64)
}

/// The standard error of a mean; `None` below two values.
fn standard_error(sample: &[f64], mean: f64) -> Option<f64> {
    let n = sample.len() as f64;
    let squares: f64 = sample.iter().map(|x| (x - mean).powi(2)).sum();
    (sample.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt())
}

/// The first of `low..high` for which a predicate that turns true once is true; else `high`.
fn first_in(mut low: u64, mut high: u64, is_true: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if is_true(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-5 * b.abs().max(1.0)
    }

    #[test]
    fn t_quantiles_are_those_of_the_tables() {
        let known = [
            (1, 12.70620),
            (2, 4.302653),
            (9, 2.262157),
            (30, 2.042272),
            (100, 1.983972),
            (1000, 1.962339),
        ];
        let t_quantile = |degrees| Confidence::P95.t_quantile(degrees);
        for (degrees, t) in known {
            assert!(close(t_quantile(degrees), t), "{degrees}: {}", t_quantile(degrees));
        }
        // The normal distribution's; the library loses digits out there.
        assert!((t_quantile(1_000_000) - 1.959966).abs() < 2e-4);
        let at = |level, degrees| Confidence::new(level).unwrap().t_quantile(degrees);
        for (level, degrees, t) in [(0.9, 9, 1.833113), (0.99, 29, 2.756386), (0.999, 29, 3.659405)]
        {
            assert!(close(at(level, degrees), t), "{level}: {}", at(level, degrees));
        }
    }

    #[test]
    fn a_mean_has_its_interval_from_two_values_on() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[3.0]), Some(Estimate { value: 3.0, interval: None, n: 1 }));
        // Mean 3, standard deviation sqrt(2.5), t(4) = 2.776445: 3 -+ 1.963243.
        let estimate = mean(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let (low, high) = estimate.interval.unwrap();
        assert!(close(low, 1.036757) && close(high, 4.963243), "{low} {high}");
        assert!(estimate.is_above(1.0) && estimate.is_below(5.0) && !estimate.is_above(1.1));
    }

    #[test]
    fn a_quantile_exists_from_the_least_n_on() {
        for (q, n) in [(0.5, 6), (0.95, 72), (0.05, 72), (0.99, 368)] {
            assert_eq!(least_n(q), Some(n), "{q}");
            let sample: Vec<f64> = (1..=n).map(|i| i as f64).collect();
            let estimate = quantile(&sample, q).unwrap();
            let (low, high) = estimate.interval.unwrap();
            assert!(low <= estimate.value && estimate.value <= high);
            let outermost = if q < 0.5 { low == 1.0 } else { high == n as f64 };
            assert!(outermost, "{q}: {low} {high}");
            assert_eq!(quantile(&sample[1..], q), None, "{q}");
        }
        for q in [0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(quantile(&[1.0; 1000], q), None);
        }
    }

    #[test]
    fn the_interval_of_a_quantile_is_that_of_the_tables() {
        // Median of 20: 6th to 15th value. p95 of 100: 90th to 100th, since the 99th leaves out
        // P(B >= 99) = 3.7 % for B binomial (100, 0.95).
        let sample: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantile(&sample[80..], 0.5).unwrap().interval, Some((6.0, 15.0)));
        let p95 = quantile(&sample, 0.95).unwrap();
        assert!(close(p95.value, 95.05), "{}", p95.value);
        assert_eq!(p95.interval, Some((90.0, 100.0)));
    }

    #[test]
    fn a_surer_interval_is_wider_and_takes_more() {
        let sure = Confidence::new(0.99).unwrap();
        let sample: Vec<f64> = (0..30).map(|i| f64::from(i * i)).collect();
        let width = |estimate: Option<Estimate>| {
            let (low, high) = estimate.unwrap().interval.unwrap();
            high - low
        };
        let ratio = width(sure.mean(&sample)) / width(mean(&sample));
        assert!(close(ratio, 2.756386 / 2.045230), "{ratio}");
        assert!(width(sure.quantile(&sample, 0.5)) > width(quantile(&sample, 0.5)));
        // 0.5^8 is the first power below 0.005.
        assert_eq!((sure.least_n(0.5), least_n(0.5)), (Some(8), Some(6)));
        assert_eq!(sure.quantile(&sample[..7], 0.5), None);
        for level in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
            assert!(Confidence::new(level).is_none(), "{level}");
        }
    }

    #[test]
    fn jain_is_one_for_equal_shares_and_one_nth_for_a_monopoly() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[0.0, 5.0, 0.0, 0.0]), Some(0.25));
        assert!(close(jain(&[1.0, 2.0, 3.0]).unwrap(), 36.0 / 42.0));
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0]), None);
    }

    #[test]
    fn a_small_sample_has_a_mean_and_no_p95() {
        let summary = Summary::of(&[1.0; 10]);
        assert!(summary.mean.is_some() && summary.median.is_some());
        assert_eq!(summary.p95, None);
    }
}
