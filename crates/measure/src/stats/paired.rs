//! Two schedulers on the same workload: ratios over what both completed.
//!
//! Flows of one round meet in one queue, so they tell much less than their number. The
//! observations of an interval are therefore rounds, or batches: parts of a round that are much
//! longer than the queue remembers.

use std::collections::BTreeMap;

use super::{Confidence, Estimate, plain_mean};
use crate::schema::{Flow, FlowKind, SizeClass};

/// One flow of the workload under both schedulers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// Seed and round that both ran in.
    pub round: (u64, u64),
    /// The part of the round in which the flow began; 0 unless there are batches.
    pub batch: u64,
    /// When it was to start, in nanoseconds from the start of the block.
    pub start_ns: u64,
    /// The class of its size.
    pub size_class: Option<SizeClass>,
    /// Its completion time under A in nanoseconds; `None` if incomplete.
    pub a: Option<f64>,
    /// Its completion time under B in nanoseconds; `None` if incomplete.
    pub b: Option<f64>,
}

/// The flows that ran under both schedulers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matches(Vec<Match>);

type Place = (u64, u64, FlowKind, u64);

fn place(flow: &Flow) -> Place {
    (flow.key.seed, flow.key.round, flow.kind, flow.index)
}

impl Matches {
    /// Matches flows by seed, round, kind and index. Rows of void blocks are the caller's to
    /// leave out; of two rows in one place, the later counts.
    pub fn new<'a>(
        a: impl IntoIterator<Item = &'a Flow>,
        b: impl IntoIterator<Item = &'a Flow>,
    ) -> Self {
        let time = |flow: &Flow| flow.completion_ns.map(|ns| ns as f64);
        let under_b: BTreeMap<Place, _> = b.into_iter().map(|f| (place(f), time(f))).collect();
        let mut matches = BTreeMap::new();
        for flow in a {
            if let Some(&b) = under_b.get(&place(flow)) {
                let matched = Match {
                    round: (flow.key.seed, flow.key.round),
                    batch: 0,
                    start_ns: flow.planned_ns.unwrap_or(flow.start_ns),
                    size_class: flow.size_class,
                    a: time(flow),
                    b,
                };
                matches.insert(place(flow), matched);
            }
        }
        Self(matches.into_values().collect())
    }

    /// The matches of one size class.
    #[must_use]
    pub fn of_class(&self, class: SizeClass) -> Self {
        Self(self.0.iter().filter(|m| m.size_class == Some(class)).copied().collect())
    }

    /// The same with each round cut into batches of `length_ns` by the starts of flows, where
    /// there are too few rounds for an interval that says anything. Batches must be long against
    /// what ties flows together: many times the round trip with a full queue, a few seconds on
    /// an access link.
    #[must_use]
    pub fn in_batches(mut self, length_ns: u64) -> Self {
        for m in &mut self.0 {
            m.batch = m.start_ns.checked_div(length_ns).unwrap_or(0);
        }
        self
    }

    /// Flows that are complete under both, only A, only B, neither. All but the first kind are
    /// left out of ratios, and belong beside them in every table.
    #[must_use]
    pub fn counts(&self) -> [u64; 4] {
        let mut counts = [0; 4];
        for m in &self.0 {
            counts[match (m.a, m.b) {
                (Some(_), Some(_)) => 0,
                (Some(_), None) => 1,
                (None, Some(_)) => 2,
                (None, None) => 3,
            }] += 1;
        }
        counts
    }

    /// Mean completion time under A over that under B, of the flows complete under both.
    ///
    /// The interval is by the delta method on the logarithm of the ratio and Student's t, with
    /// rounds (or batches) as the independent observations; it takes two.
    #[must_use]
    pub fn ratio_of_means(&self) -> Option<Estimate> {
        let sums: Vec<(f64, f64)> = self.sums().into_iter().map(|(a, b, _)| (a, b)).collect();
        ratio_of_sums(&sums)
    }

    /// The mean under A and under B of each round (or batch), of the flows complete under both:
    /// the pairs that [`geometric_ratio`] and [`super::bca`] take.
    #[must_use]
    pub fn means(&self) -> Vec<(f64, f64)> {
        self.sums().into_iter().map(|(a, b, n)| (a / n, b / n)).collect()
    }

    /// Per round and batch: sum under A, sum under B, number of flows.
    fn sums(&self) -> Vec<(f64, f64, f64)> {
        let mut sums = BTreeMap::new();
        for m in &self.0 {
            if let (Some(a), Some(b)) = (m.a, m.b) {
                let sum = sums.entry((m.round, m.batch)).or_insert((0.0, 0.0, 0.0));
                *sum = (sum.0 + a, sum.1 + b, sum.2 + 1.0);
            }
        }
        sums.into_values().collect()
    }
}

