//! Parameters: defined once, read everywhere.
//!
//! A [`ParamDef`] is the one definition from which help, docs, range checks and error messages
//! of a parameter derive. Values are written as `tc` users write them.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

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
    fn parse(self, text: &str) -> Option<Value> {
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
}

/// A kind of values, and how one is read as a `T`.
#[derive(Debug)]
pub struct Takes<T> {
    kind: Kind,
    read: fn(&Value) -> Option<T>,
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
            Self::Bytes { min, max } => write!(f, "{min}b to {max}b"),
            Self::Time { min, max, unlimited } => {
                write!(f, "{} to {}{}", min, max, or_inf(unlimited))
            }
            Self::Share { min, max } => write!(f, "{min} to {max}"),
            Self::Level => f.write_str("0 to 1 of the limit, or packets or b, kb, mb, or inf"),
            Self::Count { min, max } => write!(f, "{min} to {max}"),
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

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Amount(Amount),
    Number(u64),
    Share(Share),
    Level(Level),
    Flag(bool),
    Word(&'static str),
    Text(Box<str>),
}

/// A value for every parameter of one discipline, each within its range.
#[derive(Clone, Debug)]
pub struct Params {
    discipline: &'static str,
    defs: &'static [ParamDef],
    values: Vec<Value>,
    given: Vec<bool>,
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.discipline == other.discipline && self.values == other.values
    }
}

impl Params {
    /// Parameters at their defaults.
    pub(crate) fn defaults(discipline: &'static str, defs: &'static [ParamDef]) -> Self {
        let parse = |def: &ParamDef| {
            def.kind.parse(def.default).unwrap_or_else(|| {
                panic!("{discipline}: default {}={} is out of range", def.name, def.default)
            })
        };
        let values: Vec<_> = defs.iter().map(parse).collect();
        let given = values.iter().map(|_| false).collect();
        Self { discipline, defs, values, given }
    }

    /// Sets every parameter of `name=value,name=value`.
    pub(crate) fn read(&mut self, text: &str) -> Result<(), ParamError> {
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| ParamError::NotAPair {
                discipline: self.discipline,
                found: pair.to_string(),
            })?;
            self.set(key.trim(), value.trim())?;
        }
        Ok(())
    }

    /// Writes the parameters that were given in the same way.
    pub(crate) fn fmt_given(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (def, value) in self.iter().filter(|(def, _)| self.is_given(def.name)) {
            write!(f, "{separator}{}={value}", def.name)?;
            separator = ",";
        }
        Ok(())
    }

    /// Gives a parameter a value, as text.
    ///
    /// # Errors
    /// If the discipline has no such parameter, or the value is not one it accepts.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        let index = self.set_default(name, text)?;
        self.given[index] = true;
        Ok(())
    }

    /// The same without noting that it was given. Returns the place of the parameter.
    pub(crate) fn set_default(&mut self, name: &str, text: &str) -> Result<usize, ParamError> {
        let index = self.index(name).ok_or_else(|| ParamError::Unknown {
            discipline: self.discipline,
            found: name.to_string(),
            accepted: self.defs.iter().map(|def| def.name).collect(),
        })?;
        let def = &self.defs[index];
        self.values[index] = def.kind.parse(text).ok_or_else(|| {
            let reason = match def.kind {
                Kind::Form(form) => (form.check)(text).err(),
                _ => None,
            };
            ParamError::Value {
                discipline: self.discipline,
                param: def.name,
                found: text.to_string(),
                reason,
                accepted: def.kind,
            }
        })?;
        Ok(index)
    }

    /// Whether the discipline has this parameter.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.index(name).is_some()
    }

    /// Whether the parameter was given a value, rather than left at its default.
    #[must_use]
    pub fn is_given(&self, name: &str) -> bool {
        self.index(name).is_some_and(|index| self.given[index])
    }

    /// The value of a parameter.
    ///
    /// # Panics
    /// If the discipline has no such parameter; [`Self::find`] is for those that some have.
    pub fn get<T>(&self, param: Param<T>) -> T {
        let name = param.name;
        self.find(param).unwrap_or_else(|| panic!("{} has no parameter {name}", self.discipline))
    }

    /// The value of a parameter, if the discipline has it.
    pub fn find<T>(&self, param: Param<T>) -> Option<T> {
        (param.kind.read)(&self.values[self.index(param.name)?])
    }

    /// The value of an amount parameter.
    #[must_use]
    pub fn amount(&self, name: &str) -> Amount {
        match self.value(name) {
            Value::Amount(amount) => *amount,
            other => self.mistaken(name, other),
        }
    }

    /// The value of a count, byte, rate or factor parameter; `u64::MAX` is unlimited, a factor
    /// counts thousandths.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        match self.value(name) {
            Value::Number(n) => *n,
            other => self.mistaken(name, other),
        }
    }

    /// The value of a time parameter; [`Nanos::MAX`] is unlimited.
    #[must_use]
    pub fn time(&self, name: &str) -> Nanos {
        Nanos(self.number(name))
    }

    /// The value of a share parameter.
    #[must_use]
    pub fn share(&self, name: &str) -> Share {
        match self.value(name) {
            Value::Share(share) => *share,
            other => self.mistaken(name, other),
        }
    }

    /// The value of a level parameter.
    #[must_use]
    pub fn level(&self, name: &str) -> Level {
        match self.value(name) {
            Value::Level(level) => *level,
            other => self.mistaken(name, other),
        }
    }

    /// The value of a yes/no parameter.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Flag(flag) => *flag,
            other => self.mistaken(name, other),
        }
    }

    /// The value of a choice parameter.
    #[must_use]
    pub fn word(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Word(word) => word,
            other => self.mistaken(name, other),
        }
    }

    /// The value of a parameter with a form.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Value::Text(text) => text,
            other => self.mistaken(name, other),
        }
    }

    /// Checks that only live parameters differ from `other`.
    ///
    /// # Errors
    /// Names the first one that differs and cannot change while packets are queued.
    pub fn check_live(&self, other: &Self) -> Result<(), ParamError> {
        let pairs = self.values.iter().zip(&other.values);
        match self.defs.iter().zip(pairs).find(|(def, (a, b))| !def.live && a != b) {
            Some((def, _)) => Err(self.not_live(def.name)),
            None => Ok(()),
        }
    }

    /// The refusal of `param` beside `other`: what is wrong with it, and what is accepted.
    pub(crate) fn conflict(
        &self,
        param: &'static str,
        other: &'static str,
        rule: &'static str,
    ) -> ParamError {
        let text = |name: &str| self.index(name).map(|at| show(&self.defs[at], &self.values[at]));
        ParamError::Conflict {
            discipline: self.discipline,
            param,
            found: text(param).unwrap_or_default(),
            other,
            value: text(other).unwrap_or_default(),
            rule,
        }
    }

    /// The name of the discipline that these parameters are for.
    #[must_use]
    pub const fn discipline(&self) -> &'static str {
        self.discipline
    }

    /// The refusal of a change to `param`.
    pub(crate) const fn not_live(&self, param: &'static str) -> ParamError {
        ParamError::NotLive { discipline: self.discipline, param }
    }

    /// Parameter names with their values as text, in the order of definition.
    pub fn iter(&self) -> impl Iterator<Item = (&'static ParamDef, String)> + '_ {
        self.defs.iter().zip(&self.values).map(|(def, value)| (def, show(def, value)))
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.defs.iter().position(|def| def.name == name)
    }

    fn value(&self, name: &str) -> &Value {
        match self.index(name) {
            Some(index) => &self.values[index],
            None => panic!("{} defines no parameter {name}", self.discipline),
        }
    }

    fn mistaken(&self, name: &str, value: &Value) -> ! {
        panic!("{}: parameter {name} is read as another kind than {value:?}", self.discipline)
    }
}

