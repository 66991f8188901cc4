//! Valid values of any parameter, drawn from its definition alone.
//!
//! A new discipline's parameters are varied without a word about them in this crate.

use sched::params::{Kind, ParamDef};
use sched::{Amount, Factor, Info, Nanos, Rate, Share, Spec};

/// A valid value of `def`, as text, drawn by `random`. Small values are likely: they are where
/// thresholds, limits and bounds take effect within a short sequence.
#[must_use]
pub fn draw(def: &ParamDef, random: u32) -> String {
    // Low bits choose the sort of value, high bits its size.
    let (sort, size) = (random % 16, u64::from(random >> 4));
    match def.kind {
        Kind::Amount { unlimited: true, .. } if sort == 0 => "inf".to_owned(),
        Kind::Amount { min, max, .. } if sort < 9 => {
            Amount::Packets((min + size % 24).min(max)).to_string()
        }
        Kind::Amount { min, max, .. } => {
            Amount::Bytes(spread(min, max.min(1 << 17), size)).to_string()
        }
        Kind::Bytes { min, max } => Amount::Bytes(spread(min, max, size)).to_string(),
        Kind::Time { unlimited: true, .. } if sort == 0 => "inf".to_owned(),
        Kind::Time { min, max, .. } => Nanos(spread(min.0, max.0, size)).to_string(),
        Kind::Share { min, max } => match sort {
            0 | 1 => min.to_string(),
            2 | 3 => max.to_string(),
            _ => {
                let (min, max) = (u64::from(min.ppb()), u64::from(max.ppb()));
                Share::from_ppb((min + (max - min) * (size % 101) / 100) as u32).to_string()
            }
        },
        Kind::Level => match sort {
            0 => "inf".to_owned(),
            1..=3 => Amount::Packets(size % 24).to_string(),
            4 => Amount::Bytes(size % (1 << 17)).to_string(),
            _ => Share::from_ppb((size % 101) as u32 * 10_000_000).to_string(),
        },
        Kind::Count { min, max } => spread(min, max.min(min + 4096), size).to_string(),
        Kind::Rate { min, max } => Rate(spread(min, max, size)).to_string(),
        Kind::Flag => if sort % 2 == 0 { "yes" } else { "no" }.to_owned(),
        Kind::Choice(words) => words[size as usize % words.len()].to_owned(),
        Kind::Factor { min, max } => match sort {
            0..=9 => Factor(min + 1000 * (size % 8).min((max - min) / 1000)).to_string(),
            _ => Factor(spread(min, max, size)).to_string(),
        },
        Kind::Form(_) if sort < 4 => def.default.to_owned(),
        Kind::Form(form) => form.examples[size as usize % form.examples.len()].to_owned(),
    }
}

/// The least and the largest value that `def` accepts, and `inf` where it does.
#[must_use]
pub fn extremes(def: &ParamDef) -> Vec<String> {
    let or_inf = |mut values: Vec<String>, unlimited: bool| {
        values.extend(unlimited.then(|| "inf".to_owned()));
        values
    };
    match def.kind {
        Kind::Amount { min, max, unlimited } => {
            let both = |n| [Amount::Packets(n).to_string(), Amount::Bytes(n).to_string()];
            or_inf([both(min), both(max)].concat(), unlimited)
        }
        Kind::Bytes { min, max } => [min, max].map(|n| Amount::Bytes(n).to_string()).to_vec(),
        Kind::Time { min, max, unlimited } => {
            or_inf([min, max].map(|t| t.to_string()).to_vec(), unlimited)
        }
        Kind::Share { min, max } => [min, max].map(|share| share.to_string()).to_vec(),
        Kind::Level => ["0", "1", "0packets", "0b", "inf"].map(str::to_owned).to_vec(),
        Kind::Count { min, max } => [min, max].map(|n| n.to_string()).to_vec(),
        Kind::Rate { min, max } => {
            or_inf([min, max].map(|rate| Rate(rate).to_string()).to_vec(), true)
        }
        Kind::Flag => vec!["yes".to_owned(), "no".to_owned()],
        Kind::Choice(words) => words.iter().map(|word| (*word).to_owned()).collect(),
        Kind::Factor { min, max } => [min, max].map(|n| Factor(n).to_string()).to_vec(),
        Kind::Form(form) => form.examples.iter().map(|text| (*text).to_owned()).collect(),
    }
}

/// A parameter of `info` other than those in `except`, and a valid value for it; `None` where
/// there is no such parameter.
#[must_use]
pub fn draw_setting(info: &Info, except: &[&str], random: u64) -> Option<(&'static str, String)> {
    let defs: Vec<_> = info.params.iter().filter(|def| !except.contains(&def.name)).collect();
    let def = defs.get(((random >> 32) as usize).checked_rem(defs.len())?)?;
    Some((def.name, draw(def, random as u32)))
}

/// `spec` with this valid value, unless that contradicts its other parameters.
///
/// # Panics
/// If the value alone is not valid.
#[must_use]
pub fn set_if_accepted(spec: Spec, name: &str, value: &str) -> Spec {
    let set = spec.clone().with(name, value).unwrap_or_else(|error| panic!("{error}"));
    if set.check().is_ok() { set } else { spec }
}

/// A value between `min` and `max` with evenly spread magnitude.
fn spread(min: u64, max: u64, random: u64) -> u64 {
    let magnitude = random % u64::from(65 - (max - min).leading_zeros());
    let below = 1u64.checked_shl(magnitude as u32).map_or(u64::MAX, |power| power);
    let within = (random >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) % below.max(1);
    min + within.min(max - min)
}
