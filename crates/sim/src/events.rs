//! The event queue, in a deterministic order.
//!
//! A hierarchical timing wheel (Varghese and Lauck 1987) that sorts lazily. Level `l` has 256
//! slots of `256^l` ns; an event lies on the level of the highest byte in which its time differs
//! from `base`. The next slot in time is opened either by sorting it, if it holds few events, or
//! by spreading it over the level below. Events of the same time lie in the same slot in the
//! order in which they were scheduled, and every step keeps that order: no tie-break is stored.

use std::cmp::Reverse;

const SLOT_BITS: u32 = 8;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = (u64::BITS / SLOT_BITS) as usize;
const WORDS: usize = SLOTS / 64;
/// A slot of at most this many events is sorted as it is: to spread events that are fewer than the
/// slots below costs more. As many as the sort has room for on its stack.
const MANY: usize = 256;
/// A run is cut where an event would join it that comes after more than this many others.
const FAR: usize = 48;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<T> {
    time: u64,
    pub(crate) what: T,
}

/// Events by time; those of the same time in the order in which they were scheduled.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    /// The events before `run_end`, latest first.
    run: Vec<Entry<T>>,
    run_end: u64,
    /// Not later than any event outside the run; the reference of all slots.
    base: u64,
    levels: Vec<Level<T>>,
    /// Bit `l`: level `l` holds an event.
    occupied: u32,
    /// Buffer for the slot that is being spread.
    spare: Vec<Entry<T>>,
}

#[derive(Debug)]
struct Level<T> {
    slots: Vec<Vec<Entry<T>>>,
    occupied: [u64; WORDS],
}

impl<T> Level<T> {
    fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| Vec::new()).collect(), occupied: [0; WORDS] }
    }

    fn first(&self) -> Option<usize> {
        let word = self.occupied.iter().position(|word| *word != 0)?;
        Some(word * 64 + self.occupied[word].trailing_zeros() as usize)
    }

    /// Whether the level is empty now.
    fn clear(&mut self, slot: usize) -> bool {
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        self.occupied == [0; WORDS]
    }
}

