//! What the models of early droppers share: averages and curves in reals.
//!
//! The disciplines reckon in integers, so of every average only the neighbourhood is certain: what
//! lies within it is known, unknown where it straddles a threshold.

use sched::{Amount, Level, Nanos, Packet, Params};

/// Yes, no, or not to be told.
pub(super) type Maybe = Option<bool>;

pub(super) fn either(a: Maybe, b: Maybe) -> Maybe {
    match (a, b) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

pub(super) fn both(a: Maybe, b: Maybe) -> Maybe {
    either(a.map(|a| !a), b.map(|b| !b)).map(|neither| !neither)
}

/// A number between two others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Between(pub(super) f64, pub(super) f64);

impl Between {
    pub(super) fn exactly(x: f64) -> Self {
        Self(x, x)
    }

    pub(super) fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self(rising(self.0), rising(self.1))
    }

    pub(super) fn is_at_least(self, other: Self) -> Maybe {
        if self.0 >= other.1 {
            Some(true)
        } else if self.1 < other.0 {
            Some(false)
        } else {
            None
        }
    }

    pub(super) fn reaches(self, level: f64) -> Maybe {
        self.is_at_least(Self::exactly(level))
    }
}

/// The link, for idle times.
#[derive(Clone, Copy)]
pub(super) struct Wire {
    rate: u128,
    mean_packet: u128,
}

impl Wire {
    pub(super) fn new(params: &Params) -> Self {
        let number = |name| u128::from(params.number(name));
        Self { rate: number("rate"), mean_packet: number("mean-packet") }
    }

    /// When a packet that starts now has left.
    pub(super) fn end(self, packet: &Packet, now: Nanos) -> Nanos {
        let span = u128::from(packet.size) * 8_000_000_000 / self.rate;
        now + Nanos(u64::try_from(span).unwrap_or(u64::MAX))
    }

    fn packets_in(self, span: Nanos) -> u128 {
        u128::from(span.0) * self.rate / (self.mean_packet * 8_000_000_000)
    }
}

/// The average of a queue's length.
#[derive(Clone, Copy)]
pub(super) struct Average {
    weight: f64,
    value: f64,
    longest: f64,
    idle_since: Option<Nanos>,
}

impl Average {
    pub(super) fn new(params: &Params) -> Self {
        Self { weight: weight(params), value: 0.0, longest: 0.0, idle_since: None }
    }

    pub(super) fn change(&mut self, params: &Params) {
        self.weight = weight(params);
    }

    pub(super) fn arrival(&mut self, queued: u64, now: Nanos, wire: Wire) {
        if let Some(since) = self.idle_since.take() {
            let steps = wire.packets_in(now - since).min(u128::from(u32::MAX));
            self.value *= (1.0 - self.weight).powf(steps as f64);
        }
        self.step(queued);
    }

    pub(super) fn step(&mut self, queued: u64) {
        self.longest = self.longest.max(queued as f64);
        self.value = (1.0 - self.weight) * self.value + self.weight * queued as f64;
    }

    pub(super) fn idle(&mut self, since: Nanos) {
        self.idle_since = Some(since);
    }

    pub(super) fn restart(&mut self, queued: u64) {
        self.value = queued as f64;
    }

    /// Where the discipline's average is. A weight of 1 leaves nothing to round.
    pub(super) fn get(&self) -> Between {
        let error = if self.weight < 1.0 {
            (2e-9 + 3e-10 * self.longest.max(self.value)) / self.weight
        } else {
            0.0
        };
        Between((self.value - error).max(0.0), self.value + error)
    }
}

fn weight(params: &Params) -> f64 {
    f64::from(params.share("averaging").ppb()) / 1e9
}

/// A threshold in the limit's unit.
fn level(level: Level, limit: Amount) -> f64 {
    match level {
        Level::At(Amount::UNLIMITED) => f64::INFINITY,
        Level::At(amount) => amount.value() as f64,
        Level::OfLimit(share) => f64::from(share.ppb()) * limit.value() as f64 / 1e9,
    }
}

/// A curve by its thresholds.
#[derive(Clone, Copy)]
pub(super) struct Curve {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) end: f64,
    most: f64,
}

impl Curve {
    pub(super) fn new(limit: Amount, min: Level, max: Level, most: f64, gentle: bool) -> Self {
        let (min, max) = (level(min, limit), level(max, limit));
        Self { min, max, end: if gentle { 2.0 * max } else { max }, most }
    }

    /// The probability of a drop, somewhere below `end`.
    pub(super) fn at(&self, average: f64) -> f64 {
        let part = |from: f64, to: f64| ((average - from) / (to - from)).clamp(0.0, 1.0);
        if self.max.is_infinite() {
            0.0
        } else if average < self.max {
            self.most * part(self.min, self.max)
        } else if self.end > self.max {
            self.most + (1.0 - self.most) * part(self.max, self.end)
        } else {
            1.0
        }
    }
}

/// Whether a coin of probability `p` falls after `count` arrivals.
pub(super) fn coin(p: Between, count: u64, wait: bool) -> Maybe {
    let spread = p.map(|p| p * count as f64);
    let (never, always) = if wait { (1.0, 2.0) } else { (0.0, 1.0) };
    // Probabilities are whole numbers of 2^-32.
    let error = 1e-9 * (count + 1) as f64;
    if p.1 == 0.0 || (wait && spread.1 < never - error) {
        Some(false)
    } else if spread.0 >= always + error {
        Some(true)
    } else {
        None
    }
}
