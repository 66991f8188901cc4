use super::*;
use crate::config::MILLISECOND as MS;
use proptest::prelude::*;

/// Segments of 100 bytes, one in each millisecond from 0 on.
fn sent(segments: u64) -> Rack {
    let mut rack = Rack::new(0, false);
    (0..segments).for_each(|i| rack.sent((i + 1) * 100, i * MS));
    rack
}

/// An acknowledgment at this millisecond, with the timestamp of another.
fn at(now: u64, echo: Option<u64>) -> Arrival {
    Arrival { now: now * MS, echo: echo.map(|echo| echo * MS), min_rtt: 20 * MS }
}

fn lost(rack: &Rack) -> Vec<u64> {
    let is_lost = |i: &usize| rack.segments[*i].fate == Fate::Lost;
    (0..rack.segments.len()).filter(is_lost).map(|i| rack.start(i) / 100).collect()
}

#[test]
fn what_was_sent_before_something_that_arrived_is_lost_after_the_window() {
    let mut rack = sent(5);
    rack.arrives(at(23, None));
    rack.sack(300, 400);
    // It took 20 ms; the third was sent a millisecond before it.
    assert!(!rack.detect(23 * MS, 5 * MS));
    assert_eq!(rack.timer, 27 * MS);
    assert!(rack.detect(26 * MS, 5 * MS));
    assert_eq!((lost(&rack), rack.timer), (vec![0, 1], 27 * MS));
    assert!(rack.detect(27 * MS, 5 * MS));
    assert_eq!((lost(&rack), rack.timer, rack.waiting()), (vec![0, 1, 2], NEVER, 300));
    assert!(!rack.detect(99 * MS, Nanos::ZERO));
}

#[test]
fn of_those_sent_at_once_the_higher_are_later() {
    let mut rack = Rack::new(0, false);
    (1..=5).for_each(|i| rack.sent(i * 100, MS));
    rack.arrives(at(21, None));
    rack.sack(200, 300);
    assert!(rack.detect(21 * MS, Nanos::ZERO));
    assert_eq!(lost(&rack), [0, 1]);
}

/// The first four are lost, the next three SACKed, and the four sent again from 30 ms on.
fn repaired() -> Rack {
    let mut rack = sent(8);
    rack.arrives(at(26, None));
    rack.sack(400, 700);
    rack.detect(26 * MS, Nanos::ZERO);
    for i in 0..4 {
        assert_eq!(rack.next_lost(), Some((i * 100, (i + 1) * 100)));
        rack.sent_again((i + 1) * 100, (30 + i) * MS, true);
    }
    assert_eq!((rack.next_lost(), rack.waiting(), rack.has_losses()), (None, 0, true));
    rack
}

#[test]
fn a_retransmission_is_lost_too_if_a_later_one_arrives() {
    let mut rack = repaired();
    rack.arrives(at(53, None));
    rack.sack(200, 300);
    assert!(rack.detect(53 * MS, Nanos::ZERO));
    // And what was sent before it and never again.
    assert_eq!(lost(&rack), [0, 1, 7]);
    let expected = Outstanding { all: 800, sacked: 400, lost: 400, sent_again: 100 };
    assert_eq!(rack.outstanding(800, 400), expected);
}

#[test]
fn what_may_be_the_first_copy_says_nothing() {
    // Sooner than any round trip so far; or the timestamp is older than the retransmission.
    for (arrival, ack) in [(at(40, Some(30)), 100), (at(60, Some(0)), 200)] {
        let mut rack = repaired();
        rack.arrives(arrival);
        rack.advance(ack);
        assert_eq!((rack.latest, rack.rtt), ((6 * MS, 700), 20 * MS));
    }
    // With the timestamp of the retransmission it is that one.
    let mut rack = repaired();
    rack.arrives(at(60, Some(30)));
    rack.advance(100);
    assert_eq!((rack.latest, rack.rtt), ((30 * MS, 100), 30 * MS));
}

