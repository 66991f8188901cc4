//! Quantities of the command line, read as `tc` users write them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use sched::params::text;
use sched::{Amount, Nanos};

/// A rate above 0.
///
/// # Errors
/// Says what is accepted.
pub fn rate(text: &str) -> Result<u64, String> {
    text::rate(text)
        .filter(|rate| *rate > 0 && *rate < u64::MAX)
        .ok_or_else(|| "it takes a rate above 0 with its unit, such as 10mbit or 1.5gbit".into())
}

/// Packets or bytes, above 0.
///
/// # Errors
/// Says what is accepted.
pub fn amount(text: &str) -> Result<Amount, String> {
    text::amount(text).filter(|amount| amount.value() > 0 && amount.value() < u64::MAX).ok_or_else(
        || "it takes an amount above 0 with its unit, such as 300packets or 64kb".into(),
    )
}

/// A time.
///
/// # Errors
/// Says what is accepted.
pub fn time(text: &str) -> Result<Nanos, String> {
    text::time(text)
        .filter(|time| *time < Nanos::MAX)
        .ok_or_else(|| "it takes a time with its unit, such as 20ms or 2min".into())
}

/// A time above 0.
///
/// # Errors
/// Says what is accepted.
pub fn positive_time(text: &str) -> Result<Nanos, String> {
    time(text)
        .ok()
        .filter(|time| time.0 > 0)
        .ok_or_else(|| "it takes a time above 0 with its unit, such as 20s or 2min".into())
}

/// A parser of whole numbers within bounds.
pub(crate) fn number<T>(
    accepted: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync,
{
    move |text| {
        let number = text.parse().ok().filter(|number| accepted.contains(number));
        let (least, most) = (accepted.start(), accepted.end());
        number.ok_or_else(|| format!("it takes a number from {least} to {most}"))
    }
}

pub(crate) fn share(text: &str) -> Result<f64, String> {
    text::share(text)
        .map(|share| f64::from(share.ppb()) / 1e9)
        .ok_or_else(|| "a part between 0 and 1, or a percentage such as 5%".into())
}
