//! Tins: whole sets of queues, each with a part of the rate, and which of them is served.
//!
//! With a rate, each tin has a schedule by its own part of it. The highest of those that are due is
//! served, else the one that is due next: so a tin has its part for certain, and what others leave.
//! Without one, tins take turns of quanta that are in the same proportions.
//!
//! The parts of Bulk and Voice are also what their quantum and their least target follow from.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::MTU;
use super::cobalt::{Law, Verdict};
use super::queues::{HashedQueue, Isolation, List, Queues, Standing};
use crate::interface::{Lane, Nanos, Packet, Rate};

/// A tin by its number, which is that of its lane as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tin(u8);

impl Tin {
    /// Where everything is with one tin.
    pub(crate) const BEST_EFFORT: Self = Self(0);
    /// Has a 16th of the rate.
    pub(crate) const BULK: Self = Self(1);
    /// Has a quarter of the rate.
    const VOICE: Self = Self(2);

    #[cfg(test)]
    pub(super) const ALL: &'static [Self] = &[Self::BEST_EFFORT, Self::BULK, Self::VOICE];

    pub(super) const fn lane(self) -> Lane {
        Lane(self.0)
    }
}

/// Which tins there are, and whose packets go where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    Besteffort,
    Diffserv3,
}

impl Rules {
    /// The words that `tc` has for them.
    pub(super) const WORDS: &'static [&'static str] = &["besteffort", "diffserv3"];

    pub(super) fn named(word: &str) -> Self {
        if word == "diffserv3" { Self::Diffserv3 } else { Self::Besteffort }
    }

    /// What the rate is divided by, for each tin.
    const fn parts(self) -> &'static [u64] {
        match self {
            Self::Besteffort => &[1],
            Self::Diffserv3 => &[1, 16, 4],
        }
    }
}

/// What a tin of the whole rate may send in a turn where the rate is not known, in bytes.
const TURN: i64 = 1024;

/// All tins, and whose turn it is.
pub(super) struct Tins {
    rules: Rules,
    tins: Vec<TinQueues>,
    is_shaped: bool,
    current: u8,
    /// Queues in each.
    places: u32,
}

impl Tins {
    pub(super) fn new(rules: Rules, sets: u32, isolation: Isolation) -> Self {
        let tins: Vec<_> =
            rules.parts().iter().map(|part| TinQueues::new(*part, sets, isolation)).collect();
        let places = tins[0].queues.len();
        Self { rules, tins, is_shaped: false, current: 0, places }
    }

    /// Takes over the round trip to be expected and the link's rate.
    pub(super) fn set(&mut self, rtt: Nanos, rate: Rate) {
        self.is_shaped = !rate.is_unlimited();
        self.tins.iter_mut().for_each(|tin| tin.set(rtt, rate));
    }

    #[inline]
    pub(super) fn get(&mut self, tin: Tin) -> &mut TinQueues {
        &mut self.tins[usize::from(tin.0)]
    }

    /// The tin of a packet that nobody has marked.
    #[inline]
    pub(super) fn of(&self, packet: &Packet) -> Tin {
        match (self.rules, packet.dscp) {
            (Rules::Besteffort, _) => Tin::BEST_EFFORT,
            // LE, CS1.
            (_, 1 | 8) => Tin::BULK,
            // Low delay of old (RFC 1349), voice-admit, EF, CS6, CS7.
            (_, 4 | 44 | 46 | 48 | 56) => Tin::VOICE,
            _ => Tin::BEST_EFFORT,
        }
    }

    /// The tin that is served next; there must be packets.
    #[inline]
    pub(super) fn choose(&mut self, now: Nanos) -> Tin {
        if self.tins.len() == 1 {
            return Tin::BEST_EFFORT;
        }
        if self.is_shaped {
            // Of those that are due, the last.
            let waiting = (0..).zip(&self.tins).filter(|(_, tin)| tin.has_turns());
            let chosen = waiting.max_by_key(|(_, tin)| Reverse(tin.due.since(now)));
            return chosen.map_or(Tin::BEST_EFFORT, |(tin, _)| Tin(tin));
        }
        loop {
            let tin = &mut self.tins[usize::from(self.current)];
            if tin.has_turns() && tin.deficit >= 0 {
                return Tin(self.current);
            }
            if tin.deficit <= 0 {
                tin.deficit += TURN / tin.part as i64;
            }
            self.current = (self.current + 1) % self.tins.len() as u8;
        }
    }

