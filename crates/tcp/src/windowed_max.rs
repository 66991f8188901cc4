//! The largest value of a sliding window, from the three best of it (Kathleen Nichols' filter, as
//! Linux has it for BBR).

/// The three best values, each younger than the one before, with the round of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowedMax {
    best: [(u64, f64); 3],
}

impl WindowedMax {
    /// The largest value of the last `window` rounds before the last one noted.
    pub(crate) fn get(&self) -> f64 {
        self.best[0].1
    }

    /// Notes a value. Time goes on only here: without new values an old one stays.
    pub(crate) fn note(&mut self, round: u64, value: f64, window: u64) {
        let new = (round, value);
        let [first, second, third] = &mut self.best;
        if value >= first.1 || round - third.0 > window {
            self.best = [new; 3];
            return;
        }
        if value >= second.1 {
            (*second, *third) = (new, new);
        } else if value >= third.1 {
            *third = new;
        }
        if round - first.0 > window {
            // The best is too old: its successor takes its place, twice if that is as well.
            (*first, *second, *third) = (*second, *third, new);
            if round - first.0 > window {
                (*first, *second, *third) = (*second, *third, new);
            }
        } else if second.0 == first.0 && round - first.0 > window / 4 {
            // A quarter of the window without another: its best so far is second.
            (*second, *third) = (new, new);
        } else if third.0 == second.0 && round - first.0 > window / 2 {
            *third = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_value_of_the_window_and_no_less_than_the_newest(
            values in proptest::collection::vec(0u32..1000, 1..200)
        ) {
            let mut filter = WindowedMax::default();
            for (round, &value) in (1u64..).zip(&values) {
                filter.note(round, value.into(), 10);
                let window = &values[values.len().min(round as usize).saturating_sub(11)..round as usize];
                let found = filter.get();
                prop_assert!(window.iter().any(|&v| f64::from(v) == found), "{found} of {window:?}");
                prop_assert!(found >= f64::from(value));
            }
        }
    }

    #[test]
    fn a_peak_is_forgotten_after_its_window() {
        let mut filter = WindowedMax::default();
        filter.note(1, 100.0, 10);
        (2..=11).for_each(|round| filter.note(round, 50.0, 10));
        assert!((filter.get() - 100.0).abs() < 1e-9);
        filter.note(12, 50.0, 10);
        assert!((filter.get() - 50.0).abs() < 1e-9);
    }
}
