//! A bottleneck, its queue, traffic with a window, and a controller in front of it or behind it, in
//! steps of a millisecond.

use std::collections::VecDeque;

use autorate::{Bounds, Controller, Decision, Echo, Load, Meter, Path, Traffic, Trip};
use units::Nanos;

use crate::radio::Random;

/// What the bottleneck holds at most, in bytes.
const BUFFER: f64 = 1e6;
/// How often the delay of a path that flickers is drawn anew, in ms.
const FLICKER: u64 = 20;

pub(crate) struct Model {
    /// Whether the controller is behind the bottleneck: it shapes what arrives.
    pub(crate) behind: bool,
    /// Bit/s of the bottleneck, at a millisecond.
    pub(crate) capacity: Box<dyn Fn(u64) -> f64>,
    /// Bytes that the senders have under way at most, at a millisecond.
    pub(crate) window: Box<dyn Fn(u64) -> f64>,
    /// Round-trip time of an empty path, in ms.
    pub(crate) round_trip: u64,
    /// A probe takes up to this much longer for no reason, in ms.
    pub(crate) noise: u64,
    /// Everything takes up to this much longer, in ms: drawn anew every [`FLICKER`], and no packet
    /// overtakes another.
    pub(crate) flicker: u64,
    /// Whether the round trips of the traffic are seen as well: one a millisecond.
    pub(crate) traffic: bool,
    /// Whether probes are answered.
    pub(crate) answers: Box<dyn Fn(u64) -> bool>,
}

/// One millisecond.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    /// What the bottleneck's queue takes to leave it, in ms.
    pub(crate) extra: f64,
    /// Bit/s.
    pub(crate) rate: u64,
    /// Bytes that the bottleneck has passed on.
    pub(crate) passed: f64,
}

pub(crate) struct Run {
    pub(crate) moments: Vec<Moment>,
    pub(crate) decisions: Vec<Decision>,
}

impl Run {
    /// The part of what the bottleneck could carry that it carried, between two milliseconds.
    pub(crate) fn used(&self, model: &Model, from: usize, to: usize) -> f64 {
        let could: f64 = (from..to).map(|ms| (model.capacity)(ms as u64) / 8e3).sum();
        (self.moments[to - 1].passed - self.moments[from].passed) / could
    }

    /// The extra delay that this part of the time stays below, in ms.
    pub(crate) fn quantile(&self, from: usize, to: usize, part: f64) -> f64 {
        let mut extra: Vec<f64> = self.moments[from..to].iter().map(|m| m.extra).collect();
        extra.sort_by(f64::total_cmp);
        extra[((extra.len() - 1) as f64 * part) as usize]
    }

    /// How many ms after `from` the extra delay is below 30 ms, and stays so for 200 ms.
    pub(crate) fn back_below_30_ms(&self, from: usize) -> usize {
        let late = |ms: usize| self.moments[ms].extra >= 30.0;
        let begin = (from..self.moments.len()).find(|ms| late(*ms)).unwrap_or(from);
        let calm = |ms: &usize| (*ms..*ms + 200).all(|ms| !late(ms));
        (begin..self.moments.len() - 200).find(calm).map_or(usize::MAX, |ms| ms - from)
    }
}

impl Model {
    /// Traffic without end over a path of 30 ms.
    pub(crate) fn new(capacity: impl Fn(u64) -> f64 + 'static) -> Self {
        Self {
            behind: false,
            capacity: Box::new(capacity),
            window: Box::new(|_| 112_500.0),
            round_trip: 30,
            noise: 0,
            flicker: 0,
            traffic: false,
            answers: Box::new(|_| true),
        }
    }

