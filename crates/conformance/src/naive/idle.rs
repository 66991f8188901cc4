//! What a link could have sent while `fq-lanes` had nothing for it.

/// The least stretch of time over which the link's rate is measured, in ns, what it does not begin
/// in, and the caps.
const STRETCH: u128 = 1 << 23;
const SETTLING: u64 = 1 << 24;
const MOST_IDLE: u64 = 1 << 32;
const MOST_PACE: u128 = (1 << 31) - 1;

#[derive(Clone, Default, Hash)]
pub(super) struct Idle {
    /// The packet that the link took last: when, and its size.
    last: (u64, u32),
    /// When something was queued last after nothing was.
    since: Option<u64>,
    /// What left in the present stretch.
    stretch: Vec<(u64, u32)>,
    /// Bytes x 256 in a stretch, and in all idle time.
    pace: u128,
    pub(super) credit: u64,
}

impl Idle {
    pub(super) fn takes(&mut self, size: u32, now: u64) {
        self.last = (now, size);
        if self.since.is_some_and(|since| now - since < SETTLING) {
            return;
        }
        let took = u128::from(now - self.stretch.first().map_or(now, |(began, _)| *began));
        if took >= STRETCH {
            let sent: u128 = self.stretch.iter().map(|(_, size)| u128::from(*size)).sum();
            self.pace = (256 * sent.min(u32::MAX.into()) * STRETCH / took).min(MOST_PACE);
            self.stretch.clear();
        }
        self.stretch.push((now, size));
    }

    pub(super) fn ends(&mut self, now: u64) {
        let (taken, size) = self.last;
        let idle = u128::from((now - taken).min(MOST_IDLE));
        let could = (idle * self.pace / STRETCH) as u64;
        self.credit += could.saturating_sub(256 * u64::from(size));
        self.since = Some(now);
        self.stretch.clear();
    }
}
