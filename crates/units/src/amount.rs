//! Amounts of traffic, and levels that a queue fills up to.

use core::fmt;
use core::str::FromStr;

use crate::Share;
use crate::spelling::{Misspelt, is_infinite, number_of, write_whole};

/// An amount of traffic: a queue limit or a flow-size threshold.
///
/// A packet counts as its number of segments where the unit is packets, so a GSO super-packet
/// is never a way around a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// Packets; super-packets count as their segments.
    Packets(u64),
    /// Bytes.
    Bytes(u64),
}

impl Amount {
    /// No limit, in packets.
    pub const UNLIMITED: Self = Self::Packets(u64::MAX);

    /// The number without its unit; `u64::MAX` is "no limit".
    #[must_use]
    pub const fn value(self) -> u64 {
        match self {
            Self::Packets(n) | Self::Bytes(n) => n,
        }
    }

    /// Whether it is no limit, in either unit.
    #[must_use]
    pub const fn is_unlimited(self) -> bool {
        self.value() == u64::MAX
    }

    /// The number of bytes, if that is the unit.
    #[must_use]
    pub const fn bytes(self) -> Option<u64> {
        match self {
            Self::Packets(_) => None,
            Self::Bytes(n) => Some(n),
        }
    }

    /// Whether both amounts are counted in the same unit. "Unlimited" fits any unit.
    #[must_use]
    pub const fn same_unit(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Packets(_), Self::Packets(_)) | (Self::Bytes(_), Self::Bytes(_))
        ) || self.is_unlimited()
            || other.is_unlimited()
    }

    /// The whole units in a share of it.
    #[must_use]
    pub const fn part(self, share: Share) -> u64 {
        (self.value() as u128 * share.ppb() as u128 / Share::BILLION as u128) as u64
    }

    /// What a packet of `segments` segments and `bytes` bytes adds in this unit.
    #[inline]
    #[must_use]
    pub const fn cost(self, segments: u16, bytes: u32) -> u32 {
        match self {
            Self::Packets(_) => segments as u32,
            Self::Bytes(_) => bytes,
        }
    }
}

/// Needs a unit, but for `inf`: `300packets`, `30kb`.
impl FromStr for Amount {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        const PACKETS: [(&str, u64); 3] = [("packets", 1), ("packet", 1), ("p", 1)];
        const BYTES: [(&str, u64); 8] = [
            ("b", 1),
            ("bytes", 1),
            ("k", 1 << 10),
            ("kb", 1 << 10),
            ("m", 1 << 20),
            ("mb", 1 << 20),
            ("g", 1 << 30),
            ("gb", 1 << 30),
        ];
        if is_infinite(text) {
            return Ok(Self::UNLIMITED);
        }
        let packets = number_of(text, &PACKETS).map(Self::Packets);
        let amount = packets.or_else(|| number_of(text, &BYTES).map(Self::Bytes));
        amount.ok_or(Misspelt("an amount with its unit, such as 300packets or 64kb"))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] =
            [("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10), ("b", 1)];
        match *self {
            Self::Packets(u64::MAX) | Self::Bytes(u64::MAX) => f.write_str("inf"),
            Self::Packets(n) => write!(f, "{n}packets"),
            Self::Bytes(0) => f.write_str("0b"),
            Self::Bytes(n) => write_whole(f, n, &UNITS),
        }
    }
}

/// A level that a queue fills up to: a threshold of an early dropper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// A share of the queue's limit, in the limit's unit.
    OfLimit(Share),
    /// An amount; [`Amount::UNLIMITED`] is never reached.
    At(Amount),
}

impl Level {
    /// The level of a queue of this limit, in units of 2^-`bits`; `u64::MAX` is never reached.
    #[must_use]
    pub const fn under(self, limit: Amount, bits: u32) -> u64 {
        let scaled = match self {
            Self::OfLimit(share) => {
                ((limit.value() as u128 * share.ppb() as u128) << bits) / Share::BILLION as u128
            }
            Self::At(amount) => (amount.value() as u128) << bits,
        };
        if scaled > u64::MAX as u128 { u64::MAX } else { scaled as u64 }
    }
}

/// A share without unit, `0.5`, or an amount.
impl FromStr for Level {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        text.parse().map(Self::OfLimit).or_else(|_| text.parse().map(Self::At))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfLimit(share) => share.fmt(f),
            Self::At(amount) => amount.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn amounts_read_as_tc_users_write_them_and_are_written_short() {
        for (text, amount, written) in [
            ("300packets", Amount::Packets(300), "300packets"),
            ("7p", Amount::Packets(7), "7packets"),
            ("30kb", Amount::Bytes(30 * 1024), "30kb"),
            ("1.5kb", Amount::Bytes(1536), "1536b"),
            ("4096k", Amount::Bytes(4 << 20), "4mb"),
            ("2gb", Amount::Bytes(2 << 30), "2gb"),
            ("2048gb", Amount::Bytes(1 << 41), "2048gb"),
            ("30000b", Amount::Bytes(30_000), "30000b"),
            ("0kb", Amount::Bytes(0), "0b"),
            ("inf", Amount::UNLIMITED, "inf"),
        ] {
            assert_eq!(text.parse(), Ok(amount));
            assert_eq!(amount.to_string(), written);
            assert_eq!(written.parse(), Ok(amount));
        }
    }

    #[test]
    fn what_has_no_unit_or_no_number_is_refused() {
        for text in ["", "300", "packets", "-3packets", "3..0kb", "3.kb", ".5kb", "30kbit"] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
        assert!("99999999999999999999packets".parse::<Amount>().is_err());
    }

    #[test]
    fn a_level_is_a_share_of_the_limit_or_an_amount() {
        assert_eq!("0.5".parse(), Ok(Level::OfLimit(Share::from_ppb(500_000_000))));
        assert_eq!("9kb".parse(), Ok(Level::At(Amount::Bytes(9216))));
        assert!("1.5".parse::<Level>().is_err());
    }
}
