//! The early dropper of RED, FRED and RIO: a queue average, a drop-probability curve, and drops
//! spaced apart.
//!
//! An [`Average`] of the queue's length moves by a small weight with every arrival. Between two
//! thresholds a [`Curve`] turns it into the probability that an arrival is dropped (or marked),
//! and a [`Dropper`] spreads these drops out by how many arrivals there were since the last one.
//! Floyd and Jacobson 1993, with the details of ns-2 where results depend on them.
//!
//! All in integers: averages in units of 2^-30 of what the limit counts, probabilities in units
//! of 2^-32.

pub mod edge;
pub(crate) mod fred;
pub(crate) mod red;
pub(crate) mod rio;
pub(crate) mod rio_ps;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::disciplines::fixed::power;
use crate::interface::{
    Amount, Level, Nanos, Packet, Param, ParamError, Params, Rate, Share, Takes,
};

/// Bits of an average behind the point. A limit is at most 2^32, so 62 bits are in use.
const BITS: u32 = 30;
/// Probability 1.
const ONE: u64 = 1 << 32;

/// `averaging`: the weight of an arrival in the average.
pub(crate) const AVERAGING: Param<Share> = Param {
    name: "averaging",
    kind: Takes::share(Share::from_ppb(1_000), Share::ONE),
    default: "0.001953125",
    effect: "weight of the present queue length in the average, with each arrival",
    source: "mice and elephants slides, table III (1/512)",
    live: true,
};

/// `gentle`: what is between `max` and its double.
pub(crate) const GENTLE: Param<bool> = Param {
    name: "gentle",
    kind: Takes::FLAG,
    default: "yes",
    effect: "above max the probability rises to 1 at twice max, instead of being 1 at once",
    source: "mice and elephants slides; ns-2",
    live: true,
};

/// `wait`: how drops are spread out.
pub(crate) const WAIT: Param<bool> = Param {
    name: "wait",
    kind: Takes::FLAG,
    default: "yes",
    effect: "at probability p drops are 1/p to 2/p arrivals apart, instead of 1 to 1/p",
    source: "mice and elephants slides; ns-2",
    live: true,
};

/// `ecn`: mark instead of drop.
pub(crate) const ECN: Param<bool> = Param {
    name: "ecn",
    kind: Takes::FLAG,
    default: "yes",
    effect: "mark ECN-capable packets instead of dropping them while the average is below max",
    source: "mice and elephants slides; ns-2 of 2001",
    live: true,
};

/// `rate`: the link's, for idle times.
pub(crate) const RATE: Param<Rate> = Param {
    name: "rate",
    kind: Takes::rate(1, u64::MAX - 1),
    default: "10mbit",
    effect: "the link's rate, by which the average falls while nothing is queued; simulator, \
             replay and lab give that of the link",
    source: "Floyd and Jacobson 1993; Linux sch_red (bandwidth)",
    live: true,
};

/// `mean-packet`: the packet of idle times.
pub(crate) const MEAN_PACKET: Param<u64> = Param {
    name: "mean-packet",
    kind: Takes::bytes(1, 1 << 20),
    default: "500b",
    effect: "while nothing is queued, the average falls as with one arrival per packet of this size",
    source: "ns-2",
    live: true,
};

/// Checks a pair of thresholds: `min` not above `max`, neither above the limit, amounts in the
/// limit's unit.
pub(crate) fn check_thresholds(
    params: &Params,
    limit: Amount,
    min: Param<Level>,
    max: Param<Level>,
) -> Result<(), ParamError> {
    for level in [min, max] {
        if let Level::At(amount) = params.get(level)
            && amount != Amount::UNLIMITED
        {
            if !amount.same_unit(limit) {
                return Err(params.conflict(
                    level.name,
                    "limit",
                    "a share, or an amount in its unit",
                ));
            }
            if amount.value() > limit.value() {
                return Err(params.conflict(level.name, "limit", "at most that, or inf"));
            }
        }
    }
    let level = |level: Param<Level>| params.get(level).under(limit, BITS);
    if level(min) > level(max) {
        return Err(params.conflict(min.name, max.name, "at most that"));
    }
    Ok(())
}

