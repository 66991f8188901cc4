//! Transfers from a CSV file of `start_s,size_bytes`.

use std::io::Read;

use crate::csv_table::{CsvError, Table};
use crate::transfers::{Transfer, TransferList};

const TRANSFERS: Table = Table { what: "transfers", columns: "start_s,size_bytes" };

impl TransferList {
    /// Reads `start_s,size_bytes` (decimal seconds, whole bytes) with that header line; lines may
    /// come in any order, `#` starts a comment. `file` names the source in errors.
    ///
    /// # Errors
    /// Names the line and column of the first value that is not accepted.
    pub fn from_csv(input: impl Read, file: &str) -> Result<Self, CsvError> {
        let transfers = TRANSFERS.read(input, file, |line| {
            let start = line.time(0)?;
            let size_bytes = line.number(1, 1..=1 << 50, "whole bytes, 1 to 2^50")?;
            Ok(Transfer { start, size_bytes })
        })?;
        Ok(Self::new(transfers))
    }
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;

    fn read(text: &str) -> Result<TransferList, CsvError> {
        TransferList::from_csv(text.as_bytes(), "t.csv")
    }

    #[test]
    fn transfers_are_read_and_sorted() {
        let list = read("start_s,size_bytes\n# a comment\n1.5,20000\n0.25, 1\n1.5,3\n").unwrap();
        let expected = [(250_000_000, 1), (1_500_000_000, 20_000), (1_500_000_000, 3)];
        let expected = expected.map(|(ns, size_bytes)| Transfer { start: Nanos(ns), size_bytes });
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
