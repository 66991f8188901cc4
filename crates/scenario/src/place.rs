//! Where something stands in the text of a scenario, for an engine that cannot run it.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::error::ScenarioError;
use crate::reader::{self, Source};
use crate::scenario::Scenario;

impl Scenario {
    /// The refusal of what stands under `path`, such as `topology.bottleneck.loss` or
    /// `traffic[2].kind`; what is not written stands for the table around it. `what` continues it.
    #[must_use]
    pub fn refuse(&self, path: &str, what: &str) -> ScenarioError {
        let source = Source::new(&self.file, &self.text);
        let Ok(document) = reader::parse(&source) else {
            return ScenarioError::new(&self.file, format!("{path} {what}"));
        };
        let (span, value) = find(document.get_ref(), path);
        let found = match value {
            Some(DeValue::Table(_) | DeValue::Array(_)) | None => path.to_owned(),
            Some(_) => format!("{path} = {}", source.found(&span)),
        };
        source.error(&span, format!("{found} {what}"))
    }

    /// The keys that are written in the table under `path`; none where there is no such table.
    #[must_use]
    pub fn keys(&self, path: &str) -> Vec<String> {
        let source = Source::new(&self.file, &self.text);
        let Ok(document) = reader::parse(&source) else { return Vec::new() };
        match find(document.get_ref(), path).1 {
            Some(DeValue::Table(table)) => {
                table.keys().map(|key| key.get_ref().to_string()).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What stands under a path, if it is written, and where it or the last table on the way to it is.
fn find<'t, 'a>(root: &'t DeTable<'a>, path: &str) -> (Range<usize>, Option<&'t DeValue<'a>>) {
    let (mut span, mut table, mut value) = (0..0, Some(root), None);
    for part in path.split('.') {
        let (key, place) = match part.split_once('[') {
            Some((key, place)) => (key, place.trim_end_matches(']').parse::<usize>().ok()),
            None => (part, None),
        };
        let Some(mut next) = table.and_then(|table| table.get(key)) else { return (span, None) };
        if let (Some(place), DeValue::Array(items)) = (place, next.get_ref()) {
            let Some(item) = items.get(place) else { return (span, None) };
            next = item;
        }
        span = next.span();
        table = next.get_ref().as_table();
        value = Some(next.get_ref());
    }
    (span, value)
}
