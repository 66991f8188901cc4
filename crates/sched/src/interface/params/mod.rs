//! Parameters: defined once, read everywhere.
//!
//! A [`ParamDef`] is the one definition from which help, docs, range checks and error messages
//! of a parameter derive. Values are written as `tc` users write them.

mod def;
mod error;
mod kind;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

pub use self::def::{Param, ParamDef, Takes};
pub use self::error::ParamError;
use self::kind::Value;
pub use self::kind::{Form, Kind};
use crate::interface::{Amount, Level, Nanos, Share};

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
        let text =
            |name: &str| self.index(name).map(|at| self.defs[at].kind.show(&self.values[at]));
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
        self.defs.iter().zip(&self.values).map(|(def, value)| (def, def.kind.show(value)))
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