/// The sum of all `a` over the sum of all `b`, for independent pairs of sums over the same things:
/// of rounds, or of seeds. The interval is by the delta method on the logarithm of the ratio and
/// Student's t; it takes two pairs. `None` unless both sums are above 0.
#[must_use]
pub fn ratio_of_sums(sums: &[(f64, f64)]) -> Option<Estimate> {
    Confidence::P95.ratio_of_sums(sums)
}

/// The geometric mean of `a / b` over independent pairs (means of rounds or of seeds), with an
/// interval by Student's t on the logarithms. `None` of nothing, and where a number is not above
/// 0.
#[must_use]
pub fn geometric_ratio(pairs: &[(f64, f64)]) -> Option<Estimate> {
    Confidence::P95.geometric_ratio(pairs)
}

impl Confidence {
    /// As [`ratio_of_sums()`].
    #[must_use]
    pub fn ratio_of_sums(self, sums: &[(f64, f64)]) -> Option<Estimate> {
        let total_a: f64 = sums.iter().map(|sum| sum.0).sum();
        let total_b: f64 = sums.iter().map(|sum| sum.1).sum();
        if !(total_a > 0.0 && total_b > 0.0) {
            return None;
        }
        let value = total_a / total_b;
        let n = sums.len() as u64;
        let interval = (n > 1).then(|| {
            let squares: f64 = sums.iter().map(|(a, b)| (a / total_a - b / total_b).powi(2)).sum();
            let error = (squares * n as f64 / (n - 1) as f64).sqrt();
            let factor = (self.t_quantile(n - 1) * error).exp();
            (value / factor, value * factor)
        });
        Some(Estimate { value, interval, n })
    }

    /// As [`geometric_ratio()`].
    #[must_use]
    pub fn geometric_ratio(self, pairs: &[(f64, f64)]) -> Option<Estimate> {
        if !pairs.iter().all(|(a, b)| *a > 0.0 && *b > 0.0) {
            return None;
        }
        let logarithms: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln()).collect();
        let Estimate { interval, n, .. } = self.mean(&logarithms)?;
        let value = plain_mean(&logarithms)?.exp();
        Some(Estimate { value, interval: interval.map(|(l, h)| (l.exp(), h.exp())), n })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Key;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    fn flow(round: u64, index: u64, class: SizeClass, completion_ns: Option<u64>) -> Flow {
        Flow {
            key: Key { round, ..Key::default() },
            index,
            size_class: Some(class),
            completion_ns,
            complete: completion_ns.is_some(),
            ..Flow::default()
        }
    }

    const SHORT: SizeClass = SizeClass::UpTo20;
    const LONG: SizeClass = SizeClass::Over1000;

    #[test]
    fn flows_are_matched_and_those_incomplete_counted() {
        let a = [
            flow(0, 0, SHORT, Some(10)),
            flow(0, 1, SHORT, None),
            flow(0, 2, SHORT, Some(30)),
            flow(1, 0, LONG, None),
            flow(1, 7, LONG, Some(1)),
        ];
        let mut of_another_seed = flow(0, 0, SHORT, Some(77));
        of_another_seed.key.seed = 1;
        let b = [
            flow(1, 0, LONG, None),
            flow(0, 2, SHORT, None),
            flow(0, 1, SHORT, Some(2)),
            flow(0, 0, SHORT, Some(5)),
            of_another_seed,
        ];
        let matches = Matches::new(&a, &b);
        assert_eq!(matches.counts(), [1, 1, 1, 1]);
        assert_eq!(matches.of_class(LONG).counts(), [0, 0, 0, 1]);
        let ratio = matches.ratio_of_means().unwrap();
        assert_eq!(ratio, Estimate { value: 2.0, interval: None, n: 1 });
        assert_eq!(matches.of_class(LONG).ratio_of_means(), None);
    }

