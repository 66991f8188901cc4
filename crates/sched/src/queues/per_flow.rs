//! Per-flow queues: packets of all flows in one store, flow states at stable places.
//!
//! What a discipline with a queue per flow is made of. Packets are nodes of one slab, linked
//! into any number of FIFOs ([`FlowQueue`], 8 bytes each); a node is one cache line. Flow states
//! ([`Flows`]) sit in a second slab, because heaps and lists refer to flows by number while the
//! entries of a [`FlowTable`] move. Neither allocates once it has been as large as it gets.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::{Index, IndexMut};

use crate::interface::{FlowId, Packet};
use crate::queues::flow_table::{Entry, FlowTable};

/// No node, no flow.
pub(crate) const NONE: u32 = u32::MAX;

/// A queued packet, and one number that belongs to the discipline: a tag, or a time.
#[derive(Clone, Copy, Debug, Hash)]
#[repr(align(64))]
pub(crate) struct Node {
    pub(crate) packet: Packet,
    pub(crate) tag: u64,
    /// Towards the tail, but for the tail's; in a free node, the next free one.
    next: u32,
    /// Towards the head, but for the head's.
    prev: u32,
}

/// The ends of one FIFO in a [`PacketStore`].
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct FlowQueue {
    head: u32,
    tail: u32,
}

impl Default for FlowQueue {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

impl FlowQueue {
    /// Whether it holds no packet.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// Whether it holds one packet or none.
    #[inline]
    pub(crate) const fn is_short(&self) -> bool {
        self.head == self.tail
    }

    /// The node of the oldest packet, or [`NONE`].
    #[inline]
    pub(crate) const fn head(&self) -> u32 {
        self.head
    }

    /// The node of the newest packet, or [`NONE`].
    #[inline]
    pub(crate) const fn tail(&self) -> u32 {
        self.tail
    }
}

/// The packets of all queues of a discipline.
#[derive(Debug)]
pub(crate) struct PacketStore {
    nodes: Vec<Node>,
    /// The node freed last: it is the one most likely still in cache.
    free: u32,
}

/// The nodes in use where they are, and in which order the others will be.
impl Hash for PacketStore {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut in_use = alloc::vec![true; self.nodes.len()];
        let mut free = self.free;
        while let Some(node) = self.nodes.get(free as usize) {
            in_use[free as usize] = false;
            free.hash(state);
            free = node.next;
        }
        for (node, _) in self.nodes.iter().zip(in_use).filter(|(_, in_use)| *in_use) {
            node.hash(state);
        }
    }
}

impl PacketStore {
    /// A store with room made for `expected` packets.
    pub(crate) fn new(expected: usize) -> Self {
        Self { nodes: Vec::with_capacity(expected), free: NONE }
    }

    /// Appends a packet to `queue`; returns its node.
    #[inline]
    pub(crate) fn push_back(&mut self, queue: &mut FlowQueue, packet: Packet, tag: u64) -> u32 {
        let node = Node { packet, tag, next: NONE, prev: queue.tail };
        let index = self.free;
        let index = if index == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let place = &mut self.nodes[index as usize];
            self.free = place.next;
            *place = node;
            index
        };
        match queue.tail {
            NONE => queue.head = index,
            tail => self.nodes[tail as usize].next = index,
        }
        queue.tail = index;
        index
    }

    /// Takes the oldest packet.
    #[inline]
    pub(crate) fn pop_front(&mut self, queue: &mut FlowQueue) -> Option<(Packet, u64)> {
        let index = queue.head;
        let node = *self.nodes.get(index as usize)?;
        if queue.tail == index {
            *queue = FlowQueue::default();
        } else {
            queue.head = node.next;
        }
        self.release(index);
        Some((node.packet, node.tag))
    }

    /// Takes the newest packet.
    #[inline]
    pub(crate) fn pop_back(&mut self, queue: &mut FlowQueue) -> Option<(Packet, u64)> {
        let index = queue.tail;
        let node = *self.nodes.get(index as usize)?;
        if queue.head == index {
            *queue = FlowQueue::default();
        } else {
            queue.tail = node.prev;
        }
        self.release(index);
        Some((node.packet, node.tag))
    }

    /// The oldest packet.
    #[inline]
    pub(crate) fn front(&self, queue: &FlowQueue) -> Option<&Node> {
        self.nodes.get(queue.head as usize)
    }

    /// The newest packet.
    #[inline]
    pub(crate) fn back(&self, queue: &FlowQueue) -> Option<&Node> {
        self.nodes.get(queue.tail as usize)
    }

    #[inline]
    fn release(&mut self, index: u32) {
        self.nodes[index as usize].next = self.free;
        self.free = index;
    }
}

/// Where a flow stands in [`Flows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// It was there.
    Found(u32),
    /// It has been taken up just now, with the default state.
    Created(u32),
    /// It is not there, and the table is at its bound.
    Full,
}

/// Flow states at stable slots, found by fingerprint.
#[derive(Debug, Hash)]
pub(crate) struct Flows<T> {
    table: FlowTable<u32, 5>,
    states: Vec<T>,
    /// Most of them.
    most: usize,
    free: Vec<u32>,
}

impl<T: Copy + Default> Flows<T> {
    /// No flows, and at most `bound` of them.
    pub(crate) fn new(bound: usize) -> Self {
        let table = FlowTable::new(0, bound);
        Self { table, states: Vec::new(), most: bound, free: Vec::new() }
    }

    /// A slot that belongs to no flow and is never freed.
    pub(crate) fn add_anonymous(&mut self) -> u32 {
        self.most = self.most.saturating_add(1);
        self.add()
    }

