//! Acknowledgments in bunches, which the window must make up for.

use units::Nanos;

use super::{Ack, seconds};

/// Rounds until the largest so far becomes the older one of two.
const ROUNDS: u8 = 5;
/// The longest bunch that counts.
const LONGEST_S: f64 = 0.1;

/// How much more was acknowledged at a time than the bandwidth explains.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    most: [u64; 2],
    current: usize,
    rounds: u8,
    since: Nanos,
    acked: u64,
}

impl Aggregation {
    pub(super) fn new(now: Nanos) -> Self {
        Self { since: now, ..Self::default() }
    }

    /// What is acknowledged from now on is compared with the time from now on.
    pub(super) fn restart(&mut self, now: Nanos) {
        self.since = now;
        self.acked = 0;
    }

    /// The most of the last five to ten rounds, in bytes, as far as it is believed.
    pub(super) fn most(&self, bandwidth: f64) -> u64 {
        let most = (bandwidth * LONGEST_S) as u64;
        self.most[0].max(self.most[1]).min(most)
    }

    /// Takes in an acknowledgment that has a sample.
    pub(super) fn on_ack(&mut self, ack: &Ack, bandwidth: f64, round_starts: bool, window: u64) {
        if round_starts {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.current ^= 1;
                self.most[self.current] = 0;
            }
        }
        let mut expected = (bandwidth * seconds(ack.delivered_at.since(self.since))) as u64;
        if self.acked <= expected {
            self.restart(ack.delivered_at);
            expected = 0;
        }
        self.acked += ack.acked;
        let extra = self.acked.saturating_sub(expected).min(window);
        self.most[self.current] = self.most[self.current].max(extra);
    }
}
