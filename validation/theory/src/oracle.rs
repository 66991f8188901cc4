//! Mean response times of the M/G/1 queue, given the size of a job: the textbook's closed forms.
//!
//! Jobs arrive as a Poisson process of rate `l` and are served at rate 1; `F` is the law of their
//! sizes, `rho = l E[X]`, and `rho(x) = l E[min(X, x)]` is the load if all jobs are cut at `x`.

use workload::SizeLaw;

/// How the server shares its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// First in, first out: `l E[X^2] / (2 (1 - rho)) + x` (Pollaczek and Khinchine).
    Fifo,
    /// Processor sharing: `x / (1 - rho)`.
    ProcessorSharing,
    /// Foreground-background, least attained service:
    /// `x / (1 - rho(x)) + l E[min(X, x)^2] / (2 (1 - rho(x))^2)`.
    LeastAttained,
    /// Shortest remaining processing time, with `r(x)` the load of the jobs up to `x`:
    /// `(l int_0^x t^2 dF + l x^2 (1 - F(x))) / (2 (1 - r(x))^2) + int_0^x dt / (1 - r(t))`.
    ShortestRemaining,
    /// Two levels, each first in, first out; the first `threshold` of every job is served before
    /// the rest of any.
    ///
    /// A job up to the threshold sees a FIFO of jobs cut there:
    /// `l E[min(X, a)^2] / (2 (1 - rho(a))) + x`. The rest of a longer job leaves when all work
    /// that it found, in both levels, and its own are done, and all first parts that arrive
    /// until then: a busy period of those, begun with the work of the FIFO queue and itself:
    /// `(l E[X^2] / (2 (1 - rho)) + x) / (1 - rho(a))`.
    TwoLevels {
        /// What of a job is in the first level.
        threshold: f64,
    },
}

/// An M/G/1 queue.
#[derive(Clone, Debug)]
pub struct Queue {
    law: SizeLaw,
    /// Arrivals per unit of time.
    rate: f64,
    grid: Vec<Point>,
}

/// Integrals up to a size.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    x: f64,
    /// `1 - F(x)`.
    above: f64,
    /// `E[min(X, x)]`: the integral of `1 - F`.
    cut: f64,
    /// `E[min(X, x)^2]`: the integral of `2 t (1 - F(t))`.
    cut_square: f64,
    /// `int_0^x dt / (1 - r(t))`.
    residence: f64,
}

/// Distance of neighbours on the grid, relative to their size.
const STEP: f64 = 1e-3;

impl Queue {
    /// The queue of jobs of this law at this load.
    #[must_use]
    pub fn new(law: &SizeLaw, load: f64) -> Self {
        let rate = load / law.mean();
        let mut grid = vec![Point { above: 1.0, ..Point::default() }];
        let largest = law.quantile(1.0) as f64;
        let mut x = law.mean() * 1e-6;
        while x < largest * (1.0 + STEP) {
            let next = step(law, rate, grid[grid.len() - 1], x);
            grid.push(next);
            x *= 1.0 + STEP;
        }
        Self { law: law.clone(), rate, grid }
    }

    /// Arrivals per unit of time.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The mean response time of jobs of size `x`.
    #[must_use]
    pub fn response(&self, model: Model, x: f64) -> f64 {
        let at = self.at(x);
        let all = self.grid[self.grid.len() - 1];
        // Mean work in a queue of jobs cut where `point` is.
        let work =
            |point: Point| self.rate * point.cut_square / (2.0 * (1.0 - self.rate * point.cut));
        match model {
            Model::Fifo => work(all) + x,
            Model::ProcessorSharing => x / (1.0 - self.rate * all.cut),
            Model::LeastAttained => (work(at) + x) / (1.0 - self.rate * at.cut),
            Model::ShortestRemaining => {
                // int_0^x t^2 dF = E[min(X, x)^2] - x^2 (1 - F(x)).
                let free = 1.0 - self.rate * at.up_to();
                self.rate * at.cut_square / (2.0 * free * free) + at.residence
            }
            Model::TwoLevels { threshold } if x <= threshold => work(self.at(threshold)) + x,
            Model::TwoLevels { threshold } => {
                (work(all) + x) / (1.0 - self.rate * self.at(threshold).cut)
            }
        }
    }

