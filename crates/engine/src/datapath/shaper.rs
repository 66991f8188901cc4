//! Pacing: when may the next transmission start?
//!
//! The shaper keeps the time at which the link becomes free. A packet's transmission is *due*
//! when the link is free and the packet is there, whichever is later; an engine that wakes up on
//! time starts it then. One that wakes up late may act as if it had been on time, up to
//! `burst_time` back: a backlog is caught up with at once, and the rate holds. What was missed
//! beyond `burst_time` is lost, and counted. Idle time gives no credit: a packet that finds the
//! link free is due when it arrives, not before.
//!
//! So in any interval at most `rate * (interval + burst_time)` and one packet are sent.

use sched::{Nanos, Rate};

use crate::datapath::segments::Segments;
use crate::settings::LinkConfig;
use crate::settings::framing::Framing;
use crate::settings::link::LinkSettings;
use crate::status::Punctuality;

/// What a transmission costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Rate of the link; not 0.
    pub rate: Rate,
    /// What a frame takes up on the link.
    pub framing: Framing,
    /// How far a late wake-up may be caught up.
    pub burst_time: Nanos,
}

impl Pacing {
    /// Of a link.
    #[must_use]
    pub fn on(config: &LinkConfig) -> Self {
        let LinkSettings { rate, burst_time, .. } = config.link;
        Self { rate, framing: config.framing(), burst_time }
    }
}

/// Holds a rate. Pure: time is an argument.
#[derive(Clone, Debug)]
pub struct Shaper {
    pacing: Pacing,
    /// When the link becomes free, and `fraction / rate` ns.
    free: Nanos,
    fraction: u64,
    /// Since when there has been a packet to send.
    waiting_since: Nanos,
    burst: Burst,
    paced: u64,
    punctuality: Punctuality,
}

/// What was started at one instant.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    at: Nanos,
    packets: u64,
    bytes: u64,
}

impl Shaper {
    /// A shaper for an idle link.
    #[must_use]
    pub fn new(pacing: Pacing) -> Self {
        Self {
            pacing,
            free: Nanos::ZERO,
            fraction: 0,
            waiting_since: Nanos::ZERO,
            burst: Burst::default(),
            paced: 0,
            punctuality: Punctuality::default(),
        }
    }

    /// A packet is there to be sent from `since` on, and none was before. Also for a discipline
    /// that has packets and holds them back until `since`.
    pub fn waits_since(&mut self, since: Nanos) {
        self.waiting_since = since;
    }

    /// When the next transmission is due, if a packet is waiting.
    #[must_use]
    pub fn due(&self) -> Nanos {
        self.free.max(self.waiting_since)
    }

    /// Starts the transmission of a frame, at `now` or, catching up, before. Returns the start.
    ///
    /// Each segment of a super-packet is a frame on the link.
    ///
    /// The caller starts none before it is [`due`](Self::due).
    pub fn start(&mut self, frame: impl Into<Segments>, now: Nanos) -> Nanos {
        let due = self.due();
        debug_assert!(due <= now, "a transmission starts before it is due");
        let start = if self.is_unlimited() { now } else { due.max(now - self.pacing.burst_time) };
        self.note_lateness(due, start, now);
        self.paced += u64::from(self.free > self.waiting_since);
        if start > self.free {
            self.fraction = 0;
        }
        let size = self.pacing.framing.segments_on_link(frame.into());
        self.note_burst(size, now);
        self.free = start + self.transmission(size);
        start
    }

    /// Takes over another pacing at `now`: what is left of the transmission that is under way goes
    /// on at the new rate.
    pub fn change(&mut self, pacing: Pacing, now: Nanos) {
        let left = self.free.since(now);
        let before = self.pacing.rate;
        self.pacing = pacing;
        if before != pacing.rate {
            let scaled = u128::from(left.0) * u128::from(before.0) / u128::from(pacing.rate.0);
            let left = Nanos(u64::try_from(scaled).unwrap_or(u64::MAX));
            self.free = self.free.min(now) + left;
            self.fraction = 0;
        }
    }

    /// Times that the rate made a packet wait.
    #[must_use]
    pub fn paced(&self) -> u64 {
        self.paced
    }

    /// How punctual it was so far.
    #[must_use]
    pub fn punctuality(&self) -> Punctuality {
        self.punctuality
    }

