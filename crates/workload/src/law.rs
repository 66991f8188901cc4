//! Laws of sizes, times and counts.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::law_text::Unit;
use crate::random::Random;

/// Application bytes in a 1500-byte packet of TCP over IPv4 without options.
pub const PAYLOAD_BYTES: u64 = 1460;

/// A law of whole numbers of a unit; each is at least 1, but for what is fixed or uniform.
///
/// Read from text (`"exponential:mean=100kb".parse()`): see [`crate::LawError`] for what is
/// refused, and `Display` for how a law is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Law<U>(pub(crate) Shape, pub(crate) PhantomData<U>);

/// A law of transfer sizes in application bytes.
pub type SizeLaw = Law<Bytes>;

/// A law of times in nanoseconds, such as `pareto:shape=1.5,mean=500ms`.
pub type TimeLaw = Law<Time>;

/// A law of counts, such as `uniform:min=2,max=7`.
pub type CountLaw = Law<Count>;

/// Bytes, as in `20kb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {}

/// Nanoseconds, as in `10ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {}

/// How many, as in `7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {}

/// Parameters have been checked when a shape exists: means and bounds are at least 1 (but for what
/// is fixed or uniform), tails have a mean, shares add up to 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Fixed {
        size: u64,
    },
    /// `min` to `max`, both included.
    Uniform {
        min: u64,
        max: u64,
    },
    Exponential {
        mean: f64,
    },
    Pareto {
        shape: f64,
        mean: f64,
    },
    /// Pareto of the second kind: the tail of Pareto, but from 0 on.
    Lomax {
        shape: f64,
        mean: f64,
    },
    BoundedPareto {
        shape: f64,
        min: f64,
        max: f64,
    },
    Zipf(Zipf),
    Mixture(Vec<(f64, Shape)>),
}

/// `P(k packets) ~ k^-alpha` on `1..=max`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Zipf {
    pub(crate) alpha: f64,
    pub(crate) payload: u64,
    /// `cumulative[k - 1]` is the probability of at most `k` packets.
    cumulative: Arc<[f64]>,
    mean_packets: f64,
}

impl Zipf {
    pub(crate) fn new(alpha: f64, max: u64, payload: u64) -> Self {
        let weight = |k: u64| libm::pow(k as f64, -alpha);
        // Smallest terms first, so that little of them is lost in the sums.
        let total: f64 = (1..=max).rev().map(weight).sum();
        let packets: f64 = (1..=max).rev().map(|k| k as f64 * weight(k)).sum();
        let mut sum = 0.0;
        let mut up_to = |k| {
            sum += weight(k);
            sum / total
        };
        let mut cumulative: Vec<f64> = (1..=max).map(&mut up_to).collect();
        cumulative[max as usize - 1] = 1.0;
        Self { alpha, payload, cumulative: cumulative.into(), mean_packets: packets / total }
    }

    pub(crate) fn max(&self) -> u64 {
        self.cumulative.len() as u64
    }

    fn quantile(&self, u: f64) -> u64 {
        let packets = self.cumulative.partition_point(|below| *below <= u) as u64 + 1;
        packets.min(self.max()) * self.payload
    }

    fn cdf(&self, size: u64) -> f64 {
        match size / self.payload {
            0 => 0.0,
            packets => self.cumulative[packets.min(self.max()) as usize - 1],
        }
    }
}

impl SizeLaw {
    /// The law of the EFD paper's transfers: 1 to 1000 packets, `P(k) ~ k^-1.1`. Exponent and
    /// bound are a choice; the paper names neither.
    #[must_use]
    pub fn efd_paper() -> Self {
        Self::new(Shape::Zipf(Zipf::new(1.1, 1000, PAYLOAD_BYTES)))
    }
}

impl<U: Unit> Law<U> {
    pub(crate) const fn new(shape: Shape) -> Self {
        Self(shape, PhantomData)
    }

    /// The mean, exact but for the rounding to whole units.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The number below which a fraction `u` of all lie. `u` is cut to `[0, 1)`.
    #[must_use]
    pub fn quantile(&self, u: f64) -> u64 {
        let largest_below_one = 1.0 - f64::EPSILON / 2.0;
        self.0.quantile(if u > 0.0 { u.min(largest_below_one) } else { 0.0 })
    }

    /// The fraction that is at most `size`.
    #[must_use]
    pub fn cdf(&self, size: u64) -> f64 {
        self.0.cdf(size)
    }

    /// One of them.
    pub fn sample(&self, random: &mut Random) -> u64 {
        self.quantile(random.unit())
    }
}

