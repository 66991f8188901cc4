//! Bytes over time.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Bytes received over time, cumulative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Time from value to value.
    pub step: Nanos,
    /// Value *k* is what had been received by `(k + 1) * step` since the epoch. After the
    /// last value nothing more was received.
    pub cumulative: Vec<u64>,
}

impl Series {
    /// Nothing yet; `step` is at least 1.
    pub(crate) fn new(step: Nanos) -> Self {
        Self { step: step.max(Nanos(1)), cumulative: Vec::new() }
    }

    /// Adds bytes received at `now`; times never go back.
    pub(crate) fn add(&mut self, now: Nanos, bytes: u64) {
        // What arrives at the very end of a step belongs to it.
        let slot = (now.0.saturating_sub(1) / self.step.0) as usize;
        let total = self.total();
        if self.cumulative.len() <= slot {
            self.cumulative.resize(slot + 1, total);
        }
        if let Some(last) = self.cumulative.last_mut() {
            *last = total + bytes;
        }
    }

    /// Bytes received in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.cumulative.last().copied().unwrap_or(0)
    }

    /// Bytes received by `at` since the epoch, interpolated within a step.
    #[must_use]
    pub fn by(&self, at: Nanos) -> u64 {
        let slot = (at.0 / self.step.0) as usize;
        let Some(&after) = self.cumulative.get(slot) else { return self.total() };
        let before = slot.checked_sub(1).map_or(0, |previous| self.cumulative[previous]);
        let share = u128::from(after - before) * u128::from(at.0 % self.step.0);
        before + (share / u128::from(self.step.0)) as u64
    }

    /// Bytes received between two times since the epoch.
    #[must_use]
    pub fn between(&self, from: Nanos, to: Nanos) -> u64 {
        self.by(to).saturating_sub(self.by(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_tells_what_had_arrived_when() {
        let mut series = Series::new(Nanos(100));
        series.add(Nanos(100), 10); // the last instant of step 0
        series.add(Nanos(101), 5);
        series.add(Nanos(350), 20);
        assert_eq!(series.cumulative, [10, 15, 15, 35]);
        assert_eq!(series.total(), 35);
        assert_eq!(
            [0, 50, 100, 200, 300, 400, 999].map(|t| series.by(Nanos(t))),
            [0, 5, 10, 15, 15, 35, 35]
        );
        assert_eq!(series.between(Nanos(50), Nanos(350)), 20);
        assert_eq!(Series::new(Nanos(100)).between(Nanos(0), Nanos(1000)), 0);
    }
}
