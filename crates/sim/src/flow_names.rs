//! From a flow's place in a table to its fingerprint, and back.

use sched::FlowId;

/// A flow's place in a table: slots are used again, and a generation tells their users apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowName {
    /// The slot.
    pub slot: u32,
    /// How many flows had the slot before.
    pub generation: u32,
}

/// A one-to-one scrambling of names into fingerprints, different for every seed.
///
/// Disciplines get fingerprints that look as random as those of a keyed hash, and never collide;
/// whoever made them gets the name back without a table.
#[derive(Clone, Copy, Debug)]
pub struct FlowNames {
    key: u64,
}

impl FlowNames {
    /// The scrambling of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { key: scramble(seed ^ 0x5851_f42d_4c95_7f2d) }
    }

    /// The fingerprint of a name.
    #[inline]
    #[must_use]
    pub const fn id(self, name: FlowName) -> FlowId {
        FlowId::new(scramble((((name.generation as u64) << 32) | name.slot as u64) ^ self.key))
    }

    /// The name behind a fingerprint.
    #[inline]
    #[must_use]
    pub const fn name(self, id: FlowId) -> FlowName {
        let word = unscramble(id.get()) ^ self.key;
        FlowName { slot: word as u32, generation: (word >> 32) as u32 }
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood 2014): every output bit depends on all of
/// the input, and every step can be undone.
const fn scramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const fn unscramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 31) ^ (x >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    x = (x ^ (x >> 27) ^ (x >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    x ^ (x >> 30) ^ (x >> 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_name_comes_back(seed: u64, slot: u32, generation: u32) {
            let names = FlowNames::new(seed);
            let name = FlowName { slot, generation };
            prop_assert_eq!(names.name(names.id(name)), name);
        }
    }

    #[test]
    fn seeds_give_different_fingerprints() {
        let name = FlowName { slot: 3, generation: 0 };
        assert_ne!(FlowNames::new(1).id(name), FlowNames::new(2).id(name));
    }
}
