//! How quantities are written: a decimal number and a unit, as `tc` has them. As there, `k` and `m`
//! of a size are powers of 1024, those of a rate powers of 1000.

use core::fmt;

/// A text that is not the quantity that it should be. Its message says what would be: "a rate with
/// its unit, such as 10mbit or 1.5gbit".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misspelt(pub(crate) &'static str);

impl fmt::Display for Misspelt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for Misspelt {}

pub(crate) fn is_infinite(text: &str) -> bool {
    matches!(text, "inf" | "unlimited" | "none")
}

/// A decimal number without rounding: `digits / 10^decimals`.
pub(crate) struct Decimal {
    digits: u64,
    pub(crate) decimals: u32,
}

impl Decimal {
    /// The whole number nearest below `self * factor`, if it fits (and is not "unlimited").
    pub(crate) fn times(&self, factor: u64) -> Option<u64> {
        let product = u128::from(self.digits) * u128::from(factor);
        u64::try_from(product / 10u128.pow(self.decimals)).ok().filter(|n| *n != u64::MAX)
    }
}

/// The number that a text begins with, and the unit behind it.
pub(crate) fn split(text: &str) -> Option<(Decimal, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let decimals = u32::try_from(fraction.len()).ok().filter(|n| *n <= 18)?;
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let digits = whole.checked_mul(10u64.pow(decimals))?.checked_add(fraction)?;
    Some((Decimal { digits, decimals }, unit.trim_start()))
}

/// Reads a number with one of these units.
pub(crate) fn number_of(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = split(text)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.times(*factor)
}

/// Writes a number with the first of these units that leaves it whole.
pub(crate) fn write_whole(
    f: &mut fmt::Formatter<'_>,
    number: u64,
    units: &[(&str, u64)],
) -> fmt::Result {
    let whole = units.iter().find(|(_, factor)| number.is_multiple_of(*factor));
    let (name, factor) = whole.unwrap_or(&("", 1));
    write!(f, "{}{name}", number / factor)
}

/// Writes what stands behind the point, as `digits` digits without the zeros at their end.
pub(crate) fn write_fraction(
    f: &mut fmt::Formatter<'_>,
    mut number: u64,
    digits: usize,
) -> fmt::Result {
    let mut width = digits;
    while width > 1 && number.is_multiple_of(10) {
        number /= 10;
        width -= 1;
    }
    write!(f, ".{number:0width$}")
}
