//! Transfers from a CSV file of `start_s,size_bytes`.

use std::io::Read;

use crate::transfers::{Transfer, TransferList};

/// Why a file of transfers was refused: where, what was found, and what is accepted.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The first line does not name the columns.
    #[error("{file}:1: columns are '{found}'; accepted is 'start_s,size_bytes'")]
    Header {
        /// The file.
        file: String,
        /// Its first line.
        found: String,
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
    /// A line has more or fewer than two columns.
    #[error("{file}:{line}: {found} columns; accepted are 2: start_s,size_bytes")]
    Columns {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// How many columns it has.
        found: usize,
    },
    /// The file names no transfer.
    #[error("{file}: no transfers; at least one line of start_s,size_bytes is needed")]
    Empty {
        /// The file.
        file: String,
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

const LATEST_S: f64 = 30.0 * 86_400.0;
const LARGEST: u64 = 1 << 50;

impl TransferList {
    /// Reads `start_s,size_bytes` (decimal seconds, whole bytes) with that header line; lines may
    /// come in any order, `#` starts a comment. `file` names the source in errors.
    ///
    /// # Errors
    /// Names the line and column of the first value that is not accepted.
    pub fn from_csv(input: impl Read, file: &str) -> Result<Self, CsvError> {
        let unreadable = |source| CsvError::Unreadable { file: file.to_string(), source };
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .flexible(true)
            .from_reader(input);
        let header = reader.headers().map_err(unreadable)?;
        if header.iter().ne(["start_s", "size_bytes"]) {
            let found = header.iter().collect::<Vec<_>>().join(",");
            return Err(CsvError::Header { file: file.to_string(), found });
        }
        let mut transfers = Vec::new();
        for record in reader.records() {
            transfers.push(transfer(&record.map_err(unreadable)?, file)?);
        }
        if transfers.is_empty() {
            return Err(CsvError::Empty { file: file.to_string() });
        }
        Ok(Self::new(transfers))
    }
}

fn transfer(record: &csv::StringRecord, file: &str) -> Result<Transfer, CsvError> {
    let line = record.position().map_or(0, csv::Position::line);
    if record.len() != 2 {
        return Err(CsvError::Columns { file: file.to_string(), line, found: record.len() });
    }
    let refused = |column, name, accepted| CsvError::Value {
        file: file.to_string(),
        line,
        column,
        name,
        found: record[column - 1].to_string(),
        accepted,
    };
    let start: Option<f64> = record[0].parse().ok().filter(|s| (0.0..=LATEST_S).contains(s));
    let start = start.ok_or_else(|| refused(1, "start_s", "seconds from 0 to 2592000"))?;
    let size: Option<u64> = record[1].parse().ok().filter(|n| (1..=LARGEST).contains(n));
    let size_bytes = size.ok_or_else(|| refused(2, "size_bytes", "whole bytes, 1 to 2^50"))?;
    Ok(Transfer { start_ns: (start * 1e9).round() as u64, size_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TransferList, CsvError> {
        TransferList::from_csv(text.as_bytes(), "t.csv")
    }

    #[test]
    fn transfers_are_read_and_sorted() {
        let list = read("start_s,size_bytes\n# a comment\n1.5,20000\n0.25, 1\n1.5,3\n").unwrap();
        let expected = [(250_000_000, 1), (1_500_000_000, 20_000), (1_500_000_000, 3)];
        let expected = expected.map(|(start_ns, size_bytes)| Transfer { start_ns, size_bytes });
        assert_eq!(list.transfers(), expected);
    }

    #[test]
    fn errors_name_file_line_column_what_was_found_and_what_is_accepted() {
        let cases = [
            ("", "t.csv:1: columns are ''; accepted is 'start_s,size_bytes'"),
            ("size,start\n", "t.csv:1: columns are 'size,start'; accepted is 'start_s,size_bytes'"),
            (
                "start_s,size_bytes\n0,5\n-1,5\n",
                "t.csv:3: column 1 (start_s): found '-1'; accepted is seconds from 0 to 2592000",
            ),
            (
                "start_s,size_bytes\nNaN,5\n",
                "t.csv:2: column 1 (start_s): found 'NaN'; accepted is seconds from 0 to 2592000",
            ),
            (
                "start_s,size_bytes\n0,0\n",
                "t.csv:2: column 2 (size_bytes): found '0'; accepted is whole bytes, 1 to 2^50",
            ),
            (
                "start_s,size_bytes\n0,20kb\n",
                "t.csv:2: column 2 (size_bytes): found '20kb'; accepted is whole bytes, 1 to 2^50",
            ),
            (
                "start_s,size_bytes\n0,1,2\n",
                "t.csv:2: 3 columns; accepted are 2: start_s,size_bytes",
            ),
            (
                "start_s,size_bytes\n",
                "t.csv: no transfers; at least one line of start_s,size_bytes is needed",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(read(text).unwrap_err().to_string(), message, "{text}");
        }
        let binary = TransferList::from_csv(&b"start_s,size_bytes\n\xff\xfe,1\n"[..], "t.csv");
        assert!(matches!(binary, Err(CsvError::Unreadable { .. })));
    }
}
