//! Laws of periods: think times, on and off times.

use sched::Nanos;
use sched::params::text;
use workload::Random;

/// A law of periods: `fixed:5s`, `exponential:mean=5s`, `pareto:shape=1.5,mean=5s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    shape: Shape,
    mean_ns: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Fixed,
    Exponential,
    Pareto(f64),
}

const LEAST: Nanos = Nanos(1_000);
const MOST: Nanos = Nanos::from_secs(86_400);

impl Period {
    /// Reads a law; `None` for text that is none, or beyond the range.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, params) = text.split_once(':')?;
        let mut pairs = params.split(',').map(str::trim);
        let mut value = |name: &str| pairs.next()?.strip_prefix(name)?.strip_prefix('=');
        let time = |text: &str| text::time(text).filter(|t| (LEAST..=MOST).contains(t));
        let (shape, mean) = match name.trim() {
            "fixed" => (Shape::Fixed, time(pairs.next()?)?),
            "exponential" => (Shape::Exponential, time(value("mean")?)?),
            "pareto" => {
                let shape: f64 = value("shape")?.parse().ok()?;
                if !(shape > 1.0 && shape <= 100.0) {
                    return None;
                }
                (Shape::Pareto(shape), time(value("mean")?)?)
            }
            _ => return None,
        };
        pairs.next().is_none().then_some(Self { shape, mean_ns: mean.0 as f64 })
    }

    /// The mean, in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.mean_ns
    }

    /// One period, at least a nanosecond.
    pub fn sample(&self, random: &mut Random) -> u64 {
        let drawn = match self.shape {
            Shape::Fixed => self.mean_ns,
            Shape::Exponential => -self.mean_ns * libm::log1p(-random.unit()),
            Shape::Pareto(shape) => {
                let least = self.mean_ns * (shape - 1.0) / shape;
                least * libm::pow(1.0 - random.unit(), -1.0 / shape)
            }
        };
        (drawn as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_the_mean_of_their_law() {
        for text in ["fixed:5s", "exponential:mean=5s", "pareto:shape=3,mean=5s"] {
            let law = Period::parse(text).unwrap();
            let mut random = Random::new(3);
            let sum: f64 = (0..100_000).map(|_| law.sample(&mut random) as f64).sum();
            assert!((sum / 100_000.0 / 5e9 - 1.0).abs() < 0.02, "{text}: {sum}");
        }
    }

    #[test]
    fn what_is_no_law_of_periods_is_refused() {
        for text in [
            "",
            "5s",
            "fixed",
            "fixed:",
            "fixed:-1s",
            "fixed:inf",
            "fixed:1s,2s",
            "exponential:5s",
            "exponential:mean=0s",
            "pareto:mean=5s",
            "pareto:shape=1,mean=5s",
            "gamma:mean=1s",
            "pareto:shape=nan,mean=5s",
        ] {
            assert_eq!(Period::parse(text), None, "{text}");
        }
    }
}