    /// Counts a packet that leaves.
    #[inline]
    pub(super) fn charge(&mut self, tin: Tin, place: u32, size: u32, now: Nanos) {
        let (is_shaped, is_alone) = (self.is_shaped, self.tins.len() == 1);
        let tin = self.get(tin);
        tin.queue(place).deficit -= i64::from(size) << 16;
        if is_alone {
            return;
        }
        if !is_shaped {
            tin.deficit -= i64::from(size);
            return;
        }
        let takes = tin.rate.time_of(u64::from(size));
        if tin.due < now {
            tin.due += takes;
        } else {
            tin.due = tin.due.max(now + takes);
        }
    }

    /// The number of a tin's first queue among those of all tins.
    #[inline]
    pub(super) fn first(&self, tin: Tin) -> u32 {
        u32::from(tin.0) * self.places
    }

    pub(super) fn place(&self, number: u32) -> (Tin, u32) {
        (Tin((number / self.places) as u8), number % self.places)
    }

    /// Every queue with its number.
    pub(super) fn queues(&self) -> impl Iterator<Item = (u32, &HashedQueue)> {
        (0..).zip(self.tins.iter().flat_map(|tin| tin.queues.iter()).map(|(_, queue)| queue))
    }
}

/// The queues of a tin, and their turns.
pub(super) struct TinQueues {
    /// What the link's rate is divided by for this tin.
    part: u64,
    rate: Rate,
    /// Bytes of a queue's turn, in units of 2^-16.
    pub(super) quantum: u32,
    pub(super) law: Law,
    pub(super) queues: Queues,
    sparse: List,
    bulk: List,
    decaying: List,
    packets: u32,
    /// When its part of the rate has carried what it sent.
    due: Nanos,
    /// Bytes that it may send in its turn.
    deficit: i64,
}

impl TinQueues {
    fn new(part: u64, sets: u32, isolation: Isolation) -> Self {
        Self {
            part,
            rate: Rate::UNLIMITED,
            quantum: 0,
            law: Law::new(Nanos::MAX, Nanos::ZERO),
            queues: Queues::new(sets, isolation),
            sparse: List::EMPTY,
            bulk: List::EMPTY,
            decaying: List::EMPTY,
            packets: 0,
            due: Nanos::ZERO,
            deficit: 0,
        }
    }

    pub(super) fn set(&mut self, rtt: Nanos, rate: Rate) {
        self.rate = rate;
        let mut mtu_time = Nanos::ZERO;
        let mut quantum = MTU;
        if !rate.is_unlimited() {
            self.rate = Rate((rate.0 / self.part).max(1));
            // A 4096th of a second's bytes, for packets of others to come between at low rates.
            quantum = (self.rate.0 / 8 / 4096).clamp(300, MTU);
            mtu_time = self.rate.time_of(MTU);
        }
        self.quantum = (quantum as u32) << 16;
        self.law = Law::new(rtt, mtu_time);
    }

    /// Whether a queue waits for its turn.
    fn has_turns(&self) -> bool {
        self.sparse.first().or(self.bulk.first()).is_some()
    }

    #[inline]
    pub(super) fn queue(&mut self, place: u32) -> &mut HashedQueue {
        self.queues.get(place)
    }

    /// Counts a packet in, and finds the queue that it joins.
    #[inline]
    pub(super) fn arrive(&mut self, packet: &Packet, now: Nanos) -> u32 {
        if self.packets == 0 {
            self.due = self.due.max(now);
        }
        self.packets += 1;
        self.queues.find(packet)
    }

