//! CUBIC (RFC 9438): the window as a cubic function of the time since the last reduction.
//!
//! In segments and seconds as `f64`: additions, multiplications, divisions only, which IEEE 754
//! defines to the last bit, so results are the same on every machine. The cube root is our own
//! for that reason.

use units::Nanos;

/// `C`, segments per second cubed.
const C: f64 = 0.4;
/// Multiplicative decrease.
pub(crate) const BETA: f64 = 0.7;
/// Additive increase of the Reno-friendly estimate, such that it gets Reno's throughput.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Before the first loss there is no plateau to aim at; Linux then grows by one segment for
/// 20 at least. RFC 9438 is silent.
const LEAST_GROWTH_BEFORE_LOSS: f64 = 1.0 / 20.0;

/// What is remembered between epochs, in segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// The window at the last reduction, after fast convergence; 0 before the first, and after a
    /// timeout.
    w_max: f32,
    /// The window at the last reduction.
    prior: f32,
}

impl Memory {
    /// A reduction at a window of `w`.
    pub(crate) fn reduce(&mut self, w: f32, fast_convergence: bool) {
        let gives_way = fast_convergence && w < self.w_max;
        self.w_max = if gives_way { w * (1.0 + BETA as f32) / 2.0 } else { w };
        self.prior = w;
    }

    /// The plateau in whole segments, as Linux and ns-3 remember it. It matters for small
    /// windows: a loss at the plateau then does not count as one below it, and gives way no more.
    pub(crate) fn in_segments(&mut self) {
        self.w_max = self.w_max.trunc();
    }

    #[cfg(test)]
    pub(crate) fn plateau(&self) -> f32 {
        self.w_max
    }

    /// A timeout: the next epoch starts flat from wherever slow start leads (RFC 9438, 4.8).
    pub(crate) fn reset(&mut self) {
        self.w_max = 0.0;
    }
}

/// The time since the window was reduced or slow start ended.
#[derive(Clone, Debug)]
pub(crate) struct Epoch {
    start: Nanos,
    /// The window where the curve is flat.
    origin: f64,
    /// Seconds from the start until there.
    k: f64,
    /// What Reno would have.
    w_est: f64,
}

impl Epoch {
    /// Starts at a window of `w`.
    pub(crate) fn new(memory: &Memory, w: f64, now: Nanos) -> Self {
        let w_max = f64::from(memory.w_max);
        let k = cube_root((w_max - w) / C);
        Self { start: now, origin: w.max(w_max), k, w_est: w }
    }

    /// The growth, in segments, that `acked` segments are worth to a window of `w`.
    pub(crate) fn growth(
        &mut self,
        memory: &Memory,
        w: f64,
        acked: f64,
        now: Nanos,
        rtt: Nanos,
        friendly: bool,
    ) -> f64 {
        let elapsed = now.since(self.start).0 as f64 * 1e-9;
        let t = elapsed + rtt.0 as f64 * 1e-9;
        // At most half a window in a round trip.
        let target = self.curve(t).clamp(w, 1.5 * w);
        let mut growth = (target - w) / w;
        if memory.w_max == 0.0 {
            growth = growth.max(LEAST_GROWTH_BEFORE_LOSS);
        }
        growth *= acked;
        if friendly {
            let alpha = if self.w_est >= f64::from(memory.prior) { 1.0 } else { ALPHA };
            self.w_est += alpha * acked / w;
            if self.curve(elapsed) < self.w_est {
                growth = growth.max(self.w_est - w);
            }
        }
        growth
    }

    /// As Linux and ns-3 have it: the acknowledged segments that are worth one to a window of `w`
    /// whole segments. The distance from the plateau is rounded down.
    pub(crate) fn count(
        &mut self,
        memory: &Memory,
        w: f64,
        acked: f64,
        now: Nanos,
        rtt: Nanos,
        friendly: bool,
    ) -> f64 {
        let t = (now.since(self.start) + rtt).0 as f64 * 1e-9;
        let distance = (self.curve(t) - self.origin).trunc();
        let target = self.origin.trunc() + distance;
        let mut count = if target > w { (w / (target - w)).trunc() } else { 100.0 * w };
        if memory.w_max == 0.0 {
            count = count.min(1.0 / LEAST_GROWTH_BEFORE_LOSS);
        }
        if friendly {
            self.w_est += ALPHA * acked / w;
            let ahead = self.w_est.trunc() - w;
            if ahead > 0.0 {
                count = count.min((w / ahead).trunc());
            }
        }
        // At most half a window in a round trip.
        count.max(2.0)
    }

