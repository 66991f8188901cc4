//! How much of the link's work is done, as far as a discipline can know.
//!
//! It sees packets leave, and the time. When the next packet is asked for, the one before has been
//! sent whole. In between, the part that has been sent is known where the link's rate is; where it
//! is not, none of it counts until then.

use crate::interface::{Nanos, Params, shared};

/// The packet on the wire. Work is in bytes times `unit`.
pub(crate) struct Wire {
    unit: u64,
    /// Work in a nanosecond, in units of 2^-24; 0 where it is not known.
    per_nano: u64,
    /// When the packet on the wire left the queue, and its work in all.
    since: Nanos,
    whole: u64,
    /// What of it has been counted.
    counted: u64,
}

impl Wire {
    pub(crate) fn new(unit: u64, params: &Params) -> Self {
        let mut wire = Self { unit, per_nano: 0, since: Nanos::ZERO, whole: 0, counted: 0 };
        wire.change(params);
        wire
    }

    pub(crate) fn change(&mut self, params: &Params) {
        // Rounded up, so that a packet is sent whole when it should be, and not a unit later.
        let per_second = u128::from(params.get(shared::RATE).0) * u128::from(self.unit);
        let per_nano = (per_second << 24).div_ceil(8_000_000_000);
        self.per_nano = match params.get(shared::RATE).0 {
            u64::MAX => 0,
            _ => u64::try_from(per_nano).unwrap_or(u64::MAX),
        };
    }

    /// The work done since it was last asked for.
    #[inline]
    pub(crate) fn done(&mut self, now: Nanos) -> u64 {
        if self.per_nano == 0 || self.counted == self.whole {
            return 0;
        }
        let elapsed = u128::from(now.since(self.since).0);
        let sent = (elapsed * u128::from(self.per_nano)) >> 24;
        let sent = sent.min(u128::from(self.whole)) as u64;
        // Where the rate has been lowered meanwhile, more than that may have been counted.
        let news = sent.saturating_sub(self.counted);
        self.counted += news;
        news
    }

    /// The next packet is asked for: the rest of the work of the one before.
    #[inline]
    pub(crate) fn rest(&mut self) -> u64 {
        self.whole - core::mem::replace(&mut self.counted, self.whole)
    }

    /// A packet leaves.
    #[inline]
    pub(crate) fn start(&mut self, size: u32, now: Nanos) {
        (self.since, self.whole, self.counted) = (now, u64::from(size) * self.unit, 0);
    }

    /// All work there was is of the past.
    #[inline]
    pub(crate) const fn restart(&mut self) {
        self.counted = self.whole;
    }

    /// Whether the last packet has been sent, given that nothing else is queued. Where the rate
    /// is not known, it counts as sent at once.
    #[inline]
    pub(crate) const fn is_idle(&self) -> bool {
        self.per_nano == 0 || self.counted == self.whole
    }
}
