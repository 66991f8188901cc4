//! BBR (version 1, draft-cardwell-iccrg-bbr-congestion-control-00), as in Linux: a model of the
//! path, its bandwidth and its least round trip, sets the pace and the window; losses do not.
//!
//! Amounts are bytes, rates bytes a second. Of Linux's, the detection of policers is missing.

mod aggregation;
mod sender;
mod window;

use units::Nanos;

use crate::rate::Sample;
use crate::recovery::Phase;
use crate::windowed_max::WindowedMax;
use aggregation::Aggregation;

/// 2 / ln 2: what doubles the rate in each round.
const HIGH_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
/// The window, in bandwidth-delay products.
const WINDOW_GAIN: f64 = 2.0;
/// The pace in a cycle of probing: more, less, then as estimated. Each phase is a round trip.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The pace stays below the estimate by this part, so that queues drain.
const MARGIN: f64 = 0.99;
/// Rounds of which the largest bandwidth counts.
const BANDWIDTH_ROUNDS: u64 = CYCLE.len() as u64 + 2;
/// A bandwidth that has not grown by this in so many rounds is that of the path.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u8 = 3;
/// The least round trip is measured again after so long, for this time, with this window.
const LEAST_RTT_TIME: Nanos = Nanos::from_secs(10);
const PROBE_RTT_TIME: Nanos = Nanos::from_millis(200);
const LEAST_WINDOW: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// The rate doubles until the bandwidth does not grow any more.
    Startup,
    /// What startup has queued drains.
    Drain,
    /// This phase of the cycle.
    ProbeBandwidth(usize),
    /// The queue is emptied, to see the least round trip.
    ProbeRtt,
}

/// What an acknowledgment has changed.
pub(crate) struct Ack {
    pub(crate) now: Nanos,
    pub(crate) sample: Option<Sample>,
    /// Bytes delivered by it, and in all.
    pub(crate) acked: u64,
    pub(crate) delivered: u64,
    /// When something was delivered last.
    pub(crate) delivered_at: Nanos,
    /// Bytes that are lost by what it says.
    pub(crate) lost: u64,
    /// In the network, before it and now.
    pub(crate) pipe_before: u64,
    pub(crate) pipe: u64,
    /// The earliest time of the next segment, by the pace.
    pub(crate) departs: Nanos,
    pub(crate) phase: Phase,
}

/// The model of one sender's path.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    mss: u64,
    mode: Mode,
    /// The pace.
    rate: f64,
    /// Segments that may follow those that left then without a pause.
    burst_left: u64,
    burst_at: Nanos,
    bandwidth: WindowedMax,
    round: u64,
    round_ends: u64,
    round_starts: bool,
    full: bool,
    full_bandwidth: f64,
    full_rounds: u8,
    phase_began: Nanos,
    least_rtt: Nanos,
    least_rtt_at: Nanos,
    /// The window before it was cut: by recovery, or to see the least round trip.
    saved: u64,
    phase_before: Phase,
    conserves: bool,
    /// When the time of the small window is over, once that is reached; and whether a round of
    /// it has passed.
    probe_ends: Option<Nanos>,
    probe_round: bool,
    idle_restart: bool,
    aggregation: Aggregation,
}

fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

impl Bbr {
    /// At the end of the handshake, which measured `rtt`.
    pub(crate) fn new(mss: u32, window: u32, rtt: Option<Nanos>, now: Nanos) -> Self {
        let first_rtt = rtt.unwrap_or(Nanos::from_millis(1)).max(Nanos(1_000));
        Self {
            mss: mss.into(),
            mode: Mode::Startup,
            rate: HIGH_GAIN * MARGIN * f64::from(window) / seconds(first_rtt),
            burst_left: 0,
            burst_at: Nanos::MAX,
            bandwidth: WindowedMax::default(),
            round: 0,
            round_ends: 0,
            round_starts: false,
            full: false,
            full_bandwidth: 0.0,
            full_rounds: 0,
            phase_began: now,
            least_rtt: rtt.unwrap_or(Nanos::MAX),
            least_rtt_at: now,
            saved: 0,
            phase_before: Phase::Open,
            conserves: false,
            probe_ends: None,
            probe_round: false,
            idle_restart: false,
            aggregation: Aggregation::new(now),
        }
    }

    /// A segment leaves: how long it keeps the next burst waiting.
    /// Of the time that it is late, up to half of the pause is given back, as in Linux.
    pub(crate) fn departs(&mut self, bytes: u32, late: Nanos, now: Nanos) -> Nanos {
        let pause = self.pause(bytes);
        let mut credit = Nanos::ZERO;
        if now != self.burst_at {
            self.burst_at = now;
            self.burst_left = self.burst();
            credit = late.min(pause * self.burst_left / 2);
        }
        self.burst_left = self.burst_left.saturating_sub(1);
        pause - credit
    }

    fn pause(&self, bytes: u32) -> Nanos {
        Nanos((f64::from(bytes) / self.rate.max(1.0) * 1e9) as u64)
    }

    /// Whether a segment may leave now whatever the pace, in a burst with others.
    pub(crate) fn in_burst(&self, now: Nanos) -> bool {
        self.burst_left > 0 && now == self.burst_at
    }

    /// Losses or a timeout are about to cut the window.
    pub(crate) fn save(&mut self, window: u32) {
        let window = u64::from(window);
        let is_good = !is_repairing(self.phase_before) && self.mode != Mode::ProbeRtt;
        self.saved = if is_good { window } else { self.saved.max(window) };
    }

    /// A timeout: the path may have changed.
    pub(crate) fn on_timeout(&mut self) {
        self.phase_before = Phase::Loss;
        self.full_bandwidth = 0.0;
    }

