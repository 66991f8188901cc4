//! The timers of the sending half: retransmission (RFC 6298), reordering and tail loss probe (RFC
//! 8985, sections 6 and 7), pacing.

use crate::config::Config;
use crate::rack::Rack;
use crate::recovery::{Phase, Trouble};
use crate::sender::{NEVER, Probe, Sender};
use crate::stats::Stats;
use units::Nanos;

/// What a probe for a single segment waits longer.
const PROBE_ACK_DELAY: Nanos = Nanos::from_millis(200);

/// How much later than RFC 8985 says the reordering timer is due (Linux, `TCP_TIMEOUT_MIN`).
const REORDERING_SLACK: Nanos = Nanos::from_millis(2);

impl Sender {
    pub(crate) fn pace(&mut self, config: &Config, len: u32, now: Nanos) {
        if let Some(model) = self.control.model() {
            let late = now.since(self.pace_from);
            self.pace_from = self.pace_from.max(now) + model.departs(len, late, now);
            return;
        }
        let Some(pacing) = config.pacing else { return };
        // Linux calls it slow start as long as the window is below half the threshold.
        let percent = if self.control.cwnd < self.control.ssthresh / 2 {
            pacing.slow_start_percent
        } else {
            pacing.avoidance_percent
        };
        let round = self.rtt.srtt() / u64::from(percent.max(1)) * 100;
        let gap = round * len.into() / u64::from(self.control.cwnd.max(1));
        self.pace_from = self.pace_from.max(now) + gap;
    }

    /// When pacing lets the next piece go, if one waits for that.
    #[inline]
    pub(crate) fn pace_at(&self) -> Nanos {
        if self.paced { self.pace_from } else { NEVER }
    }

    /// No timer runs any more.
    pub(crate) fn stop(&mut self) {
        self.rto_at = NEVER;
        self.paced = false;
        self.board.rack_mut().into_iter().for_each(Rack::stop);
    }

    /// When segments that may be reordered are lost, if there are some.
    #[inline]
    pub(crate) fn reordering_at(&self) -> Nanos {
        self.board.rack().map_or(NEVER, |rack| rack.timer)
    }

    /// RACK's reordering window (RFC 8985, section 6.2, step 4).
    fn reordering_window(&self, config: &Config) -> Nanos {
        let Some(rack) = self.board.rack() else { return Nanos::ZERO };
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if !rack.reordering_seen() && (repairing || rack.sacked() >= config.dup_threshold) {
            return Nanos::ZERO;
        }
        (self.rtt.min() / 4).min(self.rtt.srtt())
    }

    /// Lets RACK declare losses; whether it did.
    pub(crate) fn detect_losses(&mut self, config: &Config, now: Nanos) -> bool {
        let window = self.reordering_window(config);
        let Some(rack) = self.board.rack_mut() else { return false };
        let found = rack.detect(now, window);
        if rack.timer != NEVER {
            rack.timer += REORDERING_SLACK;
            // Only one of these timers runs (section 8).
            if self.probe == Probe::Timed {
                self.forget_probe(config, now);
            }
        }
        found
    }

    /// The reordering timer is due.
    pub(crate) fn on_reordering_timer(&mut self, config: &Config, now: Nanos, stats: &mut Stats) {
        if self.detect_losses(config, now) && self.phase != Phase::Recovery {
            // What it has waited for counts as one segment delivered, as in Linux.
            let t = Trouble {
                acked: config.mss.into(),
                duplicate: false,
                sacked_before: self.board.sacked(),
                rtt: None,
                echo: None,
                ece: false,
                now,
            };
            if self.phase == Phase::Loss {
                // As in Linux, another recovery, whatever was lost.
                self.enter_recovery(config, &t, stats);
            } else {
                self.enter_recovery_if_lost(config, &t, stats);
            }
        }
    }

    /// After an acknowledgment: the timer runs while something is outstanding, and starts again if
    /// something new was acknowledged (RFC 6298, 5.2 and 5.3).
    #[inline]
    pub(crate) fn restart_timer(&mut self, config: &Config, now: Nanos) {
        self.tries = 0;
        if self.board.flight() == 0 {
            self.rto_at = NEVER;
        } else if self.phase != Phase::Recovery || !config.impatient || self.first_partial {
            self.start_timer(config, now);
        }
    }

    /// Starts the retransmission timer, or that of a probe if there may be one.
    #[inline]
    pub(crate) fn start_timer(&mut self, config: &Config, now: Nanos) {
        let mut timeout = self.rtt.timeout(config);
        if self.probe == Probe::Timed {
            self.probe = Probe::None;
        }
        if config.tail_loss_probe && self.may_probe() {
            // A single segment may wait for a delayed acknowledgment (Linux allows 200 ms).
            let single = self.board.flight() <= u64::from(config.mss);
            let wait = self.rtt.srtt() * 2 + if single { PROBE_ACK_DELAY } else { Nanos::ZERO };
            // Where the timeout would be earlier, the probe takes its place.
            self.probe = Probe::Timed;
            timeout = timeout.min(wait);
        }
        self.rto_at = now + timeout;
    }

    /// RFC 8985, section 7.2.
    fn may_probe(&self) -> bool {
        self.sack
            && self.phase == Phase::Open
            && self.probe == Probe::None
            && self.board.sacked() == 0
            && self.rtt.srtt() != Nanos::ZERO
    }

    /// The timer is due. `false` if it was due too often.
    pub(crate) fn on_timeout(&mut self, config: &Config, now: Nanos, stats: &mut Stats) -> bool {
        if self.board.flight() == 0 {
            self.rto_at = NEVER;
            return true;
        }
        if self.probe == Probe::Timed {
            self.probe = Probe::Due;
            self.rto_at = now + self.rtt.timeout(config);
            return true;
        }
        if u32::from(self.tries) >= config.data_tries {
            return false;
        }
        stats.timeouts += 1;
        if self.tries == 0 || config.reduce_on_every_timeout {
            self.control.reduce(config, self.board.flight(), self.board.pipe());
        }
        self.tries += 1;
        self.control.on_timeout(config);
        if self.board.rack().is_some() {
            let window = self.reordering_window(config);
            self.board.mark_old_lost(now, window);
            // Room for one beside what may still arrive, as in Linux.
            let room = self.board.pipe() + u64::from(config.mss);
            self.control.cwnd = room.min(crate::MAX_WINDOW.into()) as u32;
        } else {
            self.board.mark_all_lost();
        }
        self.phase = Phase::Loss;
        self.recovery_point = self.board.nxt();
        self.dup_acks = 0;
        self.probe = Probe::None;
        self.cwr_due = true;
        self.rtt.stop_timing();
        self.rtt.back_off();
        self.rto_at = now + self.rtt.timeout(config);
        // What a timeout repairs goes at once, as in Linux: a pace by the round trips before may
        // be slower than the timeouts.
        self.pace_from = self.pace_from.min(now);
        true
    }

    /// Losses are known: no probe is needed.
    pub(crate) fn forget_probe(&mut self, config: &Config, now: Nanos) {
        if self.probe == Probe::Timed {
            self.rto_at = now + self.rtt.timeout(config);
        }
        self.probe = Probe::None;
    }
}
