//! Lists of datagrams: when each is sent, its size, and the stream that it belongs to.

use std::io::Read;

use units::Nanos;

use crate::csv_table::{CsvError, Table};

/// One datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// When it is sent, from the start of the run on.
    pub time: Nanos,
    /// Its size, IP headers included.
    pub packet_bytes: u32,
    /// Its stream.
    pub stream: u64,
}

/// Datagrams in the order in which they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatagramList(Vec<Datagram>);

const DATAGRAMS: Table = Table { what: "datagrams", columns: "time_s,packet_bytes,stream" };

impl DatagramList {
    /// Puts datagrams in the order of their times; those of one time stay in order.
    #[must_use]
    pub fn new(mut datagrams: Vec<Datagram>) -> Self {
        datagrams.sort_by_key(|datagram| datagram.time);
        Self(datagrams)
    }

    /// The datagrams, in the order in which they are sent.
    #[must_use]
    pub fn datagrams(&self) -> &[Datagram] {
        &self.0
    }

    /// Reads `time_s,packet_bytes,stream` (decimal seconds, bytes on the wire, any whole number)
    /// with that header line; lines may come in any order, `#` starts a comment. `file` names
    /// the source in errors.
    ///
    /// # Errors
    /// Names the line and column of the first value that is not accepted.
    pub fn from_csv(input: impl Read, file: &str) -> Result<Self, CsvError> {
        let datagrams = DATAGRAMS.read(input, file, |line| {
            let time = line.time(0)?;
            let packet_bytes = line.number(1, 1..=65_535, "whole bytes, 1 to 65535")? as u32;
            let stream = line.number(2, 0..=u64::MAX, "a whole number")?;
            Ok(Datagram { time, packet_bytes, stream })
        })?;
        Ok(Self::new(datagrams))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DatagramList, CsvError> {
        DatagramList::from_csv(text.as_bytes(), "d.csv")
    }

    #[test]
    fn datagrams_are_read_and_sorted() {
        let list = read("time_s,packet_bytes,stream\n0.5,1500,7\n0.001,40,2\n0.5,41,7\n").unwrap();
        let expected = [(1_000_000, 40, 2), (500_000_000, 1500, 7), (500_000_000, 41, 7)];
        let expected = expected.map(|(ns, packet_bytes, stream)| Datagram {
            time: Nanos(ns),
            packet_bytes,
            stream,
        });
        assert_eq!(list.datagrams(), expected);
    }

    #[test]
    fn errors_say_where_what_was_found_and_what_is_accepted() {
        let header = "time_s,packet_bytes,stream\n";
        let cases = [
            (
                "start_s,size_bytes\n0,1\n",
                "d.csv:1: columns are 'start_s,size_bytes'; accepted is 'time_s,packet_bytes,stream'",
            ),
            (
                "0,65536,0\n",
                "d.csv:2: column 2 (packet_bytes): found '65536'; accepted is whole bytes, 1 to 65535",
            ),
            ("0,1,-1\n", "d.csv:2: column 3 (stream): found '-1'; accepted is a whole number"),
            ("0,1\n", "d.csv:2: 2 columns; accepted are 3: time_s,packet_bytes,stream"),
            ("", "d.csv: no datagrams; at least one line of time_s,packet_bytes,stream is needed"),
        ];
        for (lines, message) in cases {
            let text =
                if lines.contains("start") { lines.into() } else { format!("{header}{lines}") };
            assert_eq!(read(&text).unwrap_err().to_string(), message, "{text}");
        }
    }
}
