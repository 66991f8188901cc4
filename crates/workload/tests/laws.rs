//! Size laws: quantile, cdf, mean and samples agree with each other and with the definition.

use proptest::prelude::*;
use statrs::distribution::{ChiSquared, ContinuousCDF};
use workload::{CountLaw, Random, SizeLaw, TimeLaw};

const LAWS: [&str; 9] = [
    "fixed:size=20kb",
    "exponential:mean=100kb",
    "pareto:shape=2.5,mean=500kb",
    "lomax:shape=2.5,mean=500kb",
    "bounded-pareto:shape=1.1,min=1kb,max=10mb",
    "bounded-pareto:shape=1,min=1kb,max=10mb",
    "zipf:alpha=1.1,max=1000packets",
    "uniform:min=2b,max=7b",
    "0.85*exponential:mean=20kb+0.15*bounded-pareto:shape=1.1,min=90kb,max=10mb",
];

fn law(text: &str) -> SizeLaw {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_mean_is_that_of_the_quantiles() {
    for text in LAWS {
        let law = law(text);
        let n = 100_000;
        let middle = |i: u32| law.quantile((f64::from(i) + 0.5) / f64::from(n)) as f64;
        let mean = (0..n).map(middle).sum::<f64>() / f64::from(n);
        assert!((mean / law.mean() - 1.0).abs() < 2e-3, "{text}: {mean}, not {}", law.mean());
    }
}

#[test]
fn known_means_and_quantiles() {
    let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    // The S1 and S2 laws of "A Flow Scheduler Architecture": scale 50 kB, 28.7 % to 31 % short.
    let lomax = law("lomax:shape=1.1,mean=500000b");
    assert!(close(lomax.mean(), 500_000.0));
    assert!((lomax.cdf(20_000) - 0.309).abs() < 0.001);
    let pareto = law("pareto:shape=1.1,mean=1000000b");
    assert_eq!(pareto.quantile(0.0), 90_909);
    let mixture = law("0.85*exponential:mean=20000b+0.15*pareto:shape=1.1,mean=1000000b");
    assert!(close(mixture.mean(), 167_000.0));
    assert!((mixture.cdf(20_000) - 0.5373).abs() < 0.0001);
    // ln 2 and ln 4 means.
    let exponential = law("exponential:mean=100000b");
    assert_eq!(exponential.quantile(0.5), 69_315);
    assert_eq!(exponential.quantile(0.75), 138_629);
    // P(1) = 1 / (1 + 1/2 + 1/3) = 6/11, P(2) = 3/11, P(3) = 2/11; mean 18/11.
    let zipf = law("zipf:alpha=1,max=3packets,payload=1000b");
    assert!(close(zipf.mean(), 18_000.0 / 11.0));
    assert_eq!([0.54, 0.55, 0.81, 0.82].map(|u| zipf.quantile(u)), [1000, 2000, 2000, 3000]);
    // Uniform density over 1/x: mean (max - min) / ln(max / min).
    let log_uniform = law("bounded-pareto:shape=1,min=1000b,max=1000000b");
    assert!(close(log_uniform.mean(), 1000.0 * 1000.0 / 999.0 * 1000f64.ln()));
}

#[test]
fn samples_follow_the_law() {
    for (seed, text) in LAWS.iter().enumerate().skip(1) {
        let law = law(text);
        let mut random = Random::new(seed as u64);
        let (cells, n) = (20u32, 20_000);
        // Cell by probability; a law with steps has unequal cells, so take their real weight.
        let edge = |i: u32| law.quantile(f64::from(i) / f64::from(cells));
        let mut edges: Vec<u64> = (1..cells).map(edge).collect();
        edges.dedup();
        let mut observed = vec![0u32; edges.len() + 1];
        for _ in 0..n {
            let size = law.sample(&mut random);
            observed[edges.partition_point(|edge| *edge < size)] += 1;
        }
        let below = |i: usize| edges.get(i).map_or(1.0, |edge| law.cdf(*edge));
        let expected =
            |i: usize| (below(i) - if i == 0 { 0.0 } else { below(i - 1) }) * f64::from(n);
        let chi_square: f64 = observed
            .iter()
            .enumerate()
            .filter(|(i, _)| expected(*i) > 0.0)
            .map(|(i, seen)| (f64::from(*seen) - expected(i)).powi(2) / expected(i))
            .sum();
        let limit = ChiSquared::new(edges.len() as f64).unwrap().inverse_cdf(0.999);
        assert!(chi_square < limit, "{text}: chi-square {chi_square} above {limit}");
    }
}

#[test]
fn a_law_reads_back_as_it_is_written() {
    for text in LAWS {
        let law = law(text);
        assert_eq!(law.to_string().parse(), Ok(law), "{text}");
    }
    assert_eq!(law("zipf").to_string(), "zipf:alpha=1.1,max=1000packets,payload=1460b");
    assert_eq!(law("zipf"), SizeLaw::efd_paper());
}

#[test]
fn errors_say_what_was_found_and_what_is_accepted() {
    let sizes = "1b to 1024gb with a unit (b, kb, mb, gb; k is 1024)";
    let tails = "a number above 1, at most 100 (at 1 and below, the mean is infinite)";
    let shares = "every part needs a share, SHARE*LAW, and shares add up to 1";
    let cases = [
        ("fixed", "size law fixed needs size".to_string()),
        ("fixed:size", "size law fixed: 'size' is not name=value".into()),
        ("fixed:size=20", format!("size law fixed: size=20 is not accepted; size takes {sizes}")),
        ("fixed:size=0b", format!("size law fixed: size=0b is not accepted; size takes {sizes}")),
        (
            "fixed:size=3packets",
            format!("size law fixed: size=3packets is not accepted; size takes {sizes}"),
        ),
        ("fixed:mean=3kb", "size law fixed: 'mean' is unknown or given twice; it has size".into()),
        (
            "fixed:size=3kb,size=4kb",
            "size law fixed: 'size' is unknown or given twice; it has size".into(),
        ),
        (
            "exponential:mean=inf",
            format!("size law exponential: mean=inf is not accepted; mean takes {sizes}"),
        ),
        (
            "pareto:shape=1,mean=1kb",
            format!("size law pareto: shape=1 is not accepted; shape takes {tails}"),
        ),
        (
            "lomax:shape=NaN,mean=1kb",
            format!("size law lomax: shape=NaN is not accepted; shape takes {tails}"),
        ),
        ("pareto:shape=2", "size law pareto needs shape and mean".into()),
        (
            "bounded-pareto:shape=1,min=2kb,max=2kb",
            "size law bounded-pareto: max=2kb is not accepted; max takes a size above min".into(),
        ),
        (
            "zipf:max=0packets",
            "size law zipf: max=0packets is not accepted; max takes 1packets to 1000000packets"
                .into(),
        ),
        (
            "zipf:payload=64kb",
            "size law zipf: payload=64kb is not accepted; payload takes 1b to 65535b".into(),
        ),
        ("0.5*zipf", format!("mixture '0.5*zipf': {shares}")),
        ("zipf+zipf", format!("mixture 'zipf+zipf': {shares}")),
        ("0*zipf+1*zipf", format!("mixture '0*zipf+1*zipf': {shares}")),
    ];
    for (text, message) in cases {
        assert_eq!(text.parse::<SizeLaw>().unwrap_err().to_string(), message, "{text}");
    }
    let unknown = "weibull:mean=3kb".parse::<SizeLaw>().unwrap_err().to_string();
    assert!(unknown.starts_with("no size law is named 'weibull'; accepted are zipf:"), "{unknown}");
}

fn any_law() -> impl Strategy<Value = String> {
    let size = || 1u64..10_000_000;
    let shape = || 1.01f64..5.0;
    let single = prop_oneof![
        size().prop_map(|n| format!("fixed:size={n}b")),
        size().prop_map(|n| format!("exponential:mean={n}b")),
        (shape(), size()).prop_map(|(a, n)| format!("pareto:shape={a},mean={n}b")),
        (shape(), size()).prop_map(|(a, n)| format!("lomax:shape={a},mean={n}b")),
        (0.1f64..5.0, size(), size()).prop_map(|(a, min, more)| {
            format!("bounded-pareto:shape={a},min={min}b,max={}b", min + more)
        }),
        (0.1f64..4.0, 1u64..2000, 1u64..9000)
            .prop_map(|(a, max, p)| format!("zipf:alpha={a},max={max}packets,payload={p}b")),
    ];
    let mixture = (1u32..100, single.clone(), single.clone())
        .prop_map(|(percent, a, b)| format!("{percent}%*{a}+{}%*{b}", 100 - percent));
    prop_oneof![3 => single, 1 => mixture]
}

proptest! {
    #[test]
    fn quantile_rises_and_inverts_the_cdf(text in any_law(), u in 0.0f64..1.0, v in 0.0f64..1.0) {
        let law = law(&text);
        let (low, high) = (law.quantile(u.min(v)), law.quantile(u.max(v)));
        prop_assert!(1 <= low && low <= high);
        // The least size with more than u at or below it; a rounding error may lie between.
        prop_assert!(law.cdf(low) >= u.min(v) - 1e-9);
        prop_assert!(low == 1 || law.cdf(low - 1) <= u.min(v) + 1e-9);
    }

    #[test]
    fn quantiles_of_the_ends_and_beyond_are_sizes(text in any_law()) {
        let law = law(&text);
        for u in [0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
            prop_assert!(law.quantile(u) >= 1);
        }
        prop_assert_eq!(law.cdf(0), 0.0);
        prop_assert!(law.cdf(u64::MAX) > 0.999_999);
        prop_assert!(law.mean() >= 0.99 && law.mean().is_finite());
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z0-9*+:,=. -]{0,40}|(zipf|pareto):.{0,20}") {
        let _ = text.parse::<SizeLaw>();
    }
}

