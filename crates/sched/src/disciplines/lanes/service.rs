//! How do the lanes share the link?

use alloc::collections::VecDeque;
use core::hash::Hash;

use crate::interface::{Lane, Nanos, Packet, Params, Share};

use super::params::{CAP_HIGH, LOW_SHARE, SHARING, WEIGHT};
use super::queues::Queues;
use super::sampler::Dice;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Serve the head of this lane, if it has one.
    Lane(Lane),
    /// Serve nobody before this time.
    Wait(Nanos),
}

/// Chooses the lane to serve.
pub(crate) trait Service: Hash + Send + 'static {
    /// The lane to serve now. `may_overtake` tells whether the head of the long lane can leave
    /// before the short lane without overtaking its own flow.
    fn pick(
        &mut self,
        queues: &Queues,
        now: Nanos,
        may_overtake: impl FnOnce(&Packet) -> bool,
    ) -> Pick;

    /// A packet is about to join a lane of `queues`.
    #[inline]
    fn arrived(&mut self, _packet: &Packet, _lane: Lane, _queues: &Queues) {}

    /// A packet has just left a lane of `queues` for transmission.
    #[inline]
    fn sent(&mut self, _packet: &Packet, _lane: Lane, _queues: &Queues, _now: Nanos) {}

    /// The tail of the long lane has just been pushed out of `queues`.
    #[inline]
    fn pushed_out(&mut self, _queues: &Queues) {}

    /// What the long lane is guaranteed of link and buffer.
    #[inline]
    fn long_share(&self) -> Share {
        Share::ZERO
    }

    /// Takes over live parameters.
    fn change(&mut self, _params: &Params, _queues: &Queues) {}
}

#[inline]
fn by_priority(queues: &Queues) -> Lane {
    if queues.is_empty(Lane::SHORT) { Lane::LONG } else { Lane::SHORT }
}

/// Strict priority: the long lane is served when the short lane is empty.
#[derive(Hash)]
pub(crate) struct Strict;

impl Service for Strict {
    #[inline]
    fn pick(&mut self, queues: &Queues, _: Nanos, _: impl FnOnce(&Packet) -> bool) -> Pick {
        Pick::Lane(by_priority(queues))
    }
}

/// Strict priority, but while both lanes are backlogged the long lane gets at least a share of
/// the link: without it a flood of short flows starves long ones for good. Its share of the buffer
/// is its own as well ([`Limits`](super::buffer::Limits)).
///
/// While both lanes are backlogged, a credit grows by that share of every byte sent and shrinks
/// by every long byte; the long head is served out of turn once the credit covers it and nothing
/// of its flow is in the short lane, so that no flow is reordered.
#[derive(Hash)]
pub(crate) struct Guaranteed {
    share: Share,
    /// Bytes, in parts per billion.
    credit: u64,
}

const BILLION: u64 = 1_000_000_000;

impl Guaranteed {
    pub(super) fn new(params: &Params) -> Self {
        Self { share: params.get(LOW_SHARE), credit: 0 }
    }
}

impl Service for Guaranteed {
    #[inline]
    fn pick(
        &mut self,
        queues: &Queues,
        _now: Nanos,
        may_overtake: impl FnOnce(&Packet) -> bool,
    ) -> Pick {
        if self.share != Share::ZERO
            && let (Some(_), Some(long)) = (queues.head(Lane::SHORT), queues.head(Lane::LONG))
            && self.credit >= u64::from(long.size) * BILLION
            && may_overtake(long)
        {
            return Pick::Lane(Lane::LONG);
        }
        Pick::Lane(by_priority(queues))
    }

    #[inline]
    fn sent(&mut self, packet: &Packet, lane: Lane, queues: &Queues, _now: Nanos) {
        if self.share == Share::ZERO {
            return;
        }
        if queues.is_empty(Lane::SHORT) || queues.is_empty(Lane::LONG) {
            self.credit = 0;
            return;
        }
        let size = u64::from(packet.size);
        self.credit = self.credit.saturating_add(size * u64::from(self.share.ppb()));
        if lane == Lane::LONG {
            self.credit = self.credit.saturating_sub(size * BILLION);
        }
    }

    fn long_share(&self) -> Share {
        self.share
    }

    fn change(&mut self, params: &Params, _queues: &Queues) {
        self.share = params.get(LOW_SHARE);
        self.credit = 0;
    }
}