    /// How long a frame takes, to the nanosecond below; what is cut off is carried over to the
    /// next one, so that no rate is off by rounding.
    fn transmission(&mut self, size_on_link: u32) -> Nanos {
        if self.is_unlimited() {
            return Nanos::ZERO;
        }
        let Rate(rate) = self.pacing.rate;
        let scaled = u128::from(size_on_link) * 8 * 1_000_000_000 + u128::from(self.fraction);
        self.fraction = (scaled % u128::from(rate)) as u64;
        Nanos(u64::try_from(scaled / u128::from(rate)).unwrap_or(u64::MAX))
    }

    fn is_unlimited(&self) -> bool {
        self.pacing.rate.is_unlimited()
    }

    fn note_lateness(&mut self, due: Nanos, start: Nanos, now: Nanos) {
        // An unlimited link has no time to lose.
        if self.is_unlimited() {
            return;
        }
        let seen = &mut self.punctuality;
        seen.max_late = seen.max_late.max(now - due);
        if start > due {
            seen.late_beyond_burst += 1;
            seen.lost += start - due;
        }
    }

    fn note_burst(&mut self, size_on_link: u32, now: Nanos) {
        if self.burst.at != now {
            self.burst = Burst { at: now, packets: 0, bytes: 0 };
        }
        self.burst.packets += 1;
        self.burst.bytes += u64::from(size_on_link);
        let seen = &mut self.punctuality;
        seen.largest_burst_packets = seen.largest_burst_packets.max(self.burst.packets);
        seen.largest_burst_bytes = seen.largest_burst_bytes.max(self.burst.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shaper(rate: u64, burst_time: Nanos) -> Shaper {
        Shaper::new(Pacing { rate: Rate(rate), framing: Framing::NONE, burst_time })
    }

    /// A saturated link, served whenever the engine wakes up; `(when, start, bytes)` of each
    /// transmission.
    fn serve(shaper: &mut Shaper, wakes: &[u64], sizes: &[u32]) -> Vec<(u64, u64, u64)> {
        let mut sent = Vec::new();
        let mut sizes = sizes.iter().cycle();
        for &now in wakes {
            while shaper.due() <= Nanos(now) {
                let size = *sizes.next().unwrap();
                let start = shaper.start(size, Nanos(now));
                sent.push((now, start.0, u64::from(size)));
            }
        }
        sent
    }

    #[test]
    fn a_punctual_engine_holds_the_rate_exactly() {
        // 1500 bytes at 7 Mbit/s take 1714285 5/7 ns: a rounding shaper would drift.
        let mut shaper = shaper(7_000_000, Nanos::from_millis(1));
        for n in 0..7_000_000u64 {
            let start = shaper.start(1500, shaper.due());
            assert_eq!(start.0, n * 12_000_000 / 7, "packet {n}");
        }
        assert_eq!(shaper.punctuality().max_late, Nanos::ZERO);
        assert_eq!(shaper.punctuality().largest_burst_packets, 1);
    }

    #[test]
    fn a_late_wake_up_is_caught_up_with_within_burst_time_and_lost_beyond() {
        // 1250 bytes at 10 Mbit/s: 1 ms each.
        let ms = 1_000_000;
        let mut shaper = shaper(10_000_000, Nanos::from_millis(2));
        let starts = |shaper: &mut Shaper, now: u64| -> Vec<u64> {
            serve(shaper, &[now], &[1250]).iter().map(|(_, start, _)| start / ms).collect()
        };
        assert_eq!(starts(&mut shaper, 0), [0]);
        assert_eq!(starts(&mut shaper, 3 * ms), [1, 2, 3], "2 ms late: all of it");
        assert_eq!(shaper.punctuality().lost, Nanos::ZERO);
        assert_eq!(starts(&mut shaper, 9 * ms), [7, 8, 9], "5 ms late: 3 ms are lost");
        let seen = shaper.punctuality();
        assert_eq!((seen.lost, seen.late_beyond_burst), (Nanos(3 * ms), 1));
        assert_eq!((seen.max_late, seen.largest_burst_packets), (Nanos(5 * ms), 3));
        assert_eq!(seen.largest_burst_bytes, 3750);
    }

    #[test]
    fn idle_time_gives_no_credit() {
        let mut shaper = shaper(10_000_000, Nanos::from_millis(5));
        shaper.start(1250, Nanos::ZERO);
        let arrival = Nanos::from_millis(50);
        shaper.waits_since(arrival);
        assert_eq!(shaper.due(), arrival);
        assert_eq!(shaper.start(1250, arrival), arrival);
        assert_eq!(shaper.due(), Nanos::from_millis(51));
        assert_eq!(
            shaper.punctuality(),
            Punctuality {
                largest_burst_packets: 1,
                largest_burst_bytes: 1250,
                ..Punctuality::default()
            }
        );
    }

    #[test]
    fn what_the_link_adds_takes_time() {
        let (rate, burst_time) = (Rate(8_000_000_000), Nanos::ZERO);
        let mut shaper = Shaper::new(Pacing { rate, framing: Framing::bytes(24), burst_time });
        shaper.start(60, Nanos::ZERO);
        assert_eq!(shaper.due(), Nanos(84));
        assert_eq!(shaper.punctuality().largest_burst_bytes, 84);
    }

    #[test]
    fn an_unlimited_link_is_always_free() {
        let mut shaper = shaper(u64::MAX, Nanos::from_millis(1));
        for _ in 0..1000 {
            assert_eq!(shaper.start(1500, Nanos(5)), Nanos(5));
            assert!(shaper.due() <= Nanos(5));
        }
        assert_eq!(shaper.punctuality().lost, Nanos::ZERO);
    }

    #[test]
    fn a_transmission_under_way_goes_on_at_the_new_rate() {
        let pacing = |rate| Pacing {
            rate: Rate(rate),
            framing: Framing::NONE,
            burst_time: Nanos::from_millis(1),
        };
        // 1250 bytes take 10 s, and half of them are sent when the rate becomes a million times as
        // high.
        let mut shaper = Shaper::new(pacing(1000));
        let second = 1_000_000_000;
        shaper.start(1250, Nanos::ZERO);
        shaper.change(pacing(1_000_000_000), Nanos(5 * second));
        assert_eq!(shaper.due(), Nanos(5 * second + 5000));
        shaper.change(pacing(1_000_000), Nanos(5 * second));
        assert_eq!(shaper.due(), Nanos(5 * second + 5_000_000));
        shaper.change(pacing(u64::MAX), Nanos(5 * second));
        assert!(shaper.due() <= Nanos(5 * second));
        // What is past stays past.
        shaper.change(pacing(1), Nanos(20 * second));
        assert!(shaper.due() <= Nanos(20 * second));
        assert_eq!(shaper.paced(), 0);
        shaper.waits_since(Nanos(20 * second));
        shaper.start(1250, Nanos(20 * second));
        shaper.change(pacing(u64::MAX), Nanos(30 * second));
        shaper.start(1250, Nanos(30 * second));
        assert_eq!(shaper.paced(), 1);
    }

    proptest! {
        /// Whatever the wake-ups are: no interval carries more than rate * (interval + burst)
        /// and one packet, none starts in the future, and starts are apart by a transmission.
        #[test]
        fn no_interval_carries_too_much(
            rate in 8_000u64..10_000_000_000,
            burst in 0u64..5_000_000,
            gaps in prop::collection::vec(0u64..20_000_000, 1..40),
            sizes in prop::collection::vec(40u32..9000, 1..10),
        ) {
            let mut now = 0;
            let wakes: Vec<u64> = gaps.iter().map(|gap| { now += gap; now }).collect();
            let mut shaper = shaper(rate, Nanos(burst));
            // At most some thousand transmissions.
            let wakes: Vec<u64> = wakes.iter().map(|w| w % 2_000_000_000).collect();
            let mut wakes = wakes;
            wakes.sort_unstable();
            let sent = serve(&mut shaper, &wakes, &sizes);
            for (now, start, _) in &sent {
                prop_assert!(start <= now && start + burst >= *now);
            }
            let largest = u64::from(*sizes.iter().max().unwrap());
            for (i, first) in sent.iter().enumerate().step_by(1 + sent.len() / 50) {
                let mut bytes = 0;
                for later in &sent[i..] {
                    bytes += later.2;
                    let interval = u128::from(later.0 - first.0 + burst);
                    let allowed = u128::from(rate) * interval / 8_000_000_000 + 1;
                    prop_assert!(u128::from(bytes - largest.min(bytes)) <= allowed);
                }
            }
        }

        /// With wake-ups never later than burst time, nothing is lost over the whole run.
        #[test]
        fn lateness_within_burst_time_costs_nothing(
            rate in 1_000_000u64..1_000_000_000,
            gaps in prop::collection::vec(1u64..1_000_000, 2..200),
        ) {
            let mut shaper = shaper(rate, Nanos::from_millis(1));
            let mut now = 0;
            let wakes: Vec<u64> =
                std::iter::once(0).chain(gaps.iter().map(|gap| { now += gap; now })).collect();
            let sent = serve(&mut shaper, &wakes, &[1000]);
            prop_assert_eq!(shaper.punctuality().lost, Nanos::ZERO);
            // All that the rate allows has been started.
            let expected = u128::from(now) * u128::from(rate) / 8_000_000_000_000 + 1;
            prop_assert_eq!(sent.len() as u128, expected);
        }
    }
}
