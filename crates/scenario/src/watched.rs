//! Which transfers have a row for each arrival of new bytes. It depends on the workload alone: under
//! every scheduler they are the same.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::draw;
use crate::scenario::Scenario;
use crate::traffic::Kind;

/// The traffic that a transfer belongs to, and its place there.
pub(crate) type Transfer = (usize, u64);

/// The transfers of this seed that are watched: the largest that count and have a quarter of the run
/// to get through.
pub(crate) fn watched(scenario: &Scenario, seed: u64) -> BTreeSet<Transfer> {
    let most = scenario.record.progress;
    if most == 0 {
        return BTreeSet::new();
    }
    let span = scenario.warm_up..scenario.duration / 4 * 3;
    // The smallest, and of equal ones the latest, comes out first.
    let mut largest = BinaryHeap::new();
    for (number, traffic) in scenario.traffic.iter().enumerate() {
        if !matches!(traffic.kind, Kind::Transfers { .. } | Kind::Periodic { .. }) {
            continue;
        }
        let flows = (0u64..).zip(draw::flows(traffic, seed));
        for (index, flow) in flows.take_while(|(_, flow)| flow.start < span.end) {
            if span.contains(&flow.start) {
                largest.push((Reverse(flow.size_bytes), flow.start, number, index));
            }
            if largest.len() > most {
                largest.pop();
            }
        }
    }
    largest.into_iter().map(|(_, _, number, index)| (number, index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Overrides;

    fn scenario(progress: u64, traffic: &str) -> Scenario {
        let text = format!(
            "[scenario]\ntitle = \"t\"\nduration = \"100s\"\nwarm-up = \"10s\"\n\
             [schedulers]\nrun = [\"fifo\"]\n[topology]\nkind = \"dumbbell\"\n\
             access = {{ rate = \"1gbit\" }}\nbottleneck = {{ rate = \"100mbit\" }}\n\
             [record]\nprogress = {progress}\n{traffic}"
        );
        let scenario = Scenario::parse(&text, "t.toml", None, &Overrides::default());
        scenario.unwrap_or_else(|error| panic!("{error}"))
    }

    /// One transfer every 10 s, from 0 on, of 20 kB; and the same of 10 kB.
    const ROUNDS: &str = "[[traffic]]\nkind = \"periodic\"\nname = \"large\"\nevery = \"10s\"\n\
                          size = \"20kb\"\n[[traffic]]\nkind = \"periodic\"\nname = \"small\"\n\
                          every = \"10s\"\nsize = \"10kb\"\n";

    #[test]
    fn the_earliest_of_equals_are_watched_once_the_warm_up_is_over() {
        let of = |progress| watched(&scenario(progress, ROUNDS), 1);
        assert_eq!(of(0), BTreeSet::new());
        assert_eq!(of(2), BTreeSet::from([(0, 1), (0, 2)]));
        // From 10 to 70 s; what starts later has no quarter of the run left.
        let large = (1..=7).map(|index| (0, index));
        assert_eq!(of(8), large.clone().chain([(1, 1)]).collect());
        assert_eq!(of(1000), large.chain((1..=7).map(|index| (1, index))).collect());
    }

    #[test]
    fn the_largest_are_watched() {
        let transfers = "[[traffic]]\nkind = \"transfers\"\narrivals = 50\n\
                         sizes = \"exponential:mean=10kb\"\n";
        let scenario = scenario(5, transfers);
        for seed in 1..20 {
            let flows: Vec<_> = (0..).zip(draw::flows(&scenario.traffic[0], seed)).collect();
            let mut sizes: Vec<(u64, u64)> = flows
                .iter()
                .filter(|(_, flow)| (10..75).contains(&(flow.start.0 / 1_000_000_000)))
                .map(|(index, flow)| (flow.size_bytes, *index))
                .collect();
            sizes.sort_unstable();
            let expected = sizes.iter().rev().take(5).map(|(_, index)| (0, *index)).collect();
            assert_eq!(watched(&scenario, seed), expected);
        }
        assert_ne!(watched(&scenario, 1), watched(&scenario, 2));
    }
}
