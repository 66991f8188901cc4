//! The flow table: fingerprints to per-flow state, with a hard bound.
//!
//! Buckets of one or two cache lines, each with room for `WAYS` flows and their states. A flow
//! lies in its home bucket, found without a branch on where in it; one that finds its home full
//! spills into a later bucket, and the home counts how many did, so that a look-up knows when it
//! has seen them all and a removal leaves nothing behind. Under churn such a table costs one cache
//! miss and hardly a mispredicted branch a look-up, where linear probing costs several.
//!
//! The key is taken for random bits (it is a keyed hash) and never hashed again. The table starts
//! small and doubles when three eighths full, up to its bound; what happens to a flow that finds
//! it full is its user's decision, see [`FlowTable::entry`].

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use crate::interface::FlowId;

/// A map from flows to state of type `V`, at most `bound` entries. Choose `WAYS` such that a
/// bucket fills whole cache lines: see [`FlowTable::bucket_size`].
#[derive(Clone, Debug, Hash)]
pub struct FlowTable<V, const WAYS: usize = 3> {
    /// A power of two of them.
    buckets: Vec<Bucket<V, WAYS>>,
    len: usize,
    bound: usize,
}

/// A flow of 0, which no [`FlowId`] is, marks an empty way.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bucket<V, const WAYS: usize> {
    flows: [u64; WAYS],
    values: [V; WAYS],
    /// Flows whose home this is and that lie in a later bucket.
    spilled: u32,
}

/// What an empty way held before is nothing.
impl<V: Hash, const WAYS: usize> Hash for Bucket<V, WAYS> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.flows, self.spilled).hash(state);
        let ways = self.flows.iter().zip(&self.values);
        ways.filter(|(flow, _)| **flow != 0).for_each(|(_, value)| value.hash(state));
    }
}

impl<V: Copy + Default, const WAYS: usize> Default for Bucket<V, WAYS> {
    fn default() -> Self {
        Self { flows: [0; WAYS], values: [V::default(); WAYS], spilled: 0 }
    }
}

impl<V, const WAYS: usize> Bucket<V, WAYS> {
    /// The first way that holds `flow`; `WAYS` if none does. Looks at all of them, so that the
    /// place is no branch.
    #[inline(always)]
    fn way_of(&self, flow: u64) -> usize {
        let mut matches = 1u32 << WAYS;
        for (way, found) in self.flows.iter().enumerate() {
            matches |= u32::from(*found == flow) << way;
        }
        matches.trailing_zeros() as usize
    }
}

