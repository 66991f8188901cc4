//! Disciplines as the command line names them.

use sched::{Amount, Spec, SpecError};

/// The disciplines that are compared if none is named.
pub const DEFAULT: [&str; 6] = ["fifo", "fq-codel", "cake", "las", "efd", "fq-lanes"];

/// The disciplines that are named, or `defaults`; one that is given no limit has this one.
///
/// # Errors
/// Says which name, parameter or value is not accepted, and what is.
pub fn parse(
    named: &[String],
    defaults: &[&'static str],
    limit: Amount,
) -> Result<Vec<Spec>, SpecError> {
    let names: Vec<&str> = if named.is_empty() {
        defaults.to_vec()
    } else {
        named.iter().map(String::as_str).collect()
    };
    let limit = limit.to_string();
    let parse = |name: &&str| name.parse::<Spec>()?.with_default("limit", &limit);
    names.iter().map(parse).collect()
}
