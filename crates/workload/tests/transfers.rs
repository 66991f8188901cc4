//! Transfer lists: load, strata, starts, and the same list from the same seed everywhere.

use proptest::prelude::*;
use statrs::distribution::{ChiSquared, ContinuousCDF};
use units::{Nanos, Rate};
use workload::{Offered, Random, SizeLaw, Transfer, TransferError, TransferList};

const MINUTE: Offered =
    Offered { load: 0.8, rate: Rate(10_000_000), duration: Nanos::from_secs(60) };

fn list(law: &str, offered: &Offered, seed: u64) -> TransferList {
    TransferList::generate(&law.parse().unwrap(), offered, seed).unwrap()
}

// The figures were computed by an independent program from the definitions (SplitMix64,
// xoshiro256++, the formulas of the laws).
#[test]
fn a_seed_gives_the_same_list_for_ever() {
    let list = list("zipf", &MINUTE, 1);
    let first: Vec<_> =
        list.transfers()[..4].iter().map(|t| (t.start.0, t.size_bytes / 1460)).collect();
    assert_eq!(list.transfers().len(), 412);
    assert_eq!(first, [(72_857_386, 6), (307_275_750, 7), (874_007_115, 1), (1_223_188_337, 97)]);
    let digest = |hash: u64, t: &Transfer| {
        (hash ^ t.start.0 ^ t.size_bytes.rotate_left(32)).wrapping_mul(0x0100_0000_01b3)
    };
    assert_eq!(list.transfers().iter().fold(0xcbf2_9ce4_8422_2325, digest), 0x51ec_4305_ef6e_8d44);
}

#[test]
fn transcendental_laws_give_the_same_sizes_for_ever() {
    let sizes = |law: &str| -> Vec<u64> {
        let law: SizeLaw = law.parse().unwrap();
        [0.1, 0.5, 0.9, 0.999].iter().map(|u| law.quantile(*u)).collect()
    };
    assert_eq!(sizes("exponential:mean=100kb"), [10_789, 70_978, 235_785, 707_354]);
    assert_eq!(sizes("pareto:shape=1.1,mean=500kb"), [51_224, 87_406, 377_545, 24_839_909]);
    assert_eq!(sizes("lomax:shape=1.1,mean=500kb"), [5147, 44_947, 364_099, 27_272_700]);
    assert_eq!(sizes("bounded-pareto:shape=1.1,min=1kb,max=10mb"), [1127, 1923, 8303, 527_915]);
}

#[test]
fn out_of_range_is_refused_with_what_is_accepted() {
    let refused = |offered: Offered| {
        TransferList::generate(&SizeLaw::efd_paper(), &offered, 1).unwrap_err().to_string()
    };
    for load in [0.0, -1.0, 5.1, f64::NAN, f64::INFINITY] {
        let message = refused(Offered { load, ..MINUTE });
        let expected = format!("load {load} is not accepted; a load lies above 0 and is at most 5");
        assert_eq!(message, expected);
    }
    assert_eq!(
        refused(Offered { rate: Rate(0), ..MINUTE }),
        "rate 0 bit/s is not accepted; a rate is 1 bit/s to 1 Tbit/s"
    );
    assert_eq!(
        refused(Offered { duration: Nanos::ZERO, ..MINUTE }),
        "duration 0 ns is not accepted; a duration is 1 ns to 30 days"
    );
    let tiny: SizeLaw = "fixed:size=1b".parse().unwrap();
    let error = TransferList::generate(&tiny, &Offered { rate: Rate(1_000_000_000), ..MINUTE }, 1);
    assert_eq!(error, Err(TransferError::TooMany { found: 6e9 }));
    assert_eq!(
        error.unwrap_err().to_string(),
        "6000000000 transfers are more than a list holds; at most 10000000 are accepted"
    );
}

#[test]
fn starts_are_uniform_and_their_gaps_exponential() {
    let offered = Offered { duration: Nanos::from_secs(3000), ..MINUTE };
    let list = list("zipf", &offered, 3);
    let starts: Vec<u64> = list.transfers().iter().map(|t| t.start.0).collect();
    let n = starts.len() as f64;
    let mut tenths = [0u32; 10];
    for start in &starts {
        tenths[(*start as u128 * 10 / u128::from(offered.duration.0)) as usize] += 1;
    }
    let mut gaps = [0u32; 10];
    let rate = n / offered.duration.0 as f64;
    for pair in starts.windows(2) {
        let u = 1.0 - (-((pair[1] - pair[0]) as f64) * rate).exp();
        gaps[(u * 10.0) as usize] += 1;
    }
    let limit = ChiSquared::new(9.0).unwrap().inverse_cdf(0.999);
    for counts in [tenths, gaps] {
        let expected = f64::from(counts.iter().sum::<u32>()) / 10.0;
        let chi_square: f64 =
            counts.iter().map(|c| (f64::from(*c) - expected).powi(2) / expected).sum();
        assert!(chi_square < limit, "{counts:?}: {chi_square}");
    }
}

