//! What left and what came, all of it.

use autorate::Trip;
use frame::TcpSegment;
use sched::Nanos;

/// No round trip takes longer.
const LATEST: Nanos = Nanos::from_secs(1);

struct Left {
    segment: TcpSegment,
    bytes_before: u64,
    at: Nanos,
    is_answered: bool,
}

#[derive(Default)]
pub(crate) struct Model {
    left: Vec<Left>,
    came: Vec<(TcpSegment, Nanos)>,
}

impl Model {
    pub(crate) fn leaves(&mut self, segment: Option<TcpSegment>, bytes_before: u64, at: Nanos) {
        let left = |segment| Left { segment, bytes_before, at, is_answered: false };
        self.left.extend(segment.map(left));
    }

    pub(crate) fn comes(&mut self, segment: Option<TcpSegment>, at: Nanos) {
        self.came.extend(segment.map(|segment| (segment, at)));
    }

    /// A round trip is of a segment that left and has not been answered, and ends with an answer.
    pub(crate) fn check(&mut self, trip: &Trip) {
        assert!(trip.departed <= trip.returned, "answered before it left: {trip:?}");
        assert!(trip.returned - trip.departed <= LATEST, "{trip:?}");
        let same = |left: &&mut Left| {
            left.bytes_before == trip.bytes_before && left.at == trip.departed && !left.is_answered
        };
        let left = self.left.iter_mut().find(same).expect("one that left");
        left.is_answered = true;
        let answers =
            |(came, at): &(TcpSegment, Nanos)| *at == trip.returned && answers(came, &left.segment);
        assert!(self.came.iter().any(answers), "nothing came that answers it: {trip:?}");
    }
}

fn answers(answer: &TcpSegment, segment: &TcpSegment) -> bool {
    let Some(acknowledged) = answer.acknowledges else { return false };
    answer.key == segment.key.reversed()
        && match (answer.stamps, segment.stamps) {
            (Some((_, echoed)), Some((own, _))) => echoed == own,
            (None, None) => segment.end == Some(acknowledged),
            _ => false,
        }
}
