//! Rates.

use core::fmt;
use core::str::FromStr;

use crate::Nanos;
use crate::spelling::{Misspelt, is_infinite, number_of, write_whole};

/// A rate in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Rate(pub u64);

impl Rate {
    /// No limit: faster than everything.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// Whether it is no limit.
    #[must_use]
    pub const fn is_unlimited(self) -> bool {
        self.0 == u64::MAX
    }

    /// Bit/s, if that is a limit.
    #[must_use]
    pub const fn limit(self) -> Option<u64> {
        if self.is_unlimited() { None } else { Some(self.0) }
    }

    /// How long so many bytes take, to the nanosecond below; no time at an unlimited rate,
    /// for ever at none.
    #[must_use]
    pub const fn time_of(self, bytes: u64) -> Nanos {
        if self.is_unlimited() {
            return Nanos::ZERO;
        }
        if self.0 == 0 {
            return Nanos::MAX;
        }
        let time = bytes as u128 * 8_000_000_000 / self.0 as u128;
        if time > u64::MAX as u128 { Nanos::MAX } else { Nanos(time as u64) }
    }
}

/// Unlimited.
impl Default for Rate {
    fn default() -> Self {
        Self::UNLIMITED
    }
}

/// Needs a unit, but for `inf`: `10mbit`. `bps` is bytes, as in `tc`.
impl FromStr for Rate {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        const UNITS: [(&str, u64); 8] = [
            ("bit", 1),
            ("kbit", 1_000),
            ("mbit", 1_000_000),
            ("gbit", 1_000_000_000),
            ("bps", 8),
            ("kbps", 8_000),
            ("mbps", 8_000_000),
            ("gbps", 8_000_000_000),
        ];
        if is_infinite(text) {
            return Ok(Self::UNLIMITED);
        }
        let rate = number_of(text, &UNITS);
        rate.map(Self).ok_or(Misspelt("a rate with its unit, such as 10mbit or 1.5gbit"))
    }
}

/// With the largest unit that leaves a whole number.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] =
            [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];
        match *self {
            Self::UNLIMITED => f.write_str("inf"),
            Self(0) => f.write_str("0bit"),
            Self(rate) => write_whole(f, rate, &UNITS),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn rates_read_as_tc_users_write_them_and_are_written_short() {
        for (text, rate, written) in [
            ("10mbit", 10_000_000, "10mbit"),
            ("1mbps", 8_000_000, "8mbit"),
            ("1.5gbit", 1_500_000_000, "1500mbit"),
            ("1001bit", 1001, "1001bit"),
            ("0bit", 0, "0bit"),
            ("inf", u64::MAX, "inf"),
        ] {
            assert_eq!(text.parse(), Ok(Rate(rate)));
            assert_eq!(Rate(rate).to_string(), written);
        }
        for text in ["10", "mbit", "1e6bit", "10mb", "18446744073709551615bit"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_says_how_long_bytes_take() {
        assert_eq!(Rate(7_000_000).time_of(1500), Nanos(1_714_285));
        assert_eq!(Rate::UNLIMITED.time_of(u64::MAX), Nanos::ZERO);
        assert_eq!(Rate(0).time_of(1), Nanos::MAX);
        assert_eq!(Rate(1).time_of(u64::MAX), Nanos::MAX);
    }
}
