//! The arithmetic of the draft: trimmed means, round trips a minute, stability; and the grade.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// The part of the samples that a trimmed mean keeps, from the shortest on (the draft's TMP).
const KEPT: f64 = 0.95;
/// How far apart moving averages may be when they count as stable (SDT).
const TOLERANCE: f64 = 0.05;
/// Intervals in a moving average (MAD).
pub(crate) const WINDOW: usize = 4;

/// How long probes took, by what was timed; a sample of each probe.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// TCP handshakes of connections of their own.
    pub tcp: Vec<Duration>,
    /// TLS handshakes of these, for one round trip; empty without TLS.
    pub tls: Vec<Duration>,
    /// Requests on these.
    pub http: Vec<Duration>,
    /// Requests on connections that carry load.
    pub loaded: Vec<Duration>,
}

impl Samples {
    /// Round trips a minute; none while a kind of probe has no sample.
    ///
    /// The mean of two rates: that of separate connections, in which each kind of round trip has
    /// the same weight, and that of the connections that carry load. Without load the first one
    /// alone. An absent TLS has no part in the mean.
    #[must_use]
    pub fn round_trips_per_minute(&self, loaded: bool) -> Option<f64> {
        let mut kinds = vec![trimmed_mean(&self.tcp)?, trimmed_mean(&self.http)?];
        kinds.extend(trimmed_mean(&self.tls));
        let separate = 60.0 * kinds.len() as f64 / kinds.iter().sum::<f64>();
        if !loaded {
            return Some(separate);
        }
        Some(f64::midpoint(separate, 60.0 / trimmed_mean(&self.loaded)?))
    }
}

/// The mean without the longest 5 %, in seconds; none of nothing.
fn trimmed_mean(samples: &[Duration]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let kept = (sorted.len() as f64 * KEPT).ceil() as usize;
    let sum: Duration = sorted[..kept].iter().sum();
    // A clock that has not moved is no division by zero.
    (kept > 0).then(|| (sum.as_secs_f64() / kept as f64).max(1e-9))
}

/// The value that this part of the samples does not exceed (nearest rank); none of nothing.
#[must_use]
pub fn quantile(samples: &[Duration], part: f64) -> Option<Duration> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Whether the moving averages of the latest intervals lie within the tolerance of the latest.
#[must_use]
pub(crate) fn is_stable(per_interval: &[f64]) -> bool {
    if per_interval.len() < WINDOW {
        return false;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let averages: Vec<f64> = (per_interval.len() - WINDOW..per_interval.len())
        .map(|at| mean(&per_interval[(at + 1).saturating_sub(WINDOW)..=at]))
        .collect();
    let center = mean(&averages);
    let variance = mean(&averages.iter().map(|a| (a - center).powi(2)).collect::<Vec<_>>());
    averages.last().is_some_and(|latest| variance.sqrt() <= TOLERANCE * latest)
}

/// The draft's classes of round trips a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Below 300.
    Poor,
    /// From 300.
    Fair,
    /// From 1000.
    Good,
    /// From 6000.
    Excellent,
}

impl Class {
    /// The class of this many round trips a minute.
    #[must_use]
    pub fn of(rpm: f64) -> Self {
        match rpm {
            rpm if rpm >= 6000.0 => Self::Excellent,
            rpm if rpm >= 1000.0 => Self::Good,
            rpm if rpm >= 300.0 => Self::Fair,
            _ => Self::Poor,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Poor => "poor",
            Self::Fair => "fair",
            Self::Good => "good",
            Self::Excellent => "excellent",
        })
    }
}

/// LibreQoS's grades of the delay that load adds: each but the last one has a bound, in
/// milliseconds.
const GRADES: [(&str, u64); 5] = [("A+", 5), ("A", 30), ("B", 60), ("C", 200), ("D", 400)];

/// The grade of a delay that load adds.
#[must_use]
pub fn grade(extra: Duration) -> &'static str {
    let within = |(_, bound_ms): &&(&str, u64)| extra < Duration::from_millis(*bound_ms);
    GRADES.iter().find(within).map_or("F", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(times: &[u64]) -> Vec<Duration> {
        times.iter().map(|time| Duration::from_millis(*time)).collect()
    }

    #[test]
    fn each_kind_of_round_trip_weighs_the_same() {
        let samples =
            Samples { tcp: ms(&[10]), tls: ms(&[20]), http: ms(&[30]), loaded: ms(&[60]) };
        // (60000 / ((10 + 20 + 30) / 3) + 60000 / 60) / 2
        assert_eq!(samples.round_trips_per_minute(true), Some(2000.0));
        assert_eq!(samples.round_trips_per_minute(false), Some(3000.0));
    }

    #[test]
    fn without_tls_its_handshake_has_no_part() {
        let samples = Samples { tls: vec![], tcp: ms(&[10]), http: ms(&[30]), loaded: ms(&[60]) };
        assert_eq!(samples.round_trips_per_minute(true), Some(2000.0));
    }

    #[test]
    fn without_a_sample_there_is_no_number() {
        assert_eq!(Samples::default().round_trips_per_minute(false), None);
        let idle = Samples { tcp: ms(&[1]), http: ms(&[1]), ..Samples::default() };
        assert_eq!(idle.round_trips_per_minute(true), None);
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_longest_twentieth_is_left_out() {
        let mut times = vec![10; 19];
        times.push(10_000);
        assert!((trimmed_mean(&ms(&times)).unwrap() - 0.010).abs() < 1e-12);
        // Of fewer, none is.
        assert!((trimmed_mean(&ms(&[10, 30])).unwrap() - 0.020).abs() < 1e-12);
    }

    #[test]
    fn quantiles_are_samples() {
        assert_eq!(quantile(&ms(&[3, 1, 2]), 0.5), Some(Duration::from_millis(2)));
        assert_eq!(quantile(&ms(&[3, 1, 2]), 0.95), Some(Duration::from_millis(3)));
        assert_eq!(quantile(&ms(&[3, 1, 2]), 0.0), Some(Duration::from_millis(1)));
    }

    #[test]
    fn what_still_grows_is_not_stable() {
        assert!(!is_stable(&[10.0, 10.0, 10.0]));
        assert!(is_stable(&[10.0, 10.0, 10.0, 10.0]));
        assert!(!is_stable(&[1.0, 2.0, 4.0, 8.0, 16.0]));
        assert!(is_stable(&[1.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]));
    }

    #[test]
    fn classes_and_grades_begin_where_their_sources_say() {
        let classes = [(299.9, Class::Poor), (300.0, Class::Fair), (1000.0, Class::Good)];
        for (rpm, class) in classes.into_iter().chain([(6000.0, Class::Excellent)]) {
            assert_eq!(Class::of(rpm), class);
        }
        let grades = [(4, "A+"), (5, "A"), (30, "B"), (60, "C"), (200, "D"), (400, "F")];
        for (extra_ms, name) in grades {
            assert_eq!(grade(Duration::from_millis(extra_ms)), name);
        }
    }
}