#[test]
fn sizes_do_not_follow_the_order_of_starts() {
    let list = list("zipf", &Offered { duration: Nanos::from_secs(3000), ..MINUTE }, 4);
    let half = list.transfers().len() / 2;
    let sum = |part: &[Transfer]| part.iter().map(|t| t.size_bytes).sum::<u64>() as f64;
    let share = sum(&list.transfers()[..half]) / list.bytes() as f64;
    assert!((share - 0.5).abs() < 0.03, "{share}");
}

proptest! {
    #[test]
    fn one_size_falls_into_each_stratum(seed: u64, load in 0.1f64..5.0) {
        let law: SizeLaw = "exponential:mean=100kb".parse().unwrap();
        let list = TransferList::generate(&law, &Offered { load, ..MINUTE }, seed).unwrap();
        let mut sizes: Vec<u64> = list.transfers().iter().map(|t| t.size_bytes).collect();
        sizes.sort_unstable();
        let n = sizes.len() as f64;
        for (i, size) in sizes.iter().enumerate() {
            let stratum = law.quantile(i as f64 / n)..=law.quantile((i + 1) as f64 / n);
            prop_assert!(stratum.contains(size), "{i}: {size} not in {stratum:?}");
        }
    }

    #[test]
    fn the_list_offers_its_load(seed: u64, load in 0.2f64..5.0) {
        let offered = Offered { load, ..MINUTE };
        let list = list("zipf", &offered, seed);
        let realised = list.load(offered.rate, offered.duration);
        prop_assert!((realised / load - 1.0).abs() < 0.03, "{realised} for {load}");
        prop_assert!(list.transfers().is_sorted_by_key(|t| t.start));
        prop_assert!(list.transfers().iter().all(|t| t.start < offered.duration));
        prop_assert_eq!(&list, &self::list("zipf", &offered, seed));
        prop_assert_ne!(&list, &self::list("zipf", &offered, seed ^ 1));
    }
}

#[test]
fn an_unstratified_list_has_exponential_gaps_and_the_load_on_average() {
    let law: SizeLaw = "exponential:mean=10000b".parse().unwrap();
    let offered = Offered { load: 0.5, rate: Rate(8_000_000), duration: Nanos::from_secs(1000) };
    let list = TransferList::poisson(&law, &offered, &mut Random::new(5)).unwrap();
    let n = list.transfers().len() as f64;
    // 50 a second for 1000 s; four standard deviations.
    assert!((n - 50_000.0).abs() < 4.0 * 50_000f64.sqrt(), "{n}");
    let load = list.load(offered.rate, offered.duration);
    assert!((load - 0.5).abs() < 4.0 * 0.5 * (2.0 / 50_000f64).sqrt(), "{load}");
    let gaps = list.transfers().windows(2).map(|w| (w[1].start - w[0].start).0 as f64 / 2e7);
    let beyond = gaps.filter(|gap| *gap > 1.0).count() as f64 / n;
    assert!((beyond - (-1f64).exp()).abs() < 0.01, "{beyond}");
    let refused =
        TransferList::poisson(&law, &Offered { load: 0.0, ..offered }, &mut Random::new(5));
    assert_eq!(refused, Err(TransferError::Load { found: 0.0 }));
}

#[test]
fn periodic_and_staggered_lists_start_on_time() {
    let starts = |list: TransferList| -> Vec<u64> {
        assert!(list.transfers().iter().all(|t| t.size_bytes == 9));
        list.transfers().iter().map(|t| t.start.0).collect()
    };
    let periodic = |at_once, every, until| {
        starts(TransferList::periodic(9, at_once, Nanos(every), Nanos(5), Nanos(until)))
    };
    assert_eq!(periodic(2, 10, 25), [5, 5, 15, 15]);
    assert_eq!(periodic(1, 10, 26), [5, 15, 25]);
    assert_eq!(periodic(3, 0, 26), [5, 5, 5]);
    assert_eq!(periodic(3, 10, 5), []);
    assert_eq!(starts(TransferList::staggered(9, 3, Nanos(10), Nanos(5))), [5, 15, 25]);
}
