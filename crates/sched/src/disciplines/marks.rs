//! Marks: which packets are of long flows, told without a queue, for the queues of somebody else.
//!
//! A *flow* is short as long as it keeps to a token bucket (the virtual scheduling algorithm of
//! ITU-T I.371): it may send at its *allowance* for ever, and a *threshold* of bytes on top of that.
//! Once beyond, it is long until no packet of it has come for the *idle* time. So voice, games and
//! a video call never become long, whatever their length, and a transfer does after its threshold.
//!
//! A second bucket measures *all short flows together*. While they keep to their *share* of the
//! link, or go beyond it for a moment, the threshold is as it was set; the longer they are beyond
//! it, the lower the threshold, down to a fifth. So in overload very short flows stay short, and
//! long ones are left a part of the link, whatever serves the classes.
//!
//! This is a rule, not a discipline: `marked.rs` is that. In the kernel
//! `crates/engine/bpf/marks.bpf.c` has the same, and a test holds it to this.

use alloc::vec::Vec;

use crate::interface::{FlowId, Nanos, Rate};

/// The threshold is what the link sends in this time...
const THRESHOLD_TIME: Nanos = Nanos::from_millis(88);
/// ...but at least twice what TCP sends at once to begin with.
const LEAST_THRESHOLD_BYTES: u64 = 30_000;
/// What a flow may send for ever is the link's rate divided by this.
const ALLOWANCE_PART: u64 = 16;
/// What short flows may take before the threshold falls is the link's rate divided by this.
const SHARE_PART: u64 = 4;
/// The threshold falls to this part of itself.
const LEAST_PART: u64 = 5;
/// How far short flows may be beyond their share until the threshold is at its lowest. Half of it
/// is free: a transfer alone takes all of the link while it lasts.
const DEPTH: Nanos = Nanos::from_millis(1000);
/// A flow without a packet for this long starts afresh.
const IDLE: Nanos = Nanos::from_millis(1000);

/// What a packet is marked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Of a flow that keeps to its bucket.
    Short,
    /// Of a flow that does not.
    Long,
}

/// The rule, as numbers. A cost is the time that a bucket takes to drain a byte, in 2^-8 ns; a
/// bucket's level is the time until it is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Of a flow's bucket, which drains at the allowance.
    pub flow_cost: u64,
    /// Of the bucket of all short flows, which drains at their share.
    pub class_cost: u64,
    /// Level at which a flow becomes long while short flows keep to their share.
    pub threshold: Nanos,
    /// The same once they are [`Self::depth`] or more beyond it.
    pub least: Nanos,
    /// Level at which the bucket of all short flows is full; the threshold falls from half of it on.
    pub depth: Nanos,
    /// A flow without a packet for this long starts afresh.
    pub idle: Nanos,
}

/// What is remembered of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkedFlow {
    until: Nanos,
    last: Nanos,
    is_long: bool,
}

impl MarkedFlow {
    /// Whether it was beyond its bucket when its last packet came.
    #[must_use]
    pub const fn is_long(&self) -> bool {
        self.is_long
    }
}

/// What is remembered of flows: in sets of [`WAYS`](Self::WAYS), of which a flow's fingerprint names
/// one. In a full set the flow without a packet for longest gives way.
#[derive(Clone, Debug)]
pub struct Flows {
    keys: Vec<[u64; Self::WAYS]>,
    flows: Vec<[MarkedFlow; Self::WAYS]>,
    len: usize,
}

/// Whether a flow was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It was.
    Yes,
    /// It was not, and there was a place that nobody had.
    No,
    /// It was not, and this one is forgotten for it.
    Instead(FlowId),
}

impl Flows {
    /// Flows in a set.
    pub const WAYS: usize = 8;

    /// An empty table of so many sets.
    #[must_use]
    pub fn new(sets: usize) -> Self {
        let flows = alloc::vec![[MarkedFlow::default(); Self::WAYS]; sets.max(1)];
        Self { keys: alloc::vec![[0; Self::WAYS]; sets.max(1)], flows, len: 0 }
    }

