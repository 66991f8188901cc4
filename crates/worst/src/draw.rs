//! Choices of the search, all from one seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub(crate) struct Draw(Xoshiro256PlusPlus);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number below `bound`, which is small beside 2^64.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.0.next_u64() % bound as u64) as usize
    }

    pub(crate) fn one_of<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len())]
    }

    /// Mostly a neighbour of `value` in its list, now and then any other.
    pub(crate) fn beside(&mut self, values: &[u32], value: u32) -> u32 {
        let at = values.iter().position(|one| *one >= value).unwrap_or(values.len() - 1);
        match self.below(5) {
            0 | 1 => values[at.saturating_sub(1)],
            2 | 3 => values[(at + 1).min(values.len() - 1)],
            _ => *self.one_of(values),
        }
    }
}
