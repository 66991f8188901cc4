//! Quantities of the command line, read as `tc` users write them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use sched::{Amount, Nanos, Rate, Share};

/// A rate above 0.
///
/// # Errors
/// Says what is accepted.
pub fn rate(text: &str) -> Result<Rate, String> {
    let rate = text.parse().ok().filter(|rate: &Rate| *rate > Rate(0) && !rate.is_unlimited());
    rate.ok_or_else(|| "it takes a rate above 0 with its unit, such as 10mbit or 1.5gbit".into())
}

/// Packets or bytes, above 0.
///
/// # Errors
/// Says what is accepted.
pub fn amount(text: &str) -> Result<Amount, String> {
    let amount = text.parse().ok();
    let amount = amount.filter(|amount: &Amount| amount.value() > 0 && !amount.is_unlimited());
    let accepted = "it takes an amount above 0 with its unit, such as 300packets or 64kb";
    amount.ok_or_else(|| accepted.into())
}

/// A time.
///
/// # Errors
/// Says what is accepted.
pub fn time(text: &str) -> Result<Nanos, String> {
    let time = text.parse().ok().filter(|time| *time < Nanos::MAX);
    time.ok_or_else(|| "it takes a time with its unit, such as 20ms or 2min".into())
}

/// A time above 0.
///
/// # Errors
/// Says what is accepted.
pub fn positive_time(text: &str) -> Result<Nanos, String> {
    let time = time(text).ok().filter(|time| *time > Nanos::ZERO);
    time.ok_or_else(|| "it takes a time above 0 with its unit, such as 20s or 2min".into())
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

/// A part of a whole.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<Share>().map_err(|error| error.to_string())?;
    Ok(f64::from(share.ppb()) / 1e9)
}
