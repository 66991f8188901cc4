//! How long an acknowledgment may be delayed, and how many are not (RFC 5681, section 4.2).
//!
//! With `Config::adaptive_acks` both follow what arrives, as in Linux: the delay is that of
//! segments among themselves, between `Config::ack_delay` and a round trip, and doubles when it
//! was waited for in vain; after a pause, and after data that had arrived before, a number of
//! segments are acknowledged at once, so that a sender in slow start is not held up.

use units::Nanos;

use crate::config::Config;
use crate::rtt::Rtt;

/// Segments that are acknowledged at once after a pause or a needless retransmission.
const QUICK: u16 = 16;
/// No acknowledgment is delayed longer, whatever the round trip.
const LONGEST_MS: u32 = 200;

/// When data is to be acknowledged. Small, since each endpoint has one.
#[derive(Clone, Debug)]
pub(crate) struct DelayedAck {
    /// When the last segment in order arrived, in milliseconds; 0 before the first.
    last_ms: u32,
    /// The present delay in milliseconds.
    delay_ms: u16,
    /// Segments yet to be acknowledged at once.
    quick: u16,
}

impl DelayedAck {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            last_ms: 0,
            delay_ms: least_ms(config),
            quick: config.quick_acks.min(u16::MAX.into()) as u16,
        }
    }

    /// Whether segments are acknowledged at once.
    #[inline]
    pub(crate) fn is_quick(&self) -> bool {
        self.quick > 0
    }

    /// Takes note of a segment in order.
    #[inline]
    pub(crate) fn on_data(&mut self, config: &Config, rtt: &Rtt, now: Nanos) {
        let now_ms = milliseconds(now);
        let gap = now_ms.wrapping_sub(self.last_ms);
        let first = std::mem::replace(&mut self.last_ms, now_ms) == 0;
        let (delay, least) = (u32::from(self.delay_ms), u32::from(least_ms(config)));
        if first || (gap <= least / 2 && delay == least) {
            return;
        }
        if gap <= least / 2 {
            self.delay_ms = (delay / 2 + least / 2) as u16;
        } else if gap < delay {
            self.lengthen(delay / 2 + gap, config, rtt);
        } else if gap > milliseconds(rtt.timeout(config)) {
            self.quick = self.quick.max(QUICK);
        }
    }

    /// The receive window grows by a segment: it is acknowledged at once, and as many as before
    /// after it.
    #[inline]
    pub(crate) fn on_growth(&mut self) {
        self.quick |= 1;
    }

    /// Takes note of data that had arrived before: the sender waits for an acknowledgment.
    #[cold]
    pub(crate) fn on_duplicate(&mut self, config: &Config) {
        self.quick = self.quick.max(QUICK);
        self.delay_ms = least_ms(config);
    }

    /// How long the acknowledgment of a segment that has just arrived may be delayed.
    #[inline]
    pub(crate) fn delay(&self, config: &Config, rtt: &Rtt) -> Nanos {
        let least = least_ms(config);
        if !config.adaptive_acks || self.delay_ms <= least {
            return config.ack_delay;
        }
        let longest = milliseconds(rtt.srtt()).max(least.into()).min(LONGEST_MS);
        Nanos::from_millis(longest.min(self.delay_ms.into()).into())
    }

    /// The delay has passed.
    pub(crate) fn on_timer(&mut self, config: &Config, rtt: &Rtt) {
        if config.adaptive_acks {
            self.lengthen(2 * u32::from(self.delay_ms), config, rtt);
        }
    }

    /// An acknowledgment was due, and leaves.
    #[inline]
    pub(crate) fn acknowledged(&mut self, config: &Config) {
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay_ms = least_ms(config);
            }
        }
    }

    fn lengthen(&mut self, to_ms: u32, config: &Config, rtt: &Rtt) {
        let longest = milliseconds(rtt.timeout(config)).min(u16::MAX.into());
        self.delay_ms = to_ms.min(longest) as u16;
    }
}

fn least_ms(config: &Config) -> u16 {
    milliseconds(config.ack_delay).min(u16::MAX.into()) as u16
}

/// It wraps after 49 days.
const fn milliseconds(Nanos(ns): Nanos) -> u32 {
    (ns / 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    fn linux() -> (Config, Rtt, DelayedAck) {
        let config = Config::linux();
        let mut rtt = Rtt::new();
        rtt.sample(100 * MS);
        let delayed = DelayedAck::new(&Config { quick_acks: 0, ..config.clone() });
        (config, rtt, delayed)
    }

    #[test]
    fn the_delay_is_that_of_segments_among_themselves() {
        let (config, rtt, mut delayed) = linux();
        let mut delays = Vec::new();
        for at in [1000, 1030, 1090, 1150, 1151, 1152, 1153, 1154] {
            delayed.on_data(&config, &rtt, at * MS);
            delays.push(delayed.delay(&config, &rtt).0 / MS.0);
        }
        // 20 + 30; a pause longer than that says nothing; what comes closer halves the excess.
        assert_eq!(delays, [40, 50, 50, 50, 45, 42, 41, 40]);
        assert!(!delayed.is_quick());
    }

    #[test]
    fn a_delay_in_vain_doubles_up_to_a_round_trip() {
        let (config, mut rtt, mut delayed) = linux();
        let mut delays = Vec::new();
        for _ in 0..4 {
            delayed.on_timer(&config, &rtt);
            delays.push(delayed.delay(&config, &rtt).0 / MS.0);
        }
        assert_eq!(delays, [80, 100, 100, 100]);
        // The timeout of 300 ms is the limit of the delay itself, 200 ms of its use.
        (0..50).for_each(|_| rtt.sample(400 * MS));
        assert_eq!((delayed.delay_ms, delayed.delay(&config, &rtt)), (300, 200 * MS));
    }

    #[test]
    fn after_a_pause_and_a_duplicate_segments_are_acknowledged_at_once() {
        let (config, rtt, mut delayed) = linux();
        let quick = |delayed: &mut DelayedAck| {
            let left = std::iter::from_fn(|| {
                let is_quick = delayed.is_quick();
                delayed.acknowledged(&config);
                is_quick.then_some(())
            });
            left.count()
        };
        delayed.on_data(&config, &rtt, 1000 * MS);
        delayed.on_data(&config, &rtt, 1300 * MS);
        assert_eq!(quick(&mut delayed), 0);
        delayed.on_data(&config, &rtt, 1601 * MS);
        assert_eq!(quick(&mut delayed), 16);
        delayed.on_timer(&config, &rtt);
        delayed.on_duplicate(&config);
        assert_eq!(delayed.delay(&config, &rtt), 40 * MS);
        assert_eq!(quick(&mut delayed), 16);
        // As long as the window grows, each.
        for _ in 0..3 {
            delayed.on_growth();
            assert!(delayed.is_quick());
            delayed.acknowledged(&config);
        }
        assert_eq!(quick(&mut delayed), 0);
    }
}
