//! The file of measurements: a row per value, so that the simulator can be set against them again
//! without measuring again.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::case::Case;
use crate::outcome::Outcome;

/// Writes measurements as they come.
pub struct Writer(File);

impl Writer {
    /// Begins a file with lines of comment.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, comments: &[String]) -> io::Result<Self> {
        let mut writer = Self(File::create(path)?);
        comments.iter().try_for_each(|text| writer.comment(text))?;
        writeln!(writer.0, "case,round,value,is")?;
        Ok(writer)
    }

    /// Adds a line of comment.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn comment(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.0, "# {text}")
    }

    /// Adds a round, whole.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn round(&mut self, case: &Case, round: u64, outcome: &Outcome) -> io::Result<()> {
        let mut rows = csv::Writer::from_writer(Vec::new());
        for (name, value) in outcome.values(&case.work(round)) {
            let value = value.map_or(String::new(), |value| value.to_string());
            rows.write_record([&case.name, &round.to_string(), &name, &value])?;
        }
        self.0.write_all(&rows.into_inner().map_err(|error| error.into_error())?)
    }
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Lines of comment.
    pub comments: Vec<String>,
    /// By case and round.
    pub rounds: BTreeMap<(String, u64), Outcome>,
}

impl Measured {
    /// Reads a file of measurements of these cases.
    ///
    /// # Errors
    /// With what is wrong with it.
    pub fn read(text: &str, cases: &[Case]) -> Result<Self, String> {
        let mut values: BTreeMap<(String, u64), HashMap<String, Option<f64>>> = BTreeMap::new();
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
        for row in reader.deserialize() {
            let (case, round, name, value): (String, u64, String, Option<f64>) =
                row.map_err(|error| error.to_string())?;
            values.entry((case, round)).or_default().insert(name, value);
        }
        let comments = text.lines().filter_map(|line| line.strip_prefix("# "));
        let mut measured =
            Self { comments: comments.map(String::from).collect(), ..Self::default() };
        for ((name, round), values) in values {
            let case = cases.iter().find(|case| case.name == name);
            let case = case.ok_or_else(|| format!("there is no case '{name}' any more"))?;
            let value = |name: &str| values.get(name).copied();
            let outcome = Outcome::from_values(&case.work(round), value)
                .map_err(|error| format!("{name}, round {round}: {error}"))?;
            measured.rounds.insert((name, round), outcome);
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_what_does_not_fit_is_refused() {
        let cases = Case::all();
        let case = &cases[0];
        let outcome = Outcome { goodput_bps: vec![9.5e6], loss: 0.25, ..Outcome::default() };
        let directory =
            std::env::temp_dir().join(format!("shortlane-linux-{}", std::process::id()));
        let mut writer = Writer::create(&directory, &["a machine".to_owned()]).expect("a file");
        writer.round(case, 3, &outcome).expect("a round");
        writer.comment("1 void").expect("a comment");
        let text = std::fs::read_to_string(&directory).expect("the file");
        std::fs::remove_file(&directory).expect("the file goes");
        let read = Measured::read(&text, &cases).expect("it fits");
        assert_eq!(read.comments, ["a machine", "1 void"]);
        assert_eq!(read.rounds[&(case.name.clone(), 3)], outcome);
        let error = Measured::read(&text, &cases[1..]).expect_err("not one of these");
        assert!(error.contains(&case.name), "{error}");
        let error = Measured::read(&text.replace("loss", "lost"), &cases).expect_err("no loss");
        assert!(error.ends_with("round 3: there is no 'loss'"), "{error}");
    }
}