#[test]
fn something_never_sent_again_that_arrives_late_is_reordering() {
    let seen = |ranges: &[(u64, u64)]| {
        let mut rack = sent(8);
        rack.sent_again(300, 8 * MS, false);
        for &(start, end) in ranges {
            rack.arrives(at(30, None));
            rack.sack(start, end);
        }
        rack.reordering_seen()
    };
    assert!(!seen(&[(300, 400), (400, 500)]));
    assert!(seen(&[(400, 500), (300, 400)]));
    assert!(!seen(&[(400, 500), (200, 300)]));
    // In one acknowledgment the order is unknown.
    let mut rack = sent(8);
    rack.arrives(at(30, None));
    rack.sack(400, 500);
    rack.advance(200);
    assert!(!rack.reordering_seen());
}

#[test]
fn a_timeout_spares_what_may_still_arrive() {
    let mut rack = sent(8);
    rack.arrives(at(22, None));
    rack.sack(200, 300);
    assert!(!rack.on_timeout(24 * MS, Nanos::ZERO));
    assert_eq!(lost(&rack), [0, 1, 3, 4]);
    // The first in any case; and all, if it was SACKed and is not acknowledged.
    let mut rack = sent(3);
    rack.on_timeout(Nanos::ZERO, 5 * MS);
    assert_eq!(lost(&rack), [0]);
    rack.sack(0, 100);
    assert!(rack.on_timeout(Nanos::ZERO, 5 * MS));
    assert_eq!((lost(&rack), rack.sacked()), (vec![0, 1, 2], 0));
}

#[test]
fn part_of_a_segment_is_not_sacked() {
    let mut rack = sent(4);
    assert_eq!(rack.sack(399, 400), 0);
    assert_eq!(rack.sack(150, 350), 100);
    assert_eq!(rack.last_hole(), Some((300, 400)));
    assert_eq!((rack.sacked(), rack.sack(0, 400)), (1, 300));
}

proptest! {
    /// Counts are those of the segments, whatever happens.
    #[test]
    fn counts_are_of_the_segments(
        steps in proptest::collection::vec((0u8..6, 0u64..60, 1u64..40), 1..60),
    ) {
        let mut rack = Rack::new(0, false);
        let (mut nxt, mut sacked) = (0, 0);
        for (i, &(kind, offset, len)) in steps.iter().enumerate() {
            let now = i as u64 * MS;
            rack.arrives(Arrival { now, echo: None, min_rtt: 5 * MS });
            let from = (rack.una + offset).min(nxt);
            match kind {
                0 | 1 => {
                    nxt += len;
                    rack.sent(nxt, now);
                }
                2 => sacked += rack.sack(from, (from + len).min(nxt)),
                3 => sacked -= rack.advance(from),
                4 => {
                    rack.detect(now, len % 4 * MS);
                    if let Some((_, end)) = rack.next_lost() {
                        rack.sent_again(end, now, true);
                    }
                }
                _ => {
                    let reneged = rack.on_timeout(now, Nanos::ZERO);
                    sacked = if reneged { 0 } else { sacked };
                }
            }
            let all = |fate| {
                let of_fate = (0..rack.segments.len()).filter(|&i| rack.segments[i].fate == fate);
                of_fate.map(|i| (rack.start(i), rack.segments[i].end)).collect::<Vec<_>>()
            };
            let bytes = |fate| all(fate).iter().map(|it| it.1 - it.0).sum::<u64>();
            prop_assert_eq!(rack.next_lost(), all(Fate::Lost).first().copied());
            prop_assert_eq!(rack.waiting(), bytes(Fate::Lost));
            prop_assert_eq!(u64::from(sacked), bytes(Fate::Sacked));
            prop_assert_eq!(rack.sacked() as usize, all(Fate::Sacked).len());
            let lost = all(Fate::Lost).len() + all(Fate::Repaired).len();
            prop_assert_eq!(rack.lost as usize, lost);
        }
    }
}
