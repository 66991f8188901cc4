//! Disciplines as the command line names them.

use sched::{Amount, Spec, SpecError};

use crate::Failure;

/// The disciplines that are named, or `defaults`; one that is given no limit has this one.
pub(crate) fn parse(
    named: &[String],
    defaults: &[&'static str],
    limit: Amount,
) -> Result<Vec<Spec>, Failure> {
    let names: Vec<&str> = if named.is_empty() {
        defaults.to_vec()
    } else {
        named.iter().map(String::as_str).collect()
    };
    let limit = limit.to_string();
    let parse = |name: &&str| name.parse::<Spec>()?.with_default("limit", &limit);
    let specs: Result<Vec<Spec>, SpecError> = names.iter().map(parse).collect();
    specs.map_err(|error| Failure::Usage(error.to_string()))
}
