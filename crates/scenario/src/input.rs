//! Sources of a scenario's text: a file, a ready scenario, values.

use std::path::{Path, PathBuf};

use crate::error::ScenarioError;
use crate::library;
use crate::scenario::{Overrides, Scenario};

/// The text of a scenario, and where it was found.
#[derive(Clone, Debug)]
pub struct Input {
    /// The text.
    pub text: String,
    /// What errors call it.
    pub file: String,
    /// Where the files that it names are looked for.
    pub directory: Option<PathBuf>,
}

impl Input {
    /// A file, or else a ready scenario.
    ///
    /// # Errors
    /// Says what was found and what is accepted.
    pub fn read(path: &Path) -> Result<Self, String> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let directory = path.parent().map(Path::to_path_buf);
                Ok(Self { text, file, directory })
            }
            Err(error) => library::find(&file).map(Self::from).ok_or_else(|| {
                format!(
                    "{file}: {error}; it takes a scenario file, or a ready scenario: {}",
                    library::ALL.iter().map(|r| r.name).collect::<Vec<_>>().join(", ")
                )
            }),
        }
    }

    /// The scenario, read and checked.
    ///
    /// # Errors
    /// Those of [`Scenario::parse`].
    pub fn scenario(&self, overrides: &Overrides) -> Result<Scenario, ScenarioError> {
        Scenario::parse(&self.text, &self.file, self.directory.as_deref(), overrides)
    }
}

impl From<&library::Ready> for Input {
    fn from(ready: &library::Ready) -> Self {
        Self { text: ready.text.into(), file: ready.name.into(), directory: None }
    }
}