    /// A slot more; there is never room for more than there may be.
    fn add(&mut self) -> u32 {
        let slots = self.states.len();
        if slots == self.states.capacity() {
            self.states.reserve_exact(slots.max(16).min(self.most - slots));
        }
        self.states.push(T::default());
        slots as u32
    }

    /// Flows in the table.
    pub(crate) const fn len(&self) -> usize {
        self.table.len()
    }

    /// The slot of a flow, if it is there.
    pub(crate) fn find(&self, flow: FlowId) -> Option<u32> {
        self.table.get(flow).copied()
    }

    /// The slot of a flow, which is taken up if it is not there and the bound allows.
    #[inline]
    pub(crate) fn slot(&mut self, flow: FlowId) -> Slot {
        match self.table.get(flow) {
            Some(slot) => Slot::Found(*slot),
            None => self.take_up(flow),
        }
    }

    fn take_up(&mut self, flow: FlowId) -> Slot {
        match self.table.entry(flow) {
            Entry::Found(slot) => return Slot::Found(*slot),
            Entry::Full => return Slot::Full,
            Entry::Created(place) => {
                *place = self.free.last().copied().unwrap_or(self.states.len() as u32);
            }
        }
        Slot::Created(match self.free.pop() {
            Some(slot) => {
                self.states[slot as usize] = T::default();
                slot
            }
            None => self.add(),
        })
    }

    /// Forgets a flow.
    #[inline]
    pub(crate) fn remove(&mut self, flow: FlowId) {
        if let Some(slot) = self.table.remove(flow) {
            self.free.push(slot);
        }
    }

    /// Forgets every flow for which `keep` returns false, and tells `forgotten` of each.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool, forgotten: impl FnMut(FlowId)) {
        let Self { table, states, free, .. } = self;
        let keep_or_free = |slot: &mut u32| {
            let kept = keep(&states[*slot as usize]);
            if !kept {
                free.push(*slot);
            }
            kept
        };
        table.retain(keep_or_free, forgotten);
    }

    /// Every slot with its state, also those that belong to no flow at present.
    pub(crate) fn states(&self) -> impl Iterator<Item = (u32, &T)> {
        self.states.iter().enumerate().map(|(slot, state)| (slot as u32, state))
    }

    /// The state in every slot, also in those that belong to no flow at present.
    pub(crate) fn states_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.states.iter_mut()
    }

    /// Looks at a few entries near where `newcomer` would be, and forgets the one of least
    /// `rank`; entries of rank `None` stay. Returns who was forgotten.
    pub(crate) fn evict_near(
        &mut self,
        newcomer: FlowId,
        rank: impl Fn(&T) -> Option<u64>,
    ) -> Option<FlowId> {
        let states = &self.states;
        let evicted = self.table.least_near(newcomer, |slot| rank(&states[*slot as usize]))?;
        self.remove(evicted);
        Some(evicted)
    }
}

impl<T> Index<u32> for Flows<T> {
    type Output = T;
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.states[slot as usize]
    }
}

impl<T> IndexMut<u32> for Flows<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.states[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;

    #[test]
    fn a_node_is_one_cache_line() {
        assert_eq!(size_of::<Node>(), 64);
        assert_eq!(size_of::<FlowQueue>(), 8);
    }

    #[test]
    fn queues_in_one_store_behave_as_deques() {
        let mut store = PacketStore::new(0);
        let mut queues = [FlowQueue::default(); 5];
        let mut models: [VecDeque<u64>; 5] = Default::default();
        let mut state = 7u64;
        for tag in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let i = (state >> 40) as usize % 5;
            let (queue, model) = (&mut queues[i], &mut models[i]);
            match (state >> 60) % 4 {
                0 | 1 if model.len() < 8 => {
                    store.push_back(queue, Packet::new(FlowId::new(1), 1), tag);
                    model.push_back(tag);
                }
                2 => assert_eq!(store.pop_front(queue).map(|p| p.1), model.pop_front()),
                _ => assert_eq!(store.pop_back(queue).map(|p| p.1), model.pop_back()),
            }
            assert_eq!(queue.is_empty(), model.is_empty());
            assert_eq!(store.front(queue).map(|n| n.tag), model.front().copied());
            assert_eq!(store.back(queue).map(|n| n.tag), model.back().copied());
        }
        assert!(store.nodes.len() <= 5 * 8, "freed nodes are used again");
    }

    #[test]
    fn slots_are_stable_and_used_again() {
        let mut flows: Flows<u64> = Flows::new(2);
        let flow = |n: u64| FlowId::new(n);
        assert_eq!(flows.add_anonymous(), 0);
        assert_eq!(flows.slot(flow(5)), Slot::Created(1));
        flows[1] = 55;
        assert_eq!(flows.slot(flow(6)), Slot::Created(2));
        assert_eq!(flows.slot(flow(7)), Slot::Full);
        assert_eq!(flows.slot(flow(5)), Slot::Found(1));
        flows.remove(flow(5));
        assert_eq!(flows.slot(flow(7)), Slot::Created(1));
        assert_eq!(flows[1], 0, "a new flow starts with the default state");
        flows[1] = 77;
        flows[2] = 66;
        let mut gone = Vec::new();
        flows.retain(|state| *state == 66, |id| gone.push(id));
        assert_eq!((gone, flows.len()), (alloc::vec![flow(7)], 1));
        assert_eq!(flows.evict_near(flow(7), |_| None), None);
        assert_eq!(flows.evict_near(flow(7), |state| Some(*state)), Some(flow(6)));
        assert_eq!(flows.len(), 0);
    }
}
