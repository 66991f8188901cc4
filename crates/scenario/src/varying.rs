//! Rates that vary, as a scenario says it, and what a run is given.

use std::path::PathBuf;

use sched::{Nanos, Rate};
use sim::Varying;
use workload::Random;

use crate::rate_trace::{self, MOST_STEPS};

/// What is accepted, for errors.
pub(crate) const ACCEPTED: &str = "\"trace:FILE\", \"steps:0s=10mbit,5s=0bit,6s=2mbit\", or \
                                   \"walk:min=2mbit,max=20mbit,every=200ms,step=0.2\"";

/// The largest rate of a link.
const MOST: Rate = Rate(1_000_000_000_000);

/// How the rate of a link varies.
#[derive(Clone, Debug, PartialEq)]
pub enum Rates {
    /// The same way in every run.
    Given(Varying),
    /// Anew for every seed.
    Walk(Walk),
}

/// A random walk: after every interval the rate is multiplied by a factor between `1 / (1 + step)`
/// and `1 + step`, whose logarithm is uniform. It turns round at its bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk {
    start: Rate,
    min: Rate,
    max: Rate,
    every: Nanos,
    step: f64,
    /// Where no more is drawn.
    end: Nanos,
}

impl Rates {
    /// Reads what was written for a link of this rate, until `end`. `find` says where a file is.
    ///
    /// # Errors
    /// With what continues "... = ... is not accepted".
    pub(crate) fn parse(
        text: &str,
        rate: Rate,
        end: Nanos,
        find: impl Fn(&str) -> Result<PathBuf, String>,
    ) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("trace", file)) => {
                let path = find(file)?;
                let name = path.display().to_string();
                let text = std::fs::read_to_string(&path).map_err(|e| format!("{name}: {e}"))?;
                rate_trace::parse(&text, &name, end).map(Self::Given)
            }
            Some(("steps", steps)) => steps_of(steps).map(Self::Given),
            Some(("walk", parameters)) => Walk::parse(parameters, rate, end).map(Self::Walk),
            _ => Err(format!("it takes {ACCEPTED}")),
        }
    }

    /// The rates of a run with this seed over the link of this name.
    #[must_use]
    pub fn of(&self, seed: u64, link: &str) -> Varying {
        match self {
            Self::Given(rates) => rates.clone(),
            Self::Walk(walk) => walk.draw(Random::of(seed, &format!("{link}/rate"))),
        }
    }
}

fn rate(text: &str) -> Option<Rate> {
    text.trim().parse().ok().filter(|rate| *rate <= MOST)
}

fn time(text: &str) -> Option<Nanos> {
    text.trim().parse().ok().filter(|time| *time < Nanos::MAX)
}

fn steps_of(text: &str) -> Result<Varying, String> {
    let step = |step: &str| {
        let read = step.split_once('=').and_then(|(at, to)| Some((time(at)?, rate(to)?)));
        read.ok_or_else(|| format!("'{}' is no step; it takes {ACCEPTED}", step.trim()))
    };
    let steps: Vec<_> = text.split(',').map(step).collect::<Result<_, _>>()?;
    Varying::new(&steps).map_err(|error| error.to_string())
}

impl Walk {
    fn parse(text: &str, start: Rate, end: Nanos) -> Result<Self, String> {
        let wrong = |what: &str| format!("{what}; it takes {ACCEPTED}");
        let (mut min, mut max, mut every, mut step) = (None, None, None, None);
        for parameter in text.split(',').map(str::trim) {
            let read = match parameter.split_once('=') {
                Some(("min", text)) => {
                    set(&mut min, rate(text).filter(|rate| *rate >= Rate(1_000)))
                }
                Some(("max", text)) => set(&mut max, rate(text)),
                Some(("every", text)) => {
                    set(&mut every, time(text).filter(|time| *time >= Nanos(1_000)))
                }
                Some(("step", text)) => {
                    let number = text.trim().parse().ok();
                    set(&mut step, number.filter(|step: &f64| *step > 0.0 && *step <= 10.0))
                }
                _ => None,
            };
            read.ok_or_else(|| wrong(&format!("'{parameter}' is no parameter of a walk")))?;
        }
        let (Some(min), Some(max), Some(every), Some(step)) = (min, max, every, step) else {
            return Err(wrong("a walk needs all of min, max, every and step"));
        };
        if !(min..=max).contains(&start) {
            return Err(format!("the walk starts at `rate`, {start}, which is not in its bounds"));
        }
        let steps = end.0 / every.0;
        if steps > MOST_STEPS {
            return Err(format!("{steps} steps until the end are too many; at most {MOST_STEPS}"));
        }
        Ok(Self { start, min, max, every, step, end })
    }