    /// Counts a packet out.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.packets -= 1;
    }

    /// What a queue may send in a turn.
    #[inline]
    fn quantum_of(&self, place: u32) -> i64 {
        i64::from(self.quantum / u32::from(self.queues.host_load(place)))
    }

    /// Notes that a queue has a packet more: an idle one becomes sparse, one that was empty among
    /// the bulk queues is one of them.
    #[inline]
    pub(super) fn wake(&mut self, place: u32) {
        match self.queues.get(place).standing {
            Standing::Sparse | Standing::Bulk => return,
            Standing::SpentSparse => return self.make_bulk(place),
            Standing::Decaying => self.decaying.remove(&mut self.queues, place),
            Standing::Idle => {}
        }
        self.sparse.push_back(&mut self.queues, place);
        let quantum = self.quantum_of(place);
        let queue = self.queues.get(place);
        (queue.standing, queue.deficit) = (Standing::Sparse, quantum);
    }

    fn make_bulk(&mut self, place: u32) {
        self.queues.get(place).standing = Standing::Bulk;
        self.queues.count_bulk(place, true);
    }

    /// The queue that may send, if it has anything; those before it that have spent their quantum
    /// have had their turn. A departure looks at one decaying queue first.
    #[inline]
    pub(super) fn turn(&mut self, is_first: bool) -> Option<u32> {
        let mut decaying = self.decaying.first().filter(|_| is_first);
        loop {
            let next = decaying.take().or(self.sparse.first()).or(self.bulk.first())?;
            if self.queues.get(next).deficit > 0 {
                return Some(next);
            }
            self.pass_turn(next);
        }
    }

    /// What COBALT says of a packet that is about to leave, and whether it is its queue's last:
    /// BLUE's dice are not thrown for that.
    #[inline]
    pub(super) fn judge(
        &mut self,
        place: u32,
        (now, waited): (Nanos, Nanos),
        capable: bool,
        dice: impl FnOnce() -> u32,
    ) -> (bool, Verdict) {
        let queue = self.queues.get(place);
        let is_last = queue.packets.is_empty();
        let drops = |probability| !is_last && dice() < probability;
        (is_last, queue.cobalt.judge(&self.law, now, waited, capable, drops))
    }

    /// A packet of this queue had to go for want of room.
    pub(super) fn overflowed(&mut self, place: u32, now: Nanos) -> &HashedQueue {
        let queue = self.queues.get(place);
        queue.cobalt.overflowed(&self.law, now);
        queue
    }

    /// Takes a queue out of the list that it stands in.
    fn unlist(&mut self, place: u32) {
        let list = match self.queues.get(place).standing {
            Standing::Idle => return,
            Standing::Sparse => &mut self.sparse,
            Standing::SpentSparse | Standing::Bulk => &mut self.bulk,
            Standing::Decaying => &mut self.decaying,
        };
        list.remove(&mut self.queues, place);
    }

    /// Gives a queue that has spent its quantum another one, and the last place among the bulk
    /// queues. Only one with packets counts as one of them.
    fn pass_turn(&mut self, place: u32) {
        self.unlist(place);
        self.bulk.push_back(&mut self.queues, place);
        let queue = self.queues.get(place);
        if queue.standing == Standing::Sparse {
            if queue.packets.is_empty() {
                queue.standing = Standing::SpentSparse;
            } else {
                self.make_bulk(place);
            }
        }
        let quantum = self.quantum_of(place);
        self.queues.get(place).deficit += quantum;
    }

    /// Takes a queue that was found empty out of the rounds, at once or after it has decayed.
    pub(super) fn retire(&mut self, place: u32, now: Nanos) {
        self.unlist(place);
        let queue = self.queues.get(place);
        let was_bulk = queue.standing == Standing::Bulk;
        queue.cobalt.found_empty(&self.law, now);
        if queue.cobalt.is_at_rest(now) {
            queue.standing = Standing::Idle;
        } else {
            queue.standing = Standing::Decaying;
            self.decaying.push_back(&mut self.queues, place);
        }
        if was_bulk {
            self.queues.count_bulk(place, false);
        }
    }
}
