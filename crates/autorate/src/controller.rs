//! The rate of one direction.

use core::mem::replace;

use units::{Nanos, Rate};

use crate::bounds::Bounds;
use crate::decision::{Decision, Reason};
use crate::meter::Meter;
use crate::path::View;
use crate::tolerance::Tolerance;

/// Over which use is measured.
const SPAN: Nanos = Nanos::from_millis(150);
/// In which a queue is to be drained, beside its own length.
const DRAIN: Nanos = Nanos::from_millis(60);
/// Of a capacity that was found, this is used again.
const AGAIN: f64 = 0.98;
/// Up to this part of it, the rate rises slowly.
const NEAR: f64 = 1.01;
/// How often it rises.
const STEP: Nanos = Nanos::from_millis(100);
/// Growth in a step: near a capacity that was found, then first, and most.
const SLOW: f64 = 0.004;
const FIRST: f64 = 0.01;
const FASTEST: f64 = 0.10;
/// Growth of the growth in a step.
const GEAR: f64 = 1.5;
/// With a part of the rate below this it is not used fully: as it grows fastest, what was sent
/// lately is 0.87 of it.
const FULL: f64 = 0.85;
/// With more than this part of the rate delivered, the link carries all that it is given; with less
/// than that, it has slowed down.
const ALL: f64 = 0.95;
const SLOWED_DOWN: f64 = 0.75;
/// A queue may be passed on faster than the rate, and what the link carries be more than was known. A
/// path that stands still, and then sends all at once, shows far more than that.
const MORE: f64 = 1.1;
/// A queue that should drain and is so much longer has not been understood.
const GROWS: Nanos = Nanos::from_millis(20);
/// With more than this part of what is sent delivered, a queue drains, whatever the path's noise.
const DRAINS: f64 = 1.5;
/// Over which it is told whether a lower rate empties a queue: not much longer than it is lower, and
/// the longer, the less noise of the path counts.
const LOWERED: Nanos = Nanos::from_millis(150);
/// Without traffic for so long, what is known of the link is old.
const IDLE: Nanos = Nanos::from_secs(5);

/// What a direction carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Bytes that have left its queue so far.
    pub sent: u64,
    /// Bit/s that the link has delivered lately, if that is known: of what is received, what
    /// arrived; of what is sent, [`View::passed`].
    pub delivered: Option<u64>,
    /// Whether the other direction uses more than twice the share of its rate, so that a queue is
    /// rather there.
    pub other_busier: bool,
}

/// Decides on the rate of one direction.
#[derive(Clone, Debug)]
pub struct Controller {
    bounds: Bounds,
    rate: Rate,
    meter: Meter,
    /// When a queue was found last: evidence of the next one has to be younger.
    lowered: Nanos,
    /// The queue that was found then is gone by then.
    gone_by: Nanos,
    draining: bool,
    /// The rate at which it was found, and its extra delay.
    found_at: Rate,
    found: Nanos,
    /// How long it was.
    length: Nanos,
    tolerance: Tolerance,
    /// What the link carried as it had a queue.
    capacity: Option<Rate>,
    growth: f64,
    /// When the rate was raised, or brought closer to the base, last.
    stepped: Nanos,
    /// When the direction last carried something.
    busy: Nanos,
}

impl Controller {
    /// One that begins at the base.
    #[must_use]
    pub fn new(bounds: Bounds, now: Nanos) -> Self {
        Self {
            bounds,
            rate: bounds.base(),
            meter: Meter::default(),
            lowered: Nanos::ZERO,
            gone_by: Nanos::ZERO,
            draining: false,
            found_at: bounds.base(),
            found: Nanos::ZERO,
            length: Nanos::ZERO,
            tolerance: Tolerance::new(now),
            capacity: None,
            growth: FIRST,
            stepped: now,
            busy: now,
        }
    }

