//! How sure an interval is.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The probability with which an interval holds what it is an interval of.
///
/// Its methods are the functions of this module at another level than 95 %: several intervals that
/// are to hold at once need a higher one each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    /// Half of what a two-sided interval leaves out.
    tail: f64,
}

impl Confidence {
    /// 95 %.
    pub const P95: Self = Self { tail: 0.025 };

    /// This level; `None` unless it is between 0 and 1.
    #[must_use]
    pub fn new(level: f64) -> Option<Self> {
        (level > 0.0 && level < 1.0).then(|| Self { tail: (1.0 - level) / 2.0 })
    }

    pub(super) const fn tail(self) -> f64 {
        self.tail
    }

    /// How many standard errors an interval by Student's t reaches to either side.
    pub(super) fn t_quantile(self, degrees: u64) -> f64 {
        let t = StudentsT::new(0.0, 1.0, degrees as f64);
        t.map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - self.tail))
    }
}
