//! The flow table: fingerprints to per-flow state, with a hard bound.
//!
//! Open addressing with linear probing and backward-shift deletion: no tombstones, so a table
//! under churn stays as fast as a fresh one. State lies beside its key, so a look-up is one cache
//! line in most cases. The key is taken for random bits (it is a keyed hash) and never hashed again.
//!
//! The table starts small and doubles when half full, up to its bound; what happens to a flow
//! that finds it full is its user's decision, see [`FlowTable::entry`].

use alloc::vec::Vec;

use crate::packet::FlowId;

/// A map from flows to state of type `V`, at most `bound` entries.
#[derive(Clone, Debug)]
pub struct FlowTable<V> {
    /// A power of two, at least twice the number of entries.
    slots: Vec<Slot<V>>,
    len: usize,
    bound: usize,
}

/// `flow` is 0 in an empty slot, which no [`FlowId`] is.
#[derive(Clone, Copy, Debug, Default)]
struct Slot<V> {
    flow: u64,
    value: V,
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

const LEAST_SLOTS: usize = 64;

impl<V: Copy + Default> FlowTable<V> {
    /// A table of at most `bound` flows, with room made for `expected` of them.
    #[must_use]
    pub fn new(expected: usize, bound: usize) -> Self {
        let slots = (expected.min(bound) * 2).next_power_of_two().max(LEAST_SLOTS);
        Self { slots: alloc::vec![Slot::default(); slots], len: 0, bound }
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

    /// Bytes of memory that one entry takes in the slots themselves (the table is at most half
    /// full, so a flow costs twice this).
    #[must_use]
    pub const fn entry_size() -> usize {
        size_of::<Slot<V>>()
    }

    /// The state of a flow.
    #[inline]
    #[must_use]
    pub fn get(&self, flow: FlowId) -> Option<&V> {
        let index = self.probe(flow).ok()?;
        Some(&self.slots[index].value)
    }

    /// The state of a flow, to change.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut V> {
        let index = self.probe(flow).ok()?;
        Some(&mut self.slots[index].value)
    }

    /// The state of a flow, which is taken up if it is not there and the bound allows.
    #[inline]
    pub fn entry(&mut self, flow: FlowId) -> Entry<'_, V> {
        match self.probe(flow) {
            Ok(index) => Entry::Found(&mut self.slots[index].value),
            Err(_) if self.is_full() => Entry::Full,
            Err(mut index) => {
                if (self.len + 1) * 2 > self.slots.len() {
                    self.grow();
                    index = match self.probe(flow) {
                        Ok(index) | Err(index) => index,
                    };
                }
                self.len += 1;
                let slot = &mut self.slots[index];
                *slot = Slot { flow: flow.get(), value: V::default() };
                Entry::Created(&mut slot.value)
            }
        }
    }

    /// Forgets a flow. Returns its state if it was there.
    #[inline]
    pub fn remove(&mut self, flow: FlowId) -> Option<V> {
        let index = self.probe(flow).ok()?;
        let value = self.slots[index].value;
        self.vacate(index);
        Some(value)
    }

    /// Changes a flow's state, and forgets the flow if `keep` returns false; one look-up for both.
    /// Returns the state of a flow that was forgotten.
    #[inline]
    pub fn update(&mut self, flow: FlowId, keep: impl FnOnce(&mut V) -> bool) -> Option<V> {
        let index = self.probe(flow).ok()?;
        if keep(&mut self.slots[index].value) {
            return None;
        }
        let value = self.slots[index].value;
        self.vacate(index);
        Some(value)
    }

    /// Forgets every flow for which `keep` returns false, and tells `forgotten` of each.
    pub fn retain(
        &mut self,
        mut keep: impl FnMut(&mut V) -> bool,
        mut forgotten: impl FnMut(FlowId),
    ) {
        // A backward shift may carry an entry across the end of the slots: it is then seen
        // twice, which is harmless, and none is missed.
        let mut index = 0;
        while index < self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.flow != 0 && !keep(&mut slot.value) {
                forgotten(FlowId::new(slot.flow));
                self.vacate(index);
            } else {
                index += 1;
            }
        }
    }

    /// Looks at `count` slots from `from` on, and returns the flow among them whose state has the
    /// least `rank`; `None` ranks are passed over. The way to make room at the bound.
    #[must_use]
    pub fn least_of(
        &self,
        from: usize,
        count: usize,
        rank: impl Fn(&V) -> Option<u64>,
    ) -> Option<FlowId> {
        let mask = self.slots.len() - 1;
        (from..from + count)
            .map(|index| &self.slots[index & mask])
            .filter(|slot| slot.flow != 0)
            .filter_map(|slot| Some((rank(&slot.value)?, slot.flow)))
            .min()
            .map(|(_, flow)| FlowId::new(flow))
    }

    /// The flows and their states, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &V)> {
        self.slots
            .iter()
            .filter(|slot| slot.flow != 0)
            .map(|slot| (FlowId::new(slot.flow), &slot.value))
    }

    /// The flows and their states, to change, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (FlowId, &mut V)> {
        self.slots
            .iter_mut()
            .filter(|slot| slot.flow != 0)
            .map(|slot| (FlowId::new(slot.flow), &mut slot.value))
    }

    /// The slot of a flow, or the empty slot where it would be taken up.
    #[inline]
    fn probe(&self, flow: FlowId) -> Result<usize, usize> {
        let slots = &self.slots[..];
        let mask = slots.len() - 1;
        let mut index = flow.get() as usize & mask;
        loop {
            let found = slots[index & mask].flow;
            if found == flow.get() {
                return Ok(index);
            }
            if found == 0 {
                return Err(index);
            }
            index = (index + 1) & mask;
        }
    }

    /// Empties a slot and moves back the entries behind it that probed past it.
    #[inline]
    fn vacate(&mut self, index: usize) {
        self.len -= 1;
        let slots = &mut self.slots[..];
        let mask = slots.len() - 1;
        let mut hole = index;
        let mut next = index;
        loop {
            next = (next + 1) & mask;
            let slot = slots[next & mask];
            if slot.flow == 0 {
                break;
            }
            // The entry may move to the hole iff its home is not between the hole and itself.
            let displacement = next.wrapping_sub(slot.flow as usize) & mask;
            if displacement >= (next.wrapping_sub(hole) & mask) {
                slots[hole & mask] = slot;
                hole = next;
            }
        }
        slots[hole & mask].flow = 0;
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = self.slots.len() * 2;
        let old = core::mem::replace(&mut self.slots, alloc::vec![Slot::default(); doubled]);
        for slot in old.into_iter().filter(|slot| slot.flow != 0) {
            let (Ok(index) | Err(index)) = self.probe(FlowId::new(slot.flow));
            self.slots[index] = slot;
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
            // Homes cluster around the end of the slots, so that probes wrap around.
            let key = (state >> 33) % 12 * 1024 + 60 + (state >> 50) % 8;
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
    fn an_entry_is_its_key_and_its_state() {
        assert_eq!(FlowTable::<u64>::entry_size(), 16);
    }
}
