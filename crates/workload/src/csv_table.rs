//! Lists in CSV files: a line of column names, and at least one line more.

use std::io::Read;

use units::Nanos;

/// Why a file was refused: where, what was found, and what is accepted.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The first line does not name the columns.
    #[error("{file}:1: columns are '{found}'; accepted is '{accepted}'")]
    Header {
        /// The file.
        file: String,
        /// Its first line.
        found: String,
        /// The columns.
        accepted: &'static str,
    },
    /// A value is malformed or out of range.
    #[error("{file}:{line}: column {column} ({name}): found '{found}'; accepted is {accepted}")]
    Value {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: usize,
        /// The column's name.
        name: &'static str,
        /// What stands there.
        found: String,
        /// What it accepts.
        accepted: &'static str,
    },
    /// A line has more or fewer columns than the first.
    #[error("{file}:{line}: {found} columns; accepted are {}: {accepted}", accepted.split(',').count())]
    Columns {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// How many columns it has.
        found: usize,
        /// The columns.
        accepted: &'static str,
    },
    /// The file has nothing but its first line.
    #[error("{file}: no {what}; at least one line of {accepted} is needed")]
    Empty {
        /// The file.
        file: String,
        /// What is missing.
        what: &'static str,
        /// The columns.
        accepted: &'static str,
    },
    /// The file could not be read, or is not text.
    #[error("{file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: csv::Error,
    },
}

/// Starts within this many seconds.
const LATEST_S: f64 = 30.0 * 86_400.0;

/// A kind of list.
pub(crate) struct Table {
    /// What its lines are.
    pub(crate) what: &'static str,
    /// Its first line.
    pub(crate) columns: &'static str,
}

impl Table {
    /// Reads all lines; `#` starts a comment. `file` names the source in errors.
    pub(crate) fn read<T>(
        &self,
        input: impl Read,
        file: &str,
        parse: impl Fn(&Line<'_>) -> Result<T, CsvError>,
    ) -> Result<Vec<T>, CsvError> {
        let accepted = self.columns;
        let names: Vec<&'static str> = accepted.split(',').collect();
        let unreadable = |source| CsvError::Unreadable { file: file.to_string(), source };
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .flexible(true)
            .from_reader(input);
        let header = reader.headers().map_err(unreadable)?;
        if header.iter().ne(names.iter().copied()) {
            let found = header.iter().collect::<Vec<_>>().join(",");
            return Err(CsvError::Header { file: file.to_string(), found, accepted });
        }
        let mut items = Vec::new();
        for record in reader.records() {
            let record = record.map_err(unreadable)?;
            let number = record.position().map_or(0, csv::Position::line);
            if record.len() != names.len() {
                let (file, found) = (file.to_string(), record.len());
                return Err(CsvError::Columns { file, line: number, found, accepted });
            }
            items.push(parse(&Line { file, number, names: &names, record: &record })?);
        }
        if items.is_empty() {
            return Err(CsvError::Empty { file: file.to_string(), what: self.what, accepted });
        }
        Ok(items)
    }
}

/// A line with as many columns as there are names.
pub(crate) struct Line<'a> {
    file: &'a str,
    number: u64,
    names: &'a [&'static str],
    record: &'a csv::StringRecord,
}

impl Line<'_> {
    /// Seconds; columns count from 0.
    pub(crate) fn time(&self, column: usize) -> Result<Nanos, CsvError> {
        let time: Option<f64> = self.record[column].parse().ok();
        let time = time.filter(|s| (0.0..=LATEST_S).contains(s));
        let time = time.ok_or_else(|| self.refused(column, "seconds from 0 to 2592000"))?;
        Ok(Nanos((time * 1e9).round() as u64))
    }

    /// A whole number that is accepted.
    pub(crate) fn number(
        &self,
        column: usize,
        range: std::ops::RangeInclusive<u64>,
        accepted: &'static str,
    ) -> Result<u64, CsvError> {
        let number: Option<u64> = self.record[column].parse().ok();
        number.filter(|n| range.contains(n)).ok_or_else(|| self.refused(column, accepted))
    }

    fn refused(&self, column: usize, accepted: &'static str) -> CsvError {
        CsvError::Value {
            file: self.file.to_string(),
            line: self.number,
            column: column + 1,
            name: self.names[column],
            found: self.record[column].to_string(),
            accepted,
        }
    }
}