    /// Flows in the table.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What is remembered of a flow, which is in the table from now on.
    #[inline]
    pub fn find(&mut self, flow: FlowId) -> (&mut MarkedFlow, Known) {
        let key = flow.get();
        let set = (key % self.keys.len() as u64) as usize;
        let (keys, flows) = (&mut self.keys[set], &mut self.flows[set]);
        if let Some(way) = keys.iter().position(|other| *other == key) {
            return (&mut flows[way], Known::Yes);
        }
        // Nobody's places come first.
        let ways = 0..Self::WAYS;
        let way = ways.min_by_key(|way| (keys[*way] != 0, flows[*way].last)).unwrap_or(0);
        let gone = core::mem::replace(&mut keys[way], key);
        flows[way] = MarkedFlow::default();
        if gone == 0 {
            self.len += 1;
            return (&mut flows[way], Known::No);
        }
        (&mut flows[way], Known::Instead(FlowId::new(gone)))
    }
}

/// What all short flows have used of their share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortShare {
    until: Nanos,
}

impl Marks {
    /// The rule for a link of this rate.
    #[must_use]
    pub const fn for_rate(rate: Rate) -> Self {
        Self::with_threshold(rate, Self::threshold_bytes(rate))
    }

    /// The threshold that [`Self::for_rate`] has, in bytes.
    #[must_use]
    pub const fn threshold_bytes(rate: Rate) -> u64 {
        let bytes = (rate.0 / 8000).saturating_mul(THRESHOLD_TIME.0 / 1_000_000);
        if bytes < LEAST_THRESHOLD_BYTES { LEAST_THRESHOLD_BYTES } else { bytes }
    }

    /// The rule for a link of this rate, with another threshold in bytes.
    #[must_use]
    pub const fn with_threshold(rate: Rate, threshold_bytes: u64) -> Self {
        let rate = if rate.0 == 0 { Rate(1) } else { rate };
        let flow_cost = cost(ALLOWANCE_PART, rate);
        let threshold = drain_time(threshold_bytes, flow_cost);
        Self {
            flow_cost,
            class_cost: cost(SHARE_PART, rate),
            threshold,
            least: Nanos(threshold.0 / LEAST_PART),
            depth: DEPTH,
            idle: IDLE,
        }
    }

    /// The mark of a packet of this size that comes now. `flow` is what is remembered of its flow,
    /// and the default for one that is not.
    pub fn mark(
        &self,
        flow: &mut MarkedFlow,
        share: &mut ShortShare,
        bytes: u64,
        now: Nanos,
    ) -> Mark {
        if now.since(flow.last) >= self.idle {
            *flow = MarkedFlow::default();
        }
        flow.last = now;
        if !flow.is_long {
            flow.until = now + level(flow.until, now) + drain_time(bytes, self.flow_cost);
            flow.is_long = level(flow.until, now) > self.threshold(share, now);
        }
        if flow.is_long {
            return Mark::Long;
        }
        let used = level(share.until, now) + drain_time(bytes, self.class_cost);
        share.until = now + used.min(self.depth);
        Mark::Short
    }

    /// The level at which a flow becomes long at this time. In steps of 2^10 ns, so that products
    /// fit into 64 bits.
    fn threshold(&self, share: &ShortShare, now: Nanos) -> Nanos {
        let half = self.depth.0 >> 11;
        let beyond = (level(share.until, now).0 >> 10).saturating_sub(half).min(half);
        let range = (self.threshold.0 - self.least.0) >> 10;
        let fall = range.saturating_mul(beyond).checked_div(half).unwrap_or(0) << 10;
        Nanos(self.threshold.0 - fall)
    }
}

/// Of a bucket that drains at the rate divided by `part`.
const fn cost(part: u64, rate: Rate) -> u64 {
    const BITS_NS: u64 = 8_000_000_000 << 8;
    let cost = BITS_NS * part / rate.0;
    if cost == 0 { 1 } else { cost }
}

const fn drain_time(bytes: u64, cost: u64) -> Nanos {
    Nanos(bytes.saturating_mul(cost) >> 8)
}

