//! The values of keys, each checked against its range.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use sched::edge::EdgeSpec;
use sched::{Amount, Nanos, Rate, Spec};
use toml::de::DeValue;
use workload::{Law, LawError};

use super::{Table, mistaken};
use crate::error::ScenarioError;
use crate::key::Takes;

/// What was written for a key, or its default.
#[derive(Clone, Copy)]
pub(super) enum Written<'a> {
    Toml(&'a DeValue<'a>),
    Default(&'static str),
}

impl<'a> Written<'a> {
    fn text(self) -> Option<&'a str> {
        match self {
            Self::Toml(value) => value.as_str(),
            Self::Default(text) => Some(text),
        }
    }

    /// A number as text, whether it stands in quotes or not.
    fn number(self) -> Option<String> {
        match self {
            Self::Toml(DeValue::Integer(number)) if number.radix() == 10 => {
                Some(number.as_str().replace('_', ""))
            }
            Self::Toml(DeValue::Float(number)) => Some(number.as_str().replace('_', "")),
            Self::Toml(_) => None,
            Self::Default(text) => Some(text.to_owned()),
        }
    }

    fn flag(self) -> Option<bool> {
        match self {
            Self::Toml(value) => value.as_bool(),
            Self::Default(text) => text.parse().ok(),
        }
    }

    /// A list of texts, or one text alone.
    fn texts(self) -> Option<Vec<&'a str>> {
        match self {
            Self::Toml(DeValue::Array(items)) => {
                items.iter().map(|item| item.get_ref().as_str()).collect()
            }
            other => Some(vec![other.text()?]),
        }
    }
}

impl<'a> Table<'a> {
    pub(crate) fn text(&self, key: &str) -> Result<Option<String>, ScenarioError> {
        self.read(key, |_, written| written.text().map(str::to_owned))
    }

    /// Where the file of this name is; names are looked for from `directory` on.
    ///
    /// # Errors
    /// With what is wrong with the name, without its place.
    pub(crate) fn file(name: &str, directory: Option<&Path>) -> Result<PathBuf, String> {
        match directory {
            Some(directory) => Ok(directory.join(name)),
            None if Path::new(name).is_absolute() => Ok(name.into()),
            None => {
                Err("needs an absolute path, or a scenario that is a file, to start from".into())
            }
        }
    }

    pub(crate) fn word(&self, key: &str) -> Result<Option<&'static str>, ScenarioError> {
        self.read(key, |takes, written| match takes {
            Takes::Word(words) => words.iter().copied().find(|word| Some(*word) == written.text()),
            other => mistaken(key, other),
        })
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, ScenarioError> {
        self.read(key, |_, written| written.flag())
    }

    pub(crate) fn count(&self, key: &str) -> Result<Option<u64>, ScenarioError> {
        self.read(key, |takes, written| match takes {
            Takes::Count { min, max } => {
                let number = written.number()?.parse().ok();
                number.filter(|n| (*min..=*max).contains(n))
            }
            other => mistaken(key, other),
        })
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<f64>, ScenarioError> {
        self.read(key, |takes, written| match takes {
            Takes::Number { min, max, open } => {
                let number: Option<f64> = written.number()?.parse().ok();
                let above = |n: f64| if *open { n > *min } else { n >= *min };
                number.filter(|n| above(*n) && *n <= *max)
            }
            other => mistaken(key, other),
        })
    }

    pub(crate) fn rate(&self, key: &str) -> Result<Option<Rate>, ScenarioError> {
        self.read(key, |takes, written| match takes {
            Takes::Rate { min, max } => {
                let rate = written.text()?.parse().ok();
                rate.filter(|rate| (*min..=*max).contains(rate))
            }
            other => mistaken(key, other),
        })
    }

    pub(crate) fn time(&self, key: &str) -> Result<Option<Nanos>, ScenarioError> {
        self.read(key, |takes, written| match takes {
            Takes::Time { min, max, unlimited } => {
                let time = written.text()?.parse().ok();
                let within = |time: &Nanos| (*min..=*max).contains(time);
                time.filter(|time| within(time) || (*unlimited && *time == Nanos::MAX))
            }
            other => mistaken(key, other),
        })
    }

    pub(crate) fn bytes(&self, key: &str) -> Result<Option<u64>, ScenarioError> {
        self.read(key, |takes, written| match takes {
            Takes::Bytes { min, max } => {
                let bytes = written.text()?.parse().ok().and_then(Amount::bytes);
                bytes.filter(|n| (*min..=*max).contains(n))
            }
            other => mistaken(key, other),
        })
    }

    pub(crate) fn amount(&self, key: &str) -> Result<Option<Amount>, ScenarioError> {
        self.read(key, |takes, written| match takes {
            Takes::Amount { min, max } => {
                let amount = written.text()?.parse().ok();
                amount.filter(|a: &Amount| (*min..=*max).contains(&a.value()))
            }
            other => mistaken(key, other),
        })
    }

    /// A law of sizes, times or numbers; says itself what is wrong with one.
    pub(crate) fn law<U>(&self, key: &str) -> Result<Option<Law<U>>, ScenarioError>
    where
        Law<U>: FromStr<Err = LawError>,
    {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let law = text.parse().map(Some);
        law.map_err(|error| self.wrong(key, &format!("is not accepted: {error}")))
    }

    /// A scheduler, or `Some(None)` for the one under test; says itself what is wrong with one.
    pub(crate) fn tested_or_scheduler(
        &self,
        key: &str,
    ) -> Result<Option<Option<Spec>>, ScenarioError> {
        match self.text(key)?.as_deref() {
            None => Ok(None),
            Some("tested") => Ok(Some(None)),
            Some(text) => self.spec(key, text).map(|spec| Some(Some(spec))),
        }
    }

    pub(crate) fn schedulers(&self, key: &str) -> Result<Option<Vec<Spec>>, ScenarioError> {
        let texts =
            self.read(key, |_, written| written.texts().filter(|texts| !texts.is_empty()))?;
        let Some(texts) = texts else { return Ok(None) };
        texts.iter().map(|text| self.spec(key, text)).collect::<Result<_, _>>().map(Some)
    }

    fn spec(&self, key: &str, text: &str) -> Result<Spec, ScenarioError> {
        text.parse().map_err(|error: sched::SpecError| {
            self.wrong(key, &format!("is not accepted: {error}"))
        })
    }

    /// An edge; says itself what is wrong with one.
    pub(crate) fn edge(&self, key: &str) -> Result<Option<EdgeSpec>, ScenarioError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let edge = text.parse().map(Some);
        edge.map_err(|error: sched::ParamError| {
            self.wrong(key, &format!("is not accepted: {error}"))
        })
    }

    /// Names: of nodes, groups, links.
    pub(crate) fn names(&self, key: &str) -> Result<Option<Vec<String>>, ScenarioError> {
        self.read(key, |_, written| {
            let texts = written.texts().filter(|texts| !texts.is_empty())?;
            Some(texts.into_iter().map(str::to_owned).collect())
        })
    }

    /// Seeds: see [`crate::seeds`].
    pub(crate) fn seeds(&self, key: &str) -> Result<Option<Vec<u64>>, ScenarioError> {
        self.read(key, |_, written| match written {
            Written::Toml(DeValue::Array(items)) => {
                let one = |item: &'a DeValue<'a>| Written::Toml(item).number()?.parse().ok();
                let seeds: Option<Vec<u64>> =
                    items.iter().map(|item| one(item.get_ref())).collect();
                crate::seeds::distinct(seeds?)
            }
            other => crate::seeds::parse(&other.text().map(str::to_owned).or(other.number())?),
        })
    }
}