impl Shape {
    fn mean(&self) -> f64 {
        match self {
            Self::Fixed { size } => *size as f64,
            Self::Uniform { min, max } => (*min as f64 + *max as f64) / 2.0,
            Self::Exponential { mean } | Self::Pareto { mean, .. } | Self::Lomax { mean, .. } => {
                *mean
            }
            Self::BoundedPareto { shape, min, max } => bounded_pareto_mean(*shape, *min, *max),
            Self::Zipf(zipf) => zipf.mean_packets * zipf.payload as f64,
            Self::Mixture(parts) => parts.iter().map(|(share, part)| share * part.mean()).sum(),
        }
    }

    fn quantile(&self, u: f64) -> u64 {
        match self {
            Self::Fixed { size } => *size,
            Self::Uniform { min, max } => (min + (u * (max - min + 1) as f64) as u64).min(*max),
            Self::Exponential { mean } => whole(-mean * libm::log1p(-u)),
            Self::Pareto { shape, mean } => {
                whole(pareto_min(*shape, *mean) * libm::pow(1.0 - u, -1.0 / shape))
            }
            Self::Lomax { shape, mean } => {
                whole(mean * (shape - 1.0) * libm::expm1(-libm::log1p(-u) / shape))
            }
            Self::BoundedPareto { shape, min, max } => {
                let kept = 1.0 - libm::pow(min / max, *shape);
                whole(min * libm::pow(1.0 - u * kept, -1.0 / shape)).min(*max as u64)
            }
            Self::Zipf(zipf) => zipf.quantile(u),
            Self::Mixture(_) => self.quantile_by_bisection(u),
        }
    }

    fn cdf(&self, size: u64) -> f64 {
        // A size stands for all that round to it.
        let x = size as f64 + 0.5;
        match self {
            Self::Mixture(parts) => parts.iter().map(|(share, part)| share * part.cdf(size)).sum(),
            Self::Fixed { size: only } => f64::from(u8::from(size >= *only)),
            Self::Uniform { min, .. } if size < *min => 0.0,
            Self::Uniform { min, max } => {
                ((size - min + 1) as f64 / (max - min + 1) as f64).min(1.0)
            }
            _ if size == 0 => 0.0,
            Self::Exponential { mean } => -libm::expm1(-x / mean),
            Self::Pareto { shape, mean } => {
                1.0 - libm::pow((pareto_min(*shape, *mean) / x).min(1.0), *shape)
            }
            Self::Lomax { shape, mean } => {
                -libm::expm1(-shape * libm::log1p(x / (mean * (shape - 1.0))))
            }
            Self::BoundedPareto { shape, min, max } => {
                let above = |x: f64| 1.0 - libm::pow((min / x.clamp(*min, *max)).min(1.0), *shape);
                above(x) / above(*max)
            }
            Self::Zipf(zipf) => zipf.cdf(size),
        }
    }

    /// The least size whose cdf exceeds `u`.
    fn quantile_by_bisection(&self, u: f64) -> u64 {
        let (mut low, mut high) = (0, LARGEST);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.cdf(middle) > u {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

/// The largest transfer there is, so that sums of sizes stay far from overflow.
const LARGEST: u64 = 1 << 50;

fn whole(size: f64) -> u64 {
    (libm::round(size) as u64).clamp(1, LARGEST)
}

/// The least size of a Pareto law.
fn pareto_min(shape: f64, mean: f64) -> f64 {
    mean * (shape - 1.0) / shape
}

fn bounded_pareto_mean(shape: f64, min: f64, max: f64) -> f64 {
    let ratio = libm::log(max / min);
    // E[X] = min * shape / (1 - r^-shape) * integral of (x/min)^-shape, r = max / min; the
    // integral is ln r at shape 1 and (r^(1-shape) - 1) / (1 - shape) elsewhere.
    let exponent = 1.0 - shape;
    let integral = if exponent == 0.0 { ratio } else { libm::expm1(exponent * ratio) / exponent };
    min * shape * integral / -libm::expm1(-shape * ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_efd_papers_law_has_the_figures_derived_from_it() {
        let law = SizeLaw::efd_paper();
        assert!((law.mean() / PAYLOAD_BYTES as f64 - 99.9).abs() < 0.05);
        assert!((law.cdf(20 * PAYLOAD_BYTES) - 0.57).abs() < 0.005);
        assert_eq!(law.quantile(0.0), PAYLOAD_BYTES);
        assert_eq!(law.quantile(1.0), 1000 * PAYLOAD_BYTES);
    }
}
