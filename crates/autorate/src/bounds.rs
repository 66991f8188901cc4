//! Between which rates, and around which.

use core::fmt;
use core::str::FromStr;

use units::Rate;

/// Floor, base and ceiling of a rate: `5mbit..20mbit..100mbit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    floor: Rate,
    base: Rate,
    ceiling: Rate,
}

/// Why text is not [`Bounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundsError;

impl fmt::Display for BoundsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "auto takes three rates that rise, auto:FLOOR..BASE..CEILING, such as \
             auto:5mbit..20mbit..100mbit; the base is the rate while nothing is known of the link",
        )
    }
}

impl core::error::Error for BoundsError {}

impl Bounds {
    /// If none is 0 or unlimited, and none lies above the next.
    ///
    /// # Errors
    /// If not.
    pub fn new(floor: Rate, base: Rate, ceiling: Rate) -> Result<Self, BoundsError> {
        let sound = Rate(0) < floor && floor <= base && base <= ceiling && !ceiling.is_unlimited();
        if sound { Ok(Self { floor, base, ceiling }) } else { Err(BoundsError) }
    }

    /// The rate is never below.
    #[must_use]
    pub const fn floor(&self) -> Rate {
        self.floor
    }

    /// The rate as long as nothing is known.
    #[must_use]
    pub const fn base(&self) -> Rate {
        self.base
    }

    /// The rate is never above.
    #[must_use]
    pub const fn ceiling(&self) -> Rate {
        self.ceiling
    }

    /// The closest rate that is allowed, in whole kbit/s if those are.
    pub(crate) fn clamp(&self, rate: f64) -> Rate {
        Rate((rate as u64 / 1_000 * 1_000).clamp(self.floor.0, self.ceiling.0))
    }
}

impl FromStr for Bounds {
    type Err = BoundsError;

    fn from_str(text: &str) -> Result<Self, BoundsError> {
        let mut rates = text.split("..").map(|rate| rate.parse::<Rate>().map_err(|_| BoundsError));
        let mut next = || rates.next().unwrap_or(Err(BoundsError));
        let bounds = Self::new(next()?, next()?, next()?)?;
        if next().is_ok() || text.split("..").count() > 3 { Err(BoundsError) } else { Ok(bounds) }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}..{}", self.floor, self.base, self.ceiling)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn three_rates_that_rise_are_bounds() {
        for text in ["5mbit..20mbit..100mbit", "1mbit..1mbit..1mbit"] {
            assert_eq!(text.parse::<Bounds>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "20mbit",
            "5mbit..100mbit",
            "5..20..100",
            "20mbit..5mbit..100mbit",
            "5mbit..200mbit..100mbit",
            "0bit..1mbit..2mbit",
            "1mbit..2mbit..inf",
            "1mbit..2mbit..3mbit..4mbit",
            "1mbit..2mbit..3mbit..x",
        ] {
            assert_eq!(text.parse::<Bounds>(), Err(BoundsError), "{text}");
        }
    }
}
