//! Streams beside the transfers: constant rate, on and off, and requests.

use crate::law::TimeLaw;
use crate::random::Random;

/// A constant-rate stream: packets of one size at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cbr {
    /// Rate in bit/s, IP headers included.
    pub rate_bps: u64,
    /// Size of a packet, IP headers included.
    pub packet_bytes: u32,
}

impl Cbr {
    /// Voice-like: 64 kbit/s as one 160-byte packet every 20 ms.
    pub const VOICE: Self = Self { rate_bps: 64_000, packet_bytes: 160 };
    /// Video-like: 500 kbit/s as one 1250-byte packet every 20 ms.
    pub const VIDEO: Self = Self { rate_bps: 500_000, packet_bytes: 1250 };

    /// When packet `index` leaves, in nanoseconds after packet 0. Computed from the index, so
    /// that no rounding adds up; never for a rate of 0 (`u64::MAX`).
    #[must_use]
    pub const fn time_ns(self, index: u64) -> u64 {
        let bits = index as u128 * self.packet_bytes as u128 * 8;
        match (bits * 1_000_000_000).checked_div(self.rate_bps as u128) {
            Some(ns) if ns < u64::MAX as u128 => ns as u64,
            _ => u64::MAX,
        }
    }

    /// Time between two packets, in nanoseconds, rounded down.
    #[must_use]
    pub const fn interval_ns(self) -> u64 {
        self.time_ns(1)
    }

    /// Packets sent in `[0, duration_ns)` if the first leaves at 0.
    #[must_use]
    pub const fn packets_in(self, duration_ns: u64) -> u64 {
        let bits = duration_ns as u128 * self.rate_bps as u128;
        let per_packet = self.packet_bytes as u128 * 8 * 1_000_000_000;
        if per_packet == 0 || self.rate_bps == 0 { 0 } else { bits.div_ceil(per_packet) as u64 }
    }
}

/// A constant-rate stream that pauses: periods on and off follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct OnOff {
    /// The stream while it is on. A period on sends at its start, however short it is.
    pub peak: Cbr,
    /// Lengths of the periods on.
    pub on: TimeLaw,
    /// Lengths of the periods off.
    pub off: TimeLaw,
}

impl OnOff {
    /// When packets leave in `[from_ns, until_ns)`. It begins with a period off, so that streams
    /// that start together do not send together.
    pub fn times_ns(
        self,
        from_ns: u64,
        until_ns: u64,
        mut random: Random,
    ) -> impl Iterator<Item = u64> + Send {
        let mut period = (from_ns, from_ns);
        let mut sent = 0;
        std::iter::from_fn(move || {
            let mut time = period.0.saturating_add(self.peak.time_ns(sent));
            if time >= period.1 {
                let start = period.1.saturating_add(self.off.sample(&mut random));
                period = (start, start.saturating_add(self.on.sample(&mut random)));
                (time, sent) = (start, 0);
            }
            sent += 1;
            (time < until_ns).then_some(time)
        })
    }
}

/// Requests of one size, answered by responses of one size, once an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// One request falls into each interval of this length.
    pub interval_ns: u64,
    /// Application bytes of a request.
    pub request_bytes: u32,
    /// Application bytes of the response.
    pub response_bytes: u32,
}

impl Requests {
    /// A keystroke and its echo: 64 bytes each way, ten times a second.
    pub const PING: Self = Self { interval_ns: 100_000_000, request_bytes: 64, response_bytes: 64 };
    /// A call to a web service on a connection that stays open: 300 bytes there, 4000 back,
    /// four times a second.
    pub const CALL: Self =
        Self { interval_ns: 250_000_000, request_bytes: 300, response_bytes: 4000 };

    /// When requests leave in `[0, duration_ns)`: each at a uniform point of its own interval, so
    /// that they can fall in step neither with a constant-rate stream nor with a queue's cycle.
    #[must_use]
    pub fn times_ns(self, duration_ns: u64, seed: u64) -> Vec<u64> {
        self.drawn_ns(duration_ns, Random::new(seed)).collect()
    }

    /// The same, drawn as they are taken.
    pub fn drawn_ns(
        self,
        duration_ns: u64,
        mut random: Random,
    ) -> impl Iterator<Item = u64> + Send {
        let whole_intervals = duration_ns.checked_div(self.interval_ns).unwrap_or(0);
        (0..whole_intervals)
            .map(move |slot| slot * self.interval_ns + random.below(self.interval_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voice_and_video_have_their_rates() {
        for (stream, rate) in [(Cbr::VOICE, 64_000), (Cbr::VIDEO, 500_000)] {
            assert_eq!(stream.interval_ns(), 20_000_000);
            let bits = stream.packets_in(1_000_000_000) * u64::from(stream.packet_bytes) * 8;
            assert_eq!(bits, rate);
        }
    }

    #[test]
    fn rounding_does_not_add_up() {
        let stream = Cbr { rate_bps: 3_000_000, packet_bytes: 1000 };
        assert_eq!(stream.interval_ns(), 2_666_666);
        assert_eq!(stream.time_ns(3_000_000), 8_000_000_000_000);
        assert_eq!(stream.packets_in(8_000_000), 3);
        assert_eq!(stream.packets_in(8_000_001), 4);
        assert_eq!(stream.packets_in(0), 0);
    }

    #[test]
    fn a_stream_without_rate_never_sends_again() {
        let stream = Cbr { rate_bps: 0, packet_bytes: 100 };
        assert_eq!(stream.time_ns(1), u64::MAX);
        assert_eq!(stream.packets_in(1_000_000_000), 0);
    }

    #[test]
    fn a_stream_is_on_and_off_in_turn() {
        let law = |text: &str| text.parse::<TimeLaw>().expect("a law");
        let (on, off) = (law("fixed:time=45ms"), law("fixed:time=100ms"));
        let stream = OnOff { peak: Cbr::VOICE, on, off };
        let times = |until| -> Vec<u64> {
            let times = stream.clone().times_ns(5_000_000, until, Random::new(1));
            times.map(|ns| ns / 1_000_000).collect()
        };
        // On from 105 to 150 ms and from 250 to 295 ms, a packet every 20 ms.
        assert_eq!(times(290_000_000), [105, 125, 145, 250, 270]);
        assert_eq!(times(270_000_000), [105, 125, 145, 250]);
    }

    #[test]
    fn a_stream_of_random_periods_has_its_mean_rate() {
        let law = |text: &str| text.parse::<TimeLaw>().expect("a law");
        let (on, off) = (law("exponential:mean=500ms"), law("pareto:shape=2.5,mean=1s"));
        let stream = OnOff { peak: Cbr { rate_bps: 800_000, packet_bytes: 100 }, on, off };
        let hour = 3_600_000_000_000;
        let sent = stream.times_ns(0, hour, Random::new(3)).count() as f64;
        // A third of 1000 packets a second, and half a packet more in each of 2400 periods. Of
        // the fraction on, the standard deviation over an hour is about 2 %.
        let expected = 3600.0 * 1000.0 / 3.0 + 1200.0;
        assert!((sent / expected - 1.0).abs() < 0.06, "{sent}");
    }

    #[test]
    fn one_request_falls_into_each_interval() {
        let times = Requests::PING.times_ns(10_000_000_000, 5);
        assert_eq!(times.len(), 100);
        for (slot, time) in times.iter().enumerate() {
            assert_eq!(*time / Requests::PING.interval_ns, slot as u64);
        }
        assert_eq!(times, Requests::PING.times_ns(10_000_000_000, 5));
        assert_ne!(times, Requests::PING.times_ns(10_000_000_000, 6));
    }
}
