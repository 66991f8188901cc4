//! A link that slows down while its rate is being lowered.

use super::*;

const MBIT: u64 = 1_000_000;

const fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// Every packet of the window was late by `extra`, or by a bit less than that at last; the first of
/// them left at `since`.
fn late(extra: u64, newest: u64, since: u64) -> View {
    let threshold = ms(10);
    View {
        baseline: Some(ms(20)),
        threshold,
        extra: Some((ms(extra), ms(since))),
        recent: Some((ms(newest), ms(since))),
        newest: Some((ms(newest), ms(since))),
        mean: ms(extra),
        span: ms(150),
        ..View::default()
    }
}

/// A direction of 20 Mbit/s that uses all of its rate.
struct Link {
    controller: Controller,
    sent: f64,
    now: u64,
}

impl Link {
    fn busy() -> Self {
        let bounds = Bounds::new(Rate(2 * MBIT), Rate(20 * MBIT), Rate(40 * MBIT)).unwrap();
        Self { controller: Controller::new(bounds, ms(0)), sent: 0.0, now: 1_000 }
    }

    /// What is decided until `until`, every 25 ms, if all is seen so and so much gets through.
    fn decides(&mut self, view: &View, delivered: u64, until: u64) -> Option<Decision> {
        while self.now < until {
            self.now += 25;
            self.sent += self.controller.rate().0 as f64 / 8.0 * 0.025;
            let load = Load {
                sent: self.sent as u64,
                delivered: Some(delivered * MBIT),
                other_busier: false,
            };
            if let Some(decision) = self.controller.decide(view, &load, ms(self.now)) {
                return Some(decision);
            }
        }
        None
    }
}

/// A short queue of a link of 20 Mbit/s, found just as it becomes one of 5 Mbit/s: what is to be gone
/// grows, and a fourth of it gets through.
#[test]
fn a_link_that_slows_down_as_its_rate_is_lowered_is_not_waited_for() {
    let mut link = Link::busy();
    link.decides(&late(0, 0, 1_000), 20, 1_500);
    let first = link.decides(&late(16, 16, 1_500), 20, 1_600).expect("a queue");
    assert!(matches!(first.reason, Reason::Queue { .. }) && first.to.0 > 14 * MBIT, "{first}");
    // What left before the rate was lowered was late, and the queue is not to be gone yet.
    assert_eq!(link.decides(&late(16, 40, 1_500), 18, link.now + 50), None, "it drains");
    let second = link.decides(&late(16, 40, 1_500), 5, link.now + 25).expect("another queue");
    assert!(matches!(second.reason, Reason::Queue { .. }) && second.to.0 < 4 * MBIT, "{second}");
}

/// The capacity was measured as the link slowed down. When the queue should be gone and is not, what
/// comes out of it tells better.
#[test]
fn a_queue_that_still_drains_tells_what_the_link_carries() {
    let mut link = Link::busy();
    link.decides(&late(0, 0, 1_000), 20, 1_500);
    let found = link.decides(&late(110, 110, 1_500), 7, 1_600).expect("a queue");
    assert!(matches!(found.reason, Reason::Queue { .. }) && found.to.0 < 4 * MBIT, "{found}");
    // Not clear, but below the threshold.
    let drained = link.decides(&late(8, 8, 1_700), 5, 2_500).expect("it is given up");
    let Reason::Drained { capacity, .. } = drained.reason else { panic!("{drained}") };
    assert_eq!(capacity, Rate(5 * MBIT), "{drained}");
}

/// What stayed at a lower rate is no queue, so that it need not be emptied.
#[test]
fn a_delay_that_is_tolerated_does_not_make_a_queue_longer() {
    let mut link = Link::busy();
    link.decides(&late(0, 0, 1_000), 20, 1_500);
    let found = link.decides(&late(30, 30, 1_500), 20, 1_600).expect("a queue");
    // Less than before, but not clear, with as much delivered as is sent.
    let stayed =
        link.decides(&late(8, 8, 1_700), found.to.0 / MBIT, 2_500).expect("it is given up");
    assert!(matches!(stayed.reason, Reason::Stayed { .. }), "{stayed}");
    assert_eq!(link.controller.tolerance(), ms(40));
    link.decides(&late(0, 0, link.now), 20, link.now + 500);
    let rate = link.controller.rate().0;
    let queue = link.decides(&late(60, 60, link.now), rate / MBIT, link.now + 50).expect("a queue");
    // 20 ms of 60 are to go, and so many arrive meanwhile.
    let part = queue.to.0 as f64 / rate as f64;
    assert!(matches!(queue.reason, Reason::Queue { .. }) && (0.7..0.76).contains(&part), "{queue}");
}

/// As a queue was found, the link was taken for slower than it is. At the next one more gets through
/// than is sent, since the link passes on what has waited.
#[test]
fn a_link_that_passes_on_more_than_is_sent_carries_more() {
    let capacity = |delivered| {
        let mut link = Link::busy();
        let found = link.decides(&late(30, 30, 1_000), delivered, 1_100).expect("a queue");
        assert!(found.from == Rate(20 * MBIT) && found.to < found.from, "{found}");
        let drained = link.decides(&late(0, 0, 1_200), 20, 2_000).expect("it is gone");
        let Reason::Drained { capacity, .. } = drained.reason else { panic!("{drained}") };
        capacity
    };
    assert_eq!(capacity(16), Rate(16 * MBIT));
    assert_eq!(capacity(21), Rate(21 * MBIT));
    // What arrives at once after a pause is not what the link carries.
    assert_eq!(capacity(60), Rate(22 * MBIT));
}
