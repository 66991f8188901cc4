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
use crate::interface::{Amount, Factor};

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
        let bpr = match bpr.trim().parse() {
            Ok(Factor(bpr @ 1000..=MOST_BPR)) => bpr,
            Ok(Factor(0..1000)) => {
                return Err(alloc::format!(
                    "'{text}' is convex: its burst is slower than what follows, and a fair curve is \
                     concave; the ratio is from 1 to {}",
                    MOST_BPR / 1000
                ));
            }
            _ => {
                let most = MOST_BPR / 1000;
                return Err(alloc::format!("burst ratio '{bpr}' is not a factor from 1 to {most}"));
            }
        };
        match pbs.trim().parse() {
            Ok(Amount::Bytes(pbs @ 0..=MOST_PBS)) => Ok(Self::new(weight, bpr, pbs)),
            _ => {
                let most = Amount::Bytes(MOST_PBS);
                Err(alloc::format!("burst size '{pbs}' is not from 0b to {most}"))
            }
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::testkit::Random;

    /// The service that a curve begun at (time, service) has earned at `at`.
    fn earned(curve: &Curve, (time, service): (i64, i64), at: i64) -> f64 {
        let elapsed = (at - time) as f64;
        let steep = elapsed / curve.first as f64;
        let flat = (elapsed + curve.ahead as f64) / curve.second as f64;
        service as f64 + steep.min(flat)
    }

    /// The two numbers against all curves that were ever begun, over a grid of virtual time: what is
    /// kept reaches any service where the least of the curves does, so it is above none of them.
    #[test]
    fn the_lesser_of_two_curves_is_above_neither() {
        for seed in 0..300 {
            let mut random = Random(seed);
            let curve = Curve::new(
                1 + random.below(20),
                1000 + random.below(20_000),
                random.below(4) * random.below(9000),
            );
            let (mut position, mut service, mut now) = (Position::default(), 0, 0i64);
            let mut begun: Vec<(i64, i64)> = Vec::new();
            for _ in 0..30 {
                now += random.below(20_000 * UNIT / 10) as i64;
                position.restart(&curve, now as u64);
                begun.push((now, service));
                for _ in 0..random.below(6) {
                    let bytes = random.below(1500) as u32;
                    position.serve(&curve, bytes);
                    service += i64::from(bytes);
                }
                now = now.max(position.time() as i64);
                for step in 0..20 {
                    let mut later = position;
                    let more = step * 700;
                    later.serve(&curve, more);
                    let (at, total) = (later.time() as i64, (service + i64::from(more)) as f64);
                    let all = begun.iter().map(|begin| earned(&curve, *begin, at));
                    let least = all.fold(f64::INFINITY, f64::min);
                    assert!((least - total).abs() < 1e-3, "seed {seed}: {least}, not {total}");
                }
            }
        }
    }

    /// Where the second line has fallen behind by what a burst is ahead, all of it is back.
    #[test]
    fn a_burst_comes_back_in_the_time_of_the_definition() {
        let (bpr, pbs) = (4, 6000);
        let curve = Curve::new(1, bpr * 1000, pbs);
        let mut position = Position::default();
        position.restart(&curve, 0);
        position.serve(&curve, 20_000);
        let idle = position.recovers(&curve) - position.time();
        // (BPR-1) PBS / m1, with m1 = BPR.
        assert_eq!(idle, (bpr - 1) * pbs * UNIT / bpr);
        for (wait, is_new) in [(idle - 1, false), (idle, true)] {
            let mut again = position;
            let now = position.time() + wait;
            again.restart(&curve, now);
            let mut fresh = Position::default();
            fresh.restart(&curve, now);
            assert_eq!(again == fresh, is_new);
        }
    }

    #[test]
    fn slopes_that_divide_the_unit_are_exact_and_the_others_close() {
        for (weight, bpr) in [(1, 1000), (1, 4000), (7, 5000), (16, 3000)] {
            let curve = Curve::new(weight, bpr, 100);
            assert_eq!(curve.second as u64 * weight, UNIT);
            assert_eq!(curve.first as u64 * weight * bpr, 1000 * UNIT);
        }
        let steepest = Curve::new(MOST_WEIGHT, MOST_BPR, 0).first as f64;
        let exact = UNIT as f64 * 1000.0 / (MOST_WEIGHT * MOST_BPR) as f64;
        assert!((steepest / exact - 1.0).abs() < 1.0 / 1800.0, "{steepest}, {exact}");
    }

    #[test]
    fn what_is_no_concave_curve_is_refused() {
        assert_eq!(Curve::parse("2x4/6000b"), Ok(Curve::new(2, 4000, 6000)));
        assert_eq!(Curve::parse("3"), Ok(Curve::new(3, 1000, 0)));
        assert_eq!(Curve::parse("1x1.5/1kb"), Ok(Curve::new(1, 1500, 1024)));
        for (text, reason) in [
            ("1x0.5/6000b", "'1x0.5/6000b' is convex"),
            ("0x4/6000b", "weight '0'"),
            ("-1x4/6000b", "weight '-1'"),
            ("1001", "weight '1001'"),
            ("1x-4/6000b", "burst ratio '-4'"),
            ("1x101/6000b", "burst ratio '101'"),
            ("1x4", "no size of the burst"),
            ("1x4/6000", "burst size '6000'"),
            ("1x4/6packets", "burst size '6packets'"),
            ("1x4/-1b", "burst size '-1b'"),
        ] {
            let error = Curve::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn the_clock_is_between_the_least_and_the_largest_and_never_falls() {
        let mut clock = Clock::default();
        clock.reaches(101);
        assert_eq!(clock.now(), 51);
        clock.serves(40);
        assert_eq!(clock.now(), 71);
        clock.serves(20);
        assert_eq!(clock.now(), 71);
        clock.rest();
        assert_eq!(clock.now(), 101);
    }
}
