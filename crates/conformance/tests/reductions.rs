//! Every reduction of `conformance::reduction` on random traffic.

use conformance::reduction::ALL;
use conformance::strategy;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

#[test]
fn both_sides_of_every_reduction_behave_alike() {
    let threshold = prop_oneof![
        (0..=8u32).prop_map(|n| format!("{n}packets")),
        (0..=12_000u32).prop_map(|n| format!("{n}b")),
    ];
    let weight = (1..=9u32).prop_map(|tenths| format!("0.{tenths}"));
    let traffic = strategy::traffic(160);
    let inputs = (strategy::limit(), threshold, weight, traffic, any::<u64>());
    for reduction in ALL {
        assert!(reduction.is_registered(), "{reduction:?}");
        TestRunner::new(strategy::config(256))
            .run(&inputs, |(limit, threshold, weight, operations, seed)| {
                let outcome = reduction.check(&limit, &threshold, &weight, &operations, seed);
                outcome.map_err(TestCaseError::fail)
            })
            .unwrap_or_else(|failure| panic!("{reduction:?}: {failure}"));
    }
}