    /// The first data after the application had none. Without a need for more, the pace is that
    /// of the bandwidth.
    pub(crate) fn on_restart(&mut self, window: u32, now: Nanos) -> u32 {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBandwidth(_) => self.set_rate(1.0),
            Mode::ProbeRtt => return self.end_probe_rtt(window.into(), now) as u32,
            Mode::Startup | Mode::Drain => {}
        }
        window
    }

    /// Takes in an acknowledgment, and sets the pace; returns the window.
    pub(crate) fn on_ack(&mut self, window: u32, ack: &Ack) -> u32 {
        let before = u64::from(window);
        let mut window = before;
        self.update_bandwidth(ack);
        if ack.sample.is_some_and(|sample| sample.interval.is_some()) && ack.acked > 0 {
            let (bandwidth, starts) = (self.bandwidth.get(), self.round_starts);
            self.aggregation.on_ack(ack, bandwidth, starts, before);
        }
        self.update_cycle(ack);
        self.check_full(ack);
        self.check_drained(ack);
        window = self.update_least_rtt(window, ack);
        let (pace, room) = self.gains();
        self.set_rate(pace);
        self.window(window, room, ack).min(crate::MAX_WINDOW.into()) as u32
    }

    fn update_bandwidth(&mut self, ack: &Ack) {
        self.round_starts = false;
        let Some((sample, interval)) = ack.sample.and_then(|it| Some((it, it.interval?))) else {
            return;
        };
        if sample.prior_delivered >= self.round_ends {
            self.round_ends = ack.delivered;
            self.round += 1;
            self.round_starts = true;
            self.conserves = false;
        }
        let found = sample.delivered as f64 / seconds(interval);
        // What the application limits says nothing, unless it is more than was thought.
        if !sample.app_limited || found >= self.bandwidth.get() {
            self.bandwidth.note(self.round, found, BANDWIDTH_ROUNDS);
        }
    }

    fn update_cycle(&mut self, ack: &Ack) {
        let Mode::ProbeBandwidth(phase) = self.mode else { return };
        let long = ack.delivered_at.since(self.phase_began) > self.least_rtt;
        let gain = CYCLE[phase];
        let pipe = self.in_network(ack.pipe_before, ack);
        let over = if gain > 1.0 {
            // More is tried until it fills that much of the path, or does not fit.
            long && (ack.lost > 0 || pipe >= self.inflight(gain))
        } else if gain < 1.0 {
            long || pipe <= self.inflight(1.0)
        } else {
            long
        };
        if over {
            self.begin_phase((phase + 1) % CYCLE.len(), ack.delivered_at);
        }
    }

    fn begin_phase(&mut self, phase: usize, now: Nanos) {
        self.mode = Mode::ProbeBandwidth(phase);
        self.phase_began = now;
    }

    /// Any phase of the cycle but that of less. Which one, a hash of the time says, in the place
    /// of a random number: flows must not probe together.
    fn begin_cycle(&mut self, delivered_at: Nanos) {
        let mixed = (delivered_at.0 ^ (delivered_at.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let phase = 2 + (mixed >> 33) as usize % (CYCLE.len() - 1);
        self.begin_phase(phase % CYCLE.len(), delivered_at);
    }

    fn check_full(&mut self, ack: &Ack) {
        let app_limited = ack.sample.is_some_and(|sample| sample.app_limited);
        if self.full || !self.round_starts || app_limited {
            return;
        }
        if self.bandwidth.get() >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = self.bandwidth.get();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drained(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && self.in_network(ack.pipe, ack) <= self.inflight(1.0) {
            self.begin_cycle(ack.delivered_at);
        }
    }

    fn update_least_rtt(&mut self, mut window: u64, ack: &Ack) -> u64 {
        let expired = ack.now > self.least_rtt_at + LEAST_RTT_TIME;
        if let Some(rtt) = ack.sample.and_then(|sample| sample.rtt)
            && (rtt < self.least_rtt || expired)
        {
            self.least_rtt = rtt;
            self.least_rtt_at = ack.now;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save(window.min(u32::MAX.into()) as u32);
            self.probe_ends = None;
        }
        if self.mode == Mode::ProbeRtt {
            match self.probe_ends {
                None if ack.pipe <= LEAST_WINDOW * self.mss => {
                    self.probe_ends = Some(ack.now + PROBE_RTT_TIME);
                    self.probe_round = false;
                    self.round_ends = ack.delivered;
                }
                None => {}
                Some(_) => {
                    self.probe_round |= self.round_starts;
                    if self.probe_round {
                        window = self.end_probe_rtt(window, ack.now);
                    }
                }
            }
        }
        if ack.sample.is_some_and(|sample| sample.delivered > 0) {
            self.idle_restart = false;
        }
        window
    }

    fn end_probe_rtt(&mut self, window: u64, now: Nanos) -> u64 {
        if self.probe_ends.is_none_or(|end| now <= end) {
            return window;
        }
        self.least_rtt_at = now;
        if self.full {
            self.begin_cycle(now);
        } else {
            self.mode = Mode::Startup;
        }
        window.max(self.saved)
    }

    /// Whether the window is small to see the least round trip.
    pub(crate) fn probes_rtt(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    /// Of the pace, and of the window.
    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth(phase) => (CYCLE[phase], WINDOW_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        }
    }

    /// In startup the pace only grows.
    fn set_rate(&mut self, gain: f64) {
        let rate = self.bandwidth.get() * gain * MARGIN;
        if self.full || rate > self.rate {
            self.rate = rate;
        }
    }
}

fn is_repairing(phase: Phase) -> bool {
    matches!(phase, Phase::Recovery | Phase::Loss)
}
