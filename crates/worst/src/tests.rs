use super::*;
use crate::judge::judge;

fn setting(harm: Harm, runs: usize) -> Setting {
    Setting {
        harm,
        rate: Rate(10_000_000),
        delay: Nanos(9_000_000),
        limit: Amount::Packets(300),
        open_loop: false,
        runs,
        seed: 1,
        jobs: 2,
    }
}

fn spec(text: &str) -> Spec {
    text.parse().expect("a scheduler")
}

fn worst(text: &str, setting: &Setting) -> Found {
    search(&spec(text), setting, &AtomicBool::new(false), &mut |_, _| ()).expect("it is searched")
}

#[test]
fn every_attack_is_a_scenario() {
    let mut draw = Draw::new(7);
    let setting = setting(Harm::Starvation, 0);
    let rules = setting.harm.rules(&setting);
    let mut attack = Attack::drawn(rules, &mut draw);
    for _ in 0..500 {
        let other = Attack::drawn(rules, &mut draw);
        attack = attack.changed(rules, &mut draw).crossed(&other, &mut draw);
        assert!(attack.offered() <= 1.25, "{attack:?}");
        let text = judge::scenario(&setting, "a", &["fifo".into()], &attack);
        let parsed = scenario::Scenario::parse(&text, "a", None, &scenario::Overrides::default());
        assert!(
            parsed.is_ok(),
            "{}\n{text}",
            parsed.err().map_or(String::new(), |e| e.to_string())
        );
    }
}

#[test]
fn the_same_seed_finds_the_same_on_any_number_of_threads() {
    let one = setting(Harm::Wait, 48);
    let two = Setting { jobs: 1, ..one.clone() };
    let (one, two) = (worst("efd", &one), worst("efd", &two));
    assert_eq!(one.scenario, two.scenario);
    assert_eq!(one.tried, 48);
}

#[test]
fn a_longer_search_finds_nothing_milder() {
    let short = worst("fq-codel", &setting(Harm::Wait, 16));
    let long = worst("fq-codel", &setting(Harm::Wait, 96));
    // What is left out to simplify may cost 3 % at each of three blocks.
    assert!(long.harm >= short.harm * 0.9, "{} after {}", long.harm, short.harm);
    assert!(long.traits > short.traits);
}

#[test]
fn what_is_found_is_what_the_scenario_does() {
    let setting = setting(Harm::Wait, 64);
    let found = worst("efd", &setting);
    let parsed =
        scenario::Scenario::parse(&found.scenario, "a", None, &scenario::Overrides::default())
            .expect("it is a scenario");
    struct Nobody;
    impl scenario::Observer for Nobody {
        fn row(&mut self, _: scenario::Row) {}
        fn progress(&mut self, _: &scenario::Progress) {}
    }
    let wanted = scenario::Wanted::default();
    let stop = AtomicBool::new(false);
    let finished = scenario::run(&parsed, 1, wanted, &stop, &mut Nobody).expect("it is simulated");
    let summary = scenario::Summary::of(&parsed, &finished);
    let scenario::TrafficKind::Stream { delay_ms, .. } = &summary.schedulers[0].traffic[0].kind
    else {
        panic!("the victim is a stream");
    };
    let longest = delay_ms.max.expect("some arrive");
    assert!((longest - found.harm).abs() < 0.01 * longest, "{longest} is not {}", found.harm);
    assert_eq!(found.traffic.len(), found.scenario.matches("name = \"attack-").count());
}

#[test]
fn a_fifo_waits_no_longer_than_its_limit() {
    let found = worst("fifo", &setting(Harm::Wait, 128));
    let bound = found.bound.expect("a fifo has one");
    assert!(found.harm <= bound.value, "{} is more than {}", found.harm, bound.value);
    // The search does find a full queue.
    assert!(found.harm > 0.5 * bound.value, "{} of {}", found.harm, bound.value);
}

#[test]
fn efd_knows_no_more_flows_than_packets_are_queued() {
    let found = worst("efd", &setting(Harm::Memory, 48));
    let bound = found.bound.expect("efd has one");
    assert!(found.harm <= bound.value, "{} of {}", found.harm, bound.value);
    // The one that does most harm may be another than that which comes closest to its bound.
    let reached = found.reached.expect("it has a bound");
    assert!((found.harm / bound.value..=1.0).contains(&reached), "{reached}");
}

#[test]
fn a_discipline_that_refuses_is_an_error() {
    let setting = setting(Harm::Wait, 16);
    let refused = Setting { limit: Amount::Packets(0), ..setting };
    let stop = AtomicBool::new(false);
    let error = search(&spec("fifo"), &refused, &stop, &mut |_, _| ()).unwrap_err();
    assert!(matches!(error, WorstError::Scenario(_)), "{error}");
}

#[test]
fn a_stop_before_the_first_attack_is_no_result() {
    let stop = AtomicBool::new(true);
    let error = search(&spec("fifo"), &setting(Harm::Wait, 16), &stop, &mut |_, _| ()).unwrap_err();
    assert_eq!(error, WorstError::Stopped);
}

#[test]
fn unfairness_under_one_queue_for_all_is_found() {
    let setting = Setting { jobs: 1, ..setting(Harm::Unfairness, 48) };
    let found = worst("fifo", &setting);
    assert!(found.harm > 0.8, "{}", found.harm);
    // Where hosts share, TCP alone does nothing of the kind.
    let rules = crate::attack::Rules { open_loop: false, own_host: false };
    let mut draw = Draw::new(3);
    let tcp = std::iter::repeat_with(|| Attack::drawn(rules, &mut draw));
    let tcp = tcp.filter(|attack| attack.offered() == 0.0);
    let ran = |attack| judge(&setting, &spec("fq-lanes"), &attack).expect("it runs");
    for outcome in tcp.filter_map(ran).take(4) {
        assert!(outcome.harm < 0.25, "{}", outcome.harm);
    }
}

#[test]
fn fq_lanes_knows_no_more_flows_than_it_may() {
    let found = worst("fq-lanes:flows=100", &setting(Harm::Memory, 48));
    assert_eq!(found.bound.expect("it has one").value, 100.0);
    assert_eq!((found.harm, found.reached), (100.0, Some(1.0)));
}
