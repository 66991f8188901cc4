//! Priority queues of flows.
//!
//! [`MinHeap`] says who is served next. It keeps no positions, so that moving an entry touches
//! no flow state: an entry may be out of date as long as it is not *larger* than the truth, and
//! its user corrects it when it reaches the top.
//!
//! [`Ranking`] says who loses a packet when the buffer is full. It is exact under any change and
//! pays for it with positions, but exists only while the buffer is under pressure.

use alloc::vec::Vec;

/// The four children of one heap entry: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u128; 4]);

/// What stands where no entry is; larger than every entry.
const VACANT: u128 = u128::MAX;

/// A 4-ary min-heap of `u128`. Entry `i` is stored at place `i + 3`, which puts its children
/// `4i + 1 ..= 4i + 4` together in line `i + 1`.
#[derive(Debug, Default)]
pub(crate) struct MinHeap {
    lines: Vec<Line>,
    len: usize,
}

impl MinHeap {
    /// The least entry.
    #[inline]
    pub(crate) fn peek(&self) -> Option<u128> {
        self.lines.first().map(|line| line.0[3]).filter(|entry| *entry != VACANT)
    }

    /// Takes an entry up.
    #[inline]
    pub(crate) fn push(&mut self, entry: u128) {
        let mut index = self.len;
        self.len += 1;
        if place(index).0 == self.lines.len() {
            self.lines.push(Line([VACANT; 4]));
        }
        while index > 0 {
            let parent = (index - 1) / 4;
            let above = self.get(parent);
            if above <= entry {
                break;
            }
            self.set(index, above);
            index = parent;
        }
        self.set(index, entry);
    }

    /// Replaces the least entry.
    #[inline]
    pub(crate) fn replace_top(&mut self, entry: u128) {
        self.sift_down(0, entry);
    }

    /// Takes the least entry out, if there is one.
    #[inline]
    pub(crate) fn pop(&mut self) {
        let Some(last) = self.len.checked_sub(1) else { return };
        let entry = self.get(last);
        self.set(last, VACANT);
        self.len = last;
        if last > 0 {
            self.sift_down(0, entry);
        }
    }

    /// Every entry, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u128> + '_ {
        (0..self.len).map(|index| self.get(index))
    }

    /// Puts `change(entry)` in the place of every entry, and takes out those where it is `None`.
    pub(crate) fn refill(&mut self, mut change: impl FnMut(u128) -> Option<u128>) {
        let len = core::mem::take(&mut self.len);
        for index in 0..len {
            let entry = self.get(index);
            self.set(index, VACANT);
            if let Some(entry) = change(entry) {
                self.push(entry);
            }
        }
    }

    #[inline]
    fn sift_down(&mut self, mut index: usize, entry: u128) {
        // Vacant places compare as the largest, so a line is always looked at as a whole.
        while let Some(&Line(c)) = self.lines.get(index + 1) {
            // Indices from comparisons, so that no branch depends on who is less.
            let left = usize::from(c[1] < c[0]);
            let right = 2 + usize::from(c[3] < c[2]);
            let least = if c[right] < c[left] { right } else { left };
            let child = c[least];
            if entry <= child {
                break;
            }
            self.set(index, child);
            index = 4 * index + 1 + least;
        }
        self.set(index, entry);
    }

    #[inline]
    fn get(&self, index: usize) -> u128 {
        let (line, column) = place(index);
        self.lines[line].0[column]
    }

    #[inline]
    fn set(&mut self, index: usize, entry: u128) {
        let (line, column) = place(index);
        self.lines[line].0[column] = entry;
    }
}

/// The line of an entry, and its column there.
#[inline]
const fn place(index: usize) -> (usize, usize) {
    let place = index + 3;
    (place / 4, place % 4)
}

/// Flow slots by rank, the largest on top: a binary heap that knows where each slot is.
#[derive(Debug, Default)]
pub(crate) struct Ranking {
    heap: Vec<(u128, u32)>,
    /// By slot: its place in the heap, or `ABSENT`.
    places: Vec<u32>,
    active: bool,
}

const ABSENT: u32 = u32::MAX;

impl Ranking {
    /// Whether it is kept up at present.
    #[inline]
    pub(crate) const fn is_active(&self) -> bool {
        self.active
    }

