//! The window that the model gives: what the path holds, and what recovery asks for.

use super::{Ack, Bbr, LEAST_WINDOW, Mode, is_repairing, seconds};
use crate::recovery::Phase;
use units::Nanos;

/// The initial window, in segments, as long as nothing is known.
const FIRST_WINDOW: u64 = 10;

impl Bbr {
    /// Segments of a burst: what Linux hands over at a time, a millisecond's worth.
    pub(super) fn burst(&self) -> u64 {
        let least = if self.rate < 150_000.0 { 1 } else { 2 };
        ((self.rate / 1024.0) as u64)
            .min(64_000)
            .checked_div(self.mss)
            .unwrap_or(0)
            .clamp(least, 127)
    }

    /// What is in the network when the next segment leaves.
    pub(super) fn in_network(&self, pipe: u64, ack: &Ack) -> u64 {
        let meanwhile = (self.bandwidth.get() * seconds(ack.departs.since(ack.now))) as u64;
        let (pace, _) = self.gains();
        let next = if pace > 1.0 { self.burst() * self.mss } else { 0 };
        (pipe + next).saturating_sub(meanwhile)
    }

    fn product(&self, gain: f64) -> u64 {
        if self.least_rtt == Nanos::MAX {
            return FIRST_WINDOW * self.mss;
        }
        (self.bandwidth.get() * seconds(self.least_rtt) * gain).ceil() as u64
    }

    /// With room for what the ends hold back; in whole pairs of segments.
    fn with_room(&self, bytes: u64) -> u64 {
        let segments = bytes.div_ceil(self.mss) + 3 * self.burst();
        let probing = u64::from(self.mode == Mode::ProbeBandwidth(0)) * 2;
        (segments.next_multiple_of(2) + probing) * self.mss
    }

    pub(super) fn inflight(&self, gain: f64) -> u64 {
        self.with_room(self.product(gain))
    }

    pub(super) fn window(&mut self, before: u64, gain: f64, ack: &Ack) -> u64 {
        let mut window = before;
        if ack.acked > 0 && !self.repairs(&mut window, ack) {
            let bunch = if self.full { self.aggregation.most(self.bandwidth.get()) } else { 0 };
            let target = self.with_room(self.product(gain) + bunch);
            if self.full {
                window = (window + ack.acked).min(target);
            } else if window < target || ack.delivered < FIRST_WINDOW * self.mss {
                window += ack.acked;
            }
            window = window.max(LEAST_WINDOW * self.mss);
        }
        if self.mode == Mode::ProbeRtt {
            window = window.min(LEAST_WINDOW * self.mss);
        }
        window
    }

    /// In the first round of recovery as much is sent as arrives; after recovery the window is
    /// what it was before. Whether that is all.
    fn repairs(&mut self, window: &mut u64, ack: &Ack) -> bool {
        let (before, now) = (self.phase_before, ack.phase);
        *window = window.saturating_sub(ack.lost).max(self.mss);
        if now == Phase::Recovery && before != Phase::Recovery {
            self.conserves = true;
            self.round_ends = ack.delivered;
            *window = ack.pipe + ack.acked;
        } else if is_repairing(before) && !is_repairing(now) {
            *window = (*window).max(self.saved);
            self.conserves = false;
        }
        self.phase_before = now;
        if self.conserves {
            *window = (*window).max(ack.pipe + ack.acked);
        }
        self.conserves
    }
}