/// The link behind the queue, for what the average does while nothing is queued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    rate: Rate,
    mean_packet: u64,
}

impl Wire {
    /// From `rate` and `mean-packet`.
    pub(crate) fn new(params: &Params) -> Self {
        Self { rate: params.get(RATE), mean_packet: params.get(MEAN_PACKET) }
    }

    /// When the packet that starts at `now` has left.
    pub(crate) fn free_after(&self, packet: &Packet, now: Nanos) -> Nanos {
        now + self.rate.time_of(packet.size.into())
    }

    /// How many mean packets the link carries in this time.
    fn packets_in(&self, span: Nanos) -> u32 {
        let bits = u128::from(span.0) * u128::from(self.rate.0);
        let packets = bits / (u128::from(self.mean_packet) * 8_000_000_000);
        u32::try_from(packets).unwrap_or(u32::MAX)
    }
}

/// A length as an average would be of it.
pub(crate) const fn exactly(length: u64) -> u64 {
    length << BITS
}

/// The average length of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Average {
    value: u64,
    /// In units of 2^-32.
    weight: u64,
    /// Since when the link has been idle for want of packets; [`Nanos::MAX`] while it is not.
    idle_since: Nanos,
}

impl Average {
    /// Of an empty queue.
    pub(crate) fn new(weight: Share) -> Self {
        Self { value: 0, weight: of_one(weight), idle_since: Nanos::MAX }
    }

    /// A packet arrives to a queue of this length.
    #[inline]
    pub(crate) fn arrival(&mut self, queued: u64, now: Nanos, wire: &Wire) {
        if self.idle_since != Nanos::MAX {
            self.decay(wire.packets_in(now.since(self.idle_since)));
            self.idle_since = Nanos::MAX;
        }
        self.step(queued);
    }

    /// One step towards this length.
    #[inline]
    pub(crate) fn step(&mut self, queued: u64) {
        let apart = exactly(queued) as i64 - self.value as i64;
        let step = (i128::from(apart) * i128::from(self.weight as i64)) >> 32;
        self.value = (self.value as i64 + step as i64) as u64;
    }

    /// As many steps towards 0.
    #[cold]
    fn decay(&mut self, steps: u32) {
        if steps > 0 {
            let keep = (u128::from(ONE - self.weight) << 32).min(u128::from(u64::MAX)) as u64;
            let kept = u128::from(self.value) * u128::from(power(keep, steps));
            self.value = (kept >> 64) as u64;
        }
    }

    /// Nothing is queued, and the link is idle from `since` on.
    #[inline]
    pub(crate) const fn idle(&mut self, since: Nanos) {
        self.idle_since = since;
    }

    /// Takes over a weight.
    pub(crate) fn set_weight(&mut self, weight: Share) {
        self.weight = of_one(weight);
    }

    /// Begins anew at this length, as where its unit has changed.
    pub(crate) const fn restart(&mut self, queued: u64) {
        self.value = exactly(queued);
    }

    /// The average divided by `n`, at least 1; to be compared with [`exactly`].
    pub(crate) fn share(&self, n: u64) -> u64 {
        (self.value / n).max(exactly(1))
    }

    #[inline]
    pub(crate) const fn value(&self) -> u64 {
        self.value
    }
}

/// A share as a number of 2^-32, rounded.
fn of_one(share: Share) -> u64 {
    ((u64::from(share.ppb()) << 32) + 500_000_000) / 1_000_000_000
}

/// The probability of a drop by the average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Curve {
    min: u64,
    max: u64,
    /// From here on every arrival is dropped.
    end: u64,
    /// At `max`.
    most: u64,
    /// Per 2^-64 of an average's unit: between `min` and `max`, and between `max` and `end`.
    slope: u128,
    gentle_slope: u128,
}

/// Where an average lies on its curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Below `min`.
    Below,
    /// An arrival is dropped with this probability, in units of 2^-32.
    Within(u64),
    /// Every arrival is dropped.
    Beyond,
}

