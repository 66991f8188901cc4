//! A link whose rate varies as that of a radio. The kernel's bench takes it from here, too.

/// A generator that is the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// From 0 to 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Between 2 and 60 Mbit/s: every 100 ms up to 15 % up or down, and now and then a jump.
pub(crate) fn radio(seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    let mut rate = 20e6f64;
    let steps = (0..1_200).map(|_| {
        rate *= 0.853 + 0.3 * random.next();
        if random.next() < 0.02 {
            rate *= 0.3 + 2.0 * random.next();
        }
        rate = rate.clamp(2e6, 60e6);
        rate
    });
    steps.collect()
}