fn show(def: &ParamDef, value: &Value) -> String {
    match (def.kind, value) {
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

/// Why a parameter was refused: what was found, and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamError {
    /// Parameters are written `name=value`.
    NotAPair {
        /// The discipline.
        discipline: &'static str,
        /// What stands instead.
        found: String,
    },
    /// The discipline has no parameter of this name.
    Unknown {
        /// The discipline.
        discipline: &'static str,
        /// The name that was given.
        found: String,
        /// The names it has.
        accepted: Vec<&'static str>,
    },
    /// The value is malformed, lacks its unit, or is out of range.
    Value {
        /// The discipline.
        discipline: &'static str,
        /// The parameter.
        param: &'static str,
        /// The value that was given.
        found: String,
        /// What is wrong with it, where it has a form.
        reason: Option<String>,
        /// What it accepts.
        accepted: Kind,
    },
    /// The value does not go with that of another parameter.
    Conflict {
        /// The discipline.
        discipline: &'static str,
        /// The parameter.
        param: &'static str,
        /// Its value.
        found: String,
        /// The other parameter.
        other: &'static str,
        /// The other's value.
        value: String,
        /// What is accepted.
        rule: &'static str,
    },
    /// The parameter cannot change while packets are queued.
    NotLive {
        /// The discipline.
        discipline: &'static str,
        /// The parameter.
        param: &'static str,
    },
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPair { discipline, found } => {
                write!(f, "{discipline}: '{found}' is not name=value")
            }
            Self::Unknown { discipline, found, accepted } => {
                write!(f, "{discipline} has no parameter '{found}'; it has ")?;
                f.write_str(&accepted.join(", "))
            }
            Self::Value { discipline, param, found, reason, accepted } => {
                write!(f, "{discipline}: {param}={found} is not accepted")?;
                if let Some(reason) = reason {
                    write!(f, ": {reason}")?;
                }
                f.write_str("; ")?;
                write!(f, "{param} takes {accepted}")
            }
            Self::Conflict { discipline, param, found, other, value, rule } => {
                write!(f, "{discipline}: {param}={found} is not accepted with {other}={value}; ")?;
                write!(f, "{param} takes {rule}")
            }
            Self::NotLive { discipline, param } => {
                write!(f, "{discipline}: {param} cannot change while the discipline runs")
            }
        }
    }
}

impl core::error::Error for ParamError {}
