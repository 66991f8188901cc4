//! From capture times to arrival times.

use sched::Nanos;

const SECOND: u64 = 1_000_000_000;

/// The latest arrival: 73 years after the first packet. Only a broken clock gets there, and the
/// arithmetic of disciplines and links behind it stays far from its bounds.
const LATEST: Nanos = Nanos(1 << 61);

/// The clock of a replay: it starts at the first packet and never goes back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    first_ns: Option<i128>,
    now: Nanos,
    went_back: u64,
    furthest_back: Nanos,
    untimed: u64,
    busiest: Busiest,
}

/// The second with the most bytes, of those counted from the first packet.
#[derive(Clone, Copy, Debug, Default)]
struct Busiest {
    second: u64,
    bytes: u64,
    most: u64,
}

impl Timeline {
    /// When a packet arrives that was captured at `time_ns`. One captured before its predecessor
    /// arrives with it, as does one without a time.
    pub(crate) fn arrival(&mut self, time_ns: Option<i128>, bytes: u32) -> Nanos {
        match time_ns {
            None => self.untimed += 1,
            Some(time) => self.advance(time),
        }
        self.busiest.count(self.now.0 / SECOND, bytes);
        self.now
    }

    fn advance(&mut self, time: i128) {
        // Packets without a time may have come before.
        let first = *self.first_ns.get_or_insert(time - i128::from(self.now.0));
        let now = time - first;
        if now < i128::from(self.now.0) {
            self.went_back += 1;
            let back = (i128::from(self.now.0) - now).min(LATEST.0.into());
            self.furthest_back = self.furthest_back.max(Nanos(back as u64));
        } else {
            self.now = Nanos(now.min(LATEST.0.into()) as u64);
        }
    }

    /// The arrival of the last packet.
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// When the first packet was captured, since 1970.
    pub(crate) fn first_ns(&self) -> Option<i128> {
        self.first_ns
    }

    /// Packets captured before their predecessor, and by how much at most.
    pub(crate) fn went_back(&self) -> (u64, Nanos) {
        (self.went_back, self.furthest_back)
    }

    /// Packets without a capture time.
    pub(crate) fn untimed(&self) -> u64 {
        self.untimed
    }

    /// Bytes of the busiest second.
    pub(crate) fn busiest_second_bytes(&self) -> u64 {
        self.busiest.most
    }
}

impl Busiest {
    fn count(&mut self, second: u64, bytes: u32) {
        if second != self.second {
            (self.second, self.bytes) = (second, 0);
        }
        self.bytes += u64::from(bytes);
        self.most = self.most.max(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back() {
        let mut line = Timeline::default();
        let captured = [1_000, 1_500, 1_200, 1_499, 1_501];
        let arrivals = captured.map(|time| line.arrival(Some(time), 100).0);
        assert_eq!(arrivals, [0, 500, 500, 500, 501]);
        assert_eq!(line.went_back(), (2, Nanos(300)));
    }

    #[test]
    fn packets_without_a_time_arrive_with_the_one_before() {
        let mut line = Timeline::default();
        let captured = [None, Some(7_000), None, Some(7_010)];
        let arrivals = captured.map(|time| line.arrival(time, 100).0);
        assert_eq!(arrivals, [0, 0, 0, 10]);
        assert_eq!((line.untimed(), line.first_ns()), (2, Some(7_000)));
    }

    #[test]
    fn a_clock_gone_mad_stays_in_range() {
        let mut line = Timeline::default();
        line.arrival(Some(0), 1);
        assert_eq!(line.arrival(Some(i128::from(u64::MAX) * 1_000_000_000), 1), LATEST);
        line.arrival(Some(-i128::from(u64::MAX) * 1_000_000_000), 1);
        assert_eq!(line.went_back(), (1, LATEST));
    }

    #[test]
    fn the_busiest_second_has_most_bytes() {
        let mut line = Timeline::default();
        for (time, bytes) in [(0, 5), (SECOND - 1, 5), (SECOND, 9), (5 * SECOND, 4)] {
            line.arrival(Some(time.into()), bytes);
        }
        assert_eq!(line.busiest_second_bytes(), 10);
    }
}
