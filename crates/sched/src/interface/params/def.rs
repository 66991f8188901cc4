//! The definition of a parameter, typed by what its value is read as.

use alloc::boxed::Box;

use super::kind::{Form, Kind, Value};
use crate::interface::{Amount, Factor, Level, Nanos, Rate, Share};

/// The definition of a parameter; in lists, of one whose values are of any type.
#[derive(Clone, Copy, Debug)]
pub struct ParamDef<K = Kind> {
    /// Its name in specs, files and Python.
    pub name: &'static str,
    /// What kind of value it takes, and its range.
    pub kind: K,
    /// Its default, written as a user would.
    pub default: &'static str,
    /// What it does, in one line.
    pub effect: &'static str,
    /// Where name and default come from.
    pub source: &'static str,
    /// Whether it can change while packets are queued.
    pub live: bool,
}

/// The definition of a parameter that is read as a `T`: the key to its value.
pub type Param<T> = ParamDef<Takes<T>>;

impl<T> Param<T> {
    /// The same definition for a list of parameters.
    #[must_use]
    pub const fn any(self) -> ParamDef {
        let Self { name, kind: Takes { kind, .. }, default, effect, source, live } = self;
        ParamDef { name, kind, default, effect, source, live }
    }
}

impl<K> ParamDef<K> {
    /// The same parameter with another default.
    #[must_use]
    pub const fn with_default(mut self, default: &'static str, source: &'static str) -> Self {
        self.default = default;
        self.source = source;
        self
    }
}

/// A kind of values, and how one is read as a `T`.
#[derive(Debug)]
pub struct Takes<T> {
    kind: Kind,
    pub(super) read: fn(&Value) -> Option<T>,
}

impl<T> Clone for Takes<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Takes<T> {}

/// Reads one variant of a value.
macro_rules! reader {
    ($variant:ident($value:ident) => $read:expr) => {
        |value| if let Value::$variant($value) = value { Some($read) } else { None }
    };
}

impl Takes<Amount> {
    /// Packets or bytes, from the least to the most.
    #[must_use]
    pub const fn amount(min: u64, max: u64) -> Self {
        let kind = Kind::Amount { min, max, unlimited: false };
        Self { kind, read: reader!(Amount(amount) => *amount) }
    }

    /// `inf` as well.
    #[must_use]
    pub const fn or_unlimited(mut self) -> Self {
        if let Kind::Amount { unlimited, .. } = &mut self.kind {
            *unlimited = true;
        }
        self
    }
}

impl Takes<Nanos> {
    /// A time, from the least to the most.
    #[must_use]
    pub const fn time(min: Nanos, max: Nanos) -> Self {
        let kind = Kind::Time { min, max, unlimited: false };
        Self { kind, read: reader!(Number(ns) => Nanos(*ns)) }
    }

    /// `inf` as well.
    #[must_use]
    pub const fn or_unlimited(mut self) -> Self {
        if let Kind::Time { unlimited, .. } = &mut self.kind {
            *unlimited = true;
        }
        self
    }
}

impl Takes<Rate> {
    /// A rate, from the least to the most in bit/s, or `inf`.
    #[must_use]
    pub const fn rate(min: u64, max: u64) -> Self {
        Self { kind: Kind::Rate { min, max }, read: reader!(Number(rate) => Rate(*rate)) }
    }
}

impl Takes<u64> {
    /// Bytes, from the least to the most.
    #[must_use]
    pub const fn bytes(min: u64, max: u64) -> Self {
        Self { kind: Kind::Bytes { min, max }, read: reader!(Number(n) => *n) }
    }

    /// A plain number, from the least to the most.
    #[must_use]
    pub const fn count(min: u64, max: u64) -> Self {
        Self { kind: Kind::Count { min, max }, read: reader!(Number(n) => *n) }
    }
}

impl Takes<Share> {
    /// A fraction, from the least to the most.
    #[must_use]
    pub const fn share(min: Share, max: Share) -> Self {
        Self { kind: Kind::Share { min, max }, read: reader!(Share(share) => *share) }
    }
}

impl Takes<Factor> {
    /// A factor, from the least to the most in thousandths.
    #[must_use]
    pub const fn factor(min: u64, max: u64) -> Self {
        Self { kind: Kind::Factor { min, max }, read: reader!(Number(n) => Factor(*n)) }
    }
}

impl Takes<Level> {
    /// A level of the queue.
    pub const LEVEL: Self = Self { kind: Kind::Level, read: reader!(Level(level) => *level) };
}

impl Takes<bool> {
    /// `yes` or `no`.
    pub const FLAG: Self = Self { kind: Kind::Flag, read: reader!(Flag(flag) => *flag) };
}

impl Takes<&'static str> {
    /// One of these words.
    #[must_use]
    pub const fn words(words: &'static [&'static str]) -> Self {
        Self { kind: Kind::Choice(words), read: reader!(Word(word) => *word) }
    }
}

impl Takes<Box<str>> {
    /// A text of this form.
    #[must_use]
    pub const fn form(form: &'static Form) -> Self {
        Self { kind: Kind::Form(form), read: reader!(Text(text) => text.clone()) }
    }
}
