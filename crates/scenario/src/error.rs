//! Errors of a scenario: place, found, accepted.

use std::fmt;

/// A scenario was refused: one line with file, line, key, what was found and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    file: String,
    line: Option<usize>,
    what: String,
}

impl ScenarioError {
    /// About the scenario as a whole.
    pub(crate) fn new(file: &str, what: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, what: what.into() }
    }

    /// The same without its line, for a text that was made from values: whoever gave the values
    /// has never seen its lines.
    #[must_use]
    pub fn without_line(self) -> Self {
        Self { line: None, ..self }
    }

    /// About a line, counted from 1.
    pub(crate) fn at(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::new(file, what) }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

impl std::error::Error for ScenarioError {}
