//! The last ten minutes, as texts that are made once and shared by all pages.

use std::collections::VecDeque;

use hyper::body::Bytes;

/// How far it goes back, in milliseconds.
pub(super) const KEPT_MS: u64 = 10 * 60 * 1000;
/// Bytes that it holds at most: a device with a qdisc for each of many queues goes back less far.
const MOST_BYTES: usize = 16 << 20;

/// Looks, oldest first, numbered from 0.
#[derive(Default)]
pub(super) struct History {
    samples: VecDeque<(u64, Bytes)>,
    /// Number of the oldest that is left.
    first: u64,
    bytes: usize,
}

impl History {
    /// Takes the look of this moment, and forgets what is too long ago.
    pub(super) fn push(&mut self, at_ms: u64, sample: Bytes) {
        self.bytes += sample.len();
        self.samples.push_back((at_ms, sample));
        while let Some((oldest, sample)) = self.samples.front() {
            if at_ms.saturating_sub(*oldest) <= KEPT_MS && self.bytes <= MOST_BYTES {
                break;
            }
            self.bytes -= sample.len();
            self.first += 1;
            self.samples.pop_front();
        }
    }

    /// Looks from this number on, as many as there is room for and one at least, and the number
    /// that comes next. Whoever has fallen behind misses what is forgotten.
    pub(super) fn since(&self, number: u64, room: usize) -> (Vec<Bytes>, u64) {
        let mut next = number.max(self.first);
        let skip = usize::try_from(next - self.first).unwrap_or(usize::MAX);
        let mut taken = Vec::new();
        let mut bytes = 0;
        for (_, sample) in self.samples.iter().skip(skip) {
            bytes += sample.len();
            if bytes > room && !taken.is_empty() {
                break;
            }
            taken.push(sample.clone());
            next += 1;
        }
        (taken, next)
    }

    /// The number that comes next.
    pub(super) fn end(&self) -> u64 {
        self.first + self.samples.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(looks: u64, bytes: usize) -> History {
        let mut history = History::default();
        let sample = Bytes::from(vec![b'x'; bytes]);
        (0..looks).for_each(|look| history.push(look * 250, sample.clone()));
        history
    }

    #[test]
    fn it_keeps_ten_minutes() {
        let history = after(10_000, 10);
        assert_eq!((history.samples.len(), history.bytes), (2401, 24_010));
        assert_eq!(history.end(), 10_000);
    }

    #[test]
    fn it_keeps_less_of_what_is_big() {
        let history = after(100, 1 << 20);
        assert_eq!((history.samples.len(), history.bytes), (16, MOST_BYTES));
        // Even what is bigger than all that it may hold does not stay.
        assert_eq!(after(3, MOST_BYTES + 1).bytes, 0);
    }

    #[test]
    fn who_reads_gets_each_look_once_and_misses_what_is_forgotten() {
        let history = after(3000, 10);
        let (taken, next) = history.since(0, 100);
        assert_eq!((taken.len(), next), (10, 609));
        let (taken, next) = history.since(2998, 100);
        assert_eq!((taken.len(), next), (2, 3000));
        assert_eq!(history.since(next, 100), (Vec::new(), 3000));
        let (taken, _) = history.since(2998, 0);
        assert_eq!(taken.len(), 1, "else it would never end");
    }
}
