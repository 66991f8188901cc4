//! Leaving slow start before there is a loss: HyStart as in Linux and ns-3, and HyStart++.

use crate::config::{HyStartLaw, SlowStartExit};
use units::Nanos;

/// Round-trip time samples of a round before it is judged.
const SAMPLES: u8 = 8;
/// HyStart: acknowledgments closer than this are of one train.
const TRAIN_GAP: Nanos = Nanos::from_millis(2);
/// HyStart: windows below this many segments are left alone.
const LOW_WINDOW: u32 = 16;
/// HyStart++: a rise of the delay by an eighth, within these bounds, ends slow start.
const MIN_RISE: Nanos = Nanos::from_millis(4);
const MAX_RISE: Nanos = Nanos::from_millis(16);
/// HyStart++: rounds of conservative slow start, which grows by a quarter.
const CONSERVATIVE_ROUNDS: u8 = 5;
const CONSERVATIVE_DIVISOR: u32 = 4;

/// What an acknowledgment tells.
pub(crate) struct Signal {
    pub(crate) now: Nanos,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    pub(crate) rtt: Option<Nanos>,
    pub(crate) min_rtt: Nanos,
    pub(crate) srtt: Nanos,
}

#[derive(Clone, Debug)]
pub(crate) struct HyStart {
    /// The round ends when this is acknowledged.
    round_end: u64,
    round_start: Nanos,
    last_ack: Nanos,
    /// Least sample of this round; [`Nanos::MAX`] if none.
    current: Nanos,
    /// HyStart++: of the round before; in conservative slow start, of when that began.
    /// HyStart of smoothed delays: the least of them.
    baseline: Nanos,
    samples: u8,
    /// HyStart++: rounds of conservative slow start left; 0 outside of it.
    conservative: u8,
    found: bool,
}

impl HyStart {
    pub(crate) fn new() -> Self {
        Self {
            round_end: 0,
            round_start: Nanos::ZERO,
            last_ack: Nanos::ZERO,
            current: Nanos::MAX,
            baseline: Nanos::MAX,
            samples: 0,
            conservative: 0,
            found: false,
        }
    }

    /// Divides the growth of the window.
    #[inline]
    pub(crate) fn divisor(&self) -> u32 {
        if self.conservative > 0 { CONSERVATIVE_DIVISOR } else { 1 }
    }

    /// An acknowledgment in slow start; `true` says that slow start is over.
    #[inline]
    pub(crate) fn on_ack(&mut self, exit: SlowStartExit, cwnd: u32, mss: u32, s: &Signal) -> bool {
        match exit {
            SlowStartExit::Loss => false,
            SlowStartExit::HyStart(law) => self.classic(law, cwnd, mss, s),
            SlowStartExit::HyStartPlusPlus => self.plus_plus(s),
        }
    }

    fn classic(&mut self, law: HyStartLaw, cwnd: u32, mss: u32, s: &Signal) -> bool {
        let low = cwnd / LOW_WINDOW < mss;
        if low && law.before_growth {
            return false;
        }
        let ends_round = s.una > self.round_end;
        if ends_round && !law.late_rounds {
            self.start_round(s);
        }
        if let Some(rtt) = s.rtt {
            let (delay, least) = if law.smoothed {
                self.baseline = self.baseline.min(s.srtt);
                (s.srtt, self.baseline)
            } else {
                (rtt, s.min_rtt)
            };
            if !low && !self.found {
                self.judge(law, delay, least, s);
            }
        }
        if ends_round && law.late_rounds {
            self.start_round(s);
        }
        self.found
    }

    fn start_round(&mut self, s: &Signal) {
        self.round_start = s.now;
        self.last_ack = s.now;
        self.round_end = s.nxt;
        self.current = Nanos::MAX;
        self.samples = 0;
    }

    fn judge(&mut self, law: HyStartLaw, delay: Nanos, least: Nanos, s: &Signal) {
        if s.now - self.last_ack <= TRAIN_GAP {
            self.last_ack = s.now;
            self.found |= s.now - self.round_start > least / u64::from(law.train_divisor.max(1));
        }
        let counts = self.samples < SAMPLES;
        if counts || law.before_growth {
            self.current = self.current.min(delay);
        }
        if counts {
            self.samples += 1;
        } else {
            let rise = least / u64::from(law.delay_divisor.max(1));
            let rise = rise.min(law.delay_max).max(law.delay_min);
            self.found |= self.current > least + rise;
        }
    }