/// The short lane gets share `w` of the link and the long lane the rest, while both are
/// backlogged (flow scheduler paper). Can reorder a flow that straddles the lanes, unless w = 1.
///
/// The share is realised as two-class self-clocked fair queueing (Golestani 1994), in exact
/// integers: a lane's tag is the virtual time until its head is through, relative to the packet
/// last served, in units where L bytes take L(1-w) in the short and L*w in the long lane. Ties go
/// to the earlier arrival. Or by a coin with P(short) = w, exact for equal sizes only.
#[derive(Hash)]
pub(crate) struct Weighted {
    weight: Share,
    coin: Option<Dice>,
    short_tag: u64,
    long_tag: u64,
    /// For each packet of the long lane, the short lane as it stood at its arrival.
    long_arrivals: VecDeque<super::queues::Position>,
    /// What the short lane may take at most while the long lane is empty, in bit/s.
    short_cap: u64,
    short_again: Nanos,
}

impl Weighted {
    pub(super) fn new(params: &Params, seed: u64) -> Self {
        let coin = params.get(SHARING) == "coin";
        Self {
            weight: params.get(WEIGHT),
            coin: coin.then(|| Dice::new(seed)),
            short_tag: 0,
            long_tag: 0,
            long_arrivals: VecDeque::new(),
            short_cap: params.get(CAP_HIGH).0,
            short_again: Nanos::ZERO,
        }
    }

    fn tag(&self, lane: Lane, packet: &Packet) -> u64 {
        let weight = if lane == Lane::SHORT { self.weight.rest() } else { self.weight };
        u64::from(packet.size.max(1)) * u64::from(weight.ppb())
    }

    /// Takes over another weight: tags of both heads start anew.
    pub(super) fn set_weight(&mut self, weight: Share, queues: &Queues) {
        if weight == self.weight {
            return;
        }
        self.weight = weight;
        self.restart(queues);
    }

    fn restart(&mut self, queues: &Queues) {
        self.short_tag = queues.head(Lane::SHORT).map_or(0, |head| self.tag(Lane::SHORT, head));
        self.long_tag = queues.head(Lane::LONG).map_or(0, |head| self.tag(Lane::LONG, head));
    }

    /// With both lanes backlogged.
    fn fair(&mut self, queues: &Queues) -> Lane {
        if let Some(coin) = &mut self.coin {
            let short = self.weight.as_draw().is_none_or(|draw| coin.throw() < draw);
            return if short { Lane::SHORT } else { Lane::LONG };
        }
        let long_first = match self.long_tag.cmp(&self.short_tag) {
            core::cmp::Ordering::Less => true,
            core::cmp::Ordering::Equal => {
                // The short head came later iff all that was ahead of the long head has left.
                self.long_arrivals.front().is_some_and(|mark| queues.has_passed(*mark))
            }
            core::cmp::Ordering::Greater => false,
        };
        if long_first { Lane::LONG } else { Lane::SHORT }
    }
}

impl Service for Weighted {
    #[inline]
    fn pick(&mut self, queues: &Queues, now: Nanos, _: impl FnOnce(&Packet) -> bool) -> Pick {
        let lane = match (queues.is_empty(Lane::SHORT), queues.is_empty(Lane::LONG)) {
            (false, false) => self.fair(queues),
            (false, true) if now < self.short_again => return Pick::Wait(self.short_again),
            (false, true) => Lane::SHORT,
            (true, _) => Lane::LONG,
        };
        Pick::Lane(lane)
    }

    #[inline]
    fn arrived(&mut self, packet: &Packet, lane: Lane, queues: &Queues) {
        if lane == Lane::LONG {
            self.long_arrivals.push_back(queues.mark());
        }
        if queues.is_empty(lane) {
            let tag = self.tag(lane, packet);
            *if lane == Lane::SHORT { &mut self.short_tag } else { &mut self.long_tag } = tag;
        }
    }

    #[inline]
    fn sent(&mut self, packet: &Packet, lane: Lane, queues: &Queues, now: Nanos) {
        let next = queues.head(lane).map_or(0, |head| self.tag(lane, head));
        if lane == Lane::SHORT {
            self.long_tag = self.long_tag.saturating_sub(self.short_tag);
            self.short_tag = next;
            if self.short_cap != u64::MAX {
                self.short_again =
                    now + Nanos(u64::from(packet.size) * 8 * BILLION / self.short_cap);
            }
        } else {
            self.long_arrivals.pop_front();
            self.short_tag = self.short_tag.saturating_sub(self.long_tag);
            self.long_tag = next;
        }
    }

    fn pushed_out(&mut self, _queues: &Queues) {
        self.long_arrivals.pop_back();
    }

    /// Tags of both heads start anew under the new weight.
    fn change(&mut self, params: &Params, queues: &Queues) {
        self.weight = params.get(WEIGHT);
        self.short_cap = params.get(CAP_HIGH).0;
        self.restart(queues);
    }
}
