//! Why a parameter is refused.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::Kind;

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
