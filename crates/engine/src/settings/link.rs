//! A link as an operator sets it, and changes of that: one shape for the command line, the status,
//! journals and every engine.

use sched::{Nanos, Rate};
use serde::{Deserialize, Serialize};

use crate::settings::overhead::Overhead;

/// What is set of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSettings {
    /// Its rate; unlimited: as fast as the device takes packets. A document has none then.
    #[serde(rename = "rate_bps", with = "limit")]
    pub rate: Rate,
    /// What a packet takes on it beside its own bytes: a segment of a super-packet each.
    pub overhead: Overhead,
    /// How far a late pacer may catch up.
    #[serde(rename = "burst_ns")]
    pub burst_time: Nanos,
}

/// What is to be changed of a link; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkChanges {
    /// Another rate.
    pub rate: Option<Rate>,
    /// What a packet takes on it beside its own bytes.
    pub overhead: Option<Overhead>,
    /// How far a late pacer may catch up.
    pub burst_time: Option<Nanos>,
}

impl LinkSettings {
    /// The same link with the changes.
    #[must_use]
    pub fn with(self, changes: LinkChanges) -> Self {
        Self {
            rate: changes.rate.unwrap_or(self.rate),
            overhead: changes.overhead.unwrap_or(self.overhead),
            burst_time: changes.burst_time.unwrap_or(self.burst_time),
        }
    }

    /// What has to change for this link to become that one.
    #[must_use]
    pub fn changes_to(self, other: Self) -> LinkChanges {
        LinkChanges {
            rate: (self.rate != other.rate).then_some(other.rate),
            overhead: (self.overhead != other.overhead).then_some(other.overhead),
            burst_time: (self.burst_time != other.burst_time).then_some(other.burst_time),
        }
    }
}

/// A rate as its number, which an unlimited one has not.
mod limit {
    use sched::Rate;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(rate: &Rate, to: S) -> Result<S::Ok, S::Error> {
        rate.limit().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
        Ok(Option::deserialize(from)?.map_or(Rate::UNLIMITED, Rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dsl() -> LinkSettings {
        LinkSettings {
            rate: Rate(9_000_000),
            overhead: "pppoe-ptm".parse().unwrap(),
            burst_time: Nanos::from_millis(10),
        }
    }

    #[test]
    fn what_is_not_changed_stays() {
        let changes = LinkChanges { rate: Some(Rate::UNLIMITED), ..LinkChanges::default() };
        let changed = dsl().with(changes);
        assert_eq!(changed, LinkSettings { rate: Rate::UNLIMITED, ..dsl() });
        assert_eq!(dsl().changes_to(changed), changes);
        assert_eq!(dsl().changes_to(dsl()), LinkChanges::default());
        let other = LinkSettings::default();
        assert_eq!(dsl().with(dsl().changes_to(other)), other);
    }

    #[test]
    fn documents_have_numbers_and_no_rate_where_there_is_no_limit() {
        for (link, text) in [
            (dsl(), r#"{"rate_bps":9000000,"overhead":"pppoe-ptm","burst_ns":10000000}"#),
            (LinkSettings::default(), r#"{"rate_bps":null,"overhead":"0","burst_ns":0}"#),
        ] {
            assert_eq!(serde_json::to_string(&link).unwrap(), text);
            assert_eq!(serde_json::from_str::<LinkSettings>(text).unwrap(), link);
        }
    }
}
