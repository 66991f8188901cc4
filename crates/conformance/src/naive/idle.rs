//! What a link could have sent while `fq-lanes` had nothing for it.

/// A stretch of time over which the link's rate is measured, in ns, and the caps.
const STRETCH: u128 = 1 << 22;
const MOST_IDLE: u64 = 1 << 32;
const MOST_PACE: u128 = (1 << 31) - 1;

#[derive(Clone, Default, Hash)]
pub(super) struct Idle {
    /// When the link was last given a packet, or found none for the first time since.
    since: u64,
    found_none: bool,
    /// Sizes of what left in the present stretch, after it began.
    began: u64,
    sent: Vec<u32>,
    /// Bytes x 256 in a stretch, and in all idle time.
    pace: u128,
    pub(super) credit: u64,
}

impl Idle {
    pub(super) fn asked(&mut self, now: u64, finds_one: bool) {
        if finds_one || !self.found_none {
            self.since = now;
        }
        self.found_none = !finds_one;
        let took = u128::from(now - self.began);
        let sent: u128 = self.sent.iter().map(|size| u128::from(*size)).sum();
        if sent == 0 {
            self.began = now;
        } else if finds_one && took >= STRETCH {
            self.pace = (256 * sent.min(u32::MAX.into()) * STRETCH / took).min(MOST_PACE);
            self.began = now;
            self.sent.clear();
        }
    }

    pub(super) fn sends(&mut self, size: u32) {
        self.sent.push(size);
    }

    pub(super) fn ends(&mut self, now: u64) {
        let idle = (now - self.since).min(MOST_IDLE);
        self.credit += (u128::from(idle) * self.pace / STRETCH) as u64;
        self.sent.clear();
    }
}
