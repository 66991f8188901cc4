use super::*;

const STEP: Nanos = Nanos::from_millis(25);

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// Sends a probe, whose answer takes so long.
fn probe(path: &mut Path, at: Nanos, takes: Nanos) {
    let number = path.send();
    path.depart(number, at);
    path.answer(
        number,
        Echo { departed: at, returned: at + takes, bytes_before: Some(at.0 / 1000) },
    );
}

#[test]
fn extra_delay_is_what_every_probe_of_a_window_takes_more_than_the_fastest() {
    let mut path = Path::new();
    assert!(path.look(ms(1)).blind, "nothing is known yet");
    (0..20).for_each(|n| probe(&mut path, Nanos(n * STEP.0), ms(20)));
    let view = path.look(ms(520));
    assert_eq!((view.blind, view.baseline, view.threshold), (false, Some(ms(20)), ms(10)));
    assert_eq!((view.extra.unwrap().0, view.queue()), (Nanos::ZERO, None));
    // A byte in 8 us is 1 Mbit/s; here it is one in 1 us.
    assert_eq!(view.passed, Some(8_000_000));
    (20..25).for_each(|n| probe(&mut path, Nanos(n * STEP.0), ms(100)));
    assert_eq!(path.look(ms(720)).queue(), None, "five of six");
    probe(&mut path, ms(625), ms(90));
    let (extra, since) = path.look(ms(720)).queue().unwrap();
    assert_eq!((extra, since), (ms(70), ms(500)));
    // Two fast ones say that it is over.
    probe(&mut path, ms(650), ms(20));
    assert!(path.look(ms(720)).is_clear());
}

#[test]
fn a_queue_that_grows_is_as_long_as_the_newest_probe_says() {
    let lasts = |takes: [u64; 6]| {
        let mut path = Path::new();
        (0..20).for_each(|n| probe(&mut path, Nanos(n * STEP.0), ms(20)));
        (20..).zip(takes).for_each(|(n, takes)| probe(&mut path, Nanos(n * STEP.0), ms(takes)));
        path.look(ms(800)).length()
    };
    assert_eq!(lasts([60, 70, 80, 90, 100, 110]), ms(90));
    assert_eq!(lasts([110, 100, 90, 80, 70, 60]), ms(65), "one that shrinks, as their mean");
}

#[test]
fn a_probe_that_is_overdue_is_late_and_one_that_was_overtaken_is_lost() {
    let mut path = Path::new();
    (0..20).for_each(|n| probe(&mut path, Nanos(n * STEP.0), ms(20)));
    for n in 20..26 {
        let number = path.send();
        path.depart(number, Nanos(n * STEP.0));
    }
    // The last one left at 625 ms: after 30 ms it is late.
    assert_eq!(path.look(ms(655)).queue(), None);
    assert_eq!(path.look(ms(661)).queue().unwrap().0, ms(16));
    probe(&mut path, ms(650), ms(20));
    assert_eq!(path.look(ms(671)).extra.unwrap().0, Nanos::ZERO, "six were lost on the way");
}

#[test]
fn an_answer_that_came_before_its_probe_left_counts_for_nothing() {
    let mut path = Path::new();
    (0..20).for_each(|n| probe(&mut path, Nanos(n * STEP.0), ms(20)));
    let before = path.look(ms(500));
    let number = path.send();
    path.depart(number, ms(500));
    path.answer(number, Echo { departed: ms(500), returned: ms(499), bytes_before: None });
    assert_eq!(path.look(ms(500)), before);
    // The one that comes later is its answer.
    path.answer(number, Echo { departed: ms(500), returned: ms(515), bytes_before: None });
    assert_eq!(path.look(ms(515)).baseline, Some(ms(15)));
}

#[test]
fn the_baseline_rises_when_a_minute_has_had_nothing_less() {
    let mut path = Path::new();
    let at = |second: u64| Nanos::from_secs(second);
    probe(&mut path, at(100), ms(20));
    (101..150).for_each(|second| probe(&mut path, at(second), ms(50)));
    assert_eq!(path.look(at(150)).baseline, Some(ms(20)));
    (150..165).for_each(|second| probe(&mut path, at(second), ms(50)));
    assert_eq!(path.look(at(165)).baseline, Some(ms(50)));
    probe(&mut path, at(166), ms(10));
    assert_eq!(path.look(at(166)).baseline, Some(ms(10)));
}

#[test]
fn without_answers_it_is_blind_and_with_the_first_it_sees() {
    let mut path = Path::new();
    probe(&mut path, ms(0), ms(20));
    for n in 1..4 {
        let number = path.send();
        path.depart(number, ms(n * 1000));
    }
    assert!(!path.look(ms(3000)).blind, "three are missing");
    let number = path.send();
    path.depart(number, ms(4000));
    assert!(path.look(ms(4000)).blind);
    assert_eq!(path.look(ms(4000)).extra, None);
    probe(&mut path, ms(4100), ms(20));
    assert!(!path.look(ms(4200)).blind);
}

#[test]
fn answers_that_nobody_asked_for_count_for_nothing() {
    let mut path = Path::new();
    probe(&mut path, ms(0), ms(20));
    let before = path.look(ms(30));
    let echo = Echo { departed: ms(1), returned: ms(2), bytes_before: None };
    for number in [0, 1, 77, u32::MAX] {
        path.answer(number, echo);
        path.depart(number, ms(1));
    }
    assert_eq!(path.look(ms(30)), before);
    assert_eq!(path.awaited().count(), 0);
    let number = path.send();
    assert_eq!(path.awaited().collect::<std::vec::Vec<_>>(), [number]);
}

#[test]
fn numbers_begin_anew_before_they_run_out() {
    let mut path = Path::new();
    path.next = u32::MAX - 1;
    probe(&mut path, ms(0), ms(20));
    assert_eq!((path.next, path.look(ms(20)).blind), (u32::MAX, false));
    probe(&mut path, ms(25), ms(20));
    assert_eq!((path.next, path.look(ms(45)).baseline), (1, Some(ms(20))));
}

extern crate std;