    /// The window `t` seconds into the epoch.
    fn curve(&self, t: f64) -> f64 {
        let d = t - self.k;
        self.origin + C * d * d * d
    }

    /// The sender had nothing to send for `idle`: that time does not count (RFC 9438, 5.8). What
    /// began within it, on a late acknowledgment, begins now.
    pub(crate) fn skip(&mut self, idle: Nanos, now: Nanos) {
        self.start = (self.start + idle).min(now);
    }
}

/// By Newton's method, for `x >= 0`.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut root = if x > 1.0 { x } else { 1.0 };
    loop {
        // From above, the iterates fall until they are as near as rounding allows.
        let next = (2.0 * root + x / (root * root)) / 3.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    /// Right after the reduction of a window of `w`.
    fn reduced(w: f32) -> (Memory, Epoch) {
        let mut memory = Memory::default();
        memory.reduce(w, true);
        let epoch = Epoch::new(&memory, f64::from(w) * BETA, SECOND);
        (memory, epoch)
    }

    #[test]
    fn the_cube_root_is_one() {
        for x in [1e-9, 0.3, 1.0, 8.0, 27.0, 750.0, 1e6, 1e12] {
            let root = cube_root(x);
            assert!((root * root * root / x - 1.0).abs() < 1e-14, "{x}: {root}");
        }
        assert_eq!(cube_root(0.0), 0.0);
    }

    #[test]
    fn the_window_follows_the_closed_form() {
        // A window of 100 is reduced to 70: K = cbrt(30 / 0.4) = 4.217 s. A round trip of
        // 100 ms in which all is acknowledged at once ends at the target of that round.
        let (memory, mut epoch) = reduced(100.0);
        let k = (30.0f64 / 0.4).powf(1.0 / 3.0);
        let mut w = 70.0;
        let rtt = SECOND / 10;
        for round in 0..60u64 {
            let now = SECOND + round * rtt;
            w += epoch.growth(&memory, w, w, now, rtt, false);
            let t = (round + 1) as f64 * 0.1;
            let expected = 100.0 + 0.4 * (t - k).powi(3);
            assert!((w - expected).abs() < 1e-6, "after {t} s: {w}, not {expected}");
        }
        assert!(w > 100.0);
    }

    #[test]
    fn short_round_trips_get_what_reno_gets() {
        // 1 ms round trips: the cubic gains 0.4 * 0.1^3 segments beyond K in 100 of them, Reno
        // with a decrease of 0.7 gains 0.529 in each, and 1 beyond the old window.
        let (memory, mut epoch) = reduced(10.0);
        let mut w = 7.0;
        for round in 0..100u64 {
            w += epoch.growth(
                &memory,
                w,
                w,
                SECOND + Nanos::from_millis(round),
                Nanos::from_millis(1),
                true,
            );
        }
        let rounds_below: f64 = (3.0f64 / ALPHA).ceil();
        let expected = 7.0 + ALPHA * rounds_below + (100.0 - rounds_below);
        assert!((w - expected).abs() < 0.6, "{w}, not {expected}");
    }

    #[test]
    fn in_segments_the_distance_is_rounded_towards_the_plateau() {
        // K = cbrt(18 / 0.4) = 3.557 s. After 0.1 s the curve is 16.5 below its plateau of 60: as
        // if it were 16, one above the window of 43, where it is really one half.
        let (memory, mut epoch) = reduced(60.0);
        let now = SECOND + SECOND / 10;
        assert_eq!(epoch.count(&memory, 43.0, 1.0, now, Nanos::ZERO, false), 43.0);
        assert_eq!(epoch.count(&memory, 44.0, 1.0, now, Nanos::ZERO, false), 4400.0);
        // Far above the plateau it is half a window in a round trip.
        assert_eq!(epoch.count(&memory, 60.0, 1.0, 60 * SECOND, Nanos::ZERO, false), 2.0);
    }

    #[test]
    fn a_smaller_peak_gives_way() {
        let mut memory = Memory::default();
        memory.reduce(100.0, true);
        memory.reduce(80.0, true);
        assert_eq!(memory.w_max, 68.0);
        memory.reduce(80.0, false);
        assert_eq!(memory.w_max, 80.0);
    }

    #[test]
    fn before_the_first_loss_it_grows_by_a_twentieth() {
        let memory = Memory::default();
        let mut epoch = Epoch::new(&memory, 40.0, SECOND);
        assert_eq!(epoch.growth(&memory, 40.0, 40.0, SECOND, Nanos(1000), false), 2.0);
    }
}
