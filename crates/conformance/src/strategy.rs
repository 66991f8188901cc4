//! Random specs and operation sequences for proptest.

use proptest::prelude::*;
use proptest::strategy::Union;
use proptest::test_runner::{Config, TestError, TestRunner};
use sched::{Ecn, Info, Nanos, Spec};

use crate::ledger::Violation;
use crate::operation::{Arrival, Offset, Operation};
use crate::values;

/// How a discipline is set up for a test.
#[derive(Clone, Copy, Debug)]
pub enum Setup {
    /// As its authors would.
    Defaults,
    /// A limit and a threshold of a few packets.
    Tiny,
    /// A limit and a threshold in bytes.
    Bytes,
    /// Any valid value for any parameter.
    Random,
}

impl Setup {
    /// Every set-up.
    pub const ALL: [Self; 4] = [Self::Defaults, Self::Tiny, Self::Bytes, Self::Random];
}

/// What is expected of a discipline over a sequence of operations, with a seed.
pub type Property<'a> = &'a dyn Fn(&Spec, &[Operation], u64) -> Result<(), Violation>;

/// Checks `property` on `cases` random set-ups and sequences for `info`; parameters in `except`
/// stay at their defaults throughout.
///
/// # Panics
/// If it does not hold, with the smallest sequence found for which it does not.
pub fn for_all(
    info: &'static Info,
    except: &'static [&'static str],
    setup: Setup,
    cases: u32,
    property: Property<'_>,
) {
    let inputs = (spec(info, except, setup), operations(info, except, 160), any::<u64>());
    let test = |(spec, operations, seed): (Spec, Vec<_>, _)| {
        property(&spec, &operations, seed).map_err(TestCaseError::fail)
    };
    match TestRunner::new(config(cases)).run(&inputs, test) {
        Ok(()) => {}
        Err(TestError::Fail(reason, (spec, operations, seed))) => {
            panic!("{spec} ({setup:?}, seed {seed}): {reason}\nafter {operations:#?}")
        }
        Err(abort) => panic!("{}, {setup:?}: {abort}", info.name),
    }
}

/// The configuration for `cases` cases, or that times `CONFORMANCE_EFFORT`.
#[must_use]
pub fn config(cases: u32) -> Config {
    let effort = std::env::var("CONFORMANCE_EFFORT").ok().and_then(|times| times.parse().ok());
    let cases = cases.saturating_mul(effort.unwrap_or(1));
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// The discipline `info`, set up so; parameters in `except` stay at their defaults.
fn spec(info: &'static Info, except: &'static [&'static str], setup: Setup) -> BoxedStrategy<Spec> {
    let defaults = Spec::named(info.name).expect("a name from the registry");
    let random = move |settings: Vec<u64>| {
        let drawn = settings
            .into_iter()
            .filter_map(move |random| values::draw_setting(info, except, random));
        drawn.fold(Spec::named(info.name).expect("from the registry"), |spec, (name, value)| {
            values::set_if_accepted(spec, name, &value)
        })
    };
    match setup {
        Setup::Defaults => Just(defaults).boxed(),
        Setup::Tiny => (1..=6u32, 0..=4u32)
            .prop_map(move |(limit, threshold)| {
                sized(&defaults, &format!("{limit}packets"), &format!("{threshold}packets"))
            })
            .boxed(),
        Setup::Bytes => (1_000..=20_000u32, 0..=9_000u32)
            .prop_map(move |(limit, threshold)| {
                sized(&defaults, &format!("{limit}b"), &format!("{threshold}b"))
            })
            .boxed(),
        Setup::Random => prop::collection::vec(any::<u64>(), 0..=8).prop_map(random).boxed(),
    }
}

/// `spec` with this limit and threshold, and flows sampled often enough to be met, where it has
/// such parameters and takes these values.
#[must_use]
pub fn sized(spec: &Spec, limit: &str, threshold: &str) -> Spec {
    let settings = [("limit", limit), ("threshold", threshold), ("probability", "0.3")];
    settings
        .into_iter()
        .fold(spec.clone(), |spec, (name, value)| spec.clone().with(name, value).unwrap_or(spec))
}

/// Up to `length` operations for the discipline `info`, live changes of parameters other than
/// those in `except` among them.
fn operations(
    info: &'static Info,
    except: &'static [&'static str],
    length: usize,
) -> impl Strategy<Value = Vec<Operation>> {
    let setting = move |random| values::draw_setting(info, except, random);
    let change = any::<u64>().prop_map(move |random| match setting(random) {
        Some((name, value)) => Operation::Change(name, value),
        None => Operation::Dequeue,
    });
    let operation = Union::new_weighted(vec![
        (60, arrival().prop_map(Operation::Enqueue).boxed()),
        (40, Just(Operation::Dequeue).boxed()),
        (12, span().prop_map(Operation::Advance).boxed()),
        (3, change.boxed()),
    ]);
    prop::collection::vec(operation, 0..=length)
}

/// Up to `length` arrivals, departures, and changes of the limit alone.
pub fn traffic(length: usize) -> impl Strategy<Value = Vec<Operation>> {
    let limit = limit().prop_map(|limit| Operation::Change("limit", limit));
    let operation = Union::new_weighted(vec![
        (60, arrival().prop_map(Operation::Enqueue).boxed()),
        (40, Just(Operation::Dequeue).boxed()),
        (8, span().prop_map(Operation::Advance).boxed()),
        (2, limit.boxed()),
    ]);
    prop::collection::vec(operation, 0..=length)
}

/// A limit that short sequences reach.
pub fn limit() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..=12u32).prop_map(|n| format!("{n}packets")),
        (500..=20_000u32).prop_map(|n| format!("{n}b")),
    ]
}

/// Any packet: sizes as on real links, one in ten a GSO packet, mostly of a few flows.
fn arrival() -> impl Strategy<Value = Arrival> {
    let size = prop_oneof![
        4 => Just(1500u32),
        2 => Just(1000u32),
        2 => Just(40u32),
        2 => 1..=9000u32,
    ];
    let segments = prop_oneof![9 => Just(1u16), 1 => 2..=45u16];
    let flow = prop_oneof![8 => 0..=4u8, 1 => 5..=40u8];
    let ecn = prop_oneof![
        6 => Just(Ecn::NotEct), 2 => Just(Ecn::Ect0), 1 => Just(Ecn::Ect1), 1 => Just(Ecn::Ce)
    ];
    let offset = prop_oneof![
        8 => Just(Offset::Next), 1 => Just(Offset::First), 1 => Just(Offset::Unknown)
    ];
    let tagged = prop::bool::weighted(0.3);
    (flow, size, segments, ecn, offset, tagged).prop_map(
        |(flow, size, segments, ecn, offset, tagged)| {
            let size = if segments > 1 { u32::from(segments) * 1448 } else { size };
            Arrival { flow, size, segments, ecn, offset, tagged }
        },
    )
}

/// Mostly packet times, now and then longer than any timeout.
fn span() -> impl Strategy<Value = Nanos> {
    prop_oneof![
        6 => (0..2_000_000u64).prop_map(Nanos),
        3 => (0..300u64).prop_map(Nanos::from_millis),
        1 => (0..80u64).prop_map(Nanos::from_secs),
    ]
}
