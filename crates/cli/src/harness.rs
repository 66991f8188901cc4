//! What reads bytes of others, for fuzzing.

pub use crate::top::web_harness::Web;

/// Reads the configuration file of `attach`.
///
/// # Errors
/// With what is said of it.
pub fn configuration(text: &str, file: &str) -> Result<(), String> {
    crate::config::read(text, file, None, &[])
        .map(|_| ())
        .map_err(|failure| failure.text().to_owned())
}
