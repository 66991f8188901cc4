//! How the receive window grows in Linux: dynamic right-sizing, after Fisk and Feng (2001).
//!
//! A receiver offers 64 kB at first. Each segment in order lets it offer two more, up to a limit
//! that follows the most that arrived within a round trip. What waits out of order takes room, and
//! afterwards the window grows again. Here this decides only how long each
//! segment is acknowledged at once: all of `Config::receive_window` may be sent from the start.

use units::Nanos;

use crate::config::Config;
use crate::segment::{Flags, Segment};

/// What is offered at first: half of the receive buffer of 128 kB.
const FIRST: u32 = 1 << 16;
/// What may arrive in the first round trip without a higher limit, in segments.
const FIRST_SEGMENTS: u32 = 10;

/// A receive window. Small, since each endpoint has one; windows have 30 bits.
#[derive(Clone, Debug)]
pub(crate) struct RightSizing {
    offered: u32,
    limit: u32,
    /// The most bytes of a round trip.
    most: u32,
    /// Bytes of the present round trip, and when it began.
    arrived: u32,
    since: Nanos,
    /// A round trip, smoothed, in microseconds; zero as long as none was measured.
    rtt_us: u32,
}

impl RightSizing {
    pub(crate) fn new(config: &Config) -> Self {
        let first = FIRST.min(config.receive_window);
        Self {
            offered: first,
            limit: first,
            most: FIRST_SEGMENTS.saturating_mul(config.mss),
            arrived: 0,
            since: Nanos::ZERO,
            rtt_us: 0,
        }
    }

    /// Takes note of a segment, by which so many bytes came to be in order: does the window grow?
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        config: &Config,
        segment: &Segment,
        bytes: u32,
        now: Nanos,
    ) -> bool {
        self.measure(config, segment, now);
        let grows = self.offered < self.limit;
        if grows {
            self.offered =
                self.offered.saturating_add(segment.len.saturating_mul(2)).min(self.limit);
        }
        self.arrived = self.arrived.saturating_add(bytes);
        if self.rtt_us > 0 && now.since(self.since).0 / 1000 >= self.rtt_us.into() {
            self.end_round(config);
            (self.arrived, self.since) = (0, now);
        }
        grows
    }

    /// A segment out of order takes room, which is given back as the window grows.
    #[cold]
    pub(crate) fn hold(&mut self, len: u32) {
        self.offered = self.offered.saturating_sub(len);
    }

    /// A full segment that answers an acknowledgment gives a round trip.
    #[inline]
    fn measure(&mut self, config: &Config, segment: &Segment, now: Nanos) {
        if segment.len < config.mss || !segment.flags.has(Flags::TIMESTAMPS.with(Flags::ACK)) {
            return;
        }
        let sample = (now.since(segment.echo).0 / 1000).clamp(1, u32::MAX.into()) as u32;
        let known = self.rtt_us;
        self.rtt_us = if known == 0 { sample } else { known - known / 8 + sample / 8 };
    }

    /// Twice what arrived within a round trip, and more for what arrives faster and faster.
    fn end_round(&mut self, config: &Config) {
        if self.arrived <= self.most {
            return;
        }
        let (arrived, most) = (u128::from(self.arrived), u128::from(self.most));
        let window = 2 * arrived;
        let faster = window * (arrived - most) / most.max(1);
        let limit = (window + 2 * faster).min(config.receive_window.into());
        self.limit = self.limit.max(limit as u32);
        self.most = self.arrived;
    }
}
