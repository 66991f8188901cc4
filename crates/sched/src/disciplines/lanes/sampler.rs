//! Which flows does a flow table take up?

use core::hash::{Hash, Hasher};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::params::PROBABILITY;
use crate::disciplines::fixed::power;
use crate::interface::{Packet, Params, Share};

/// Decides, packet by packet, whether a flow that is not in the table is taken up.
pub(crate) trait Sampler: Hash + Send + 'static {
    /// Whether a flow that has been taken up is only suspected: it stays short, and its packets
    /// are sampled again until a second one is taken up.
    const RETESTS: bool = false;

    /// Whether this packet brings its flow into the table.
    fn takes_up(&mut self, packet: &Packet) -> bool;

    /// Takes over live parameters.
    fn change(&mut self, params: &Params);
}

/// Every flow, with its first packet.
#[derive(Hash)]
pub(crate) struct EveryFlow;

impl Sampler for EveryFlow {
    #[inline]
    fn takes_up(&mut self, _packet: &Packet) -> bool {
        true
    }

    fn change(&mut self, _params: &Params) {}
}

/// A random generator.
pub(super) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    #[inline]
    pub(super) fn throw(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// By what will be thrown: twice as many bits as the generator's state has.
impl Hash for Dice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut next = self.0.clone();
        (0..8).for_each(|_| next.next_u64().hash(state));
    }
}

/// Each packet with the same probability, whatever its size (X-Protect, SIFT).
#[derive(Hash)]
pub(crate) struct PerPacket {
    dice: Dice,
    threshold: Option<u64>,
}

impl PerPacket {
    pub(super) fn new(params: &Params, seed: u64) -> Self {
        Self { dice: Dice::new(seed), threshold: params.get(PROBABILITY).as_draw() }
    }
}

impl Sampler for PerPacket {
    #[inline]
    fn takes_up(&mut self, _packet: &Packet) -> bool {
        self.threshold.is_none_or(|threshold| self.dice.throw() < threshold)
    }

    fn change(&mut self, params: &Params) {
        self.threshold = params.get(PROBABILITY).as_draw();
    }
}

/// Each packet with the same probability, and each flow twice (SIFT's re-testing variant, against
/// short flows that were unlucky once).
#[derive(Hash)]
pub(crate) struct Retest(PerPacket);

impl Retest {
    pub(super) fn new(params: &Params, seed: u64) -> Self {
        Self(PerPacket::new(params, seed))
    }
}

impl Sampler for Retest {
    const RETESTS: bool = true;

    #[inline]
    fn takes_up(&mut self, packet: &Packet) -> bool {
        self.0.takes_up(packet)
    }

    fn change(&mut self, params: &Params) {
        self.0.change(params);
    }
}

/// Each byte with the same probability, so that a packet of s bytes is sampled with probability
/// 1-(1-beta)^s (sample and hold; Estan and Varghese 2002).
///
/// Probabilities are 0.64 fixed-point numbers; the one of the last packet size is kept, since
/// most packets of a link have one of two sizes.
#[derive(Hash)]
pub(crate) struct PerByte {
    dice: Dice,
    /// The probability that a byte is *not* sampled; `None` where every one is.
    miss_byte: Option<u64>,
    last_size: u32,
    last_miss: u64,
}

/// The packet size that `probability` is stated for.
const REFERENCE_BYTES: u32 = 1000;

impl PerByte {
    pub(super) fn new(params: &Params, seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            miss_byte: miss_byte(params.get(PROBABILITY)),
            last_size: 0,
            last_miss: u64::MAX,
        }
    }
}

impl Sampler for PerByte {
    #[inline]
    fn takes_up(&mut self, packet: &Packet) -> bool {
        let Some(miss_byte) = self.miss_byte else { return true };
        if packet.size != self.last_size {
            self.last_size = packet.size;
            self.last_miss = power(miss_byte, packet.size);
        }
        self.dice.throw() > self.last_miss
    }

    fn change(&mut self, params: &Params) {
        self.miss_byte = miss_byte(params.get(PROBABILITY));
        self.last_size = 0;
        self.last_miss = u64::MAX;
    }
}

/// The probability that a byte is missed, such that a packet of 1000 bytes is hit with probability
/// `hit`: the 1000th root of `1 - hit`, by bisection, as a 0.64 fixed-point number; `u64::MAX`
/// stands for 1, `None` for 0.
#[must_use]
pub fn miss_byte(hit: Share) -> Option<u64> {
    let miss_packet = match hit.rest().as_draw() {
        None => return Some(u64::MAX),
        Some(0) => return None,
        Some(miss) => miss,
    };
    let (mut low, mut high) = (0, u64::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        if power(middle, REFERENCE_BYTES) < miss_packet {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(x: u64) -> f64 {
        x as f64 / 2f64.powi(64)
    }

    #[test]
    fn one_percent_a_thousand_bytes_is_the_papers_beta() {
        let miss = miss_byte(Share::from_ppb(10_000_000)).unwrap();
        let beta = 1.0 - part(miss);
        assert!((beta - 1.005e-5).abs() < 1e-8, "{beta}");
    }

    #[test]
    fn the_power_is_right_for_all_packet_sizes() {
        let miss = miss_byte(Share::from_ppb(10_000_000)).unwrap();
        for size in [1u32, 40, 64, 1000, 1500, 9000, 65_535] {
            let expected = 0.99f64.powf(f64::from(size) / 1000.0);
            assert!((part(power(miss, size)) - expected).abs() < 1e-9, "{size}");
        }
    }

    #[test]
    fn never_and_always_are_exact() {
        assert_eq!(miss_byte(Share::ONE), None);
        assert_eq!(miss_byte(Share::ZERO), Some(u64::MAX));
    }
}