    #[test]
    fn the_ratio_of_means_has_the_interval_of_the_delta_method() {
        // Sums 2, 4 and 3, 3 of six in all; deviations -1/6, 1/6; error sqrt(2 * 2 / 36) = 1/3;
        // t(1) = 12.7062.
        let a = [flow(0, 0, SHORT, Some(2)), flow(1, 0, SHORT, Some(4))];
        let b = [flow(0, 0, SHORT, Some(3)), flow(1, 0, SHORT, Some(3))];
        let matches = Matches::new(&a, &b);
        let ratio = matches.ratio_of_means().unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert_eq!((ratio.value, ratio.n), (1.0, 2));
        let expected = (12.706205_f64 / 3.0).exp();
        assert!((high / expected - 1.0).abs() < 1e-4 && (low * expected - 1.0).abs() < 1e-4);
        assert_eq!(matches.means(), [(2.0, 3.0), (4.0, 3.0)]);
    }

    #[test]
    fn equal_ratios_in_every_round_leave_no_doubt() {
        let times = |factor| move |r: u64| flow(r, 0, SHORT, Some(factor * (r + 1) * 1000));
        let a: Vec<Flow> = (0..5).map(times(1)).collect();
        let b: Vec<Flow> = (0..5).map(times(4)).collect();
        let ratio = Matches::new(&a, &b).ratio_of_means().unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert!((ratio.value - 0.25).abs() < 1e-12 && high - low < 1e-12);
        assert!(ratio.is_below(0.3) && !ratio.is_above(0.25));
    }

    #[test]
    fn batches_are_parts_of_rounds() {
        let at = |planned_ns, round, completion_ns| Flow {
            planned_ns: Some(planned_ns),
            ..flow(round, planned_ns, SHORT, Some(completion_ns))
        };
        let a = [at(0, 0, 1), at(9, 0, 3), at(10, 0, 5), at(10, 1, 7)];
        let matches = Matches::new(&a, &a).in_batches(10);
        assert_eq!(matches.means(), [(2.0, 2.0), (5.0, 5.0), (7.0, 7.0)]);
        assert_eq!(matches.ratio_of_means().unwrap().n, 3);
        assert_eq!(matches.in_batches(0).means().len(), 2);
    }

    /// Rounds differ in congestion, and flows within a round share it.
    #[test]
    fn the_interval_of_the_ratio_covers_the_truth() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut exponential =
            || -(((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64).ln();
        let mut covered = 0;
        for _ in 0..400 {
            let (mut under_a, mut under_b) = (Vec::new(), Vec::new());
            for round in 0..10 {
                let congestion = 1.0 + exponential();
                for index in 0..20 {
                    let size = 1e6 * (1.0 + exponential());
                    let mut time = |factor: f64| Some((factor * size * exponential()) as u64);
                    under_a.push(flow(round, index, SHORT, time(0.5)));
                    under_b.push(flow(round, index, SHORT, time(congestion)));
                }
            }
            // E[A] / E[B] = 0.5 / 2.
            let ratio = Matches::new(&under_a, &under_b).ratio_of_means().unwrap();
            covered += u32::from(!ratio.is_below(0.25) && !ratio.is_above(0.25));
        }
        // 95 % of 400, less what t gives away on ten skewed rounds; at least 91 %.
        assert!((364..=396).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn the_geometric_ratio_is_that_of_the_logarithms() {
        // Logarithms ln 2 and -ln 2.
        let ratio = geometric_ratio(&[(2.0, 1.0), (1.0, 2.0)]).unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert!((ratio.value - 1.0).abs() < 1e-12);
        assert!((high.ln() - 12.706205 * 2.0_f64.ln()).abs() < 1e-4);
        assert!((low * high - 1.0).abs() < 1e-9);
        assert_eq!(geometric_ratio(&[]), None);
        assert_eq!(geometric_ratio(&[(1.0, 0.0)]), None);
    }
}
