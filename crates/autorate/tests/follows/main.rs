//! The controller against a model of a bottleneck. What is measured here is printed:
//! `cargo test -p shortlane-autorate --test follows -- --nocapture --test-threads 1`.

mod model;
mod radio;

use autorate::Bounds;

use self::model::{Model, Run};
use self::radio::radio;

fn bounds(text: &str) -> Bounds {
    text.parse().unwrap()
}

/// From a second on.
fn say(what: &str, run: &Run, model: &Model) {
    let to = run.moments.len();
    println!(
        "{what}: {:.1} % used, extra delay p50 {:.1}, p95 {:.1}, p99 {:.1} ms",
        run.used(model, 1_000, to) * 100.0,
        run.quantile(1_000, to, 0.5),
        run.quantile(1_000, to, 0.95),
        run.quantile(1_000, to, 0.99),
    );
    if std::env::var_os("SHORTLANE_DECISIONS").is_some() {
        run.decisions.iter().for_each(|d| println!("  {:>6} ms {d}", d.at.0 / 1_000_000));
    }
}

/// Moments at which a link slows down, in ms: a search for more may be under way, or not.
const DROPS: [u64; 9] = [10_000, 10_193, 10_387, 10_580, 10_774, 10_968, 11_161, 11_355, 11_549];

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// 20 Mbit/s, then 5 for ten seconds, then 20 again: how long until the extra delay is below 30 ms, and
/// until there are 18 Mbit/s again.
fn drop_and_rise(behind: bool, traffic: bool, window: f64, drop: u64) -> (usize, usize) {
    let mut model =
        Model::new(move |ms| if (drop..drop + 10_000).contains(&ms) { 5e6 } else { 20e6 });
    (model.behind, model.traffic, model.window) = (behind, traffic, Box::new(move |_| window));
    let run = model.run(bounds("2mbit..20mbit..100mbit"), 40_000, 1);
    let drop = drop as usize;
    let rise = drop + 10_000;
    let again = (rise..40_000).find(|ms| run.moments[*ms].rate >= 18_000_000);
    // Between the drop's end and the rise it keeps near what there is.
    let calm = &run.moments[drop + 2_000..rise];
    assert!(calm.iter().all(|moment| moment.rate < 8_000_000));
    (run.back_below_30_ms(drop), again.expect("it finds the 20 Mbit/s again") - rise)
}

#[test]
fn a_link_that_slows_down_and_recovers() {
    for (behind, window, traffic, most_ms) in [
        (false, 75_000.0, false, 400.0),
        (false, 112_500.0, false, 500.0),
        (false, 225_000.0, false, 900.0),
        (true, 75_000.0, false, 400.0),
        (true, 112_500.0, false, 500.0),
        (true, 225_000.0, false, 900.0),
        (false, 75_000.0, true, 400.0),
        (false, 112_500.0, true, 500.0),
        (false, 225_000.0, true, 900.0),
        (true, 75_000.0, true, 400.0),
        (true, 112_500.0, true, 500.0),
        (true, 225_000.0, true, 900.0),
    ] {
        let of = |drop| drop_and_rise(behind, traffic, window, drop);
        let (back, again): (Vec<_>, Vec<_>) =
            DROPS.into_iter().map(of).map(|(back, again)| (back as f64, again as f64)).unzip();
        let most = back.iter().copied().fold(0.0, f64::max);
        let (back, again) = (median(back), median(again));
        let place = if behind { "behind" } else { "in front" };
        println!(
            "20-5-20 Mbit/s, {place}, window {window} bytes, traffic {traffic}: below 30 ms after {back} ms \
             ({most} at most), 18 Mbit/s after {again} ms"
        );
        assert!(back <= most_ms, "{back} ms");
        // Not even if it had just lowered the rate, for a link of 20 Mbit/s.
        assert!(most <= 1.1 * back, "{most} instead of {back} ms");
        assert!(again <= 5_000.0, "{again} ms");
    }
}

#[test]
fn noise_costs_little() {
    for (noise, ceiling, least) in [
        (0, "20", 0.999),
        (10, "20", 0.999),
        (40, "20", 0.99),
        (10, "100", 0.98),
        (40, "100", 0.97),
    ] {
        let mut model = Model::new(|_| 20e6);
        model.noise = noise;
        let run = model.run(bounds(&format!("2mbit..20mbit..{ceiling}mbit")), 600_000, 1);
        let half = noise / 2;
        say(&format!("noise of +-{half} ms, 20 Mbit/s, ceiling {ceiling} Mbit/s"), &run, &model);
        let used = run.used(&model, 1_000, 600_000);
        assert!(used >= least, "{used}");
    }
}

