//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation): how fast the network took
//! what was sent between a segment's departure and its acknowledgment.
//!
//! A segment remembers, as it leaves, how much had been delivered by then. What is delivered
//! from there until the segment arrives itself, over the time that this took, is a sample. Where
//! sending took longer than acknowledging, that time counts, so that acknowledgments that come
//! in a bunch do not look like a fast network.

use std::collections::VecDeque;

use units::Nanos;

/// What was known when a segment was sent last.
#[derive(Clone, Copy, Debug)]
struct Departure {
    delivered: u64,
    delivered_at: Nanos,
    /// When the flight that it belongs to began.
    flight_began: Nanos,
    app_limited: bool,
}

/// Of the segments that an acknowledgment covers, the one that was sent last.
#[derive(Clone, Copy, Debug)]
struct Newest {
    departure: Departure,
    at: Nanos,
    again: bool,
}

/// One delivery rate sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Sample {
    /// Bytes delivered.
    pub(crate) delivered: u64,
    /// In this time. `None` if it is less than the least round trip, which no true one can be.
    pub(crate) interval: Option<Nanos>,
    /// What had been delivered when the segment left.
    pub(crate) prior_delivered: u64,
    /// The sender had too little to send, so the network may be faster than this.
    pub(crate) app_limited: bool,
    /// The round trip of the segment, if it was sent once.
    pub(crate) rtt: Option<Nanos>,
}

/// What one sender has delivered, and what its segments remember. The owner keeps their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates {
    departures: VecDeque<Departure>,
    delivered: u64,
    delivered_at: Nanos,
    flight_began: Nanos,
    /// Samples are limited by the application until so much is delivered; 0: they are not.
    limited_until: u64,
    newest: Option<Newest>,
    /// Bytes declared lost so far.
    lost: u64,
}

impl Rates {
    /// Bytes delivered so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// When something was last delivered, or the first of a flight sent.
    pub(crate) fn delivered_at(&self) -> Nanos {
        self.delivered_at
    }

    /// Bytes declared lost so far, more than once if their repairs were.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    pub(crate) fn lose(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// The application has left a gap: with `pipe` bytes in the network there was no more to send.
    pub(crate) fn limit(&mut self, pipe: u64) {
        self.limited_until = (self.delivered + pipe).max(1);
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.limited_until > 0
    }

    fn departure(&self) -> Departure {
        Departure {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            flight_began: self.flight_began,
            app_limited: self.is_limited(),
        }
    }

    /// A new segment was sent.
    pub(crate) fn sent(&mut self, at: Nanos) {
        if self.departures.is_empty() {
            self.flight_began = at;
            self.delivered_at = at;
        }
        self.departures.push_back(self.departure());
    }

    /// The segment with this number, counted from the first outstanding one, was sent again.
    pub(crate) fn sent_again(&mut self, index: usize) {
        let departure = self.departure();
        if let Some(place) = self.departures.get_mut(index) {
            *place = departure;
        }
    }

    /// The segment with this number, of so many bytes and sent at `at`, has arrived.
    pub(crate) fn arrived(&mut self, index: usize, bytes: u64, at: Nanos, again: bool) {
        self.delivered += bytes;
        let Some(&departure) = self.departures.get(index) else { return };
        if self.newest.is_none_or(|newest| departure.delivered > newest.departure.delivered) {
            self.newest = Some(Newest { departure, at, again });
            self.flight_began = at;
        }
    }

    /// The first segment is no longer outstanding.
    pub(crate) fn forget_first(&mut self) {
        self.departures.pop_front();
    }

    /// The sample of an acknowledgment, if it covers anything new; `before` is what had been
    /// delivered before it.
    pub(crate) fn sample(&mut self, before: u64, min_rtt: Nanos, now: Nanos) -> Option<Sample> {
        if self.is_limited() && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        if self.delivered > before {
            self.delivered_at = now;
        }
        let Newest { departure, at, again } = self.newest.take()?;
        let sending = at.since(departure.flight_began);
        let interval = sending.max(now.since(departure.delivered_at));
        Some(Sample {
            delivered: self.delivered - departure.delivered,
            interval: Some(interval).filter(|&it| it >= min_rtt && it > Nanos::ZERO),
            prior_delivered: departure.delivered,
            app_limited: departure.app_limited,
            rtt: (!again).then(|| now.since(at)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    /// A flow of segments of 1000 bytes, each acknowledged 20 ms after it was sent.
    #[derive(Default)]
    struct Flow {
        rates: Rates,
        sent: VecDeque<Nanos>,
    }

    impl Flow {
        /// One segment a millisecond, for these milliseconds.
        fn send(&mut self, ticks: std::ops::Range<u64>) -> Vec<Sample> {
            let samples = ticks.flat_map(|tick| {
                self.rates.sent(MS * tick);
                self.sent.push_back(MS * tick);
                self.acknowledge(MS * tick)
            });
            samples.collect()
        }

        fn acknowledge(&mut self, now: Nanos) -> Option<Sample> {
            let &sent = self.sent.front().filter(|&&sent| now.since(sent) >= MS * 20)?;
            self.sent.pop_front();
            let before = self.rates.delivered();
            self.rates.arrived(0, 1000, sent, false);
            self.rates.forget_first();
            self.rates.sample(before, MS * 20, now)
        }
    }

    #[test]
    fn a_steady_flow_is_measured_at_its_rate() {
        let samples = Flow::default().send(1..100);
        let last = samples.last().copied().unwrap();
        // From the last delivery before it left, a millisecond earlier.
        assert_eq!((last.delivered, last.interval), (21_000, Some(MS * 21)));
        assert_eq!(last.rtt, Some(MS * 20));
        assert!(!last.app_limited);
    }

    #[test]
    fn acknowledgments_in_a_bunch_are_not_a_fast_network() {
        let mut rates = Rates::default();
        (1..=40).for_each(|tick| rates.sent(MS * tick));
        // All of them come at once, 20 ms after the last was sent.
        (1u64..=40).for_each(|tick| rates.arrived(tick as usize - 1, 1000, MS * tick, false));
        let sample = rates.sample(0, MS * 20, MS * 60).unwrap();
        assert_eq!((sample.delivered, sample.interval), (40_000, Some(MS * 59)));
    }

    #[test]
    fn what_leaves_in_a_gap_is_marked_until_the_gap_has_arrived() {
        let mut flow = Flow::default();
        flow.send(1..50);
        flow.rates.limit(20_000);
        let marked = flow.send(50..120);
        assert_eq!(marked.iter().filter(|sample| sample.app_limited).count(), 21);
        assert!(!marked.last().unwrap().app_limited);
    }

    #[test]
    fn a_sample_of_less_than_a_round_trip_has_no_interval() {
        let mut rates = Rates::default();
        rates.sent(MS);
        rates.arrived(0, 1000, MS, true);
        let sample = rates.sample(0, MS * 20, MS * 6).unwrap();
        assert_eq!((sample.interval, sample.rtt), (None, None));
    }
}