    pub(crate) fn run(&self, bounds: Bounds, ms: u64, seed: u64) -> Run {
        let at = Nanos::from_millis;
        let mut random = Random(seed);
        let (mut controller, mut path, mut arrived) =
            (Controller::new(bounds, at(0)), Path::new(), Meter::default());
        let mut run = Run { moments: Vec::new(), decisions: Vec::new() };
        // Of all bytes: made by the senders, into and out of the two queues.
        let (mut made, mut own_in, mut own_out, mut far_in, mut far_out) =
            (0.0f64, 0.0, 0.0, 0.0, 0.0f64);
        // What is on the way back, and when it arrives.
        let mut back: VecDeque<(u64, f64)> = VecDeque::new();
        let (mut got, mut flicker, mut last) = (0.0, 0, 0);
        let mut under_way: VecDeque<(u32, u64, f64)> = VecDeque::new();
        let mut answers: Vec<(u64, u32, Echo)> = Vec::new();
        let mut traffic = Traffic::default();
        let mut travelling: VecDeque<(u64, f64)> = VecDeque::new();
        let mut trips: VecDeque<Trip> = VecDeque::new();
        for now in 0..ms {
            let capacity = (self.capacity)(now) / 8e3;
            let rate = controller.rate().0 as f64 / 8e3;
            while back.front().is_some_and(|(arrives, _)| *arrives <= now) {
                got = back.pop_front().map_or(got, |(_, bytes)| bytes);
            }
            if self.flicker > 0 && now % FLICKER == 0 {
                flicker = (random.next() * self.flicker as f64) as u64;
            }
            let arrives = last.max(now + self.round_trip + flicker);
            last = arrives;
            let fresh = ((self.window)(now) - (made - got)).max(0.0);
            made += fresh;
            if self.behind {
                far_in += fresh.min(BUFFER - (far_in - far_out));
                made = made.min(far_in);
                let out = capacity.min(far_in - far_out);
                far_out += out;
                own_in += out;
                own_out += rate.min(own_in - own_out);
                back.push_back((arrives, own_out));
            } else {
                own_in += fresh;
                let out = rate.min(own_in - own_out).min(BUFFER - (far_in - far_out));
                own_out += out;
                far_in += out;
                far_out += capacity.min(far_in - far_out);
                back.push_back((arrives, far_out));
            }
            while under_way.front().is_some_and(|(.., behind)| *behind <= far_out) {
                let Some((number, departed, behind)) = under_way.pop_front() else { break };
                let noise =
                    if self.noise > 0 { (random.next() * self.noise as f64) as u64 } else { 0 };
                let returned = arrives + noise;
                let bytes_before = (!self.behind).then_some(behind as u64);
                let echo = Echo { departed: at(departed), returned: at(returned), bytes_before };
                if (self.answers)(now) {
                    answers.push((returned, number, echo));
                }
            }
            answers.retain(|(returned, number, echo)| {
                let due = *returned <= now;
                if due {
                    path.answer(*number, *echo);
                }
                !due
            });
            if self.traffic && fresh > 0.0 {
                travelling.push_back((now, far_in));
            }
            while let Some((departed, behind)) =
                travelling.front().copied().filter(|t| t.1 <= far_out)
            {
                travelling.pop_front();
                let returned = at(arrives);
                let bytes_before = behind as u64;
                trips.push_back(Trip { host: 1, departed: at(departed), returned, bytes_before });
            }
            while let Some(trip) = trips.front().copied().filter(|trip| trip.returned <= at(now)) {
                trips.pop_front();
                traffic.answer(trip);
            }
            if now % 25 == 0 {
                arrived.look(at(now), far_out as u64);
                let number = path.send();
                path.depart(number, at(now));
                under_way.push_back((number, now, far_in));
                let packet = Nanos(8 * 1_500 * 1_000_000_000 / controller.rate().0);
                let view = path.look(at(now)).beside(traffic.look(at(now), packet), true);
                let delivered =
                    if self.behind { arrived.over(controller.span(&view)) } else { view.passed };
                let load = Load { sent: own_out as u64, delivered, other_busier: false };
                run.decisions.extend(controller.decide(&view, &load, at(now)));
            }
            run.moments.push(Moment {
                extra: (far_in - far_out) / capacity,
                rate: controller.rate().0,
                passed: far_out,
            });
        }
        run
    }
}