/// Where a flow stands in a table.
pub enum Entry<'a, V> {
    /// It was there.
    Found(&'a mut V),
    /// It has been taken up just now, with the default state.
    Created(&'a mut V),
    /// It is not there, and the table is at its bound.
    Full,
}

/// Bucket and way.
type Place = (usize, usize);

const LEAST_BUCKETS: usize = 16;
/// How many entries are looked at to make room for a new one.
const LOOK_AT: usize = 16;

impl<V: Copy + Default, const WAYS: usize> FlowTable<V, WAYS> {
    /// A table of at most `bound` flows, with room made for `expected` of them.
    #[must_use]
    pub fn new(expected: usize, bound: usize) -> Self {
        let buckets = (expected.min(bound) * 8).div_ceil(WAYS * 3);
        let buckets = buckets.next_power_of_two().max(LEAST_BUCKETS);
        Self { buckets: alloc::vec![Bucket::default(); buckets], len: 0, bound }
    }

    /// Entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no entry.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether no further flow can be taken up.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.len >= self.bound
    }

    /// Bytes of a bucket, which holds up to `WAYS` flows.
    #[must_use]
    pub const fn bucket_size() -> usize {
        size_of::<Bucket<V, WAYS>>()
    }

    /// The state of a flow.
    #[inline]
    #[must_use]
    pub fn get(&self, flow: FlowId) -> Option<&V> {
        let (bucket, way) = self.find(flow)?;
        Some(&self.buckets[bucket].values[way])
    }

    /// The state of a flow, to change.
    #[inline(always)]
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut V> {
        let (bucket, way) = self.find(flow)?;
        Some(&mut self.buckets[bucket].values[way])
    }

    /// The state of a flow, which is taken up if it is not there and the bound allows.
    #[inline(always)]
    pub fn entry(&mut self, flow: FlowId) -> Entry<'_, V> {
        if let Some((bucket, way)) = self.find(flow) {
            return Entry::Found(&mut self.buckets[bucket].values[way]);
        }
        if self.is_full() {
            return Entry::Full;
        }
        if (self.len + 1) * 8 > self.buckets.len() * WAYS * 3 {
            self.grow();
        }
        self.len += 1;
        let (bucket, way) = self.insert(flow.get());
        let value = &mut self.buckets[bucket].values[way];
        *value = V::default();
        Entry::Created(value)
    }

    /// Forgets a flow. Returns its state if it was there.
    #[inline]
    pub fn remove(&mut self, flow: FlowId) -> Option<V> {
        let (bucket, way) = self.find(flow)?;
        let value = self.buckets[bucket].values[way];
        self.vacate((bucket, way));
        Some(value)
    }

    /// Changes a flow's state, and forgets the flow if `keep` returns false; one look-up for both.
    /// Returns whether it was forgotten.
    #[inline(always)]
    pub fn update(&mut self, flow: FlowId, keep: impl FnOnce(&mut V) -> bool) -> bool {
        let Some((bucket, way)) = self.find(flow) else { return false };
        if keep(&mut self.buckets[bucket].values[way]) {
            return false;
        }
        self.vacate((bucket, way));
        true
    }

    /// Forgets every flow for which `keep` returns false, and tells `forgotten` of each.
    pub fn retain(
        &mut self,
        mut keep: impl FnMut(&mut V) -> bool,
        mut forgotten: impl FnMut(FlowId),
    ) {
        for bucket in 0..self.buckets.len() {
            for way in 0..WAYS {
                let flow = self.buckets[bucket].flows[way];
                if flow != 0 && !keep(&mut self.buckets[bucket].values[way]) {
                    forgotten(FlowId::new(flow));
                    self.vacate((bucket, way));
                }
            }
        }
    }

    /// Looks at a few entries near where `flow` would be, and returns the one whose state has the
    /// least `rank`; those of rank `None` are passed over. The way to make room at the bound.
    #[must_use]
    pub fn least_near(&self, flow: FlowId, rank: impl Fn(&V) -> Option<u64>) -> Option<FlowId> {
        let home = self.home(flow.get());
        let (before, from) = self.buckets.split_at(home);
        from.iter()
            .chain(before)
            .flat_map(|bucket| bucket.flows.iter().zip(&bucket.values))
            .filter(|(flow, _)| **flow != 0)
            .take(LOOK_AT)
            .filter_map(|(flow, value)| Some((rank(value)?, *flow)))
            .min()
            .map(|(_, flow)| FlowId::new(flow))
    }

    /// The flows and their states, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &V)> {
        self.buckets
            .iter()
            .flat_map(|bucket| bucket.flows.iter().zip(&bucket.values))
            .filter(|(flow, _)| **flow != 0)
            .map(|(flow, value)| (FlowId::new(*flow), value))
    }

    /// The flows and their states, to change, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (FlowId, &mut V)> {
        self.buckets
            .iter_mut()
            .flat_map(|bucket| bucket.flows.iter().zip(&mut bucket.values))
            .filter(|(flow, _)| **flow != 0)
            .map(|(flow, value)| (FlowId::new(*flow), value))
    }

    #[inline(always)]
    fn home(&self, flow: u64) -> usize {
        flow as usize & (self.buckets.len() - 1)
    }

    #[inline(always)]
    fn find(&self, flow: FlowId) -> Option<Place> {
        let buckets = &self.buckets[..];
        let home = flow.get() as usize & (buckets.len() - 1);
        let bucket = &buckets[home];
        let way = bucket.way_of(flow.get());
        if way < WAYS {
            return Some((home, way));
        }
        if bucket.spilled == 0 {
            return None;
        }
        self.find_spilled(flow.get(), home)
    }

    /// Looks through later buckets until all flows that spilled from `home` have been seen.
    #[cold]
    fn find_spilled(&self, flow: u64, home: usize) -> Option<Place> {
        let mask = self.buckets.len() - 1;
        let mut unseen = self.buckets[home].spilled;
        let mut index = home;
        while unseen > 0 {
            index = (index + 1) & mask;
            let bucket = &self.buckets[index];
            let way = bucket.way_of(flow);
            if way < WAYS {
                return Some((index, way));
            }
            let of_home = |found: &&u64| **found != 0 && **found as usize & mask == home;
            unseen -= bucket.flows.iter().filter(of_home).count() as u32;
        }
        None
    }

    /// Puts a flow that is not there into the first empty way from its home on.
    #[inline(always)]
    fn insert(&mut self, flow: u64) -> Place {
        let home = self.home(flow);
        let bucket = &mut self.buckets[home];
        let way = bucket.way_of(0);
        if way < WAYS {
            bucket.flows[way] = flow;
            return (home, way);
        }
        self.insert_spilled(flow, home)
    }

    #[cold]
    fn insert_spilled(&mut self, flow: u64, home: usize) -> Place {
        let mask = self.buckets.len() - 1;
        self.buckets[home].spilled += 1;
        let mut index = home;
        loop {
            index = (index + 1) & mask;
            let bucket = &mut self.buckets[index];
            let way = bucket.way_of(0);
            if way < WAYS {
                bucket.flows[way] = flow;
                return (index, way);
            }
        }
    }

    #[inline(always)]
    fn vacate(&mut self, (index, way): Place) {
        self.len -= 1;
        let bucket = &mut self.buckets[index];
        let flow = core::mem::take(&mut bucket.flows[way]);
        let home = self.home(flow);
        if home != index {
            self.buckets[home].spilled -= 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = alloc::vec![Bucket::default(); self.buckets.len() * 2];
        let old = core::mem::replace(&mut self.buckets, doubled);
        for (flow, value) in old.iter().flat_map(|b| b.flows.iter().zip(&b.values)) {
            if *flow != 0 {
                let (bucket, way) = self.insert(*flow);
                self.buckets[bucket].values[way] = *value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    /// A thousand operations on few keys that collide on purpose, against a plain map.
    #[test]
    fn behaves_as_a_map() {
        let mut table: FlowTable<u32> = FlowTable::new(0, 40);
        let mut model = BTreeMap::new();
        let mut state = 1u64;
        for step in 0..20_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Homes cluster around the last bucket, so that flows spill around the end.
            let key = (state >> 33) % 12 * 1024 + 14 + (state >> 50) % 4;
            let flow = FlowId::new(key);
            if state >> 60 < 9 {
                match table.entry(flow) {
                    Entry::Found(v) => *v = step,
                    Entry::Created(v) => {
                        assert_eq!(*v, 0);
                        *v = step;
                    }
                    Entry::Full => {
                        assert_eq!(model.len(), 40);
                        assert!(!model.contains_key(&key));
                        continue;
                    }
                }
                model.insert(key, step);
            } else {
                assert_eq!(table.remove(flow), model.remove(&key));
            }
            assert_eq!(table.len(), model.len());
            assert_eq!(table.get(flow), model.get(&key));
        }
        let mut entries: Vec<_> = table.iter().map(|(flow, v)| (flow.get(), *v)).collect();
        entries.sort_unstable();
        assert_eq!(entries, model.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn retain_forgets_exactly_what_it_should() {
        let mut table: FlowTable<u64> = FlowTable::new(0, 1000);
        for key in 1..=500u64 {
            if let Entry::Created(v) = table.entry(FlowId::new(key * 61)) {
                *v = key;
            }
        }
        let mut forgotten = Vec::new();
        table.retain(|v| *v % 3 != 0, |flow| forgotten.push(flow.get() / 61));
        forgotten.sort_unstable();
        let expected: Vec<_> = (1..=500).filter(|k| k % 3 == 0).collect();
        assert_eq!(forgotten, expected);
        assert_eq!(table.len(), 500 - expected.len());
        assert!((1..=500).all(|k| table.get(FlowId::new(k * 61)).is_some() == (k % 3 != 0)));
    }

    #[test]
    fn room_is_made_at_the_bound_wherever_the_entry_lies() {
        let mut table: FlowTable<u64> = FlowTable::new(0, 2);
        for (key, rank) in [(3, 7), (5, 4)] {
            if let Entry::Created(v) = table.entry(FlowId::new(key)) {
                *v = rank;
            }
        }
        assert!(matches!(table.entry(FlowId::new(900)), Entry::Full));
        let least = |from| table.least_near(FlowId::new(from), |v| Some(*v));
        assert_eq!([least(1), least(900)], [Some(FlowId::new(5)); 2]);
        assert_eq!(table.least_near(FlowId::new(1), |_| None), None);
    }

    #[test]
    fn buckets_are_whole_cache_lines() {
        assert_eq!(FlowTable::<u64, 3>::bucket_size(), 64);
        assert_eq!(FlowTable::<u32, 5>::bucket_size(), 64);
        assert_eq!(FlowTable::<[u64; 2], 5>::bucket_size(), 128);
    }
}
