//! LARS, least attained *recent* service.
//!
//! As LAS, but what a flow was served fades: its volume V halves every half-life, and grows by a
//! packet's size when the packet is dequeued. The backlogged flow with the least volume is
//! served. So an old flow is not locked out for good: on a link that is never idle a fresh flow
//! can keep it waiting for at most one half-life. A flow of steady rate r has the volume
//! r * half-life / ln 2, so LARS favours it as long as r is below the fair share.
//!
//! When the buffer is full, the flow with the largest volume loses its newest packet, which may
//! be the arrival.
//!
//! All volumes fade alike, so time never changes the order of flows that are not served. Instead
//! of fading them all, a departure at t counts size * 2^(t / half-life), and these *inflated*
//! volumes are compared. They are brought down together every eight half-lives. Arithmetic is in
//! integers: inflated volumes count 256ths of bytes, powers of two are right to 1e-8.
//!
//! Cost: that of LAS, and a power of two per departure.

use alloc::boxed::Box;

use crate::disciplines::sorted::{Order, Sorted};
use crate::interface::{
    Discipline, Info, Nanos, Packet, Param, Params, Qdisc, Sink, Takes, shared,
};
use crate::queues::per_flow::{FlowQueue, Node};

/// Least attained recent service.
pub(crate) struct Lars {
    victim: Victim,
    inflation: Inflation,
}

/// Whose tail is pushed out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// The flow with the largest volume.
    MostServed,
    /// The flow with the largest volume and bytes queued ahead of the tail, as LAS has it.
    Key,
}

const HALF_LIFE: Param<Nanos> = Param {
    name: "half-life",
    kind: Takes::time(Nanos::from_millis(1), Nanos::from_secs(3600)).or_unlimited(),
    default: "5s",
    effect: "time in which what a flow was served counts half; the longest lock-out by a new flow",
    source: "choice; the LARS paper's fading factor is not known to us",
    live: true,
};

const VICTIM: Param<&'static str> = Param {
    name: "victim",
    kind: Takes::words(&["most-served", "key"]),
    default: "most-served",
    effect: "full buffer: the flow with the largest volume loses its newest packet, or the one with \
             the largest volume and bytes queued ahead of it",
    source: "choice; key is the rule of las",
    live: true,
};

impl Discipline for Lars {
    const INFO: Info = Info {
        name: "lars",
        summary: "least attained recent service: las with a volume that halves every half-life",
        source: "Heusse, Urvoy-Keller, Brown, Duda, \"Least attained recent service for packet \
                 scheduling over access links\", 2011",
        params: &[
            shared::LIMIT.any(),
            HALF_LIFE.any(),
            VICTIM.any(),
            shared::SWEEP.any(),
            shared::IDLE.any(),
            shared::FLOWS.any(),
        ],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Box::new(Sorted::<Self>::new(params))
    }
}

/// What LARS knows of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    /// The inflated volume.
    inflated: u64,
    /// Bytes queued.
    queued: u64,
}

impl Order for Lars {
    type Flow = Recent;

    fn new(params: &Params) -> Self {
        let mut lars = Self { victim: Victim::MostServed, inflation: Inflation::none() };
        lars.change(params);
        lars
    }

    fn change(&mut self, params: &Params) {
        self.victim = match params.get(VICTIM) {
            "key" => Victim::Key,
            _ => Victim::MostServed,
        };
        self.inflation.set_half_life(params.get(HALF_LIFE));
    }

    fn created(&mut self, _flow: &mut Recent, _packet: &Packet, _index: u64) {}

    #[inline]
    fn joined(&mut self, flow: &mut Recent, packet: &Packet, _node: u32, _first: bool) {
        flow.queued += u64::from(packet.size);
    }

    #[inline]
    fn departed(&mut self, flow: &mut Recent, packet: &Packet, _next: u32, _now: Nanos) {
        flow.queued -= u64::from(packet.size);
        flow.inflated = flow.inflated.saturating_add(self.inflation.of(packet.size));
    }

    fn pushed_out(&mut self, flow: &mut Recent, packet: &Packet) {
        flow.queued -= u64::from(packet.size);
    }

    fn refused(&mut self, _flow: &mut Recent, _packet: &Packet) {}

    #[inline]
    fn key(&self, flow: &Recent, head: &Node) -> (u64, u64) {
        (significant(flow.inflated), head.tag)
    }

    fn rank(&self, flow: &Recent, _queue: &FlowQueue, tail: &Node) -> (u64, u64) {
        let first = match self.victim {
            Victim::MostServed => flow.inflated,
            Victim::Key => {
                let ahead = (flow.queued - u64::from(tail.packet.size)) << FRACTION_BITS;
                self.inflation.deflator().volume(flow.inflated).saturating_add(ahead)
            }
        };
        (first, tail.tag)
    }