    fn draw(&self, mut random: Random) -> Varying {
        let [low, high] = [self.min, self.max].map(|rate| libm::log(rate.0 as f64));
        let most = libm::log1p(self.step);
        let mut at = libm::log(self.start.0 as f64);
        let mut steps = vec![(Nanos::ZERO, self.start)];
        for number in 1..=self.end.0 / self.every.0 {
            at += (2.0 * random.unit() - 1.0) * most;
            if at > high {
                at = 2.0 * high - at;
            } else if at < low {
                at = 2.0 * low - at;
            }
            // A step may be longer than the way between the bounds.
            at = at.clamp(low, high);
            let rate = Rate(libm::round(libm::exp(at)) as u64).clamp(self.min, self.max);
            steps.push((Nanos(number * self.every.0), rate));
        }
        Varying::new(&steps).expect("times rise, and the least rate is above 0")
    }
}

/// Sets a parameter; `None` if it was set before, or is nothing.
fn set<T>(place: &mut Option<T>, value: Option<T>) -> Option<()> {
    if place.is_some() {
        return None;
    }
    *place = Some(value?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Nanos = Nanos::from_secs(100);
    const RATE: u64 = 10_000_000;

    fn read(text: &str) -> Result<Rates, String> {
        Rates::parse(text, Rate(RATE), END, |file| Err(format!("{file}: not looked for")))
    }

    #[test]
    fn steps_are_times_and_rates() {
        let rates = read("steps:0s=8mbit, 250ms=0bit,500ms=4mbit").expect("steps").of(1, "link");
        assert_eq!(rates.bits(Nanos::ZERO, Nanos::from_secs(1)), 4_000_000);
    }

    #[test]
    fn a_walk_is_drawn_anew_by_seed_and_link_and_stays_in_its_bounds() {
        let walk = read("walk:min=9mbit,max=12mbit,every=100ms,step=0.2").expect("a walk");
        let rates = walk.of(1, "link");
        assert_eq!(rates, walk.of(1, "link"));
        assert_ne!(rates, walk.of(2, "link"));
        assert_ne!(rates, walk.of(1, "link-back"));
        let of_step = |step: u64| {
            let from = Nanos::from_millis(100 * step);
            rates.bits(from, from + Nanos::from_millis(100)) * 10
        };
        assert_eq!(of_step(0), RATE);
        let drawn: Vec<u64> = (0..1000).map(of_step).collect();
        let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        assert!((9_000_000..9_100_000).contains(least), "{least}");
        assert!((11_900_000..=12_000_000).contains(most), "{most}");
        assert!(drawn.windows(2).all(|pair| {
            let factor = pair[1] as f64 / pair[0] as f64;
            (1.0 / 1.201..1.201).contains(&factor)
        }));
    }

    #[test]
    fn what_is_neither_is_refused() {
        for (text, says) in [
            ("", "it takes \"trace:FILE\""),
            ("10mbit", "it takes \"trace:FILE\""),
            ("trace:a.csv", "a.csv: not looked for"),
            ("steps:", "'' is no step"),
            ("steps:0s=10", "'0s=10' is no step"),
            ("steps:0s=inf", "'0s=inf' is no step"),
            ("steps:0s=1mbit,2s=1mbit,1s=2mbit", "step 3: its time is not later"),
            ("steps:1s=1mbit", "a course of rates begins at 0"),
            ("steps:0s=1mbit,1s=0bit", "the last rate is 0"),
            ("walk:min=1mbit", "a walk needs all of"),
            ("walk:min=1mbit,min=2mbit", "'min=2mbit' is no parameter"),
            ("walk:min=0bit", "'min=0bit' is no parameter"),
            ("walk:every=0s", "'every=0s' is no parameter"),
            ("walk:step=NaN", "'step=NaN' is no parameter"),
            ("walk:min=11mbit,max=20mbit,every=1s,step=1", "the walk starts at `rate`, 10mbit"),
            ("walk:min=1mbit,max=20mbit,every=1us,step=1", "100000000 steps until the end"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.starts_with(says), "{text}: {error}");
        }
    }
}