    /// RFC 9406, section 4.2.
    fn plus_plus(&mut self, s: &Signal) -> bool {
        if s.una >= self.round_end {
            self.round_end = s.nxt;
            if self.conservative > 0 {
                self.conservative -= 1;
                if self.conservative == 0 {
                    self.found = true;
                    return true;
                }
            } else {
                self.baseline = self.current;
            }
            self.current = Nanos::MAX;
            self.samples = 0;
        }
        let Some(rtt) = s.rtt else { return false };
        self.current = self.current.min(rtt);
        self.samples = self.samples.saturating_add(1);
        if self.samples < SAMPLES || self.baseline == Nanos::MAX {
            return false;
        }
        if self.conservative > 0 {
            if self.current < self.baseline {
                // The rise was not lasting.
                self.conservative = 0;
                self.baseline = Nanos::MAX;
            }
        } else {
            let rise = (self.baseline / 8).clamp(MIN_RISE, MAX_RISE);
            if self.current >= self.baseline + rise {
                self.baseline = self.current;
                self.conservative = CONSERVATIVE_ROUNDS;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MILLISECOND;

    const MSS: u32 = 1000;

    /// Rounds of 20 acknowledgments `gap` apart with these round-trip times; the (round,
    /// acknowledgment) at which slow start ends, and whether growth was divided before.
    fn run(exit: SlowStartExit, rtts: &[Nanos], gap: Nanos) -> (Option<(usize, u64)>, bool) {
        let mut hystart = HyStart::new();
        let mut divided = false;
        let mut now = Nanos::ZERO;
        for (round, &rtt) in rtts.iter().enumerate() {
            now += rtts[0];
            for ack in 1..=20u64 {
                now += gap;
                let una = round as u64 * 20 + ack;
                let min_rtt = rtts[..=round].iter().copied().min().unwrap();
                let signal = Signal { now, una, nxt: una + 20, rtt: Some(rtt), min_rtt, srtt: rtt };
                if hystart.on_ack(exit, 20 * MSS, MSS, &signal) {
                    return (Some((round, ack)), divided);
                }
                divided |= hystart.divisor() > 1;
            }
        }
        (None, divided)
    }

    #[test]
    fn a_train_as_long_as_half_a_round_trip_ends_slow_start() {
        let linux = SlowStartExit::HyStart(HyStartLaw::LINUX);
        // The 12th acknowledgment is 11 ms after the first.
        assert_eq!(run(linux, &[Nanos::from_millis(21)], MILLISECOND).0, Some((0, 12)));
        assert_eq!(run(linux, &[Nanos::from_millis(100); 3], MILLISECOND).0, None);
        let ns3 = SlowStartExit::HyStart(HyStartLaw::NS3);
        assert_eq!(run(ns3, &[Nanos::from_millis(21)], MILLISECOND).0, None);
        assert_eq!(run(ns3, &[Nanos::from_millis(10)], MILLISECOND).0, Some((0, 12)));
    }

    #[test]
    fn so_does_a_rising_delay() {
        let rtts = [Nanos::from_millis(80), Nanos::from_millis(95)];
        let linux = SlowStartExit::HyStart(HyStartLaw::LINUX);
        // A rise of more than 10 ms, seen in eight samples, acted on with the ninth. The round
        // begins after its first acknowledgment.
        assert_eq!(run(linux, &rtts, Nanos(1000)).0, Some((1, 10)));
        let ns3 = SlowStartExit::HyStart(HyStartLaw::NS3);
        assert_eq!(run(ns3, &rtts, Nanos(1000)).0, None);
    }

    #[test]
    fn a_late_sample_that_is_low_keeps_slow_start_on() {
        // Eight samples of 120 ms and then one of 90, the new least: the rise was over before it
        // was looked at. Seven below the window that is low do not count.
        let run = |before_growth| {
            let law = HyStartLaw { before_growth, ..HyStartLaw::LINUX };
            let mut hystart = HyStart::new();
            (1..=16u64).find(|&ack| {
                let rtt = Nanos::from_millis(if ack <= 15 { 120 } else { 90 });
                let least = Nanos::from_millis(if ack <= 15 { 115 } else { 90 });
                let now = Nanos::from_millis(3 * ack);
                let signal =
                    Signal { now, una: ack, nxt: 20, rtt: Some(rtt), min_rtt: least, srtt: rtt };
                let cwnd = if ack <= 7 { 15 * MSS } else { 20 * MSS };
                hystart.on_ack(SlowStartExit::HyStart(law), cwnd, MSS, &signal)
            })
        };
        assert_eq!((run(true), run(false)), (None, Some(16)));
    }

    #[test]
    fn hystart_plus_plus_slows_down_for_five_rounds_first() {
        let mut rtts = vec![Nanos::from_millis(40); 2];
        rtts.extend([Nanos::from_millis(50); 8]);
        let (end, divided) = run(SlowStartExit::HyStartPlusPlus, &rtts, Nanos(1000));
        // Round 2 shows the rise; the fifth round after it ends slow start with its first sample.
        assert_eq!((end, divided), (Some((7, 1)), true));
    }

    #[test]
    fn hystart_plus_plus_resumes_if_the_rise_was_not_lasting() {
        let mut rtts = vec![Nanos::from_millis(40); 2];
        rtts.push(Nanos::from_millis(50));
        rtts.extend([Nanos::from_millis(40); 8]);
        assert_eq!(run(SlowStartExit::HyStartPlusPlus, &rtts, Nanos(1000)), (None, true));
    }

    #[test]
    fn smoothed_delays_rise_later_than_their_samples() {
        let first_exit = |smoothed: bool| {
            let exit = SlowStartExit::HyStart(HyStartLaw { smoothed, ..HyStartLaw::NS3 });
            let mut hystart = HyStart::new();
            let mut srtt = Nanos::from_millis(10);
            (1..=200u64).find(|&ack| {
                // Samples are three times the least from the second round on.
                let rtt = Nanos::from_millis(if ack <= 20 { 10 } else { 30 });
                srtt = srtt - srtt / 8 + rtt / 8;
                let (min_rtt, nxt) = (Nanos::from_millis(10), ack + 20);
                let signal = Signal {
                    now: Nanos::from_millis(3 * ack),
                    una: ack,
                    nxt,
                    rtt: Some(rtt),
                    min_rtt,
                    srtt,
                };
                hystart.on_ack(exit, 20 * MSS, MSS, &signal)
            })
        };
        let (samples, smoothed) = (first_exit(false).unwrap(), first_exit(true).unwrap());
        assert!(samples < smoothed, "{samples}, {smoothed}");
    }
}
