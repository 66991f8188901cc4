//! The least round-trip time of the last minute.

use units::Nanos;

/// The least is that of so many periods, the present one included.
const PERIODS: usize = 6;
const PERIOD: Nanos = Nanos::from_secs(10);

/// Least round-trip times, by period.
#[derive(Clone, Debug)]
pub(crate) struct Least {
    least: [Nanos; PERIODS],
    period: u64,
}

impl Default for Least {
    fn default() -> Self {
        Self { least: [Nanos::MAX; PERIODS], period: 0 }
    }
}

impl Least {
    /// A round trip that ended now took so long.
    pub(crate) fn keep(&mut self, time: Nanos, now: Nanos) {
        let period = now.0 / PERIOD.0;
        if period != self.period {
            let over = period.saturating_sub(self.period).min(PERIODS as u64);
            for passed in 0..over {
                self.least[((period - passed) % PERIODS as u64) as usize] = Nanos::MAX;
            }
            self.period = period;
        }
        let least = &mut self.least[(period % PERIODS as u64) as usize];
        *least = time.min(*least);
    }

    /// None before the first.
    pub(crate) fn get(&self) -> Option<Nanos> {
        self.least.iter().min().copied().filter(|least| *least < Nanos::MAX)
    }
}