    /// Takes up these flows, and is kept up from here on.
    pub(crate) fn activate(&mut self, flows: impl Iterator<Item = (u32, u128)>) {
        self.active = true;
        for (slot, rank) in flows {
            self.set(slot, rank);
        }
    }

    /// Forgets everything once less than half of the buffer is taken.
    #[inline]
    pub(crate) fn relax(&mut self, backlog: u64, limit: u64) {
        if self.active && backlog < limit.div_ceil(2) {
            self.deactivate();
        }
    }

    /// Forgets everything.
    pub(crate) fn deactivate(&mut self) {
        self.active = false;
        for (_, slot) in self.heap.drain(..) {
            self.places[slot as usize] = ABSENT;
        }
    }

    /// The slot of the largest rank.
    #[inline]
    pub(crate) fn top(&self) -> Option<u32> {
        self.heap.first().map(|entry| entry.1)
    }

    /// Gives a slot a rank, whether it has one or not.
    pub(crate) fn set(&mut self, slot: u32, rank: u128) {
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, ABSENT);
        }
        let place = match self.places[slot as usize] {
            ABSENT => {
                self.heap.push((rank, slot));
                self.heap.len() - 1
            }
            place => place as usize,
        };
        self.settle(place, (rank, slot));
    }

    /// Takes a slot out, if it is there.
    pub(crate) fn remove(&mut self, slot: u32) {
        let place = self.places.get(slot as usize).copied().unwrap_or(ABSENT);
        if place == ABSENT {
            return;
        }
        self.places[slot as usize] = ABSENT;
        if let Some(last) = self.heap.pop()
            && last.1 != slot
        {
            self.settle(place as usize, last);
        }
    }

    /// Puts `entry` where it belongs, starting from the free place `place`.
    fn settle(&mut self, mut place: usize, entry: (u128, u32)) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].0 >= entry.0 {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        loop {
            let mut child = 2 * place + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1].0 > self.heap[child].0 {
                child += 1;
            }
            if self.heap[child].0 <= entry.0 {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (u128, u32)) {
        self.heap[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::{BTreeMap, BTreeSet};

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *state >> 33
    }

    #[test]
    fn the_least_entry_is_on_top_after_any_operation() {
        let mut heap = MinHeap::default();
        let mut model = BTreeSet::new();
        let mut state = 3;
        for step in 0..50_000u64 {
            let entry = u128::from(random(&mut state) % 500) << 64 | u128::from(step);
            match random(&mut state) % 7 {
                0..=2 if model.len() < 300 => {
                    heap.push(entry);
                    model.insert(entry);
                }
                3 if !model.is_empty() => {
                    heap.replace_top(entry);
                    model.pop_first();
                    model.insert(entry);
                }
                4 if step % 100 == 0 => {
                    let change = |e: u128| (!e.is_multiple_of(3)).then_some(e ^ 1 << 70);
                    heap.refill(change);
                    model = model.into_iter().filter_map(change).collect();
                }
                _ => {
                    heap.pop();
                    model.pop_first();
                }
            }
            assert_eq!(heap.peek(), model.first().copied());
            assert_eq!(heap.len, model.len());
        }
        assert_eq!(heap.iter().collect::<BTreeSet<_>>(), model);
    }

    #[test]
    fn the_largest_rank_is_on_top_after_any_change() {
        let mut ranking = Ranking::default();
        let mut model = BTreeMap::new();
        let mut state = 5;
        ranking.activate([(4, 40), (2, 90)].into_iter());
        model.extend([(4, 40), (2, 90)]);
        for step in 0..50_000u64 {
            let slot = random(&mut state) as u32 % 100;
            if random(&mut state) % 3 < 2 {
                let rank = u128::from(random(&mut state) % 1000) << 32 | u128::from(step);
                ranking.set(slot, rank);
                model.insert(slot, rank);
            } else {
                ranking.remove(slot);
                model.remove(&slot);
            }
            assert_eq!(ranking.top(), model.iter().max_by_key(|(_, r)| **r).map(|(s, _)| *s));
        }
        ranking.deactivate();
        assert!(!ranking.is_active() && ranking.top().is_none());
        ranking.set(7, 1);
        assert_eq!(ranking.top(), Some(7), "nothing is left of the old places");
    }
}
