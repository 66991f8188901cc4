//! Rows on disk that wait for their fates.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sched::{DropReason, Lane, Nanos};
use sim::Outcome;

use crate::events::{Arrival, Fate};

/// A queue of rows in a file without a name. Rows are appended, their fates filled in, and taken
/// from the front once they are complete.
pub(crate) struct Spool {
    file: File,
    schedulers: usize,
    /// Appended, and not in the file yet.
    pending: Vec<u8>,
    /// Length of the file.
    written: u64,
    /// Where the first row begins that was not taken.
    taken: u64,
    /// Bytes of the file from `taken` on.
    window: Vec<u8>,
    /// Where in `window` the next row begins.
    at: usize,
    /// Rows with fates that are not settled, by place among all arrivals.
    open: BTreeMap<u64, Open>,
}

struct Open {
    /// Where the row begins.
    offset: u64,
    /// Under how many schedulers its fate is not settled.
    fates: usize,
}

/// Index, arrival, size, length of the flow's name; then a fate per scheduler, then the name.
const HEAD: usize = 8 + 8 + 4 + 2;
/// Lane, outcome, departure.
const FATE: usize = 1 + 1 + 8;
const CHUNK: u64 = 1 << 20;

impl Spool {
    /// An empty spool in this directory.
    pub(crate) fn in_directory(directory: &Path, schedulers: usize) -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile_in(directory)?,
            schedulers,
            pending: Vec::new(),
            written: 0,
            taken: 0,
            window: Vec::new(),
            at: 0,
            open: BTreeMap::new(),
        })
    }

    /// Adds the row of the arrival in this place among all; [`Spool::flush`] writes it.
    pub(crate) fn append(
        &mut self,
        place: u64,
        arrival: &Arrival,
        fates: impl Iterator<Item = Fate>,
    ) {
        let offset = self.written + self.pending.len() as u64;
        let name = arrival.flow.as_bytes();
        let name = &name[..name.len().min(usize::from(u16::MAX))];
        self.pending.extend(arrival.index.to_le_bytes());
        self.pending.extend(arrival.time.0.to_le_bytes());
        self.pending.extend(arrival.size.to_le_bytes());
        self.pending.extend((name.len() as u16).to_le_bytes());
        let mut unsettled = 0;
        for fate in fates {
            unsettled += usize::from(fate.outcome == Outcome::Queued);
            self.pending.extend(encode(fate));
        }
        self.pending.extend(name);
        if unsettled > 0 {
            self.open.insert(place, Open { offset, fates: unsettled });
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.pending, self.written)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Settles a fate.
    pub(crate) fn fill_in(&mut self, place: u64, scheduler: usize, fate: Fate) -> io::Result<()> {
        let Some(row) = self.open.get_mut(&place) else { return Ok(()) };
        let offset = row.offset + (HEAD + scheduler * FATE) as u64;
        self.file.write_all_at(&encode(fate), offset)?;
        row.fates -= 1;
        if row.fates == 0 {
            self.open.remove(&place);
        }
        Ok(())
    }

    /// Takes the first row if it is complete, or in any case.
    pub(crate) fn next_row(&mut self, any: bool) -> io::Result<Option<(Arrival, Vec<Fate>)>> {
        let open = self.open.first_key_value().filter(|_| !any);
        let end = open.map_or(self.written, |(_, row)| row.offset);
        if self.taken >= end {
            return Ok(None);
        }
        let fixed = HEAD + self.schedulers * FATE;
        self.look_at(fixed, end)?;
        let name = u16::from_le_bytes(field(&self.window, self.at + 20));
        let length = fixed + usize::from(name);
        self.look_at(length, end)?;
        let row = &self.window[self.at..self.at + length];
        let arrival = Arrival {
            index: u64::from_le_bytes(field(row, 0)),
            time: Nanos(u64::from_le_bytes(field(row, 8))),
            size: u32::from_le_bytes(field(row, 16)),
            flow: String::from_utf8_lossy(&row[fixed..]).into(),
        };
        let fates = row[HEAD..fixed].chunks_exact(FATE).map(decode).collect();
        self.at += length;
        self.taken += length as u64;
        Ok(Some((arrival, fates)))
    }

    /// Has `length` bytes of the next row in memory, and none from `end` on: fates behind it may
    /// still change.
    fn look_at(&mut self, length: usize, end: u64) -> io::Result<()> {
        if self.window.len() - self.at >= length {
            return Ok(());
        }
        let available = (end - self.taken).min(CHUNK.max(length as u64)) as usize;
        self.window.resize(available, 0);
        self.at = 0;
        self.file.read_exact_at(&mut self.window, self.taken)
    }

    /// Whether all rows were taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.written
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("of this length")
}

fn encode(fate: Fate) -> [u8; FATE] {
    let (kind, departure) = match fate.outcome {
        Outcome::Departed(at) => (0, at.0),
        Outcome::Queued => (1, 0),
        Outcome::Dropped(reason) => (2 + reason as u8, 0),
    };
    let mut bytes = [0; FATE];
    bytes[0] = fate.lane.0;
    bytes[1] = kind;
    bytes[2..].copy_from_slice(&departure.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Fate {
    let outcome = match bytes[1] {
        0 => Outcome::Departed(Nanos(u64::from_le_bytes(field(bytes, 2)))),
        1 => Outcome::Queued,
        kind => Outcome::Dropped(DropReason::ALL[usize::from(kind - 2)]),
    };
    Fate { lane: Lane(bytes[0]), outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(index: u64) -> Arrival {
        Arrival {
            index, time: Nanos(index * 7), size: 100, flow: format!("flow é {index}").into()
        }
    }

    fn fate(lane: u8, outcome: Outcome) -> Fate {
        Fate { lane: Lane(lane), outcome }
    }

    #[test]
    fn rows_come_in_order_once_they_are_complete() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = Spool::in_directory(directory.path(), 2).unwrap();
        let departed = fate(0, Outcome::Departed(Nanos(u64::MAX)));
        let dropped = fate(1, Outcome::Dropped(DropReason::Congested));
        let queued = fate(1, Outcome::Queued);
        for (place, fates) in
            [[departed, dropped], [queued, queued], [dropped, departed]].into_iter().enumerate()
        {
            spool.append(place as u64, &arrival(place as u64 + 40), fates.into_iter());
        }
        spool.flush().unwrap();
        assert_eq!(spool.next_row(false).unwrap(), Some((arrival(40), vec![departed, dropped])));
        assert_eq!(spool.next_row(false).unwrap(), None);
        spool.fill_in(1, 1, dropped).unwrap();
        assert_eq!(spool.next_row(false).unwrap(), None);
        spool.append(3, &arrival(43), [queued, departed].into_iter());
        spool.flush().unwrap();
        spool.fill_in(1, 0, departed).unwrap();
        assert_eq!(spool.next_row(false).unwrap(), Some((arrival(41), vec![departed, dropped])));
        assert_eq!(spool.next_row(false).unwrap(), Some((arrival(42), vec![dropped, departed])));
        assert_eq!(spool.next_row(false).unwrap(), None);
        assert!(!spool.is_empty());
        assert_eq!(spool.next_row(true).unwrap(), Some((arrival(43), vec![queued, departed])));
        assert!(spool.is_empty());
    }
}
