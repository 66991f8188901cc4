//! Concave service curves of two pieces, as fair service curve has them.
//!
//! A curve gives service as a function of virtual time: at m1 for the first `pbs` bytes, then at
//! m2 = weight. m1 / m2 is the burst-to-preferred ratio, `bpr`. Such a curve is the lesser of two
//! lines, of slopes m1 and m2; so the virtual time at which it reaches some service is the greater
//! of the times at which the lines do. Of a flow no more is kept than these two times for the
//! service it has had: they grow by bytes / slope as it is served, and the lesser of two curves
//! with the same slopes is the greater of the times, line by line. Nothing is ever rounded but
//! the slopes.

use alloc::string::String;

use super::marks;
use crate::params::text;

/// Units of virtual time in which a byte is served at slope 1. Slopes that divide it are exact;
/// the others, up to the steepest of 100,000, are right to one part in 1,800.
pub(crate) const UNIT: u64 = 720_720 << 7;

pub(crate) const MOST_WEIGHT: u64 = 1000;
/// In thousandths.
pub(crate) const MOST_BPR: u64 = 100_000;
pub(crate) const MOST_PBS: u64 = 1 << 24;

/// A concave curve of two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Curve {
    /// Virtual time a byte takes on the first piece, and on the second.
    first: i64,
    second: i64,
    /// By how much the first piece is ahead of the second line where both begin.
    ahead: i64,
}

impl Curve {
    /// Slope `weight` after `pbs` bytes, and `bpr` / 1000 times that before.
    pub(crate) const fn new(weight: u64, bpr: u64, pbs: u64) -> Self {
        let first = rounded(1000 * UNIT, weight * bpr);
        let second = rounded(UNIT, weight);
        Self { first, second, ahead: pbs as i64 * (second - first) }
    }

    /// Reads `WEIGHT` or `WEIGHTxBPR/PBS`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (weight, burst) = text.split_once('x').map_or((text, None), |(w, b)| (w, Some(b)));
        let weight = marks::number("weight", weight, 1..=MOST_WEIGHT)?;
        let Some(burst) = burst else { return Ok(Self::new(weight, 1000, 0)) };
        let (bpr, pbs) = burst.split_once('/').ok_or_else(|| {
            alloc::format!("'{text}' has a burst ratio, and no size of the burst: {text}/6000b")
        })?;
        let bpr = match text::factor(bpr.trim()) {
            Some(bpr @ 1000..=MOST_BPR) => bpr,
            Some(0..1000) => {
                return Err(alloc::format!(
                    "'{text}' is convex: its burst is slower than what follows, and a fair curve is \
                     concave; the ratio is from 1 to {}",
                    MOST_BPR / 1000
                ));
            }
            _ => {
                let most = MOST_BPR / 1000;
                return Err(alloc::format!("burst ratio '{bpr}' is no factor from 1 to {most}"));
            }
        };
        match text::amount(pbs.trim()) {
            Some(crate::Amount::Bytes(pbs @ 0..=MOST_PBS)) => Ok(Self::new(weight, bpr, pbs)),
            _ => Err(alloc::format!("burst size '{pbs}' is not from 0b to {MOST_PBS}b")),
        }
    }
}

const fn rounded(dividend: u64, divisor: u64) -> i64 {
    ((dividend + divisor / 2) / divisor) as i64
}

/// Where something stands on its curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// When the line of the first piece reaches the service it has had, and that of the second.
    first: i64,
    second: i64,
}

/// Nothing has been served, ever.
impl Default for Position {
    fn default() -> Self {
        Self { first: i64::MIN, second: i64::MIN }
    }
}

impl Position {
    /// Its virtual time.
    #[inline]
    pub(crate) const fn time(self) -> u64 {
        let time = if self.first > self.second { self.first } else { self.second };
        if time > 0 { time as u64 } else { 0 }
    }

    /// It becomes backlogged at `time`: its curve is the lesser of what it was and a new one that
    /// begins here.
    #[inline]
    pub(crate) fn restart(&mut self, curve: &Curve, time: u64) {
        self.first = self.first.max(time as i64);
        self.second = self.second.max(time as i64 - curve.ahead);
    }

    /// It is served.
    #[inline]
    pub(crate) const fn serve(&mut self, curve: &Curve, bytes: u32) {
        self.first = self.first.saturating_add((bytes as i64).saturating_mul(curve.first));
        self.second = self.second.saturating_add((bytes as i64).saturating_mul(curve.second));
    }

    /// The time from which on it is as good as new: a restart would leave nothing of the past.
    #[inline]
    pub(crate) const fn recovers(self, curve: &Curve) -> u64 {
        let time = self.second.saturating_add(curve.ahead);
        let time = if time > self.first { time } else { self.first };
        if time > 0 { time as u64 } else { 0 }
    }

    /// Virtual time starts from a later origin.
    pub(crate) const fn lower(&mut self, base: u64) {
        self.first = self.first.saturating_sub(base as i64);
        self.second = self.second.saturating_sub(base as i64);
    }
}

/// The virtual time of some that share what their parent gets.
///
/// It is the middle of the least time that was served and the largest that was reached, rounded
/// up. Both only grow, and they are never further apart than the costliest packet. A newcomer at
/// the least time would be ahead of all others, at the largest behind them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    least: u64,
    largest: u64,
}

impl Clock {
    #[inline]
    pub(crate) const fn now(self) -> u64 {
        self.least + (self.largest - self.least).div_ceil(2)
    }

    /// One at this time is served: it is the least of those that are backlogged.
    #[inline]
    pub(crate) fn serves(&mut self, time: u64) {
        self.least = self.least.max(time);
        self.largest = self.largest.max(time);
    }

    /// One has come to this time.
    #[inline]
    pub(crate) fn reaches(&mut self, time: u64) {
        self.largest = self.largest.max(time);
    }

    /// All have become idle: who comes next starts behind all that was served.
    pub(crate) const fn rest(&mut self) {
        self.least = self.largest;
    }

    /// How much all times may be lowered, once they are large.
    pub(crate) const fn excess(self) -> Option<u64> {
        if self.largest >= 1 << 54 { Some(self.least) } else { None }
    }

    pub(crate) const fn lower(&mut self, base: u64) {
        self.least -= base;
        self.largest -= base;
    }
}
