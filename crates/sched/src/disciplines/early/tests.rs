use rand_xoshiro::rand_core::SeedableRng;

use super::*;
use crate::interface::FlowId;
use crate::testkit::Random;

const MS: u64 = 1_000_000;

fn wire(spec: &str) -> Wire {
    Wire::new(spec.parse::<crate::spec::Spec>().unwrap().params())
}

#[test]
fn an_average_lies_within_the_lengths_it_has_seen() {
    let (mut random, wire) = (Random(3), wire("red"));
    for ppb in [10_000, 1_953_125, 2_000_000, 500_000_000, 1_000_000_000] {
        let mut average = Average::new(Share::from_ppb(ppb));
        average.restart(1 << 32);
        let (mut least, mut most) = (1 << 32, 1 << 32);
        for _ in 0..5_000 {
            let length = random.below(1 << 33);
            (least, most) = (length.min(least), length.max(most));
            average.arrival(length, Nanos::ZERO, &wire);
            assert!((exactly(least)..=exactly(most)).contains(&average.value()));
        }
    }
}

#[test]
fn idle_time_counts_as_arrivals_to_an_empty_queue() {
    let wire = wire("red:rate=1mbit,mean-packet=500b");
    assert_eq!(wire.free_after(&Packet::new(FlowId::new(1), 1000), Nanos(5)), Nanos(8 * MS + 5));
    for ppb in [2_000_000, 500_000_000, 1_000_000_000] {
        let mut average = Average::new(Share::from_ppb(ppb));
        average.restart(1000);
        let mut steps = average;
        (0..7).for_each(|_| steps.step(0));
        average.idle(Nanos(MS));
        // Seven packets take 28 ms, the eighth is not there yet; then comes the arrival.
        average.arrival(0, Nanos(MS + 28 * MS + 3_999_999), &wire);
        steps.step(0);
        assert!(average.value().abs_diff(steps.value()) < 16, "{average:?} {steps:?}");
    }
    // Years at a terabit do not overflow.
    let mut average = Average::new(Share::from_ppb(2_000_000));
    average.restart(1 << 32);
    average.idle(Nanos::ZERO);
    average.arrival(0, Nanos::MAX, &Wire { rate: Rate::UNLIMITED, mean_packet: 1 });
    assert_eq!(average.value(), 0);
}

fn curve(min: u64, max: u64, percent: u32, gentle: bool) -> Curve {
    let at = |n| Level::At(Amount::Packets(n));
    let most = Share::from_ppb(percent * 10_000_000);
    Curve::new(Amount::Packets(300), at(min), at(max), most, gentle)
}

#[test]
fn the_curve_rises_from_min_over_max_to_twice_max() {
    let part = |place| match place {
        Place::Within(p) => p as f64 / ONE as f64,
        other => panic!("{other:?}"),
    };
    let gentle = curve(5, 15, 10, true);
    assert_eq!(gentle.place(exactly(5) - 1), Place::Below);
    assert_eq!(gentle.place(exactly(5)), Place::Within(0));
    for (length, expected) in [(10, 0.05), (15, 0.1), (21, 0.46), (27, 0.82)] {
        let found = part(gentle.place(exactly(length)));
        assert!((found - expected).abs() < 1e-9, "{length}: {found}");
    }
    assert_eq!(gentle.place(exactly(30)), Place::Beyond);
    assert!(part(gentle.place(exactly(30) - 1)) <= 1.0);
    let steep = curve(5, 15, 10, false);
    assert!(part(steep.place(exactly(15) - 1)) < 0.1);
    assert_eq!(steep.place(exactly(15)), Place::Beyond);
    assert!(gentle.marks(exactly(15) - 1) && !gentle.marks(exactly(15)));
}

#[test]
fn levels_are_shares_of_the_limit_or_amounts() {
    let limit = Amount::Packets(300);
    let share = Level::OfLimit(Share::from_ppb(150_000_000));
    assert_eq!(share.under(limit, BITS), exactly(45));
    assert_eq!(Level::At(Amount::Packets(7)).under(limit, BITS), exactly(7));
    assert_eq!(Level::At(Amount::UNLIMITED).under(limit, BITS), u64::MAX);
    let never = Curve::new(limit, share, Level::At(Amount::UNLIMITED), Share::ONE, true);
    assert_eq!(never.place(exactly(1 << 32)), Place::Within(0));
}

#[test]
fn certain_and_impossible_coins_throw_no_dice() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let before = rng.clone();
    assert!(!coin(&mut rng, 0, u64::MAX, false));
    assert!(!coin(&mut rng, ONE / 8, 7, true));
    assert!(coin(&mut rng, ONE / 8, 8, false));
    assert!(coin(&mut rng, ONE / 8, 7, false), "1/8 of the eighth that is left");
    assert!(coin(&mut rng, ONE / 8, 16, true));
    assert!(coin(&mut rng, ONE, 1, true) && coin(&mut rng, ONE, u64::MAX, false));
    assert_eq!(rng, before);
}
