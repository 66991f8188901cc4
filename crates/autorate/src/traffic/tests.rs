use super::*;

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// An answer every 2 ms, from `from` to `to`, each after `takes`; 1 kB left in each millisecond.
fn answers(traffic: &mut Traffic, host: u64, from: u64, to: u64, takes: u64) {
    for at in (from..to).step_by(2) {
        let departed = ms(at - takes);
        let bytes_before = (at - takes) * 1_000;
        traffic.answer(Trip { host, departed, returned: ms(at), bytes_before });
    }
}

#[test]
fn a_queue_is_what_the_fastest_of_every_group_waits() {
    let mut traffic = Traffic::default();
    assert_eq!(traffic.look(ms(1), Nanos::ZERO), None);
    answers(&mut traffic, 1, 1_000, 1_200, 20);
    let view = traffic.look(ms(1_200), Nanos::ZERO).unwrap();
    assert_eq!((view.baseline, view.threshold, view.queue()), (Some(ms(20)), ms(10), None));
    assert!(view.is_clear());
    assert_eq!(view.passed, Some(8_000_000));
    // A group takes 10 ms and the one after it begins with the next answer: 12 ms each.
    answers(&mut traffic, 1, 1_200, 1_262, 70);
    assert_eq!(traffic.look(ms(1_262), Nanos::ZERO).unwrap().queue(), None, "five of six");
    answers(&mut traffic, 1, 1_262, 1_276, 70);
    let (extra, since) = traffic.look(ms(1_276), Nanos::ZERO).unwrap().queue().unwrap();
    assert_eq!(extra, ms(50));
    assert!(since >= ms(1_130), "{since}");
}

#[test]
fn what_a_few_packets_take_at_the_rate_is_no_queue() {
    let mut traffic = Traffic::default();
    answers(&mut traffic, 1, 1_000, 1_200, 20);
    answers(&mut traffic, 1, 1_200, 1_400, 37);
    let view = |packet| traffic.look(ms(1_400), packet).unwrap();
    assert_eq!(view(Nanos::ZERO).queue().unwrap().0, ms(17));
    // At 2 Mbit/s.
    let view = view(ms(6));
    assert_eq!((view.queue(), view.is_clear(), view.mean), (None, true, Nanos::ZERO));
}

#[test]
fn one_that_waited_for_something_else_is_not_late_for_its_group() {
    let mut traffic = Traffic::default();
    for n in 0..200u64 {
        // Two of three acknowledgements are held back for 40 ms.
        let takes = if n % 3 == 0 { 20 } else { 60 };
        let returned = ms(1_000 + 2 * n);
        traffic.answer(Trip { host: 1, departed: returned - ms(takes), returned, bytes_before: 0 });
    }
    assert!(traffic.look(ms(1_400), Nanos::ZERO).unwrap().is_clear());
}

#[test]
fn a_host_far_away_is_compared_with_itself() {
    let mut traffic = Traffic::default();
    answers(&mut traffic, 1, 1_000, 1_100, 20);
    answers(&mut traffic, 2, 1_100, 1_200, 200);
    assert_eq!(traffic.look(ms(1_200), Nanos::ZERO).unwrap().extra.unwrap().0, Nanos::ZERO);
    answers(&mut traffic, 2, 1_200, 1_300, 260);
    assert_eq!(traffic.look(ms(1_300), Nanos::ZERO).unwrap().queue().unwrap().0, ms(60));
    // Another one that is fast says that it is not the link's queue.
    for at in (1_300..1_400).step_by(2) {
        for (host, takes) in [(2, 260), (1, 20)] {
            let returned = ms(at);
            let departed = returned - ms(takes);
            traffic.answer(Trip { host, departed, returned, bytes_before: 0 });
        }
    }
    assert_eq!(traffic.look(ms(1_400), Nanos::ZERO).unwrap().queue(), None);
}

#[test]
fn too_little_traffic_or_none_of_late_says_nothing() {
    let mut traffic = Traffic::default();
    answers(&mut traffic, 1, 1_000, 1_200, 20);
    assert!(traffic.look(ms(1_400), Nanos::ZERO).is_some());
    assert_eq!(traffic.look(ms(1_500), Nanos::ZERO), None);
    let mut traffic = Traffic::default();
    for n in 0..100 {
        let returned = ms(1_000 + 60 * n);
        traffic.answer(Trip { host: 1, departed: returned - ms(20), returned, bytes_before: 0 });
    }
    assert_eq!(traffic.look(ms(7_000), Nanos::ZERO), None, "one in 60 ms");
}

#[test]
fn a_round_trip_that_only_a_clock_makes_says_nothing() {
    let mut traffic = Traffic::default();
    answers(&mut traffic, 1, 1_000, 1_200, 20);
    let before = traffic.look(ms(1_200), Nanos::ZERO);
    assert!(before.is_some());
    // Answered before it left, and after more than a minute.
    for (departed, returned) in [(1_202, 1_200), (1_200, 61_201)] {
        let (departed, returned) = (ms(departed), ms(returned));
        traffic.answer(Trip { host: 2, departed, returned, bytes_before: 0 });
    }
    assert_eq!(traffic.look(ms(1_200), Nanos::ZERO), before);
    assert!(traffic.hosts.iter().all(|host| host.number != 2));
}

#[test]
fn more_hosts_than_are_known_take_the_place_of_the_most_silent() {
    let mut traffic = Traffic::default();
    answers(&mut traffic, 1, 1_000, 1_100, 20);
    for host in 2..1_000 {
        answers(&mut traffic, host, 1_100 + host, 1_102 + host, 30);
        answers(&mut traffic, 1, 1_101 + host, 1_103 + host, 20);
    }
    assert!(traffic.hosts.iter().any(|host| host.number == 1 && host.least.get() == Some(ms(20))));
    assert!(traffic.hosts.iter().all(|host| host.number == 1 || host.number > 900));
}

#[test]
fn a_witness_has_to_confirm_a_queue_and_another_host_has_no_say() {
    let clear = View { newest: Some((ms(1), ms(90))), threshold: ms(10), ..View::default() };
    let late = View { newest: Some((ms(40), ms(90))), ..clear };
    let before = View { newest: Some((ms(40), ms(50))), ..clear };
    let queue = View { extra: Some((ms(50), ms(80))), threshold: ms(10), ..View::default() };
    let none = View { extra: Some((ms(1), ms(80))), ..queue };
    for (probes, traffic, is_witness, by_traffic) in [
        (clear, None, true, false),
        (clear, Some(queue), true, false),
        (before, Some(queue), true, false),
        (late, Some(queue), true, true),
        (clear, Some(queue), false, true),
        (clear, Some(none), true, false),
        (clear, Some(none), false, true),
        // The gateway's own queue is the link's as well.
        (View { extra: queue.extra, ..late }, Some(none), false, false),
        (View { blind: true, ..clear }, Some(none), true, true),
        (View { blind: true, ..clear }, None, true, false),
    ] {
        let both = probes.beside(traffic, is_witness);
        assert_eq!(both, if by_traffic { traffic.unwrap() } else { probes });
    }
}
