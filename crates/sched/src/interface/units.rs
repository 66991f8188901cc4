//! Units as types: times, amounts of traffic, shares.

use core::fmt;
use core::ops::{Add, Sub};

/// A point in time or a span, in integer nanoseconds. Where zero lies is the caller's business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The origin, or no time at all.
    pub const ZERO: Self = Self(0);
    /// Later than everything: "never".
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

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

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

    /// Whether both amounts are counted in the same unit. "Unlimited" fits any unit.
    #[must_use]
    pub const fn same_unit(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Packets(_), Self::Packets(_)) | (Self::Bytes(_), Self::Bytes(_))
        ) || self.value() == u64::MAX
            || other.value() == u64::MAX
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

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(u64::MAX) | Self::Bytes(u64::MAX) => f.write_str("inf"),
            Self::Packets(n) => write!(f, "{n}packets"),
            Self::Bytes(n) => write!(f, "{n}b"),
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

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfLimit(share) => share.fmt(f),
            Self::At(amount) => amount.fmt(f),
        }
    }
}

/// A fraction between 0 and 1 as parts per billion, so that arithmetic stays in integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// Everything.
    pub const ONE: Self = Self(Self::BILLION);
    const BILLION: u32 = 1_000_000_000;

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

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Self::BILLION {
            return f.write_str("1");
        }
        if self.0 == 0 {
            return f.write_str("0");
        }
        let digits = alloc::format!("{:09}", self.0);
        write!(f, "0.{}", digits.trim_end_matches('0'))
    }
}