impl<T: Copy> EventQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            run: Vec::new(),
            run_end: 0,
            base: 0,
            levels: (0..LEVELS).map(|_| Level::new()).collect(),
            occupied: 0,
            spare: Vec::new(),
        }
    }

    /// Schedules an event, not before the last one popped.
    #[inline]
    pub(crate) fn push(&mut self, time: u64, what: T) {
        let entry = Entry { time, what };
        if time < self.run_end {
            self.insert_into_run(entry);
        } else {
            self.put(entry);
        }
    }

    /// The next event, if it is not later than `until`. `coming` is told of events that will be
    /// next, in no order, before the first of them.
    #[inline]
    pub(crate) fn pop_until(
        &mut self,
        until: u64,
        mut coming: impl FnMut(&[Entry<T>]),
    ) -> Option<(u64, T)> {
        while self.run.is_empty() {
            if self.occupied == 0 || !self.open_next_slot(until) {
                return None;
            }
            coming(&self.run);
        }
        let next = self.run.last().filter(|entry| entry.time <= until)?;
        let (time, what) = (next.time, next.what);
        self.run.pop();
        Some((time, what))
    }

    #[inline]
    fn insert_into_run(&mut self, entry: Entry<T>) {
        let mut at = self.run.len();
        self.run.push(entry);
        while at > 0 && self.run[at - 1].time <= entry.time {
            self.run[at] = self.run[at - 1];
            at -= 1;
        }
        self.run[at] = entry;
        if self.run.len() - at > FAR {
            self.cut_run();
        }
    }

    /// Moves the later half of the run to the slots, which hold nothing of its span.
    #[cold]
    fn cut_run(&mut self) {
        let end = self.run[self.run.len() / 2].time;
        let later = self.run.partition_point(|entry| entry.time >= end);
        if later == self.run.len() {
            return; // all at one time
        }
        self.run_end = end;
        let mut moved = std::mem::take(&mut self.spare);
        moved.extend(self.run.drain(..later));
        while let Some(entry) = moved.pop() {
            self.put(entry);
        }
        self.spare = moved;
    }

    #[inline]
    fn put(&mut self, entry: Entry<T>) {
        let differing = (entry.time ^ self.base) | 1;
        let level = ((u64::BITS - 1 - differing.leading_zeros()) / SLOT_BITS) as usize;
        let slot = (entry.time >> (level as u32 * SLOT_BITS)) as usize % SLOTS;
        let at = &mut self.levels[level];
        at.slots[slot].push(entry);
        at.occupied[slot / 64] |= 1 << (slot % 64);
        self.occupied |= 1 << level;
    }

    /// Opens the slot that is next in time. `false` if it starts after `until`.
    fn open_next_slot(&mut self, until: u64) -> bool {
        let level = self.occupied.trailing_zeros() as usize;
        let Some(slot) = self.levels[level].first() else { return false };
        let shift = level as u32 * SLOT_BITS;
        let above = self.base.checked_shr(shift + SLOT_BITS).unwrap_or(0);
        let start = above.checked_shl(shift + SLOT_BITS).unwrap_or(0) | ((slot as u64) << shift);
        if start > until {
            return false;
        }
        self.base = start;
        if self.levels[level].clear(slot) {
            self.occupied &= !(1 << level);
        }
        let events = &mut self.levels[level].slots[slot];
        if level == 0 || events.len() <= MANY {
            std::mem::swap(events, &mut self.run);
            // The sort keeps the order of equal times, which is that of scheduling, latest first.
            self.run.reverse();
            self.run.sort_by_key(|entry| Reverse(entry.time));
            self.run_end = start.saturating_add(1 << shift);
        } else {
            let mut events = std::mem::replace(events, std::mem::take(&mut self.spare));
            for entry in events.drain(..) {
                self.put(entry);
            }
            self.spare = events;
            self.run_end = start;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BinaryHeap;

    /// The obvious queue: a heap with a sequence number.
    #[derive(Default)]
    struct Obvious {
        heap: BinaryHeap<Reverse<(u64, u64)>>,
        scheduled: u64,
    }

    fn delays() -> impl Strategy<Value = u64> {
        prop_oneof![
            4 => 0u64..3,
            4 => 0u64..2000,
            4 => (0u64..40).prop_map(|k| k * 1_200_000),
            2 => 0u64..10_000_000_000,
            1 => any::<u64>().prop_map(|delay| delay >> 2),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
        #[test]
        fn events_come_in_the_order_of_time_then_of_scheduling(
            steps in proptest::collection::vec(
                (proptest::collection::vec(delays(), 0..40), 0usize..40, any::<bool>()), 1..40)
        ) {
            let mut queue = EventQueue::new();
            let mut obvious = Obvious::default();
            let mut now = 0u64;
            for (pushes, pops, short) in steps {
                for delay in pushes {
                    let time = now.saturating_add(delay);
                    queue.push(time, obvious.scheduled);
                    obvious.heap.push(Reverse((time, obvious.scheduled)));
                    obvious.scheduled += 1;
                }
                let until = if short { now.saturating_add(1000) } else { u64::MAX };
                for _ in 0..pops {
                    let expected = obvious.heap.peek().filter(|e| e.0.0 <= until).map(|e| e.0);
                    prop_assert_eq!(queue.pop_until(until, |_| {}), expected);
                    let Some((time, _)) = expected else { break };
                    obvious.heap.pop();
                    now = time;
                }
            }
        }
    }

    #[test]
    fn thousands_at_one_time_keep_their_order() {
        let mut queue = EventQueue::new();
        for event in 0..5000u32 {
            queue.push(1_000_000, event);
        }
        for event in 0..5000 {
            assert_eq!(queue.pop_until(u64::MAX, |_| {}), Some((1_000_000, event)));
        }
        assert_eq!(queue.pop_until(u64::MAX, |_| {}), None);
    }
}
