//! What a fair queue knows of the link's work, in bytes.

use sched::{Nanos, Params};

pub(super) struct Wire {
    bits_per_second: u64,
    since: Nanos,
    size: f64,
    counted: f64,
}

impl Wire {
    pub(super) fn new(params: &Params) -> Self {
        let bits_per_second = params.number("rate");
        Self { bits_per_second, since: Nanos::ZERO, size: 0.0, counted: 0.0 }
    }

    pub(super) fn change(&mut self, params: &Params) {
        self.bits_per_second = params.number("rate");
    }

    fn is_known(&self) -> bool {
        self.bits_per_second != u64::MAX
    }

    /// What has been sent since it was last asked for.
    pub(super) fn done(&mut self, now: Nanos) -> f64 {
        if !self.is_known() {
            return 0.0;
        }
        let sent = (now - self.since).0 as f64 * self.bits_per_second as f64 / 8e9;
        let news = (sent.min(self.size) - self.counted).max(0.0);
        self.counted += news;
        news
    }

    pub(super) fn rest(&mut self) -> f64 {
        let rest = self.size - self.counted;
        self.counted = self.size;
        rest
    }

    pub(super) fn start(&mut self, size: u32, now: Nanos) {
        (self.since, self.size, self.counted) = (now, f64::from(size), 0.0);
    }

    pub(super) fn restart(&mut self) {
        self.counted = self.size;
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.is_known() || self.counted >= self.size * (1.0 - 1e-6)
    }
}
