//! Congestion control: the window, its growth and its reductions.

use units::Nanos;

use crate::bbr::Bbr;
use crate::config::{Config, Congestion, Growth, MAX_WINDOW, ReduceFrom, SlowStartExit};
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

/// What only slow start needs, or only Cubic's avoidance; Reno's needs neither. Or a model of the
/// path, which sets the window instead.
#[derive(Clone, Debug)]
enum Stage {
    SlowStart(HyStart),
    Epoch(Epoch),
    Model(Box<Bbr>),
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

    /// From now on a model sets the window.
    pub(crate) fn follow(&mut self, model: Bbr) {
        self.stage = Stage::Model(Box::new(model));
    }

    #[inline]
    pub(crate) fn has_model(&self) -> bool {
        matches!(self.stage, Stage::Model(_))
    }

    #[inline]
    pub(crate) fn model(&mut self) -> Option<&mut Bbr> {
        match &mut self.stage {
            Stage::Model(model) => Some(model),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// `acked` bytes were acknowledged; `may_grow` if the window was the limit.
    #[inline]
    pub(crate) fn on_ack(&mut self, config: &Config, acked: u64, may_grow: bool, signal: &Signal) {
        if self.has_model() {
            return;
        }
        // An acknowledgment of more than the largest window cannot be.
        let acked = acked.min(MAX_WINDOW.into()) as u32;
        let slow = self.in_slow_start() && !self.ends_slow_start(config, true, signal);
        if slow {
            self.slow_start(config, acked, may_grow, signal);
        } else if may_grow {
            match config.congestion {
                Congestion::Reno | Congestion::Bbr => self.reno(config, acked),
                Congestion::Cubic => self.cubic(config, acked, signal),
            }
        }
    }

    fn slow_start(&mut self, config: &Config, acked: u32, may_grow: bool, signal: &Signal) {
        if may_grow {
            let segments = match config.growth {
                Growth::PerAck => 1,
                Growth::PerByte { limit } => limit,
            };
            let most = acked.min(segments.saturating_mul(config.mss));
            let growth = most / self.hystart().map_or(1, |hystart| hystart.divisor());
            self.cwnd = (self.cwnd + growth).min(MAX_WINDOW);
        }
        self.ends_slow_start(config, false, signal);
    }

    /// There is one in slow start; it begins anew if that has.
    fn hystart(&mut self) -> Option<&mut HyStart> {
        if let Stage::Epoch(_) = self.stage {
            self.stage = Stage::SlowStart(HyStart::new());
        }
        let Stage::SlowStart(hystart) = &mut self.stage else { return None };
        Some(hystart)
    }

    /// Judges an acknowledgment where that is due: before the window grows or after it.
    fn ends_slow_start(&mut self, config: &Config, before: bool, signal: &Signal) -> bool {
        // Their HyStart is part of their Cubic; HyStart++ is for any.
        let exit = match (config.congestion, config.slow_start_exit) {
            (Congestion::Reno | Congestion::Bbr, SlowStartExit::HyStart(_)) => SlowStartExit::Loss,
            (_, exit) => exit,
        };
        let due = matches!(exit, SlowStartExit::HyStart(law) if law.before_growth) == before;
        let cwnd = self.cwnd;
        let judged = self.hystart().filter(|_| due);
        let ends = judged.is_some_and(|it| it.on_ack(exit, cwnd, config.mss, signal));
        if ends {
            self.ssthresh = cwnd;
        }
        ends
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
        let rtt = if signal.min_rtt == Nanos::MAX { Nanos::ZERO } else { signal.min_rtt };
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

    /// Recovery has shrunk the window as far as it had to.
    pub(crate) fn settle(&mut self) {
        if !self.has_model() {
            self.cwnd = self.ssthresh;
        }
    }

    /// A loss or mark: sets the threshold, leaves the window to recovery.
    pub(crate) fn reduce(&mut self, config: &Config, flight: u64, pipe: u64) {
        let window = self.cwnd;
        if let Some(model) = self.model() {
            return model.save(window);
        }
        let from = match config.reduce_from {
            ReduceFrom::Flight => flight.min(MAX_WINDOW.into()) as u32,
            ReduceFrom::Pipe => pipe.min(MAX_WINDOW.into()) as u32,
            ReduceFrom::Window => self.cwnd,
            ReduceFrom::UsedWindow => self.cwnd.min(config.send_buffer),
        };
        let least = config.mss.saturating_mul(2);
        self.ssthresh = match config.congestion {
            Congestion::Reno | Congestion::Bbr => (from / 2).max(least),
            Congestion::Cubic => {
                let w = f64::from(self.cwnd) / f64::from(config.mss);
                let w = if config.cubic_in_segments { w.trunc() } else { w };
                self.memory.reduce(w as f32, config.cubic_fast_convergence);
                if config.cubic_in_segments {
                    self.memory.in_segments();
                }
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
        if let Some(model) = self.model() {
            return model.on_timeout();
        }
        self.memory.reset();
        self.restart(config);
    }

    /// The sender was idle for `idle`; `restart` if that was longer than a timeout.
    pub(crate) fn on_idle(&mut self, config: &Config, idle: Nanos, restart: bool, now: Nanos) {
        if let Stage::Epoch(epoch) = &mut self.stage {
            epoch.skip(idle, now);
        }
        if restart && config.restart_after_idle && !self.has_model() {
            self.cwnd = self.cwnd.min(config.initial_window.saturating_mul(config.mss));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HyStartLaw, MILLISECOND, ReduceFrom, SECOND, SlowStartExit};
    use units::Nanos;

    /// Cubic without a Reno-friendly region, in avoidance with 70 of 100 segments.
    fn reduced() -> (Config, Control) {
        let config = Config {
            mss: 1000,
            initial_window: 100,
            initial_ssthresh: MAX_WINDOW,
            reduce_from: ReduceFrom::Window,
            slow_start_exit: SlowStartExit::Loss,
            cubic_friendly: false,
            ..Config::default()
        };
        let mut control = Control::new(&config);
        control.reduce(&config, 0, 0);
        control.cwnd = control.ssthresh;
        (config, control)
    }

    /// A round trip of 100 ms in which the whole window is acknowledged.
    fn round(config: &Config, control: &mut Control, now: Nanos) {
        let signal =
            Signal { now, una: 0, nxt: 0, rtt: None, min_rtt: SECOND / 10, srtt: Nanos::ZERO };
        let segments = control.cwnd / config.mss;
        (0..segments).for_each(|_| control.on_ack(config, config.mss.into(), true, &signal));
    }

    /// Cubic's window so many seconds after the reduction, in bytes; the real one follows a
    /// round trip behind.
    fn curve(seconds: f64) -> u32 {
        let k = (30.0f64 / 0.4).powf(1.0 / 3.0);
        ((100.0 + 0.4 * (seconds - k).powi(3)) * 1000.0) as u32
    }

    #[test]
    fn idle_time_does_not_count() {
        let (config, mut control) = reduced();
        (0..10).for_each(|r| round(&config, &mut control, SECOND + r * SECOND / 10));
        assert!(control.cwnd.abs_diff(curve(1.0)) <= 3000, "{}", control.cwnd);
        control.on_idle(&config, 60 * SECOND, false, 62 * SECOND);
        round(&config, &mut control, 62 * SECOND);
        assert!(control.cwnd.abs_diff(curve(1.1)) <= 3000, "{}", control.cwnd);
    }

    #[test]
    fn growth_that_began_while_the_sender_was_idle_begins_with_what_it_sends() {
        let (config, mut control) = reduced();
        round(&config, &mut control, 100 * SECOND);
        // The last data went out 60 s before: the epoch does not begin 59 s from now.
        control.on_idle(&config, 60 * SECOND, false, 101 * SECOND);
        (0..10).for_each(|r| round(&config, &mut control, 101 * SECOND + r * SECOND / 10));
        assert!(control.cwnd.abs_diff(curve(1.0)) <= 3000, "{}", control.cwnd);
    }

    #[test]
    fn after_a_timeout_the_old_peak_is_forgotten() {
        let (config, mut control) = reduced();
        control.reduce(&config, 0, 0);
        control.on_timeout(&config);
        assert_eq!((control.cwnd, control.ssthresh), (1000, 49_000));
        control.cwnd = control.ssthresh;
        // Flat from here: one for twenty, where the way to the old peak of 85 would be steep.
        round(&config, &mut control, SECOND);
        assert_eq!(control.cwnd, 51_000);
    }

    /// Whether slow start ends before a loss, while the delay rises from 20 to 80 ms.
    fn leaves_slow_start(config: &Config) -> bool {
        let mut control = Control::new(config);
        let mss = u64::from(config.mss);
        (0..500).any(|ack| {
            let rtt = (20 + ack / 8) * MILLISECOND;
            let signal = Signal {
                now: ack * MILLISECOND,
                una: ack * mss,
                nxt: (2 * ack + 10) * mss,
                rtt: Some(rtt.min(80 * MILLISECOND)),
                min_rtt: 20 * MILLISECOND,
                srtt: 20 * MILLISECOND,
            };
            control.on_ack(config, mss, true, &signal);
            !control.in_slow_start()
        })
    }

    #[test]
    fn hystart_of_linux_is_a_part_of_cubic_and_reno_has_none() {
        let cubic = Config::linux();
        assert!(leaves_slow_start(&cubic));
        assert!(!leaves_slow_start(&Config { congestion: Congestion::Reno, ..cubic }));
    }

    #[test]
    fn linux_judges_an_acknowledgment_before_the_window_grows() {
        // The delay rises from 100 to 120 ms with the first acknowledgment of a round, which is
        // seen with the ninth: at 24 segments, not at 25.
        let exit = |before_growth| {
            let law = HyStartLaw { before_growth, ..HyStartLaw::LINUX };
            let config = Config {
                initial_window: 16,
                slow_start_exit: SlowStartExit::HyStart(law),
                ..Config::linux()
            };
            let mut control = Control::new(&config);
            for ack in 1..=9 {
                let mss = u64::from(config.mss);
                let signal = Signal {
                    now: ack * 3 * MILLISECOND,
                    una: ack * mss,
                    nxt: 20 * mss,
                    rtt: Some(120 * MILLISECOND),
                    min_rtt: 100 * MILLISECOND,
                    srtt: 100 * MILLISECOND,
                };
                control.on_ack(&config, mss, true, &signal);
            }
            assert!(!control.in_slow_start());
            control.ssthresh / config.mss
        };
        assert_eq!((exit(true), exit(false)), (24, 25));
    }

    #[test]
    fn a_loss_at_the_plateau_in_whole_segments_does_not_give_way_again() {
        // 18 of 20 segments: the plateau is 18 x 1.7 / 2 = 15.3, remembered as 15.
        for (in_segments, plateau) in [(true, 15.0), (false, 15.0 * 1.7 / 2.0)] {
            let config = Config { cubic_in_segments: in_segments, ..Config::linux() };
            let mut control = Control::new(&config);
            for segments in [20, 18, 15] {
                control.cwnd = segments * config.mss;
                control.reduce(&config, 0, 0);
            }
            assert!((control.memory.plateau() - plateau).abs() < 1e-5, "{in_segments}");
        }
    }

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
