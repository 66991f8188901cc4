//! Round-trip time and retransmission timeout (RFC 6298).

use crate::config::{Config, RtoFloor};
use units::Nanos;

/// The estimator of one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    srtt: Nanos,
    rttvar: Nanos,
    min: Nanos,
    /// Without timestamps: the end of the segment that is being timed; 0 if none is.
    timed: u64,
    timed_at: Nanos,
    backoff: u8,
    /// Segments carry timestamps, and need not be timed.
    pub(crate) timestamps: bool,
    /// The handshake needed a second try, and gave no sample.
    cautious: bool,
}

impl Rtt {
    pub(crate) fn new() -> Self {
        Self {
            srtt: Nanos::ZERO,
            rttvar: Nanos::ZERO,
            min: Nanos::MAX,
            timed: 0,
            timed_at: Nanos::ZERO,
            backoff: 0,
            timestamps: false,
            cautious: false,
        }
    }

    /// Smoothed; 0 before the first sample.
    #[inline]
    pub(crate) fn srtt(&self) -> Nanos {
        self.srtt
    }

    /// The least; [`Nanos::MAX`] before the first sample.
    #[inline]
    pub(crate) fn min(&self) -> Nanos {
        self.min
    }

    #[inline]
    pub(crate) fn sample(&mut self, rtt: Nanos) {
        // A sample of 0 would look like none.
        let rtt = rtt.max(Nanos(1));
        self.min = self.min.min(rtt);
        if self.srtt == Nanos::ZERO {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = self.rttvar - self.rttvar / 4 + self.srtt.abs_diff(rtt) / 4;
            self.srtt = (self.srtt - self.srtt / 8 + rtt / 8).max(Nanos(1));
        }
        self.backoff = 0;
    }

    /// The timeout as it is now, with backoff.
    #[inline]
    pub(crate) fn timeout(&self, config: &Config) -> Nanos {
        let timeout = self.without_backoff(config);
        if self.backoff == 0 {
            return timeout.min(config.max_rto);
        }
        (timeout * (1 << self.backoff)).min(config.max_rto)
    }

    #[inline]
    fn without_backoff(&self, config: &Config) -> Nanos {
        if self.srtt == Nanos::ZERO {
            return if self.cautious { config.rto_after_syn_loss } else { config.initial_rto };
        }
        let spread = self.rttvar * 4;
        match config.rto_floor {
            RtoFloor::Total => (self.srtt + spread.max(config.granularity)).max(config.min_rto),
            RtoFloor::Variation => self.srtt + spread.max(config.min_rto),
        }
    }

    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }

    pub(crate) fn forget_backoff(&mut self) {
        self.backoff = 0;
    }

    /// A SYN or SYN-ACK was lost.
    pub(crate) fn be_cautious(&mut self) {
        self.cautious = true;
    }

    /// Times the segment that ends at `end`, unless another one is being timed.
    #[inline]
    pub(crate) fn time(&mut self, end: u64, now: Nanos) {
        if self.timed == 0 && !self.timestamps {
            self.timed = end;
            self.timed_at = now;
        }
    }

    /// Something was retransmitted: what is acknowledged next may be either copy (Karn).
    pub(crate) fn stop_timing(&mut self) {
        self.timed = 0;
    }

    /// The sample that an acknowledgment without timestamps gives.
    #[inline]
    pub(crate) fn timed(&mut self, ack: u64, now: Nanos) -> Option<Nanos> {
        if self.timed == 0 || ack < self.timed {
            return None;
        }
        self.timed = 0;
        Some(now.since(self.timed_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{MILLISECOND as MS, SECOND};

    #[test]
    fn the_estimator_is_rfc_6298s() {
        let config = Config { min_rto: Nanos(1), granularity: MS, ..Config::default() };
        let mut rtt = Rtt::new();
        assert_eq!(rtt.timeout(&config), SECOND);
        rtt.sample(80 * MS);
        assert_eq!((rtt.srtt(), rtt.timeout(&config)), (80 * MS, 240 * MS));
        rtt.sample(160 * MS);
        // rttvar = 3/4 * 40 + 1/4 * 80, srtt = 7/8 * 80 + 1/8 * 160
        assert_eq!((rtt.srtt(), rtt.timeout(&config)), (90 * MS, 290 * MS));
        assert_eq!(rtt.min(), 80 * MS);
        // A constant delay: the granularity remains.
        for _ in 0..200 {
            rtt.sample(80 * MS);
        }
        assert!(rtt.timeout(&config) < 82 * MS && rtt.timeout(&config) >= 81 * MS - Nanos(100));
    }

    #[test]
    fn the_floor_is_rfc_6298s_or_that_of_linux() {
        let total = Config { min_rto: 200 * MS, ..Config::default() };
        let variation = Config { rto_floor: RtoFloor::Variation, ..total.clone() };
        for (config, expected) in [(total, 200 * MS), (variation, 220 * MS)] {
            let mut rtt = Rtt::new();
            for _ in 0..50 {
                rtt.sample(20 * MS);
            }
            assert_eq!(rtt.timeout(&config).0 / MS.0, expected.0 / MS.0);
        }
    }

    #[test]
    fn backoff_doubles_up_to_the_most_and_ends_with_a_sample() {
        let config = Config { max_rto: 10 * SECOND, ..Config::default() };
        let mut rtt = Rtt::new();
        let mut seconds = Vec::new();
        for _ in 0..6 {
            seconds.push(rtt.timeout(&config).0 / SECOND.0);
            rtt.back_off();
        }
        assert_eq!(seconds, [1, 2, 4, 8, 10, 10]);
        rtt.sample(100 * MS);
        assert_eq!(rtt.timeout(&config), SECOND);
    }

    #[test]
    fn one_segment_is_timed_at_a_time() {
        let mut rtt = Rtt::new();
        rtt.time(1000, Nanos(10));
        rtt.time(2000, Nanos(20));
        assert_eq!(rtt.timed(999, Nanos(50)), None);
        assert_eq!(rtt.timed(2000, Nanos(60)), Some(Nanos(50)));
        assert_eq!(rtt.timed(3000, Nanos(70)), None);
        rtt.time(4000, Nanos(100));
        rtt.stop_timing();
        assert_eq!(rtt.timed(4000, Nanos(200)), None);
    }
}
