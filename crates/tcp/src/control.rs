//! Congestion control: the window, its growth and its reductions.

use crate::config::{Config, Congestion, Growth, MAX_WINDOW, ReduceFrom};
use crate::cubic::{BETA, Epoch, Memory};
use crate::hystart::{HyStart, Signal};

/// The congestion window of one sender. It is in bytes, and grows by whole segments in congestion
/// avoidance.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// Reno: bytes acknowledged towards the next segment. Cubic: growth due, in segments;
    /// in whole segments, those acknowledged towards the next one.
    credit: f64,
    memory: Memory,
    stage: Stage,
}

/// What only slow start needs, or only Cubic's avoidance; Reno's needs neither.
#[derive(Clone, Debug)]
enum Stage {
    SlowStart(HyStart),
    Epoch(Epoch),
}

impl Control {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            cwnd: config.initial_window.saturating_mul(config.mss).min(MAX_WINDOW),
            ssthresh: config.initial_ssthresh,
            credit: 0.0,
            memory: Memory::default(),
            stage: Stage::SlowStart(HyStart::new()),
        }
    }

    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// `acked` bytes were acknowledged; `may_grow` if the window was the limit.
    #[inline]
    pub(crate) fn on_ack(&mut self, config: &Config, acked: u64, may_grow: bool, signal: &Signal) {
        // An acknowledgment of more than the largest window cannot be.
        let acked = acked.min(MAX_WINDOW.into()) as u32;
        if self.in_slow_start() {
            self.slow_start(config, acked, may_grow, signal);
        } else if may_grow {
            match config.congestion {
                Congestion::Reno => self.reno(config, acked),
                Congestion::Cubic => self.cubic(config, acked, signal),
            }
        }
    }

    fn slow_start(&mut self, config: &Config, acked: u32, may_grow: bool, signal: &Signal) {
        if let Stage::Epoch(_) = self.stage {
            self.stage = Stage::SlowStart(HyStart::new());
        }
        let Stage::SlowStart(hystart) = &mut self.stage else { return };
        if may_grow {
            let segments = match config.growth {
                Growth::PerAck => 1,
                Growth::PerByte { limit } => limit,
            };
            let growth = acked.min(segments.saturating_mul(config.mss)) / hystart.divisor();
            self.cwnd = (self.cwnd + growth).min(MAX_WINDOW);
        }
        if hystart.on_ack(config.slow_start_exit, self.cwnd, config.mss, signal) {
            self.ssthresh = self.cwnd;
        }
    }

    /// One segment in a round trip.
    fn reno(&mut self, config: &Config, acked: u32) {
        match config.growth {
            Growth::PerAck => {
                let share = u64::from(config.mss).pow(2) / u64::from(self.cwnd);
                self.cwnd = (self.cwnd + share.max(1) as u32).min(MAX_WINDOW);
            }
            Growth::PerByte { .. } => {
                self.credit += f64::from(acked);
                if self.credit >= f64::from(self.cwnd) {
                    self.credit -= f64::from(self.cwnd);
                    self.grow_segment(config);
                }
            }
        }
    }

    fn cubic(&mut self, config: &Config, acked: u32, signal: &Signal) {
        let mss = f64::from(config.mss);
        let rtt = if signal.min_rtt == u64::MAX { 0 } else { signal.min_rtt };
        if let Stage::SlowStart(_) = self.stage {
            let w = f64::from(self.cwnd) / mss;
            self.stage = Stage::Epoch(Epoch::new(&self.memory, w, signal.now));
        }
        let Stage::Epoch(epoch) = &mut self.stage else { return };
        let (acked, friendly) = (f64::from(acked) / mss, config.cubic_friendly);
        let segments = if config.cubic_in_segments {
            let whole = f64::from(self.cwnd / config.mss);
            let count = epoch.count(&self.memory, whole, acked, signal.now, rtt, friendly);
            // One segment for each acknowledgment at most, whatever was saved up on the plateau.
            self.credit += acked;
            let segments = if self.credit >= count { 1.0 } else { 0.0 };
            self.credit -= segments * count;
            segments
        } else {
            let w = f64::from(self.cwnd) / mss + self.credit;
            self.credit += epoch.growth(&self.memory, w, acked, signal.now, rtt, friendly);
            let segments = self.credit.trunc();
            self.credit -= segments;
            segments
        };
        let growth = (segments as u32).saturating_mul(config.mss);
        self.cwnd = self.cwnd.saturating_add(growth).min(MAX_WINDOW);
    }

    fn grow_segment(&mut self, config: &Config) {
        self.cwnd = (self.cwnd + config.mss).min(MAX_WINDOW);
    }

    /// A loss or mark: sets the threshold, leaves the window to recovery.
    pub(crate) fn reduce(&mut self, config: &Config, flight: u64, pipe: u64) {
        let from = match config.reduce_from {
            ReduceFrom::Flight => flight.min(MAX_WINDOW.into()) as u32,
            ReduceFrom::Pipe => pipe.min(MAX_WINDOW.into()) as u32,
            ReduceFrom::Window => self.cwnd,
        };
        let least = config.mss.saturating_mul(2);
        self.ssthresh = match config.congestion {
            Congestion::Reno => (from / 2).max(least),
            Congestion::Cubic => {
                let w = f64::from(self.cwnd) / f64::from(config.mss);
                self.memory.reduce(w as f32, config.cubic_fast_convergence);
                // In whole segments, as Linux and ns-3 count.
                let reduced = (f64::from(from) * BETA) as u32;
                (reduced / config.mss * config.mss).max(least)
            }
        };
        self.restart(config);
    }

    /// Growth starts anew.
    fn restart(&mut self, config: &Config) {
        // ns-3 never forgets what was saved up.
        if !config.ns3_recovery {
            self.credit = 0.0;
        }
        self.stage = Stage::SlowStart(HyStart::new());
    }

    /// A timeout: one segment, and slow start.
    pub(crate) fn on_timeout(&mut self, config: &Config) {
        self.cwnd = config.mss;
        self.memory.reset();
        self.restart(config);
    }

    /// The sender was idle for `idle`; `restart` if that was longer than a timeout.
    pub(crate) fn on_idle(&mut self, config: &Config, idle: u64, restart: bool) {
        if let Stage::Epoch(epoch) = &mut self.stage {
            epoch.skip(idle);
        }
        if restart && config.restart_after_idle {
            self.cwnd = self.cwnd.min(config.initial_window.saturating_mul(config.mss));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ns3_saves_credit_beyond_a_loss() {
        for (config, saved) in [(Config::ns3(), true), (Config::linux(), false)] {
            let mut control = Control::new(&config);
            control.credit = 50.0;
            control.reduce(&config, 0, 0);
            assert_eq!(control.credit > 0.0, saved);
            control.on_timeout(&config);
            assert_eq!(control.credit > 0.0, saved);
        }
    }
}
