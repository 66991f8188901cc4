//! Streams beside the transfers: constant rate, on and off, and requests.

use units::{Nanos, Rate};

use crate::law::TimeLaw;
use crate::random::Random;

/// A constant-rate stream: packets of one size at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cbr {
    /// Its rate, IP headers included.
    pub rate: Rate,
    /// Size of a packet, IP headers included.
    pub packet_bytes: u32,
}

impl Cbr {
    /// Voice-like: 64 kbit/s as one 160-byte packet every 20 ms.
    pub const VOICE: Self = Self { rate: Rate(64_000), packet_bytes: 160 };
    /// Video-like: 500 kbit/s as one 1250-byte packet every 20 ms.
    pub const VIDEO: Self = Self { rate: Rate(500_000), packet_bytes: 1250 };

    /// When packet `index` leaves, after packet 0. Computed from the index, so that no rounding
    /// adds up; never for a rate of 0.
    #[must_use]
    pub const fn time(self, index: u64) -> Nanos {
        self.rate.time_of(index.saturating_mul(self.packet_bytes as u64))
    }

    /// Time between two packets, rounded down.
    #[must_use]
    pub const fn interval(self) -> Nanos {
        self.time(1)
    }

    /// Packets sent in `[0, duration)` if the first leaves at 0.
    #[must_use]
    pub const fn packets_in(self, duration: Nanos) -> u64 {
        let bits = duration.0 as u128 * self.rate.0 as u128;
        let per_packet = self.packet_bytes as u128 * 8 * 1_000_000_000;
        if per_packet == 0 || self.rate.0 == 0 { 0 } else { bits.div_ceil(per_packet) as u64 }
    }
}

/// A constant-rate stream that pauses: periods on and off follow each other.
///
/// A pause stops its clock, and no more: what is left of the time between two packets at the end
/// of a period is waited for in the next ones. So its rate while it is on is `peak`, however short
/// the periods are, as with the residual bits of ns-3's `OnOffApplication`.
#[derive(Clone, Debug, PartialEq)]
pub struct OnOff {
    /// The stream while it is on.
    pub peak: Cbr,
    /// Lengths of the periods on.
    pub on: TimeLaw,
    /// Lengths of the periods off.
    pub off: TimeLaw,
}

impl OnOff {
    /// When packets leave in `[from, until)`. It begins with a period off, so that streams
    /// that start together do not send together.
    pub fn times(
        self,
        from: Nanos,
        until: Nanos,
        mut random: Random,
    ) -> impl Iterator<Item = Nanos> + Send {
        // When the period on ends, and how long the stream has been on until then.
        let (mut end, mut on_until_end) = (from, Nanos::ZERO);
        let mut sent = 0;
        std::iter::from_fn(move || {
            let due = self.peak.time(sent);
            while due >= on_until_end && end < until {
                let on = Nanos(self.on.sample(&mut random));
                end += Nanos(self.off.sample(&mut random)) + on;
                on_until_end += on;
            }
            sent += 1;
            let time = end - (on_until_end - due);
            (due < on_until_end && time < until).then_some(time)
        })
    }
}

/// Requests of one size, answered by responses of one size, once an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// One request falls into each interval of this length.
    pub interval: Nanos,
    /// Application bytes of a request.
    pub request_bytes: u32,
    /// Application bytes of the response.
    pub response_bytes: u32,
}

impl Requests {
    /// A keystroke and its echo: 64 bytes each way, ten times a second.
    pub const PING: Self =
        Self { interval: Nanos::from_millis(100), request_bytes: 64, response_bytes: 64 };
    /// A call to a web service on a connection that stays open: 300 bytes there, 4000 back,
    /// four times a second.
    pub const CALL: Self =
        Self { interval: Nanos::from_millis(250), request_bytes: 300, response_bytes: 4000 };

    /// When requests leave in `[0, duration)`: each at a uniform point of its own interval, so
    /// that they can fall in step neither with a constant-rate stream nor with a queue's cycle.
    #[must_use]
    pub fn times(self, duration: Nanos, seed: u64) -> Vec<Nanos> {
        self.drawn(duration, Random::new(seed)).collect()
    }

