//! Quantities of the command line, read as `tc` users write them.

use sched::params::text;
use sched::{Amount, Nanos};

pub(crate) fn rate(text: &str) -> Result<u64, String> {
    text::rate(text)
        .filter(|rate| *rate > 0 && *rate < u64::MAX)
        .ok_or_else(|| "a rate above 0 with its unit, such as 10mbit or 1.5gbit".into())
}

pub(crate) fn amount(text: &str) -> Result<Amount, String> {
    text::amount(text)
        .filter(|amount| amount.value() > 0 && amount.value() < u64::MAX)
        .ok_or_else(|| "an amount above 0 with its unit, such as 300packets or 64kb".into())
}

pub(crate) fn time(text: &str) -> Result<Nanos, String> {
    text::time(text)
        .filter(|time| *time < Nanos::MAX)
        .ok_or_else(|| "a time with its unit, such as 20ms or 2min".into())
}

pub(crate) fn positive_time(text: &str) -> Result<Nanos, String> {
    match time(text)? {
        Nanos(0) => Err("a time above 0, such as 20s or 2min".into()),
        time => Ok(time),
    }
}
