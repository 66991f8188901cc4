//! Times.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::str::FromStr;

use crate::spelling::{Misspelt, is_infinite, number_of, write_whole};

/// A point in time or a span, in integer nanoseconds. Where zero lies is the caller's business.
///
/// Sums and differences stop at the ends of the range: later than everything is [`Nanos::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Nanos(pub u64);

impl Nanos {
    /// The origin, or no time at all.
    pub const ZERO: Self = Self(0);
    /// Later than everything: "never"; of a span, "unlimited".
    pub const MAX: Self = Self(u64::MAX);

    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// A span of whole seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// How far apart two points in time are.
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// The span since `earlier`, zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Mul<Nanos> for u64 {
    type Output = Nanos;
    fn mul(self, time: Nanos) -> Nanos {
        time * self
    }
}

impl Div<u64> for Nanos {
    type Output = Self;
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

/// Needs a unit, but for `inf`: `1.5ms`.
impl FromStr for Nanos {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        const UNITS: [(&str, u64); 8] = [
            ("s", 1_000_000_000),
            ("sec", 1_000_000_000),
            ("ms", 1_000_000),
            ("msec", 1_000_000),
            ("us", 1_000),
            ("usec", 1_000),
            ("ns", 1),
            ("min", 60_000_000_000),
        ];
        if is_infinite(text) {
            return Ok(Self::MAX);
        }
        let ns = number_of(text, &UNITS)
            .ok_or(Misspelt("a time with its unit, such as 20ms or 2min"))?;
        Ok(Self(ns))
    }
}

/// With the largest unit up to seconds that leaves a whole number.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] =
            [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        if *self == Self::MAX { f.write_str("inf") } else { write_whole(f, self.0, &UNITS) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn times_read_as_tc_users_write_them_and_are_written_short() {
        for (text, ns, written) in [
            ("1.5ms", 1_500_000, "1500us"),
            ("2min", 120_000_000_000, "120s"),
            ("7ns", 7, "7ns"),
            ("20msec", 20_000_000, "20ms"),
            ("0s", 0, "0s"),
            ("unlimited", u64::MAX, "inf"),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(ns)));
            assert_eq!(Nanos(ns).to_string(), written);
        }
        for text in ["5", "", "ms", "1h", "-1s", "99999999999s"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    #[test]
    fn times_stop_at_the_ends_of_their_range() {
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
        assert_eq!(Nanos(3) - Nanos(5), Nanos::ZERO);
        assert_eq!(Nanos::MAX / 2 * 3, Nanos::MAX);
        assert_eq!(Nanos(3).abs_diff(Nanos(5)), Nanos(2));
        assert_eq!(Nanos::from_secs(u64::MAX), Nanos::MAX);
    }
}
