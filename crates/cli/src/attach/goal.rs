//! The rate that is asked for: a fixed one, or one that follows the link.

use std::fmt;
use std::net::IpAddr;

use engine::{Bounds, Following};
use sched::Rate;

use super::link_rate;
use crate::Failure;

/// What the rate of a direction is to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    Fixed(Rate),
    Auto(Bounds),
}

/// Why no other engine takes such a rate.
pub(super) const UNFOLLOWED: &str = "a rate that follows the link (auto:...) is for --engine userspace, or auto: of the others no \
     process stays that could follow it; give them a fixed --rate, which `shortlane change` changes";

/// Reads the value of `--rate`.
pub(super) fn read(text: &str) -> Result<Goal, String> {
    match text.strip_prefix("auto") {
        Some(rest) => {
            let bounds = rest.strip_prefix(':').unwrap_or_default().parse::<Bounds>();
            bounds.map(Goal::Auto).map_err(|error| error.to_string())
        }
        None => link_rate(text)
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

    fn bounds(self) -> Option<Bounds> {
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

/// What is to be followed, if anything is.
pub(super) fn following(
    rate: Option<Goal>,
    ingress: Option<Goal>,
    probe: Option<IpAddr>,
) -> Result<Option<Following>, Failure> {
    let [egress, ingress] = [rate, ingress].map(|goal| goal.and_then(Goal::bounds));
    match (egress.or(ingress), probe) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Failure::Usage(
            "--probe is for a rate that follows the link, auto:FLOOR..BASE..CEILING".into(),
        )),
        (Some(_), None) => Err(Failure::Usage(
            "a rate that follows the link takes --probe ADDRESS: a host beyond the link that \
             answers pings, such as the provider's resolver"
                .into(),
        )),
        (Some(_), Some(probe)) => Ok(Some(Following { egress, ingress, probe })),
    }
}