    /// The mean response time of all jobs.
    #[must_use]
    pub fn mean_response(&self, model: Model) -> f64 {
        self.grid
            .windows(2)
            .map(|pair| {
                let middle = (pair[0].x + pair[1].x) / 2.0;
                (pair[0].above - pair[1].above) * self.response(model, middle)
            })
            .sum()
    }

    fn at(&self, x: f64) -> Point {
        let next = self.grid.partition_point(|point| point.x <= x);
        step(&self.law, self.rate, self.grid[next - 1], x)
    }
}

impl Point {
    /// `int_0^x t dF`.
    fn up_to(&self) -> f64 {
        self.cut - self.x * self.above
    }
}

/// Integrates from `from` to `x` by the trapezoidal rule.
fn step(law: &SizeLaw, rate: f64, from: Point, x: f64) -> Point {
    let (above, width) = (1.0 - law.cdf(x as u64), x - from.x);
    let cut = from.cut + width * (from.above + above) / 2.0;
    let cut_square = from.cut_square + width * (from.x * from.above + x * above);
    let mut point = Point { x, above, cut, cut_square, residence: 0.0 };
    let slowness = |point: &Point| 1.0 / (1.0 - rate * point.up_to());
    point.residence = from.residence + width * (slowness(&from) + slowness(&point)) / 2.0;
    point
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: f64 = 1e6;

    fn queue(law: &str, load: f64) -> Queue {
        Queue::new(&law.parse().expect("a law"), load)
    }

    fn close(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-4
    }

    #[test]
    fn the_mm1_queue_has_its_known_means() {
        let queue = queue("exponential:mean=1000000b", 0.5);
        let mean = |model| queue.mean_response(model) / MEAN;
        assert!(close(mean(Model::Fifo), 2.0));
        assert!(close(mean(Model::ProcessorSharing), 2.0));
        assert!(close(mean(Model::LeastAttained), 2.0));
        assert!(
            close(mean(Model::ShortestRemaining), 1.4254),
            "{}",
            mean(Model::ShortestRemaining)
        );
        // Two levels without or with only a first one are a FIFO.
        for threshold in [0.0, 60.0 * MEAN] {
            assert!(close(mean(Model::TwoLevels { threshold }), 2.0));
        }
    }

    #[test]
    fn moments_of_a_bounded_tail_are_exact() {
        // min 1, max r, shape s: E[X^k] = s / (s - k) (1 - r^(k - s)) / (1 - r^-s).
        let (min, r, s) = (1e5, 1000f64, 1.5);
        let moment = |k: f64| s / (s - k) * (1.0 - r.powf(k - s)) / (1.0 - r.powf(-s));
        let queue = queue("bounded-pareto:shape=1.5,min=100000b,max=100000000b", 0.8);
        let all = queue.grid[queue.grid.len() - 1];
        assert!(close(all.cut, min * moment(1.0)), "{}", all.cut / min / moment(1.0));
        assert!(close(all.cut_square, min * min * moment(2.0)));
        // The largest job has all work but its own served during its time.
        let largest = queue.response(Model::LeastAttained, 1e8);
        let work = queue.rate * all.cut_square / (2.0 * (1.0 - 0.8));
        assert!(close(largest, (work + 1e8) / 0.2));
        // Of two kinds of jobs, the small ones see themselves alone.
        let small = queue.response(Model::TwoLevels { threshold: 2e5 }, 1.5e5);
        assert!(small < queue.response(Model::Fifo, 1.5e5));
    }
}
