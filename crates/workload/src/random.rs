//! The one source of random numbers.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Xoshiro256++ with the few draws that workloads need. Its numbers never change between
/// versions and machines: results on file can be had again from their seed.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The generator of one purpose within a seed. Each purpose draws numbers of its own, so that
    /// a change of one part of an experiment leaves all others as they were.
    #[must_use]
    pub fn of(seed: u64, purpose: &str) -> Self {
        // FNV-1a; seeding mixes the bits.
        let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let purpose = purpose.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
        Self::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ purpose)
    }

    /// A uniform number in `[0, 1)`, a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A uniform whole number in `0..n`; 0 where `n` is 0. The bias is below `n / 2^64`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// An exponential number of this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log1p(-self.unit())
    }

    /// Puts `items` in an order that is uniform over all orders.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..4).map(|_| random.below(1000)).collect();
        assert_eq!(drawn, [811, 747, 100, 746]);
    }

    #[test]
    fn purposes_and_seeds_have_numbers_of_their_own() {
        let first = |seed, purpose| Random::of(seed, purpose).below(u64::MAX);
        assert_ne!(first(1, "loss"), first(1, "jitter"));
        assert_ne!(first(1, "loss"), first(2, "loss"));
        assert_eq!(first(1, "loss"), first(1, "loss"));
    }

    #[test]
    fn every_order_of_three_is_as_likely_as_any_other() {
        let mut random = Random::new(2);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *counts.entry(items).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        let chi_square: f64 =
            counts.values().map(|n| (f64::from(*n) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_square < 20.5, "0.1 % point of chi-square with 5 degrees: {chi_square}");
    }
}