#[test]
fn times_and_counts_have_the_same_laws_in_their_own_units() {
    let time = |text: &str| text.parse::<TimeLaw>();
    let think = time("pareto:shape=1.5,mean=500ms").expect("a law");
    assert!((think.mean() - 5e8).abs() < 1.0);
    assert_eq!(think.to_string(), "pareto:shape=1.5,mean=500000000ns");
    assert_eq!(think.to_string().parse(), Ok(think));
    assert_eq!(time("fixed:time=0s").expect("a law").quantile(0.5), 0);
    let sometimes = time("0.5*fixed:time=0s+0.5*fixed:time=1s").expect("a law");
    assert_eq!([0.4, 0.6].map(|u| sometimes.quantile(u)), [0, 1_000_000_000]);

    let count = |text: &str| text.parse::<CountLaw>();
    let objects = count("uniform:min=2,max=7").expect("a law");
    assert_eq!([0.0, 0.16, 0.17, 0.999].map(|u| objects.quantile(u)), [2, 2, 3, 7]);
    assert_eq!((objects.mean(), objects.cdf(1), objects.cdf(4)), (4.5, 0.0, 0.5));

    let range = "1ns to 24h with a unit (ns, us, ms, s, min), or 0s where it is fixed or uniform";
    assert_eq!(
        time("exponential:mean=0s").unwrap_err().to_string(),
        format!("time law exponential: mean=0s is not accepted; mean takes {range}")
    );
    assert_eq!(
        count("uniform:min=3,max=2").unwrap_err().to_string(),
        "count law uniform: max=2 is not accepted; max takes min and above"
    );
    assert_eq!(count("fixed:3").unwrap_err().to_string(), "count law fixed: '3' is not name=value");
    let unknown = time("zipf").unwrap_err().to_string();
    assert!(unknown.starts_with("no time law is named 'zipf'; accepted are fixed:time=TIME"));
}
