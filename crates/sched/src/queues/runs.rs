//! A priority queue for keys that mostly come in order.
//!
//! Fair queueing takes a flow with the least tag and puts it back with that tag plus the cost of
//! its next packet. Least tags never fall, so what is put back with one cost comes in ascending
//! order, and so does what is put in at the clock. Entries that come in order are appended to one
//! of three sorted *runs*, at constant cost and one place further in memory; the others go to a
//! heap. The order is exact whatever comes; only the cost depends on it.
//!
//! [`Heads`] is such a queue of backlogged flows. A flow whose head is pushed out leaves its entry
//! behind; it is known by not being the flow's present entry, and dropped when it comes to the top.

use alloc::vec::Vec;

use crate::queues::heap::MinHeap;

/// What stands where no entry is; larger than every entry.
const VACANT: u128 = u128::MAX;
const RUNS: usize = 3;

/// A min-queue of `u128`.
#[derive(Debug)]
pub(crate) struct Runs {
    /// The least entry of every run, and of the heap.
    fronts: [u128; RUNS + 1],
    /// The largest entry of every run; 0 where it is empty.
    backs: [u128; RUNS],
    runs: [Run; RUNS],
    heap: MinHeap,
}

/// A ring of entries in ascending order.
#[derive(Debug, Default)]
struct Run {
    /// A power of two of them, or none.
    entries: Vec<u128>,
    head: usize,
    tail: usize,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            fronts: [VACANT; RUNS + 1],
            backs: [0; RUNS],
            runs: Default::default(),
            heap: MinHeap::default(),
        }
    }
}

impl Runs {
    /// The least entry.
    #[inline]
    pub(crate) fn peek(&self) -> Option<u128> {
        Some(self.fronts[self.least()]).filter(|entry| *entry != VACANT)
    }

    /// Takes an entry up.
    #[inline]
    pub(crate) fn push(&mut self, entry: u128) {
        // The run that the entry leaves the smallest gap behind in; an empty one as a last resort.
        let mut chosen = RUNS;
        let mut largest = 0;
        for (run, back) in self.backs.iter().enumerate() {
            if *back <= entry && (chosen == RUNS || *back > largest) {
                (chosen, largest) = (run, *back);
            }
        }
        if chosen == RUNS {
            self.heap.push(entry);
            self.fronts[RUNS] = self.fronts[RUNS].min(entry);
        } else {
            self.append(chosen, entry);
        }
    }

    /// Takes the least entry out, if there is one.
    #[inline]
    pub(crate) fn pop(&mut self) {
        let least = self.least();
        if self.fronts[least] == VACANT {
            return;
        }
        if least == RUNS {
            self.heap.pop();
            self.fronts[RUNS] = self.heap.peek().unwrap_or(VACANT);
        } else {
            self.pop_front(least);
        }
    }

    /// Every entry, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u128> + '_ {
        self.runs.iter().flat_map(Run::iter).chain(self.heap.iter())
    }

    /// Puts `change(entry)` in the place of every entry, and takes out those where it is `None`.
    /// The change must keep the order of those that stay.
    pub(crate) fn refill(&mut self, mut change: impl FnMut(u128) -> Option<u128>) {
        self.heap.refill(&mut change);
        self.fronts[RUNS] = self.heap.peek().unwrap_or(VACANT);
        for run in 0..RUNS {
            for _ in 0..self.runs[run].len() {
                let entry = self.fronts[run];
                self.pop_front(run);
                if let Some(entry) = change(entry) {
                    self.append(run, entry);
                }
            }
        }
    }

    /// The run with the least front; `RUNS` for the heap.
    #[inline]
    fn least(&self) -> usize {
        // Indices from comparisons, so that no branch depends on who is less.
        let fronts = &self.fronts;
        let left = usize::from(fronts[1] < fronts[0]);
        let right = 2 + usize::from(fronts[3] < fronts[2]);
        if fronts[right] < fronts[left] { right } else { left }
    }

    #[inline]
    fn append(&mut self, run: usize, entry: u128) {
        if self.runs[run].len() == 0 {
            self.fronts[run] = entry;
        }
        self.runs[run].push(entry);
        self.backs[run] = entry;
    }

    #[inline]
    fn pop_front(&mut self, run: usize) {
        self.fronts[run] = self.runs[run].pop().unwrap_or_else(|| {
            self.backs[run] = 0;
            VACANT
        });
    }
}

impl Run {
    #[inline]
    const fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    #[inline]
    fn push(&mut self, entry: u128) {
        if self.len() == self.entries.len() {
            self.grow();
        }
        let mask = self.entries.len() - 1;
        self.entries[self.tail & mask] = entry;
        self.tail = self.tail.wrapping_add(1);
    }

    /// Takes the first entry out; returns the one that is first now.
    #[inline]
    fn pop(&mut self) -> Option<u128> {
        self.head = self.head.wrapping_add(1);
        if self.len() == 0 {
            return None;
        }
        Some(self.entries[self.head & (self.entries.len() - 1)])
    }

    fn iter(&self) -> impl Iterator<Item = u128> + '_ {
        let mask = self.entries.len().wrapping_sub(1);
        (0..self.len()).map(move |place| self.entries[self.head.wrapping_add(place) & mask])
    }

    #[cold]
    fn grow(&mut self) {
        let mut entries: Vec<u128> = Vec::with_capacity((2 * self.entries.len()).max(16));
        entries.extend(self.iter());
        (self.head, self.tail) = (0, entries.len());
        entries.resize(entries.capacity().next_power_of_two(), VACANT);
        self.entries = entries;
    }
}

/// Backlogged flows by the tags of their heads, and entries of heads that were pushed out.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    queue: Runs,
    /// How many of those.
    stale: usize,
}

