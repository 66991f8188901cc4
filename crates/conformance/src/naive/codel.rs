//! The control law of RFC 8289 on a list of the packets that wait.

use std::collections::VecDeque;

use sched::{Ecn, Packet};

/// Its parameters.
#[derive(Clone, Copy, Hash)]
pub(super) struct Law {
    pub(super) target: u64,
    pub(super) interval: u128,
    pub(super) mtu: u64,
    pub(super) ecn: bool,
}

/// A packet, and how long it has waited.
pub(super) struct Head {
    pub(super) packet: Packet,
    pub(super) waited: u64,
}

/// Its state.
#[derive(Clone, Copy, Default, Hash)]
pub(super) struct Codel {
    first_above: Option<u128>,
    drop_next: u128,
    count: u128,
    last_count: u128,
    dropping: bool,
}

impl Law {
    /// The largest whole number whose square, `count` times, is at most that of the interval.
    fn spacing(&self, count: u128) -> u128 {
        let (mut low, mut high) = (0, self.interval + 1);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if middle * middle * count.max(1) <= self.interval * self.interval {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl Codel {
    /// Somebody else dropped packets at the head.
    pub(super) fn count_drops(&mut self, packets: usize) {
        self.count += packets as u128;
    }

    /// Whether the head of `queue` may be dropped.
    fn may_drop(&mut self, law: Law, now: u128, queue: &VecDeque<Head>) -> bool {
        let behind: u64 = queue.iter().skip(1).map(|head| u64::from(head.packet.size)).sum();
        if queue[0].waited < law.target || behind <= law.mtu {
            self.first_above = None;
            return false;
        }
        // It begins to wait now, or has been waiting.
        let until = *self.first_above.get_or_insert(now + law.interval);
        now >= until
    }

    /// Drops what must go before the next packet leaves; whether that one is marked.
    pub(super) fn judge(&mut self, law: Law, now: u128, queue: &mut VecDeque<Head>) -> bool {
        let marks = |head: &Head| law.ecn && head.packet.ecn() != Ecn::NotEct;
        let mut late = self.may_drop(law, now, queue);
        if !self.dropping {
            if !late {
                return false;
            }
            let mark = marks(&queue[0]);
            if !mark {
                queue.pop_front();
                self.may_drop(law, now, queue);
            }
            let grown = self.count.saturating_sub(self.last_count);
            let is_recent = now.saturating_sub(self.drop_next) < 16 * law.interval;
            self.count = if grown > 1 && is_recent { grown } else { 1 };
            self.drop_next = now + law.spacing(self.count);
            (self.last_count, self.dropping) = (self.count, true);
            return mark;
        }
        while late && now >= self.drop_next {
            self.count += 1;
            if marks(&queue[0]) {
                self.drop_next += law.spacing(self.count);
                return true;
            }
            queue.pop_front();
            late = self.may_drop(law, now, queue);
            if late {
                self.drop_next += law.spacing(self.count);
            }
        }
        self.dropping = late;
        false
    }
}
