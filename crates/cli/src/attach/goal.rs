//! The rate that is asked for: a fixed one, or one that follows the link.

use std::fmt;

use engine::Bounds;
use sched::Rate;

use super::link;

/// What the rate of a direction is to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    Fixed(Rate),
    Auto(Bounds),
}

/// Reads the value of `--rate`.
pub(super) fn read(text: &str) -> Result<Goal, String> {
    match text.strip_prefix("auto") {
        Some(rest) => {
            let bounds = rest.strip_prefix(':').unwrap_or_default().parse::<Bounds>();
            bounds.map(Goal::Auto).map_err(|error| error.to_string())
        }
        None => link::rate(text)
            .map(Goal::Fixed)
            .map_err(|accepted| format!("{accepted}, or auto:FLOOR..BASE..CEILING")),
    }
}

impl Goal {
    /// The rate to begin with.
    pub(super) fn rate(self) -> Rate {
        match self {
            Self::Fixed(rate) => rate,
            Self::Auto(bounds) => bounds.base(),
        }
    }

    /// The highest that it may become.
    pub(super) fn most(self) -> Rate {
        match self {
            Self::Fixed(rate) => rate,
            Self::Auto(bounds) => bounds.ceiling(),
        }
    }

    /// The rate, if it is to stay.
    pub(super) fn fixed(self) -> Option<Rate> {
        match self {
            Self::Fixed(rate) => Some(rate),
            Self::Auto(_) => None,
        }
    }

    /// Between which rates it follows the link, if it does.
    pub(super) fn bounds(self) -> Option<Bounds> {
        match self {
            Self::Fixed(_) => None,
            Self::Auto(bounds) => Some(bounds),
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(rate) => rate.fmt(f),
            Self::Auto(bounds) => write!(f, "auto:{bounds}"),
        }
    }
}