/// How full a bucket is that will be empty at `until`.
const fn level(until: Nanos, now: Nanos) -> Nanos {
    until.since(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate(10_000_000);
    const MARKS: Marks = Marks::for_rate(RATE);

    /// What becomes of packets of one flow, evenly spaced.
    fn marks(packets: u64, bytes: u64, rate: u64, share: &mut ShortShare) -> u64 {
        let mut flow = MarkedFlow::default();
        let gap = Rate(rate).time_of(bytes);
        let at = |n| Nanos::from_secs(1) + n * gap;
        let long = |n: &u64| MARKS.mark(&mut flow, share, bytes, at(*n)) == Mark::Long;
        (0..packets).filter(long).count() as u64
    }

    #[test]
    fn the_threshold_follows_the_rate() {
        assert_eq!(Marks::threshold_bytes(Rate(1_000_000)), 30_000);
        assert_eq!(Marks::threshold_bytes(RATE), 110_000);
        assert_eq!(Marks::threshold_bytes(Rate(1_000_000_000)), 11_000_000);
        // 110 kB drain at 625 kbit/s in 1.408 s.
        assert_eq!(MARKS.threshold, Nanos(1_408_000_000));
        assert_eq!(Marks::for_rate(Rate(100_000_000)).threshold, MARKS.threshold);
    }

    #[test]
    fn a_transfer_becomes_long_after_its_threshold() {
        // At once: 73 packets of 1500 bytes are 109.5 kB.
        let mut flow = MarkedFlow::default();
        let mark = |_| {
            // Of its share it has used nothing before.
            MARKS.mark(&mut flow, &mut ShortShare::default(), 1500, Nanos(1))
        };
        let first_long = (0..100).map(mark).position(|mark| mark == Mark::Long);
        assert_eq!(first_long, Some(73));
    }

    #[test]
    fn what_keeps_to_its_allowance_stays_short_for_ever() {
        let share = &mut ShortShare::default();
        assert_eq!(marks(100_000, 1200, RATE.0 / 16, share), 0);
        assert!(marks(100_000, 1200, RATE.0 / 10, share) > 0);
    }

    #[test]
    fn a_long_flow_is_long_until_it_was_idle() {
        let (mut flow, mut share) = (MarkedFlow::default(), ShortShare::default());
        let mut mark = |now| MARKS.mark(&mut flow, &mut share, 60_000, Nanos(now));
        assert_eq!([mark(1), mark(2), mark(3)], [Mark::Short, Mark::Long, Mark::Long]);
        let (near, far) = (3 + 999_999_999, 3 + 999_999_999 + 1_000_000_000);
        assert_eq!([mark(near), mark(far)], [Mark::Long, Mark::Short]);
    }

    #[test]
    fn the_threshold_falls_as_short_flows_take_more_than_their_share() {
        let mut share = ShortShare::default();
        let mut longest = 0;
        // New transfers of 100 kB one after another, at one and a half times the rate.
        for n in 0..200_u64 {
            let mut flow = MarkedFlow::default();
            let packets = (0..66_u64).filter(|k| {
                let now = Nanos(1 + (n * 66 + k) * 800_000);
                MARKS.mark(&mut flow, &mut share, 1500, now) == Mark::Long
            });
            let long = packets.count();
            if n == 0 {
                assert_eq!(long, 0, "one alone is short from end to end");
            }
            longest = longest.max(long);
        }
        // A fifth of each is short in the end.
        assert!((48..=54).contains(&longest), "{longest} of 66 were long");
        assert_eq!(MARKS.least.0 * 5, MARKS.threshold.0);
    }

    #[test]
    fn in_a_full_set_the_flow_without_a_packet_for_longest_gives_way() {
        let (mut flows, mut share) = (Flows::new(4), ShortShare::default());
        let mut arrive = |n: u64, now: u64| {
            let (flow, known) = flows.find(FlowId::new(n));
            MARKS.mark(flow, &mut share, 1500, Nanos(now));
            known
        };
        // Set 1 of 4; 5 again, so that 9 is the oldest.
        for n in 0..8 {
            assert_eq!(arrive(5 + 4 * n, n), Known::No);
        }
        assert_eq!(arrive(5, 20), Known::Yes);
        assert_eq!(arrive(1, 21), Known::Instead(FlowId::new(9)));
        assert_eq!(arrive(2, 22), Known::No, "of another set");
        assert_eq!(arrive(9, 23), Known::Instead(FlowId::new(13)));
        assert_eq!((flows.len(), flows.is_empty()), (9, false));
    }

    #[test]
    fn extreme_rates_and_sizes_do_not_overflow() {
        for rate in [0, 1, 8000, 1 << 40, u64::MAX] {
            let marks = Marks::for_rate(Rate(rate));
            let (mut flow, mut share) = (MarkedFlow::default(), ShortShare::default());
            for n in 1..1000_u64 {
                marks.mark(&mut flow, &mut share, 65_536, Nanos(n << 30));
            }
        }
    }
}