    /// The rate now.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Within which it is.
    #[must_use]
    pub const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Bit/s that were sent lately.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.meter.over(SPAN).unwrap_or(0)
    }

    /// Extra delay above [`View::threshold`] that is no queue of the link: it stayed as the rate was
    /// lowered.
    #[must_use]
    pub const fn tolerance(&self) -> Nanos {
        self.tolerance.get()
    }

    /// Over which [`Load::delivered`] is to be told of what arrives. While a queue drains, long
    /// enough for what is sent then to be held against it.
    #[must_use]
    pub fn span(&self, view: &View) -> Nanos {
        if self.draining { view.span.max(LOWERED) } else { view.span }
    }

    /// What was decided is not to be: the rate has stayed at what it was.
    pub fn stay(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Takes in what is known now, and decides: another rate, or none.
    pub fn decide(&mut self, view: &View, load: &Load, now: Nanos) -> Option<Decision> {
        self.meter.look(now, load.sent);
        self.tolerance.fade(now);
        let view = &View { threshold: view.threshold + self.tolerance(), ..*view };
        let sent = self.sent();
        let carries = sent >= self.bounds.floor().0 / 2;
        if carries {
            self.busy = now;
        }
        if view.blind {
            self.forget();
            return self.set(self.bounds.base(), Reason::Blind, now);
        }
        if carries
            && !load.other_busier
            && let Some(decision) = self.lower(view, load, now)
        {
            return Some(decision);
        }
        if now.since(self.busy) > IDLE {
            return self.rest(now);
        }
        if self.draining {
            return self.drained(view, load, now);
        }
        self.raise(view, sent, now)
    }

    fn forget(&mut self) {
        (self.draining, self.capacity, self.growth) = (false, None, FIRST);
    }

    fn set(&mut self, rate: Rate, reason: Reason, now: Nanos) -> Option<Decision> {
        let from = replace(&mut self.rate, rate);
        (from != rate).then_some(Decision { at: now, from, to: rate, reason })
    }

    /// To what empties the queue that was found in its own length and [`DRAIN`].
    fn lower(&mut self, view: &View, load: &Load, now: Nanos) -> Option<Decision> {
        let ((extra, since), baseline) = view.queue().zip(view.baseline)?;
        let is_fresh = since >= self.lowered && now >= self.gone_by;
        if !is_fresh && !self.has_slowed_down_again(view, load) {
            return None;
        }
        let rate = self.rate.0;
        // Without an answer nothing gets through, or little.
        let delivered = load.delivered.unwrap_or(rate / 2);
        let part = delivered as f64 / rate as f64;
        if part < SLOWED_DOWN && !self.draining {
            self.tolerance.doubt(view.length());
        }
        // A link that carries all that it is given may carry more, as it did before.
        let known = self.capacity.filter(|_| part >= ALL && !self.draining);
        // As long as it drains, more comes out of the queue than is sent.
        self.found_at = if self.draining { self.found_at } else { self.rate };
        self.found = extra;
        let carried = Rate(delivered.min((self.found_at.0 as f64 * MORE) as u64));
        let length = view.length();
        self.length = length;
        // What is tolerated is no queue.
        let queue = length.since(self.tolerance());
        let share = DRAIN.0 as f64 / (DRAIN.0 as f64 + queue.0 as f64);
        let to = self.bounds.clamp((carried.0 as f64 * share).min(rate as f64));
        self.capacity = known.max(Some(carried));
        self.growth = FIRST;
        self.draining = true;
        self.lowered = now;
        self.gone_by = now + baseline + length + DRAIN;
        let delivered = load.delivered.map(Rate);
        let threshold = view.threshold;
        self.set(to, Reason::Queue { extra, baseline, threshold, delivered }, now)
    }

    /// Whether the queue grows that was to be gone, because the link delivers less than even the lowered
    /// rate. Noise of the path does not: then as much gets through as is sent.
    fn has_slowed_down_again(&self, view: &View, load: &Load) -> bool {
        let delivered = load.delivered.map_or(f64::INFINITY, |delivered| delivered as f64);
        self.draining
            && view.length() > self.length + GROWS
            && delivered < SLOWED_DOWN * self.rate.0 as f64
    }

    /// Back to what the link carries, once the queue is gone, or does not go.
    fn drained(&mut self, view: &View, load: &Load, now: Nanos) -> Option<Decision> {
        let (extra, since) = view.recent?;
        // The traffic may have ended, or the queue be another's.
        let given_up = now > self.gone_by + DRAIN && view.queue().is_none();
        if !given_up && (since < self.lowered || !view.is_clear()) {
            return None;
        }
        self.draining = false;
        self.stepped = now;
        let lowered = (self.meter.over(LOWERED).unwrap_or(0), load.delivered);
        if !view.is_clear() {
            self.correct(lowered);
        }
        let capacity = self.capacity?;
        let to = self.bounds.clamp(capacity.0 as f64 * AGAIN).max(self.rate);
        let jitters = view.threshold - self.tolerance();
        if !view.is_clear() && self.tolerance.learn(self.found, view.threshold, lowered) {
            let threshold = jitters + self.tolerance();
            return self.set(to, Reason::Stayed { extra, threshold, capacity }, now);
        }
        self.set(to, Reason::Drained { extra, capacity }, now)
    }

    /// A queue that still drains tells what the link carries. What was measured as it was found may be
    /// more, if the link was slowing down.
    fn correct(&mut self, (sent, delivered): (u64, Option<u64>)) {
        if let Some(delivered) = delivered.filter(|&part| part as f64 > DRAINS * sent as f64) {
            self.capacity = self.capacity.map(|capacity| capacity.min(Rate(delivered)));
        }
    }

    /// Closer to the base: half of the way in a second.
    fn rest(&mut self, now: Nanos) -> Option<Decision> {
        if now.since(self.stepped) < Nanos::from_secs(1) {
            return None;
        }
        self.stepped = now;
        self.forget();
        let base = self.bounds.base().0;
        let middle = self.rate.0.midpoint(base);
        let to = if middle.abs_diff(base) <= base / 50 { base } else { middle };
        self.set(self.bounds.clamp(to as f64), Reason::Idle { time: now.since(self.busy) }, now)
    }

    fn raise(&mut self, view: &View, sent: u64, now: Nanos) -> Option<Decision> {
        if now.since(self.stepped) < STEP {
            return None;
        }
        let (extra, _) = view.recent.filter(|_| view.is_clear())?;
        let rate = self.rate.0 as f64;
        if (sent as f64) < FULL * rate {
            return None;
        }
        self.stepped = now;
        let near = self.capacity.is_some_and(|capacity| rate < capacity.0 as f64 * NEAR);
        let growth = if near { SLOW } else { self.growth };
        if !near {
            self.growth = (self.growth * GEAR).min(FASTEST);
        }
        let to = self.bounds.clamp(rate * (1.0 + growth) + 1_000.0);
        self.set(to, Reason::Room { extra, sent: Rate(sent) }, now)
    }
}

#[cfg(test)]
mod tests;
