//! Kinds of values: their ranges, and how they are read and written.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;

use crate::interface::{Amount, Factor, Level, Nanos, Rate, Share};

/// What a parameter's value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Packets or bytes, from the least to the most (numbers hold for both units); `inf` where
    /// `unlimited`.
    Amount {
        /// Least value.
        min: u64,
        /// Largest finite value.
        max: u64,
        /// Whether `inf` is accepted.
        unlimited: bool,
    },
    /// Bytes.
    Bytes {
        /// Least value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A time; `inf` where `unlimited`.
    Time {
        /// Least value.
        min: Nanos,
        /// Largest finite value.
        max: Nanos,
        /// Whether `inf` is accepted.
        unlimited: bool,
    },
    /// A fraction between 0 and 1.
    Share {
        /// Least value.
        min: Share,
        /// Largest value.
        max: Share,
    },
    /// A level of the queue: a share of its limit, or packets or bytes, in the limit's unit; `inf`
    /// is never reached.
    Level,
    /// A plain number.
    Count {
        /// Least value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A rate in bit/s; `inf` is accepted.
    Rate {
        /// Least value.
        min: u64,
        /// Largest finite value.
        max: u64,
    },
    /// `yes` or `no`.
    Flag,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A factor of at least 1, with up to three decimals: 1.5. From the least to the most, in
    /// thousandths.
    Factor {
        /// Least value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A text in a small language of the discipline's own.
    Form(&'static Form),
}

/// A small language for what no single value can say. It knows no comma, which separates
/// parameters.
#[derive(Debug)]
pub struct Form {
    /// What it describes, in place of a unit.
    pub name: &'static str,
    /// What it looks like.
    pub pattern: &'static str,
    /// Texts of every sort, the default not among them.
    pub examples: &'static [&'static str],
    /// Says what is wrong with a text.
    pub check: fn(&str) -> Result<(), String>,
}

/// Two forms are the same if they describe the same.
impl PartialEq for Form {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Form {}

impl Kind {
    /// The unit, as lists and docs name it.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Amount { .. } => "packets or bytes",
            Self::Bytes { .. } => "bytes",
            Self::Time { .. } => "time",
            Self::Share { .. } => "fraction",
            Self::Level => "share of limit or amount",
            Self::Count { .. } => "number",
            Self::Rate { .. } => "bit/s",
            Self::Flag => "yes/no",
            Self::Choice(_) => "word",
            Self::Factor { .. } => "factor",
            Self::Form(form) => form.name,
        }
    }

    /// Reads a value and checks its range.
    pub(super) fn parse(self, text: &str) -> Option<Value> {
        match self {
            Self::Amount { min, max, unlimited } => {
                let amount: Amount = text.parse().ok()?;
                in_range(amount.value(), min, max, unlimited).then_some(Value::Amount(amount))
            }
            Self::Bytes { min, max } => {
                let bytes = text.parse().ok().and_then(Amount::bytes)?;
                (min..=max).contains(&bytes).then_some(Value::Number(bytes))
            }
            Self::Time { min, max, unlimited } => {
                let time: Nanos = text.parse().ok()?;
                in_range(time.0, min.0, max.0, unlimited).then_some(Value::Number(time.0))
            }
            Self::Share { min, max } => {
                let share = text.parse().ok()?;
                (min..=max).contains(&share).then_some(Value::Share(share))
            }
            Self::Level => text.parse().ok().map(Value::Level),
            Self::Count { min, max } => {
                let n = text.parse().ok()?;
                (min..=max).contains(&n).then_some(Value::Number(n))
            }
            Self::Rate { min, max } => {
                let Rate(rate) = text.parse().ok()?;
                in_range(rate, min, max, true).then_some(Value::Number(rate))
            }
            Self::Flag => match text {
                "yes" | "true" | "on" => Some(Value::Flag(true)),
                "no" | "false" | "off" => Some(Value::Flag(false)),
                _ => None,
            },
            Self::Choice(words) => words.iter().find(|w| **w == text).map(|w| Value::Word(w)),
            Self::Factor { min, max } => {
                let Factor(factor) = text.parse().ok()?;
                (min..=max).contains(&factor).then_some(Value::Number(factor))
            }
            Self::Form(form) => (form.check)(text).ok().map(|()| Value::Text(text.into())),
        }
    }

    /// Writes a value of this kind.
    pub(super) fn show(self, value: &Value) -> String {
        match (self, value) {
            (_, Value::Amount(amount)) => amount.to_string(),
            (Kind::Time { .. }, Value::Number(n)) => Nanos(*n).to_string(),
            (Kind::Rate { .. }, Value::Number(n)) => Rate(*n).to_string(),
            (Kind::Bytes { .. }, Value::Number(n)) => Amount::Bytes(*n).to_string(),
            (Kind::Factor { .. }, Value::Number(n)) => Factor(*n).to_string(),
            (_, Value::Number(n)) => n.to_string(),
            (_, Value::Share(share)) => share.to_string(),
            (_, Value::Level(level)) => level.to_string(),
            (_, Value::Flag(flag)) => String::from(if *flag { "yes" } else { "no" }),
            (_, Value::Word(word)) => String::from(*word),
            (_, Value::Text(text)) => String::from(&**text),
        }
    }
}

fn in_range(n: u64, min: u64, max: u64, unlimited: bool) -> bool {
    (min..=max).contains(&n) || (unlimited && n == u64::MAX)
}

/// The range in words: `1packets to 1000000packets (or bytes: b, kb, mb)`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_inf = |unlimited: bool| if unlimited { ", or inf" } else { "" };
        match *self {
            Self::Amount { min, max, unlimited } => {
                write!(f, "{min} to {max} packets or b, kb, mb{}", or_inf(unlimited))
            }
            Self::Bytes { min, max } => {
                write!(f, "{} to {}", Amount::Bytes(min), Amount::Bytes(max))
            }
            Self::Time { min, max, unlimited } => {
                write!(f, "{} to {}{}", min, max, or_inf(unlimited))
            }
            Self::Share { min, max } => write!(f, "{min} to {max}"),
            Self::Level => f.write_str("0 to 1 of the limit, or packets or b, kb, mb, or inf"),
            Self::Count { min, max } => write!(f, "{min} to {max}"),
            // Whatever there is a number for.
            Self::Rate { min, max } if max == u64::MAX - 1 => {
                write!(f, "{} or more, or inf", Rate(min))
            }
            Self::Rate { min, max } => {
                write!(f, "{} to {}, or inf", Rate(min), Rate(max))
            }
            Self::Flag => f.write_str("yes or no"),
            Self::Choice(words) => f.write_str(&words.join(", ")),
            Self::Factor { min, max } => {
                write!(f, "{} to {}", Factor(min), Factor(max))
            }
            Self::Form(form) => f.write_str(form.pattern),
        }
    }
}

/// A value of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Amount(Amount),
    Number(u64),
    Share(Share),
    Level(Level),
    Flag(bool),
    Word(&'static str),
    Text(Box<str>),
}
