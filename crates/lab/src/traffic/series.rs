//! Bytes over time.

use serde::{Deserialize, Serialize};

/// Bytes received over time, cumulative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Time from value to value.
    pub step_ns: u64,
    /// Value *k* is what had been received by `(k + 1) * step_ns` since the epoch. After the
    /// last value nothing more was received.
    pub cumulative: Vec<u64>,
}

impl Series {
    /// Nothing yet; `step_ns` is at least 1.
    pub(crate) fn new(step_ns: u64) -> Self {
        Self { step_ns: step_ns.max(1), cumulative: Vec::new() }
    }

    /// Adds bytes received at `now_ns`; times never go back.
    pub(crate) fn add(&mut self, now_ns: u64, bytes: u64) {
        // What arrives at the very end of a step belongs to it.
        let slot = (now_ns.saturating_sub(1) / self.step_ns) as usize;
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

    /// Bytes received by `at_ns` since the epoch, interpolated within a step.
    #[must_use]
    pub fn by(&self, at_ns: u64) -> u64 {
        let slot = (at_ns / self.step_ns) as usize;
        let Some(&after) = self.cumulative.get(slot) else { return self.total() };
        let before = slot.checked_sub(1).map_or(0, |previous| self.cumulative[previous]);
        let share = u128::from(after - before) * u128::from(at_ns % self.step_ns);
        before + (share / u128::from(self.step_ns)) as u64
    }

    /// Bytes received between two times since the epoch.
    #[must_use]
    pub fn between(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.by(to_ns).saturating_sub(self.by(from_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_tells_what_had_arrived_when() {
        let mut series = Series::new(100);
        series.add(100, 10); // the last instant of step 0
        series.add(101, 5);
        series.add(350, 20);
        assert_eq!(series.cumulative, [10, 15, 15, 35]);
        assert_eq!(series.total(), 35);
        assert_eq!(
            [0, 50, 100, 200, 300, 400, 999].map(|t| series.by(t)),
            [0, 5, 10, 15, 15, 35, 35]
        );
        assert_eq!(series.between(50, 350), 20);
        assert_eq!(Series::new(100).between(0, 1000), 0);
    }
}