impl Curve {
    /// From these thresholds under `limit`, and the probability at the upper one.
    pub(crate) fn new(limit: Amount, min: Level, max: Level, most: Share, gentle: bool) -> Self {
        let (min, max) = (min.under(limit, BITS), max.under(limit, BITS));
        let end = if gentle { max.saturating_mul(2) } else { max };
        let most = of_one(most);
        let slope = |rise: u64, from: u64, to: u64| {
            (u128::from(rise) << 64) / u128::from(to.saturating_sub(from).max(1))
        };
        // A threshold that is never reached makes no slope.
        let slopes = if max == u64::MAX {
            (0, 0)
        } else {
            (slope(most, min, max), slope(ONE - most, max, end))
        };
        Self { min, max, end, most, slope: slopes.0, gentle_slope: slopes.1 }
    }

    /// The lower threshold, as an average would be of it.
    pub(crate) const fn min(&self) -> u64 {
        self.min
    }

    #[inline]
    pub(crate) fn place(&self, average: u64) -> Place {
        if average < self.min {
            Place::Below
        } else if average < self.max {
            Place::Within(((u128::from(average - self.min) * self.slope) >> 64) as u64)
        } else if average < self.end {
            let above = (u128::from(average - self.max) * self.gentle_slope) >> 64;
            Place::Within(self.most + above as u64)
        } else {
            Place::Beyond
        }
    }

    /// Whether the average is below the upper threshold, where ECN marks instead of drops.
    #[inline]
    pub(crate) const fn marks(&self, average: u64) -> bool {
        average < self.max
    }
}

/// Throws a coin that falls with probability `p`, made more likely by `count`, the arrivals
/// since it last fell: `p / (1 - count p)`; with `wait` not at all before `count` is 1/p, and
/// `p / (2 - count p)` from then on. Both times the drops are uniformly spread.
#[inline]
pub(crate) fn coin(rng: &mut Xoshiro256PlusPlus, p: u64, count: u64, wait: bool) -> bool {
    let spread = count.saturating_mul(p);
    let certain_at = if wait { 2 * ONE } else { ONE };
    if p == 0 || (wait && spread < ONE) {
        return false;
    }
    if spread >= certain_at {
        return true;
    }
    let left = certain_at - spread;
    // draw < p / left, without the division; draw is 32 bits of fraction.
    p >= left || (rng.next_u64() >> 32) * left < p << 32
}

/// What becomes of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It may join the queue.
    Accept,
    /// It is a signal of congestion: marked where that is allowed, or else dropped.
    Signal {
        /// Whether the average is where marks do.
        may_mark: bool,
    },
}

/// RED's decision for one average and one curve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropper {
    pub(crate) average: Average,
    pub(crate) curve: Curve,
    /// Arrivals since the last signal.
    count: u64,
    /// Whether the average was above `min` at the last arrival.
    above: bool,
}

impl Dropper {
    pub(crate) const fn new(average: Average, curve: Curve) -> Self {
        Self { average, curve, count: 0, above: false }
    }

    /// Decides on an arrival that the average has seen, to a queue of so many packets.
    ///
    /// As in ns-2, the first arrival above `min` passes and counts as one, and nothing is
    /// dropped with one packet queued or none.
    #[inline]
    pub(crate) fn decide(
        &mut self,
        packets: usize,
        wait: bool,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Decision {
        self.count += 1;
        let average = self.average.value();
        let place = if packets > 1 { self.curve.place(average) } else { Place::Below };
        match place {
            Place::Below => self.above = false,
            Place::Beyond => return self.signal(),
            Place::Within(_) if !self.above => (self.above, self.count) = (true, 1),
            Place::Within(p) => {
                if coin(rng, p, self.count, wait) {
                    return self.signal();
                }
            }
        }
        Decision::Accept
    }

    fn signal(&mut self) -> Decision {
        self.count = 0;
        Decision::Signal { may_mark: self.curve.marks(self.average.value()) }
    }

    /// The arrival was lost to a full queue.
    #[inline]
    pub(crate) const fn overflowed(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests;
