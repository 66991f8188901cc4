//! Readers that are private, for fuzzing.

use sched::Nanos;

use crate::rate_trace;

/// Reads rates over time, which hold until `end`.
///
/// # Errors
/// Those of a scenario that names such a file.
pub fn rate_trace(text: &str, file: &str, end: Nanos) -> Result<(), String> {
    rate_trace::parse(text, file, end).map(|_| ())
}
