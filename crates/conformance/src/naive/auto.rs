//! Auto: the model of `sb-ko`, told what its threshold and weight are.

use sched::{Amount, Nanos, Packet, Params};

use super::{Model, Sb};
use crate::run::Step;

/// The model of `auto`.
pub struct Auto {
    sb: Sb,
    params: Params,
    /// In units of 2^-20.
    ease: u64,
    /// How long the short lane has held how much since the measurement began.
    held: Vec<(Nanos, u64)>,
    since: Option<Nanos>,
    last: Nanos,
}

const ONE: u64 = 1 << 20;

impl Auto {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            sb: Sb::every_flow(params, true),
            params: params.clone(),
            ease: ONE,
            held: Vec::new(),
            since: None,
            last: Nanos::ZERO,
        }
    }

    /// Before an arrival or departure: measures, and at the end of a measurement draws the
    /// consequences.
    fn watch(&mut self, now: Nanos) {
        self.held.push((now.since(self.last), self.sb.held.used(|long| !long)));
        self.last = now;
        let Some(since) = self.since else {
            self.held.clear();
            self.since = Some(now);
            return;
        };
        let span = now.since(since);
        if span < self.params.time("update") {
            return;
        }
        self.since = Some(now);
        // In 256ths of what the limit counts, times nanoseconds.
        let area: u128 = self.held.drain(..).map(|(t, n)| u128::from(t.0) * u128::from(n)).sum();
        let target = self.params.level("target").under(self.params.amount("limit"), 8);
        let (area, most) = (256 * area, u128::from(target) * u128::from(span.0));
        let step = self.ease * u64::from(self.params.share("step").ppb()) / 1_000_000_000;
        if area > most {
            self.ease -= step;
        } else if 2 * area < most {
            self.ease += step;
        } else {
            return;
        }
        self.adapt();
    }

    /// Threshold and weight by ease, which has a range.
    fn adapt(&mut self) {
        let range = self.params.number("range");
        self.ease = self.ease.clamp(ONE * 1000 / range, ONE * range / 1000);
        let eased = |n: u64| u128::from(n) * u128::from(self.ease) / u128::from(ONE);
        let eased_amount = |n| u64::try_from(eased(n)).unwrap_or(u64::MAX);
        self.sb.threshold = match self.params.amount("threshold") {
            Amount::UNLIMITED => Amount::UNLIMITED,
            Amount::Packets(n) => Amount::Packets(eased_amount(n)),
            Amount::Bytes(n) => Amount::Bytes(eased_amount(n)),
        };
        let given = self.params.share("weight").ppb();
        let low = 1_000_000_000 - given;
        let low = eased(u64::from(low)).min(u128::from(low));
        let weight = 1_000_000_000 - u32::try_from(low).expect("a share");
        if u128::from(weight) != self.sb.shares.weight {
            self.sb.shares.restart(weight, &self.sb.held);
        }
    }
}

impl Model for Auto {
    fn enqueue(&mut self, packet: Packet, now: Nanos, said: &Step) -> Vec<u64> {
        self.watch(now);
        self.sb.enqueue(packet, now, said)
    }

    fn dequeue(&mut self, now: Nanos, said: &Step) -> Option<u64> {
        self.watch(now);
        self.sb.dequeue(now, said)
    }

    fn change(&mut self, params: &Params) {
        self.sb.change(params);
        self.params = params.clone();
        (self.since, self.last) = (None, Nanos::ZERO);
        self.held.clear();
        self.adapt();
    }

    fn flows(&self) -> usize {
        self.sb.flows()
    }
}