    #[inline]
    fn tick(&mut self, now: Nanos) -> bool {
        self.inflation.tick(now);
        self.inflation.halvings >= MOST_HALVINGS
    }

    fn rebase<'a>(&mut self, flows: impl Iterator<Item = &'a mut Recent>) {
        let deflator = self.inflation.deflator();
        flows.for_each(|flow| flow.inflated = deflator.volume(flow.inflated));
        self.inflation.restart();
    }

    fn rescales(&self, params: &Params) -> bool {
        params.get(HALF_LIFE) != self.inflation.half_life
    }

    fn ranks_age(&self) -> bool {
        self.victim == Victim::Key
    }
}

/// Volumes count in units of 2^-8 bytes, which leaves 2^48 bytes of recent service for the largest
/// inflation: enough for a half-life of an hour on a link of 400 Gbit/s.
const FRACTION_BITS: u32 = 8;
/// Volumes are brought down when inflation reaches 2^8.
const MOST_HALVINGS: u32 = 8;

/// The power of two with which a packet counts.
struct Inflation {
    half_life: Nanos,
    /// 2^64 / half-life; 0 where it is infinite.
    per_nano: u64,
    /// The time of the last tick.
    now: Nanos,
    /// When the present half-life began, and how many have passed before it.
    began: Nanos,
    halvings: u32,
    /// 2^(part of the present half-life that has passed), from 1 to 2, in units of 2^-63.
    power: u64,
}

impl Inflation {
    const fn none() -> Self {
        Self {
            half_life: Nanos::MAX,
            per_nano: 0,
            now: Nanos::ZERO,
            began: Nanos::ZERO,
            halvings: 0,
            power: exp2(0),
        }
    }

    /// Takes over a half-life; the inflation must be none at the time.
    fn set_half_life(&mut self, half_life: Nanos) {
        self.half_life = half_life;
        self.per_nano = if half_life == Nanos::MAX { 0 } else { u64::MAX / half_life.0 };
    }

    #[inline]
    fn tick(&mut self, now: Nanos) {
        if now == self.now {
            return;
        }
        self.now = now;
        let mut elapsed = now.since(self.began);
        if elapsed >= self.half_life {
            let halvings = elapsed.0 / self.half_life.0;
            self.began += Nanos(halvings * self.half_life.0);
            self.halvings =
                self.halvings.saturating_add(u32::try_from(halvings).unwrap_or(u32::MAX));
            elapsed = now.since(self.began);
        }
        self.power = exp2(elapsed.0 * self.per_nano);
    }

    /// The inflated size of a packet that departs now.
    #[inline]
    fn of(&self, size: u32) -> u64 {
        let size = u128::from(size) << (FRACTION_BITS + self.halvings);
        ((size * u128::from(self.power)) >> 63) as u64
    }

    /// What undoes the present inflation.
    fn deflator(&self) -> Deflator {
        let factor = ((1 << 126) / u128::from(self.power)) as u64;
        Deflator { factor, shift: self.halvings.saturating_add(63).min(127) }
    }

    /// From now on there is none.
    const fn restart(&mut self) {
        self.began = self.now;
        self.halvings = 0;
        self.power = exp2(0);
    }
}

/// Inflated volumes to volumes of now, in the same order.
struct Deflator {
    /// 1/2 to 1, in units of 2^-63.
    factor: u64,
    shift: u32,
}

impl Deflator {
    fn volume(&self, inflated: u64) -> u64 {
        ((u128::from(inflated) * u128::from(self.factor)) >> self.shift) as u64
    }
}

/// 2^x for x from 0 to 1 in units of 2^-64, in units of 2^-63: the series of e^(x ln 2). It
/// grows with x, and its error is below 1e-8.
#[inline]
const fn exp2(x: u64) -> u64 {
    let mut sum = 0;
    let mut term = TERMS.len();
    while term > 0 {
        term -= 1;
        sum = TERMS[term] + high_half(sum, x);
    }
    (1 << 63) + (high_half(sum, x) >> 1)
}

/// (ln 2)^n / n! from n = 1 on, in units of 2^-64.
const TERMS: [u64; 9] = {
    let mut terms = [LN_2; 9];
    let mut n = 1;
    while n < terms.len() {
        terms[n] = high_half(terms[n - 1], LN_2) / (n as u64 + 1);
        n += 1;
    }
    terms
};

/// ln 2 in units of 2^-64.
const LN_2: u64 = 0xb172_17f7_d1cf_79ab;

#[inline]
const fn high_half(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// The 46 leading bits of a number, in 50 bits and in the same order: a key of the flow heap.
/// Exact below 2^46.
#[inline]
const fn significant(x: u64) -> u64 {
    let shift = 18u32.saturating_sub(x.leading_zeros());
    ((shift as u64) << 45) + (x >> shift)
}

#[cfg(test)]
mod tests;
