//! The bootstrap, for statistics without a formula.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use statrs::distribution::{ContinuousCDF, Normal};

use super::{Confidence, Estimate, plain_mean};

/// A statistic of independent observations with its bias-corrected and accelerated bootstrap
/// interval (Efron 1987). The same seed gives the same interval. No interval below ten
/// observations, where it covers too little, nor for a statistic that does not vary.
///
/// Observations are whatever is independent: means of seeds, pairs of means, rounds.
#[must_use]
pub fn bca<T: Clone>(
    sample: &[T],
    statistic: impl Fn(&[T]) -> f64,
    resamples: usize,
    seed: u64,
) -> Option<Estimate> {
    Confidence::P95.bca(sample, statistic, resamples, seed)
}

impl Confidence {
    /// As [`bca()`].
    #[must_use]
    pub fn bca<T: Clone>(
        self,
        sample: &[T],
        statistic: impl Fn(&[T]) -> f64,
        resamples: usize,
        seed: u64,
    ) -> Option<Estimate> {
        if sample.is_empty() {
            return None;
        }
        let value = statistic(sample);
        let estimate = |interval| Estimate { value, interval, n: sample.len() as u64 };
        if sample.len() < 10 {
            return Some(estimate(None));
        }
        let replicates = replicates(sample, &statistic, resamples, seed);
        let acceleration = acceleration(sample, &statistic);
        Some(estimate(interval(value, &replicates, acceleration, self.tail())))
    }
}

/// The statistic of samples drawn with replacement, sorted.
fn replicates<T: Clone>(
    sample: &[T],
    statistic: impl Fn(&[T]) -> f64,
    resamples: usize,
    seed: u64,
) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let n = sample.len();
    let mut index = || ((u128::from(random.next_u64()) * n as u128) >> 64) as usize;
    let mut resample = sample.to_vec();
    let mut draw = |_| {
        resample.iter_mut().for_each(|slot| *slot = sample[index()].clone());
        statistic(&resample)
    };
    let mut replicates: Vec<f64> = (0..resamples).map(&mut draw).collect();
    replicates.sort_unstable_by(f64::total_cmp);
    replicates
}

/// The skewness of the statistic by the jackknife, a sixth of it.
fn acceleration<T: Clone>(sample: &[T], statistic: impl Fn(&[T]) -> f64) -> f64 {
    let without = |left_out: usize| {
        let mut rest = sample.to_vec();
        rest.remove(left_out);
        statistic(&rest)
    };
    let values: Vec<f64> = (0..sample.len()).map(without).collect();
    let mean = plain_mean(&values).unwrap_or_default();
    let moment = |power| values.iter().map(|v| (mean - v).powi(power)).sum::<f64>();
    let scale = 6.0 * moment(2).powf(1.5);
    if scale > 0.0 { moment(3) / scale } else { 0.0 }
}

fn interval(value: f64, replicates: &[f64], acceleration: f64, tail: f64) -> Option<(f64, f64)> {
    let normal = Normal::standard();
    let n = replicates.len() as f64;
    // Replicates equal to the estimate count half, so that ties are no bias.
    let below = replicates.partition_point(|r| *r < value) as f64;
    let up_to = replicates.partition_point(|r| *r <= value) as f64;
    let share = (below + up_to) / 2.0 / n;
    if !(share > 0.0 && share < 1.0) || replicates.first() == replicates.last() {
        return None;
    }
    let bias = normal.inverse_cdf(share);
    let end = |tail: f64| {
        let shifted = bias + normal.inverse_cdf(tail);
        let level = normal.cdf(bias + shifted / (1.0 - acceleration * shifted));
        replicates[((level * n) as usize).min(replicates.len() - 1)]
    };
    Some((end(tail), end(1.0 - tail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn average(sample: &[f64]) -> f64 {
        plain_mean(sample).unwrap()
    }

    fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
        (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn the_interval_of_a_mean_of_exponentials_covers_it() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut covered = 0;
        for seed in 0..400 {
            let sample: Vec<f64> = (0..40).map(|_| -(1.0 - uniform(&mut random)).ln()).collect();
            let (low, high) = bca(&sample, average, 600, seed).unwrap().interval.unwrap();
            covered += u32::from(low <= 1.0 && 1.0 <= high);
        }
        // Expected about 93 %; the bounds are four standard deviations of the count away.
        assert!((352..=393).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn a_seed_gives_one_interval_and_a_constant_none() {
        let sample: Vec<f64> = (0..30).map(f64::from).collect();
        let once = bca(&sample, average, 1000, 3);
        assert_eq!(once, bca(&sample, average, 1000, 3));
        assert_ne!(once, bca(&sample, average, 1000, 4));
        assert_eq!(bca(&[2.0; 30], average, 1000, 3).unwrap().interval, None);
        assert_eq!(bca(&sample[..9], average, 1000, 3).unwrap().interval, None);
        assert_eq!(bca(&[], average, 1000, 3), None);
    }
}
