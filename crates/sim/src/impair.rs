//! Loss, jitter and reordering on a link.

use sched::Nanos;
use workload::Random;

use crate::network::Impairments;

/// What a link does to the packets that it carries, from a random stream of its own.
#[derive(Debug)]
pub(crate) struct Impaired {
    config: Impairments,
    random: Random,
    /// Jitter keeps order: nothing arrives before this.
    last_arrival: Nanos,
}

impl Impaired {
    /// `None` if the link only carries.
    pub(crate) fn new(config: Impairments, random: Random) -> Option<Self> {
        let idle = Impairments { reorder_delay: config.reorder_delay, ..Impairments::default() };
        (config != idle).then_some(Self { config, random, last_arrival: Nanos::ZERO })
    }

    /// When a packet that would arrive at `arrival` does so; `None` if it is lost.
    pub(crate) fn arrival(&mut self, arrival: Nanos) -> Option<Nanos> {
        // Each packet draws the same numbers whatever becomes of it: runs stay comparable.
        let [loss, jitter, reorder] = [(); 3].map(|()| self.random.unit());
        if loss < self.config.loss {
            return None;
        }
        let jitter = (jitter * self.config.jitter.0 as f64) as u64;
        let arrival = (arrival + Nanos(jitter)).max(self.last_arrival);
        self.last_arrival = arrival;
        if reorder < self.config.reorder {
            return Some(arrival + self.config.reorder_delay);
        }
        Some(arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(config: Impairments, packets: u64) -> Vec<Option<u64>> {
        let mut link = Impaired::new(config, Random::new(1)).expect("it does something");
        (0..packets).map(|at| link.arrival(Nanos(at * 1000)).map(|time| time.0)).collect()
    }

    #[test]
    fn a_link_that_only_carries_needs_none_of_this() {
        let config = Impairments { reorder_delay: Nanos(5), ..Impairments::default() };
        assert!(Impaired::new(config, Random::new(1)).is_none());
    }

    #[test]
    fn loss_has_its_rate() {
        let config = Impairments { loss: 0.1, ..Impairments::default() };
        let lost = arrivals(config, 100_000).iter().filter(|time| time.is_none()).count();
        assert!((9_600..10_400).contains(&lost), "4 standard deviations: {lost}");
    }

    #[test]
    fn jitter_delays_and_keeps_order() {
        let config = Impairments { jitter: Nanos(5000), ..Impairments::default() };
        let times: Vec<u64> = arrivals(config, 1000).into_iter().flatten().collect();
        assert!(times.is_sorted());
        let late = |at: usize| times[at] - at as u64 * 1000;
        assert!((0..1000).all(|at| late(at) <= 5000) && (0..1000).any(|at| late(at) > 4000));
    }

    #[test]
    fn reordering_lets_others_pass() {
        let config =
            Impairments { reorder: 0.2, reorder_delay: Nanos(1500), ..Impairments::default() };
        let times: Vec<u64> = arrivals(config, 1000).into_iter().flatten().collect();
        let passed = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!((100..220).contains(&passed), "0.2 x 0.8 of 1000: {passed}");
    }
}
