//! What holds whatever is observed.

use autorate::{Bounds, Controller, Echo, Load, Path, Reason, Traffic, Trip, View};
use proptest::prelude::*;
use units::{Nanos, Rate};

const FLOOR: u64 = 2_000_000;
const BASE: u64 = 20_000_000;
const CEILING: u64 = 100_000_000;

fn controller() -> Controller {
    let bounds = Bounds::new(Rate(FLOOR), Rate(BASE), Rate(CEILING)).unwrap();
    Controller::new(bounds, Nanos::ZERO)
}

fn time() -> impl Strategy<Value = Nanos> {
    prop_oneof![0..100_000_000u64, 0..10_000_000_000u64, any::<u64>()].prop_map(Nanos)
}

prop_compose! {
    fn view()(
        blind in prop::bool::weighted(0.1),
        baseline in prop::option::of(time()),
        threshold in 10_000_000..100_000_000u64,
        extra in prop::option::of((time(), time())),
        recent in prop::option::of((time(), time())),
        newest in prop::option::of((time(), time())),
        mean in time(),
        passed in prop::option::of(any::<u64>()),
        span in time(),
    ) -> View {
        let threshold = Nanos(threshold);
        View { blind, baseline, threshold, extra, recent, newest, mean, passed, span }
    }
}

/// Time since the observation before, bytes sent since then, and the rest.
fn steps() -> impl Strategy<Value = Vec<(View, Nanos, u64, Option<u64>, bool)>> {
    let sent = prop_oneof![Just(0), 0..2_000_000u64, any::<u64>()];
    let delivered = prop::option::of(prop_oneof![0..50_000_000u64, any::<u64>()]);
    prop::collection::vec((view(), time(), sent, delivered, any::<bool>()), 1..200)
}

proptest! {
    #[test]
    fn the_rate_is_within_its_bounds_and_each_change_has_its_reason(steps in steps()) {
        let mut controller = controller();
        let (mut now, mut sent) = (Nanos::ZERO, 0u64);
        for (view, later, bytes, delivered, other_busier) in steps {
            now += later;
            sent = sent.wrapping_add(bytes);
            let before = controller.rate();
            let load = Load { sent, delivered, other_busier };
            let decision = controller.decide(&view, &load, now);
            let rate = controller.rate();
            prop_assert!((FLOOR..=CEILING).contains(&rate.0));
            prop_assert!(controller.tolerance() <= Nanos::from_millis(50));
            prop_assert!(!view.blind || rate.0 == BASE);
            let Some(decision) = decision else {
                prop_assert_eq!(rate, before);
                continue;
            };
            prop_assert_eq!((decision.at, decision.from, decision.to), (now, before, rate));
            prop_assert_ne!(before, rate);
            prop_assert!(!decision.to_string().contains('\n'));
            match decision.reason {
                Reason::Queue { extra, threshold, .. } => {
                    prop_assert!(rate < before && extra > threshold && !other_busier);
                    prop_assert!(controller.sent() >= FLOOR / 2);
                }
                Reason::Room { .. } => {
                    let threshold = view.threshold + controller.tolerance();
                    let is_clear = View { threshold, ..view }.is_clear();
                    prop_assert!(rate > before && is_clear);
                    prop_assert!(controller.sent() as f64 >= 0.85 * before.0 as f64);
                }
                Reason::Drained { .. } | Reason::Stayed { .. } => prop_assert!(rate > before),
                Reason::Idle { .. } => {
                    prop_assert!(rate.0.abs_diff(BASE) < before.0.abs_diff(BASE));
                }
                Reason::Blind => prop_assert_eq!(rate.0, BASE),
            }
        }
        // Without traffic it ends at its base, whatever was before.
        for _ in 0..2_400 {
            now += Nanos::from_millis(25);
            let load = Load { sent, ..Load::default() };
            controller.decide(&View { blind: false, ..View::default() }, &load, now);
        }
        prop_assert!(now == Nanos::MAX || controller.rate().0 == BASE);
    }

    #[test]
    fn traffic_takes_whatever_is_answered(
        trips in prop::collection::vec((any::<u8>(), time(), time(), any::<u64>(), time()), 0..400),
        probes in view(),
    ) {
        let mut traffic = Traffic::default();
        for (host, departed, returned, bytes_before, now) in trips {
            traffic.answer(Trip { host: host.into(), departed, returned, bytes_before });
            let view = traffic.look(now, departed);
            if let Some(view) = view {
                prop_assert!(!view.blind && view.baseline.is_some());
                prop_assert!(view.threshold >= Nanos::from_millis(10));
            }
            for is_witness in [true, false] {
                let both = probes.beside(view, is_witness);
                prop_assert!(both == probes || Some(both) == view);
                prop_assert!(!both.blind || view.is_none());
            }
        }
    }

    #[test]
    fn a_path_takes_whatever_answers_come(
        events in prop::collection::vec((0..4u8, 0..200u32, time(), time(), prop::option::of(any::<u64>())), 0..400)
    ) {
        let mut path = Path::new();
        for (what, number, departed, returned, bytes_before) in events {
            match what {
                0 => drop(path.send()),
                1 => path.depart(number, departed),
                2 => path.answer(number, Echo { departed, returned, bytes_before }),
                _ => {
                    let view = path.look(returned);
                    prop_assert!(!view.blind || view.extra.is_none());
                    prop_assert!(view.threshold >= Nanos::from_millis(10));
                }
            }
        }
    }
}
