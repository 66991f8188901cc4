//! Keys of a scenario: defined once, with unit, range, default and meaning. The reader, error
//! messages and the reference in the documentation all derive from the definitions.

use std::fmt;

use sched::{Amount, Nanos, Rate};

/// A table of a scenario, and the keys it takes.
#[derive(Debug)]
pub(crate) struct Section {
    /// Its heading in the reference, such as `[topology]`.
    pub(crate) title: &'static str,
    /// What it is for.
    pub(crate) about: &'static str,
    /// The keys, in the order of the reference; several sections share some lists.
    pub(crate) keys: &'static [&'static [KeyDef]],
}

impl Section {
    /// The definition of a key.
    ///
    /// # Panics
    /// If there is none: a mistake in the code that reads, not in a scenario.
    pub(crate) fn key(&self, name: &str) -> &'static KeyDef {
        let found = self.defs().find(|def| def.name == name);
        found.unwrap_or_else(|| panic!("{} defines no key {name}", self.title))
    }

    /// Every key.
    pub(crate) fn defs(&self) -> impl Iterator<Item = &'static KeyDef> + use<> {
        self.keys.iter().copied().flatten()
    }
}

/// The definition of a key.
#[derive(Debug)]
pub(crate) struct KeyDef {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) takes: Takes,
    /// What holds where it is not given.
    pub(crate) default: Default,
    /// What it means, in a line or two.
    pub(crate) meaning: &'static str,
}

/// What holds where a key is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Default {
    /// It must be given.
    Needed,
    /// This value, as it would be written.
    Is(&'static str),
    /// Nothing, or something that other keys decide: in words.
    Words(&'static str),
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Takes {
    /// Any text.
    Text,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Count {
        /// Least value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A number.
    Number {
        /// Least value, itself not accepted if `open`.
        min: f64,
        /// Largest value.
        max: f64,
        /// Whether `min` itself is refused.
        open: bool,
    },
    /// A rate.
    Rate {
        /// Least value.
        min: Rate,
        /// Largest value.
        max: Rate,
    },
    /// A time.
    Time {
        /// Least value.
        min: Nanos,
        /// Largest value.
        max: Nanos,
        /// Whether `"inf"` is accepted.
        unlimited: bool,
    },
    /// Bytes.
    Bytes {
        /// Least value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// Packets or bytes.
    Amount {
        /// Least value, of packets or of bytes.
        min: u64,
        /// Largest value, of packets or of bytes.
        max: u64,
    },
    /// A law of sizes.
    Law,
    /// A law of times.
    TimeLaw,
    /// A law of numbers.
    CountLaw,
    /// A scheduler with its parameters, or one of these words.
    Scheduler(&'static [&'static str]),
    /// A list of schedulers.
    Schedulers,
    /// Seeds.
    Seeds,
    /// A node or group of nodes, or a list of these.
    Places,
    /// A list of nodes.
    Path,
    /// The path of a file, from the directory of the scenario.
    File,
    /// A table with keys of its own.
    Table(&'static Section),
    /// A list of tables.
    Tables(&'static Section),
}

impl Takes {
    /// The same for a column of a table.
    pub(crate) fn in_reference(&self) -> String {
        match self {
            Self::Table(_) => "a table".into(),
            Self::Tables(_) => "a list of tables".into(),
            Self::Schedulers => "a list of schedulers".into(),
            Self::Law => "a [size law](#size-laws)".into(),
            Self::TimeLaw => "a [law of times](#laws-of-times-and-numbers)".into(),
            Self::CountLaw => "a [law of numbers](#laws-of-times-and-numbers)".into(),
            other => other.to_string(),
        }
    }
}

impl Takes {
    /// The kind of value, in a word.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Word(_) => "word",
            Self::Flag => "flag",
            Self::Count { .. } => "count",
            Self::Number { .. } => "number",
            Self::Rate { .. } => "rate",
            Self::Time { .. } => "time",
            Self::Bytes { .. } => "bytes",
            Self::Amount { .. } => "amount",
            Self::Law | Self::TimeLaw | Self::CountLaw => "law",
            Self::Scheduler(_) => "scheduler",
            Self::Schedulers => "schedulers",
            Self::Seeds => "seeds",
            Self::Places => "places",
            Self::Path => "path",
            Self::File => "file",
            Self::Table(_) => "table",
            Self::Tables(_) => "tables",
        }
    }

    /// The words that are accepted, where only some are.
    pub(crate) const fn words(&self) -> &'static [&'static str] {
        if let Self::Word(words) = self { words } else { &[] }
    }

    /// The section of tables.
    pub(crate) const fn section(&self) -> Option<&'static Section> {
        match self {
            Self::Table(section) | Self::Tables(section) => Some(section),
            _ => None,
        }
    }
}

/// What is accepted, in words: the end of every error message.
impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Text => f.write_str("text"),
            Self::Word(words) => f.write_str(&quoted(words)),
            Self::Flag => f.write_str("true or false"),
            Self::Count { min, max } => write!(f, "a whole number, {min} to {max}"),
            Self::Number { min, max, open: true } => {
                write!(f, "a number above {min}, at most {max}")
            }
            Self::Number { min, max, open: false } => write!(f, "a number, {min} to {max}"),
            Self::Rate { min, max } => {
                write!(f, "\"{}\" to \"{}\"", min, max)
            }
            Self::Time { min, max, unlimited } => {
                write!(f, "\"{}\" to \"{}\"", min, max)?;
                if unlimited { f.write_str(", or \"inf\"") } else { Ok(()) }
            }
            Self::Bytes { min, max } => {
                let (min, max) = (Amount::Bytes(min), Amount::Bytes(max));
                write!(f, "\"{min}\" to \"{max}\"")
            }
            Self::Amount { min, max } => {
                write!(f, "\"{min}packets\" to \"{max}packets\", or as many b, kb, mb")
            }
            Self::Law => f.write_str("a size law, such as \"exponential:mean=100kb\""),
            Self::TimeLaw => f.write_str("a law of times, such as \"exponential:mean=5s\""),
            Self::CountLaw => f.write_str("a law of numbers, such as \"uniform:min=2,max=7\""),
            Self::Scheduler(words) => {
                if !words.is_empty() {
                    write!(f, "{}, or ", quoted(words))?;
                }
                f.write_str("a scheduler, such as \"fifo\" or \"efd:threshold=20packets\"")
            }
            Self::Schedulers => {
                f.write_str("a list of schedulers, such as [\"fifo\", \"efd:threshold=20packets\"]")
            }
            Self::Seeds => f.write_str(
                "one seed such as 7, a range such as \"1..10\", or a list such as [1, 2]",
            ),
            Self::Places => f.write_str("a node or a group of nodes, or a list of these"),
            Self::Path => f.write_str("a list of at least two nodes, each joined to the next"),
            Self::File => f.write_str("the path of a file, from the directory of the scenario"),
            Self::Table(section) => write!(f, "a table: {}", names(section)),
            Self::Tables(section) => write!(f, "a list of tables: {}", names(section)),
        }
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

/// The names of a section's keys.
pub(crate) fn names(section: &Section) -> String {
    section.defs().map(|def| def.name).collect::<Vec<_>>().join(", ")
}