/// The whole path is faster and slower for no reason, the traffic's packets too.
#[test]
fn a_path_that_flickers_does_not_cost_most() {
    for (behind, traffic, flicker) in [
        (false, false, 40),
        (true, false, 40),
        (false, true, 40),
        (true, true, 40),
        (true, true, 20),
    ] {
        let mut model = Model::new(|_| 20e6);
        (model.behind, model.traffic, model.flicker) = (behind, traffic, flicker);
        model.window = Box::new(|_| 225_000.0);
        let run = model.run(bounds("2mbit..20mbit..40mbit"), 120_000, 1);
        say(
            &format!("20 to {} ms, behind {behind}, traffic {traffic}", 20 + flicker),
            &run,
            &model,
        );
        let used = run.used(&model, 1_000, 120_000);
        assert!(used >= 0.88, "{used}");
    }
}

/// A slow second, an hour of nothing, and then a download.
#[test]
fn after_an_hour_of_nothing_a_download_starts_as_with_the_base() {
    const HOUR: u64 = 3_600_000;
    let mut model = Model::new(|ms| if ms < 10_000 { 4e6 } else { 20e6 });
    model.window = Box::new(|ms| if (15_000..HOUR).contains(&ms) { 0.0 } else { 112_500.0 });
    model.behind = true;
    let passed = |bounds: &str| {
        let run = model.run(bounds.parse().unwrap(), HOUR + 10_000, 1);
        let rate = run.moments[HOUR as usize].rate;
        (rate, run.moments[HOUR as usize + 9_999].passed - run.moments[HOUR as usize].passed)
    };
    let (rate, followed) = passed("2mbit..20mbit..100mbit");
    let (_, fixed) = passed("20mbit..20mbit..20mbit");
    println!("an hour idle: {followed:.0} bytes in ten seconds, {fixed:.0} with the fixed rate");
    assert_eq!(rate, 20_000_000);
    // The fixed rate is just that of the link; this one looks for more.
    assert!(followed >= 0.98 * fixed);
}

#[test]
fn a_radio_is_followed() {
    for (behind, traffic) in [(false, false), (true, false), (false, true), (true, true)] {
        let (mut used, mut late, mut fixed) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 1..=10 {
            let rates = radio(seed);
            let mut model = Model::new(move |ms| rates[(ms / 100) as usize % rates.len()]);
            (model.behind, model.traffic, model.window) =
                (behind, traffic, Box::new(|_| 225_000.0));
            let run = model.run(bounds("1mbit..10mbit..60mbit"), 120_000, seed);
            say(&format!("radio {seed}, behind {behind}"), &run, &model);
            used.push(run.used(&model, 1_000, 120_000));
            late.push(run.quantile(1_000, 120_000, 0.95));
            let run = model.run(bounds("60mbit..60mbit..60mbit"), 120_000, seed);
            fixed.push(run.quantile(1_000, 120_000, 0.95));
        }
        let (used, late, fixed) = (median(used), median(late), median(fixed));
        println!(
            "ten radios, behind {behind}, traffic {traffic}, medians: {:.1} % used, p95 {late:.1} ms, {fixed:.1} ms \
             without it",
            used * 100.0
        );
        assert!(used > 0.8 && late < fixed / 3.0, "{used} {late} {fixed}");
    }
}

/// No answers for half of the time.
#[test]
fn blind_is_at_the_base() {
    let mut model = Model::new(|_| 5e6);
    model.answers = Box::new(|ms| !(10_000..20_000).contains(&ms));
    let run = model.run(bounds("2mbit..20mbit..100mbit"), 30_000, 1);
    assert!(run.moments[9_000].rate < 8_000_000);
    assert!(run.moments[13_000..20_000].iter().all(|moment| moment.rate == 20_000_000));
    assert!(run.moments[22_000].rate < 8_000_000);
    let blind = run.decisions.iter().filter(|decision| decision.reason.name() == "blind");
    assert_eq!(blind.count(), 1);
}