    /// The same, drawn as they are taken.
    pub fn drawn(self, duration: Nanos, mut random: Random) -> impl Iterator<Item = Nanos> + Send {
        let whole_intervals = duration.0.checked_div(self.interval.0).unwrap_or(0);
        (0..whole_intervals)
            .map(move |slot| slot * self.interval + Nanos(random.below(self.interval.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voice_and_video_have_their_rates() {
        for (stream, rate) in [(Cbr::VOICE, 64_000), (Cbr::VIDEO, 500_000)] {
            assert_eq!(stream.interval(), Nanos::from_millis(20));
            let bits = stream.packets_in(Nanos::from_secs(1)) * u64::from(stream.packet_bytes) * 8;
            assert_eq!(bits, rate);
        }
    }

    #[test]
    fn rounding_does_not_add_up() {
        let stream = Cbr { rate: Rate(3_000_000), packet_bytes: 1000 };
        assert_eq!(stream.interval(), Nanos(2_666_666));
        assert_eq!(stream.time(3_000_000), Nanos::from_secs(8000));
        assert_eq!(stream.packets_in(Nanos(8_000_000)), 3);
        assert_eq!(stream.packets_in(Nanos(8_000_001)), 4);
        assert_eq!(stream.packets_in(Nanos::ZERO), 0);
    }

    #[test]
    fn a_stream_without_rate_never_sends_again() {
        let stream = Cbr { rate: Rate(0), packet_bytes: 100 };
        assert_eq!(stream.time(1), Nanos::MAX);
        assert_eq!(stream.packets_in(Nanos::from_secs(1)), 0);
    }

    #[test]
    fn a_stream_is_on_and_off_in_turn() {
        let law = |text: &str| text.parse::<TimeLaw>().expect("a law");
        let (on, off) = (law("fixed:time=45ms"), law("fixed:time=100ms"));
        let stream = OnOff { peak: Cbr::VOICE, on, off };
        let times = |until| -> Vec<u64> {
            let (from, until) = (Nanos::from_millis(5), Nanos::from_millis(until));
            stream.clone().times(from, until, Random::new(1)).map(|at| at.0 / 1_000_000).collect()
        };
        // On from 105 to 150 ms and from 250 to 295 ms, a packet every 20 ms that it is on.
        assert_eq!(times(290), [105, 125, 145, 265, 285]);
        assert_eq!(times(285), [105, 125, 145, 265]);
    }

    #[test]
    fn a_stream_of_random_periods_has_its_mean_rate() {
        let law = |text: &str| text.parse::<TimeLaw>().expect("a law");
        let (on, off) = (law("exponential:mean=500ms"), law("pareto:shape=2.5,mean=1s"));
        let stream = OnOff { peak: Cbr { rate: Rate(800_000), packet_bytes: 100 }, on, off };
        let hour = Nanos::from_secs(3600);
        let sent = stream.times(Nanos::ZERO, hour, Random::new(3)).count() as f64;
        // A third of 1000 packets a second. Of the fraction on, the standard deviation over an
        // hour is about 2 %.
        let expected = 3600.0 * 1000.0 / 3.0;
        assert!((sent / expected - 1.0).abs() < 0.06, "{sent}");
    }

    #[test]
    fn a_stream_of_short_periods_has_its_rate() {
        let law = |text: &str| text.parse::<TimeLaw>().expect("a law");
        let (on, off) = (law("fixed:time=2ms"), law("fixed:time=2ms"));
        // A packet in 68 ms on, which is 34 periods.
        let stream = OnOff { peak: Cbr { rate: Rate(117_186), packet_bytes: 1000 }, on, off };
        let sent = stream.times(Nanos::ZERO, Nanos::from_secs(60), Random::new(1)).count();
        assert_eq!(sent, 60 * 117_186 / 2 / 8000 + 1);
    }

    #[test]
    fn one_request_falls_into_each_interval() {
        let times = |seed| Requests::PING.times(Nanos::from_secs(10), seed);
        assert_eq!(times(5).len(), 100);
        for (slot, time) in times(5).iter().enumerate() {
            assert_eq!(time.0 / Requests::PING.interval.0, slot as u64);
        }
        assert_eq!(times(5), times(5));
        assert_ne!(times(5), times(6));
    }
}
