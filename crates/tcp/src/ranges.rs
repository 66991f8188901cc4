//! A set of sequence numbers as sorted ranges that neither overlap nor touch.

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;
use std::iter::{Copied, Rev};

/// `start..end`, never empty.
pub(crate) type Range = (u64, u64);

/// The set. One range for each gap in a window is few, mostly; but a large window that overruns a
/// queue leaves thousands, of which acknowledgments take one after the other from the left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(VecDeque<Range>);

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn first(&self) -> Option<Range> {
        self.0.front().copied()
    }

    pub(crate) fn last(&self) -> Option<Range> {
        self.0.back().copied()
    }

    /// From the last to the first.
    pub(crate) fn backwards(&self) -> Copied<Rev<Iter<'_, Range>>> {
        self.0.iter().rev().copied()
    }

    /// Adds `start..end` and calls `added` for each part of it that was not there before.
    pub(crate) fn insert(&mut self, start: u64, end: u64, mut added: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        // The ranges that overlap or touch are replaced by their union.
        let first = self.0.partition_point(|r| r.1 < start);
        let mut last = first;
        let mut union = (start, end);
        let mut uncovered = start;
        while let Some(&(s, e)) = self.0.get(last)
            && s <= end
        {
            if uncovered < s {
                added(uncovered, s);
            }
            uncovered = uncovered.max(e);
            union = (union.0.min(s), union.1.max(e));
            last += 1;
        }
        if uncovered < end {
            added(uncovered, end);
        }
        if last == first {
            self.0.insert(first, union);
        } else {
            self.0[first] = union;
            if last > first + 1 {
                self.0.drain(first + 1..last);
            }
        }
    }

    /// Removes everything below `edge` and calls `removed` for each part.
    pub(crate) fn remove_below(&mut self, edge: u64, mut removed: impl FnMut(u64, u64)) {
        while let Some(first) = self.first()
            && first.1 <= edge
        {
            removed(first.0, first.1);
            self.0.pop_front();
        }
        if let Some(first) = self.0.front_mut()
            && first.0 < edge
        {
            removed(first.0, edge);
            first.0 = edge;
        }
    }

    /// The range that holds `at`.
    pub(crate) fn containing(&self, at: u64) -> Option<Range> {
        self.ending_after(at).filter(|r| r.0 <= at)
    }

    /// The first range that ends after `at`.
    pub(crate) fn ending_after(&self, at: u64) -> Option<Range> {
        self.0.get(self.0.partition_point(|r| r.1 <= at)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn touching_ranges_become_one() {
        let mut ranges = Ranges::default();
        ranges.insert(10, 20, |_, _| {});
        ranges.insert(30, 40, |_, _| {});
        let mut added = Vec::new();
        ranges.insert(20, 30, |a, b| added.push((a, b)));
        assert_eq!(ranges.0, [(10, 40)]);
        assert_eq!(added, [(20, 30)]);
        assert_eq!(ranges.containing(39), Some((10, 40)));
        assert_eq!(ranges.containing(40), None);
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_numbers(steps in proptest::collection::vec((0u64..60, 0u64..12, 0u8..5), 1..40)) {
            let mut ranges = Ranges::default();
            let mut model = BTreeSet::new();
            for (at, len, kind) in steps {
                if kind == 0 {
                    let mut removed = BTreeSet::new();
                    ranges.remove_below(at, |a, b| removed.extend(a..b));
                    let kept = model.split_off(&at);
                    prop_assert_eq!(&removed, &model);
                    model = kept;
                } else {
                    let mut added = Vec::new();
                    ranges.insert(at, at + len, |a, b| added.extend(a..b));
                    let expected: Vec<u64> =
                        (at..at + len).filter(|n| !model.contains(n)).collect();
                    prop_assert_eq!(added, expected);
                    model.extend(at..at + len);
                }
                let held: BTreeSet<u64> = ranges.0.iter().flat_map(|r| r.0..r.1).collect();
                prop_assert_eq!(&held, &model);
                prop_assert!(ranges.0.iter().zip(ranges.0.iter().skip(1)).all(|(a, b)| a.1 < b.0));
                prop_assert!(ranges.0.iter().all(|r| r.0 < r.1));
            }
        }
    }
}
