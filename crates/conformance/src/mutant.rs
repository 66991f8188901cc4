//! The mutants of `mutants.txt`: changes that break a rule, which the suite must notice.

use std::fs;
use std::path::PathBuf;

/// A change of one file that breaks a rule.
pub struct Mutant {
    /// A word for it.
    pub name: String,
    /// What is wrong then.
    pub effect: String,
    /// The file, from the root of the workspace.
    pub file: PathBuf,
    original: String,
    mutated: String,
}

impl Mutant {
    /// `source` with the change.
    ///
    /// # Errors
    /// If what is to be replaced does not occur exactly once.
    pub fn apply(&self, source: &str) -> Result<String, String> {
        match source.matches(&self.original).count() {
            1 => Ok(source.replace(&self.original, &self.mutated)),
            count => {
                let (name, file) = (&self.name, self.file.display());
                Err(format!("{name}: what it replaces is {count} times in {file}, not once"))
            }
        }
    }
}

/// Every mutant.
///
/// # Errors
/// If the file cannot be read.
pub fn all() -> Result<Vec<Mutant>, String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/mutants.txt");
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let blocks = text.split("\n== ").skip(1);
    blocks.map(|block| read(block).ok_or_else(|| format!("cannot read: {block}"))).collect()
}

fn read(block: &str) -> Option<Mutant> {
    let (title, rest) = block.split_once('\n')?;
    let (name, effect) = title.split_once(": ")?;
    let (file, change) = rest.split_once('\n')?;
    let lines = |sign: char| {
        let lines: Vec<_> = change.lines().filter_map(|line| line.strip_prefix(sign)).collect();
        lines.join("\n")
    };
    Some(Mutant {
        name: name.to_owned(),
        effect: effect.to_owned(),
        file: file.into(),
        original: lines('-'),
        mutated: lines('+'),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_mutant_applies_to_the_file_as_it_is() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mutants = all().expect("mutants");
        assert!(mutants.len() > 100, "{}", mutants.len());
        for mutant in mutants {
            let source = fs::read_to_string(root.join(&mutant.file)).expect("a source file");
            let mutated = mutant.apply(&source).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(mutated, source, "{}", mutant.name);
        }
    }
}
