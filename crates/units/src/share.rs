//! Numbers without a unit: shares of a whole, and factors.

use core::fmt;
use core::str::FromStr;

use crate::spelling::{Misspelt, number_of, split, write_fraction};

/// A fraction between 0 and 1 as parts per billion, so that arithmetic stays in integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// Everything.
    pub const ONE: Self = Self(Self::BILLION);
    pub(crate) const BILLION: u32 = 1_000_000_000;

    /// A share from parts per billion, at most one.
    #[must_use]
    pub const fn from_ppb(ppb: u32) -> Self {
        Self(if ppb > Self::BILLION { Self::BILLION } else { ppb })
    }

    /// Parts per billion.
    #[must_use]
    pub const fn ppb(self) -> u32 {
        self.0
    }

    /// What is left of the whole.
    #[must_use]
    pub const fn rest(self) -> Self {
        Self(Self::BILLION - self.0)
    }

    /// The probability as a threshold for a random `u64`: an event of this probability happens
    /// iff the draw is below the returned value. `None` means always.
    #[must_use]
    pub const fn as_draw(self) -> Option<u64> {
        if self.0 == Self::BILLION {
            None
        } else {
            Some((((self.0 as u128) << 64) / Self::BILLION as u128) as u64)
        }
    }
}

/// A number between 0 and 1, or a percentage: `0.8`, `80%`.
impl FromStr for Share {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        let ppb = number_of(text, &[("", 1_000_000_000), ("%", 10_000_000)]);
        let ppb = ppb.filter(|ppb| *ppb <= u64::from(Self::BILLION));
        let refusal = Misspelt("a part between 0 and 1, or a percentage such as 5%");
        ppb.map(|ppb| Self(ppb as u32)).ok_or(refusal)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            Self::BILLION => f.write_str("1"),
            ppb => {
                f.write_str("0")?;
                write_fraction(f, ppb.into(), 9)
            }
        }
    }
}

/// A number of up to three decimals, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor(pub u64);

/// A plain number: `1.5`.
impl FromStr for Factor {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        let exact = split(text).filter(|(number, unit)| number.decimals <= 3 && unit.is_empty());
        let thousandths = exact.and_then(|(number, _)| number.times(1000));
        thousandths.map(Self).ok_or(Misspelt("a number of at most three decimals, such as 1.5"))
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 / 1000)?;
        if self.0.is_multiple_of(1000) { Ok(()) } else { write_fraction(f, self.0 % 1000, 3) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn shares_read_as_parts_of_one_or_percentages() {
        for (text, ppb, written) in [
            ("0.8", 800_000_000, "0.8"),
            ("1%", 10_000_000, "0.01"),
            ("0.000000001", 1, "0.000000001"),
            ("0", 0, "0"),
            ("1.0", 1_000_000_000, "1"),
        ] {
            assert_eq!(text.parse(), Ok(Share::from_ppb(ppb)));
            assert_eq!(Share::from_ppb(ppb).to_string(), written);
        }
        for text in ["1.1", "-0.1", "101%", "0.5b", ""] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    #[test]
    fn factors_have_up_to_three_decimals() {
        for (text, thousandths) in [("4", 4000), ("1.5", 1500), ("2.125", 2125), ("0.07", 70)] {
            assert_eq!(text.parse(), Ok(Factor(thousandths)));
            assert_eq!(Factor(thousandths).to_string(), text);
        }
        for text in ["", "-4", "1.", "1.0625", "4x"] {
            assert!(text.parse::<Factor>().is_err(), "{text}");
        }
    }
}