impl Heads {
    /// Takes up a flow's head.
    #[inline]
    pub(crate) fn push(&mut self, entry: u128) {
        self.queue.push(entry);
    }

    /// The flow of the least tag; `entry` says what a flow's entry is at present. Drops stale
    /// entries on the way. (A slot may belong to another flow by now, with an entry of its own.)
    #[inline]
    pub(crate) fn next(&mut self, entry: impl Fn(u32) -> Option<u128>) -> Option<u32> {
        loop {
            let top = self.queue.peek()?;
            let slot = slot_of(top);
            if entry(slot) == Some(top) {
                return Some(slot);
            }
            self.queue.pop();
            self.stale -= 1;
        }
    }

    /// The flow that [`Self::next`] named is served, and this is its next head, if it has one.
    #[inline]
    pub(crate) fn served(&mut self, entry: Option<u128>) {
        self.queue.pop();
        if let Some(entry) = entry {
            self.queue.push(entry);
        }
    }

    /// A head has been pushed out, and its entry is stale. However long nothing is served, there
    /// are not many more entries than the `live` ones.
    pub(crate) fn pushed_out(&mut self, live: usize, entry: impl Fn(u32) -> Option<u128>) {
        self.stale += 1;
        if self.stale > live + 16 {
            self.queue.refill(|old| (entry(slot_of(old)) == Some(old)).then_some(old));
            self.stale = 0;
        }
    }

    /// Nothing is backlogged.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.stale > 0 {
            self.queue.refill(|_| None);
            self.stale = 0;
        }
    }

    /// Lowers all tags by `base`; a stale one may end at 0.
    pub(crate) fn rebase(&mut self, base: u64) {
        self.queue.refill(|entry| Some(lowered(entry, base)));
    }

    /// The slot at the top, right or not: what the next departure will look at first.
    #[inline]
    pub(crate) fn hint(&self) -> Option<u32> {
        self.queue.peek().map(slot_of)
    }

    /// The slots of all entries, right or not.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.queue.iter().map(slot_of)
    }

    /// Entries, and how many of them are stale.
    #[cfg(test)]
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.queue.iter().count(), self.stale)
    }
}

const SLOT_BITS: u32 = 32;
const INDEX_BITS: u32 = 40;
/// Tags at and above 2^56 count as equal.
const TAG_BITS: u32 = 56;

/// An entry: tag, arrival of the head, slot. The index only breaks ties, so that it starts again
/// after 2^40 packets does no harm.
#[inline]
pub(crate) fn pack(tag: u64, index: u64, slot: u32) -> u128 {
    let tag = tag.min((1 << TAG_BITS) - 1);
    u128::from(tag) << (INDEX_BITS + SLOT_BITS)
        | u128::from(index & ((1 << INDEX_BITS) - 1)) << SLOT_BITS
        | u128::from(slot)
}

#[inline]
pub(crate) const fn slot_of(entry: u128) -> u32 {
    entry as u32
}

#[inline]
pub(crate) const fn tag_of(entry: u128) -> u64 {
    (entry >> (INDEX_BITS + SLOT_BITS)) as u64
}

/// The entry with a tag that is less by `base`, but not below 0.
pub(crate) fn lowered(entry: u128, base: u64) -> u128 {
    let base = base.min(tag_of(entry));
    entry - (u128::from(base) << (INDEX_BITS + SLOT_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    use crate::testkit::Random;

    /// Keys in order, around a clock, and anywhere, with every operation among them.
    #[test]
    fn the_least_entry_comes_first_in_any_order() {
        for spread in [1, 3, 40, 5000] {
            let (mut queue, mut model) = (Runs::default(), BTreeSet::new());
            let mut random = Random(spread);
            let mut clock = 0;
            for step in 0..40_000u64 {
                match random.below(8) {
                    0..=3 if model.len() < 400 => {
                        let costs = [40, 1500, random.below(spread), 700];
                        let tag = clock + costs[random.below(4) as usize];
                        let entry = pack(tag, step, random.below(50) as u32);
                        queue.push(entry);
                        model.insert(entry);
                    }
                    4 if step % 500 == 0 => {
                        let change = |e: u128| (!e.is_multiple_of(3)).then_some(lowered(e, 100));
                        queue.refill(change);
                        model = model.into_iter().filter_map(change).collect();
                    }
                    _ => {
                        queue.pop();
                        if let Some(least) = model.pop_first() {
                            clock = tag_of(least);
                        }
                    }
                }
                assert_eq!(queue.peek(), model.first().copied(), "step {step}");
            }
            assert_eq!(queue.iter().collect::<BTreeSet<_>>(), model);
        }
    }

    #[test]
    fn what_comes_in_order_never_meets_the_heap() {
        let mut queue = Runs::default();
        for round in 0..1000u64 {
            for (index, cost) in [1500, 40, 600].into_iter().enumerate() {
                queue.push(pack(round + cost, round, index as u32));
            }
            if round % 3 > 0 {
                queue.pop();
            }
        }
        assert_eq!(queue.heap.peek(), None);
    }

    #[test]
    fn an_entry_reads_back() {
        let entry = pack(7_000_000_000, 123, 45);
        assert_eq!((tag_of(entry), slot_of(entry)), (7_000_000_000, 45));
        assert_eq!(lowered(entry, 7_000_000_000 - 5), pack(5, 123, 45));
        assert_eq!(lowered(entry, u64::MAX), pack(0, 123, 45));
        assert!(pack(5, 0, 9) < pack(5, 1, 2) && pack(5, u64::MAX, 9) < pack(6, 0, 0));
        assert_eq!(tag_of(pack(u64::MAX, 0, 0)), (1 << 56) - 1);
    }
}
