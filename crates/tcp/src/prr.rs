//! Proportional rate reduction (RFC 6937, RFC 9937).

use crate::config::Config;
use crate::recovery::Trouble;
use crate::sender::Sender;

/// Proportional rate reduction: what was delivered and sent since recovery began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    pub(crate) delivered: u32,
    pub(crate) out: u32,
    /// RecoverFS: what was to be delivered.
    pub(crate) flight: u32,
}

impl Prr {
    pub(crate) fn sent(&mut self, len: u32) {
        self.out = self.out.saturating_add(len);
    }

    /// What may be sent on an acknowledgment that delivered `delivered` bytes. `safe` if it
    /// advanced without a sign of further losses.
    pub(crate) fn allowance(
        &mut self,
        config: &Config,
        delivered: u32,
        room: Room,
        safe: bool,
    ) -> u64 {
        self.delivered = self.delivered.saturating_add(delivered);
        let (all, out) = (u64::from(self.delivered), u64::from(self.out));
        let ssthresh = u64::from(room.ssthresh);
        if room.pipe > ssthresh {
            return (all * ssthresh).div_ceil(self.flight.max(1).into()).saturating_sub(out);
        }
        // Catch up: at most what was delivered, plus a segment if that seems safe.
        let mut limit = u64::from(delivered);
        if safe || !config.ns3_recovery {
            limit = limit.max(all.saturating_sub(out));
        }
        if safe {
            limit += u64::from(config.mss);
        }
        limit.min(ssthresh - room.pipe)
    }
}

/// What is in the network, and what shall be.
pub(crate) struct Room {
    pub(crate) pipe: u64,
    pub(crate) ssthresh: u32,
}

impl Sender {
    pub(crate) fn start_reduction(&mut self, config: &Config, t: &Trouble) {
        if !config.prr {
            self.control.settle();
            return;
        }
        let delivered = self.delivered(config, t);
        // RFC 9937: without what was SACKed before this acknowledgment.
        let flight = if config.ns3_recovery {
            self.board.flight() as u32
        } else {
            let outstanding = self.board.flight().saturating_sub(self.board.sacked().into());
            (outstanding as u32).saturating_add(delivered)
        };
        self.prr = Prr { delivered: 0, out: 0, flight };
        self.reduce_proportionally(config, t, false);
    }

    pub(crate) fn reduce_proportionally(&mut self, config: &Config, t: &Trouble, safe: bool) {
        let delivered = self.delivered(config, t);
        let is_set = self.control.has_model() || !config.prr;
        if is_set || (delivered == 0 && !config.ns3_recovery) {
            return;
        }
        let mut pipe = self.board.pipe();
        if config.ns3_recovery && !self.sack && self.prr.out > 0 {
            // It is looked at before the duplicate counts, or the next segment is marked lost.
            pipe += u64::from(config.mss);
        }
        let room = Room { pipe, ssthresh: self.control.ssthresh };
        let more = self.prr.allowance(config, delivered, room, safe);
        self.control.cwnd = (pipe + more).min(crate::MAX_WINDOW.into()) as u32;
    }

    /// What this acknowledgment says has arrived (RFC 6937, DeliveredData).
    pub(crate) fn delivered(&self, config: &Config, t: &Trouble) -> u32 {
        if !self.sack && config.ns3_recovery {
            return t.acked.min(u32::MAX.into()) as u32;
        }
        (t.acked + u64::from(self.board.sacked())).saturating_sub(t.sacked_before.into()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prr_is_proportional_above_the_threshold_and_catches_up_below() {
        let config = Config { mss: 100, ..Config::default() };
        let ns3 = Config { ns3_recovery: true, ..config.clone() };
        // 2000 are to be delivered and become 1400.
        let start = || Prr { delivered: 0, out: 0, flight: 2000 };
        let above = || Room { pipe: 1800, ssthresh: 1400 };
        let mut prr = start();
        assert_eq!(prr.allowance(&config, 100, above(), true), 70);
        assert_eq!(prr.allowance(&config, 100, above(), false), 140);
        prr.sent(100);
        assert_eq!(prr.allowance(&config, 100, above(), false), 110);
        // 1000 below: what was delivered and not replaced, and one segment more if that is safe.
        let below = || Room { pipe: 400, ssthresh: 1400 };
        for (config, safe, expected) in
            [(&config, true, 400), (&config, false, 300), (&ns3, true, 400), (&ns3, false, 100)]
        {
            let mut prr = Prr { delivered: 300, out: 100, flight: 2000 };
            assert_eq!(prr.allowance(config, 100, below(), safe), expected);
        }
        // But not beyond the threshold.
        let near = Room { pipe: 1350, ssthresh: 1400 };
        assert_eq!(start().allowance(&config, 100, near, true), 50);
    }
}
