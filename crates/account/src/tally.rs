//! Packets and bytes: of one lane, of one reason, of all.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use sched::{Backlog, Drop, DropReason, Lane};

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Tally {
    /// Counts a packet.
    #[inline]
    pub fn count(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl Add for Tally {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), Add::add)
    }
}

/// What was dropped, by lane and reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drops(Vec<[Tally; DropReason::ALL.len()]>);

impl Drops {
    /// Counts a packet.
    #[inline]
    pub fn count(&mut self, bytes: u32, drop: Drop) {
        self.at(drop.lane)[drop.reason as usize].count(bytes);
    }

    /// Counts packets of one lane and reason.
    pub fn add(&mut self, lane: Lane, reason: DropReason, dropped: Tally) {
        self.at(lane)[reason as usize] += dropped;
    }

    #[inline]
    fn at(&mut self, lane: Lane) -> &mut [Tally; DropReason::ALL.len()] {
        grown(&mut self.0, lane)
    }

    /// What a lane lost for one reason.
    #[must_use]
    pub fn of(&self, lane: Lane, reason: DropReason) -> Tally {
        self.0.get(usize::from(lane.0)).map_or_else(Tally::default, |lane| lane[reason as usize])
    }

    /// All there are, by lane, then by reason.
    pub fn iter(&self) -> impl Iterator<Item = (Lane, DropReason, Tally)> + '_ {
        let lanes = (0..).map(Lane).zip(&self.0);
        let each = lanes.flat_map(|(lane, reasons)| {
            DropReason::ALL
                .into_iter()
                .zip(reasons)
                .map(move |(reason, count)| (lane, reason, *count))
        });
        each.filter(|(_, _, count)| count.packets > 0)
    }

    /// All together.
    #[must_use]
    pub fn total(&self) -> Tally {
        self.0.iter().flatten().copied().sum()
    }

    /// Packets of the short lane, and of all others.
    #[must_use]
    pub fn short_and_long(&self) -> [u64; 2] {
        let short = self.0.iter().take(1).flatten().copied().sum::<Tally>().packets;
        [short, self.total().packets - short]
    }
}

impl AddAssign<&Self> for Drops {
    fn add_assign(&mut self, other: &Self) {
        for (lane, reason, dropped) in other.iter() {
            self.add(lane, reason, dropped);
        }
    }
}

/// What a lane has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneTotals {
    /// Packets that joined it.
    pub enqueued: u64,
    /// Packets that left it for transmission.
    pub sent: Tally,
    /// What is in it now.
    pub backlog: Backlog,
}

/// What an account has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// What arrived.
    pub arrived: Tally,
    /// By lane; a discipline without lanes has one.
    pub lanes: Vec<LaneTotals>,
    /// What was dropped.
    pub drops: Drops,
    /// Packets marked "congestion experienced".
    pub marked_packets: u64,
    /// Most packets that were queued at once.
    pub most_packets: u64,
    /// Sum of the times in the queue of all packets sent, in ns.
    pub sojourn_ns: u128,
    /// Sum of the times in the queue of all packets dropped, in ns: 0 for those dropped on arrival.
    pub dropped_sojourn_ns: u128,
    /// Entries of the flow table that were made.
    pub flows_created: u64,
    /// Entries of the flow table that went.
    pub flows_removed: u64,
    /// How often the flow table was at its bound and could not take up a flow.
    pub flows_untracked: u64,
    /// How often a flow came to count as long.
    pub demotions: u64,
    /// How often a long flow came to count as short again.
    pub promotions: u64,
}

impl Totals {
    /// What was sent, from all lanes.
    #[must_use]
    pub fn sent(&self) -> Tally {
        self.lanes.iter().map(|lane| lane.sent).sum()
    }

    /// Packets queued now.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.backlog.packets).sum()
    }

    #[inline]
    pub(crate) fn lane(&mut self, lane: Lane) -> &mut LaneTotals {
        grown(&mut self.lanes, lane)
    }

    /// Counts anew. What is queued stays queued.
    pub(crate) fn restart(&mut self) {
        let kept = |lane: &LaneTotals| LaneTotals { backlog: lane.backlog, ..Default::default() };
        let lanes: Vec<LaneTotals> = self.lanes.iter().map(kept).collect();
        *self = Self { most_packets: self.queued(), lanes, ..Self::default() };
    }

    /// The totals of both, of which `later` was begun where these ended.
    #[must_use]
    pub fn and(mut self, later: &Self) -> Self {
        self.arrived += later.arrived;
        let lanes = self.lanes.len().max(later.lanes.len());
        self.lanes.resize(lanes, LaneTotals::default());
        for (sum, lane) in self.lanes.iter_mut().zip(&later.lanes) {
            sum.enqueued += lane.enqueued;
            sum.sent += lane.sent;
            sum.backlog = lane.backlog;
        }
        self.drops += &later.drops;
        self.marked_packets += later.marked_packets;
        self.most_packets = self.most_packets.max(later.most_packets);
        self.sojourn_ns += later.sojourn_ns;
        self.dropped_sojourn_ns += later.dropped_sojourn_ns;
        self.flows_created += later.flows_created;
        self.flows_removed += later.flows_removed;
        self.flows_untracked += later.flows_untracked;
        self.demotions += later.demotions;
        self.promotions += later.promotions;
        self
    }
}

/// The entry of a lane, which is made if there is none.
#[inline]
fn grown<T: Clone + Default>(lanes: &mut Vec<T>, lane: Lane) -> &mut T {
    let lane = usize::from(lane.0);
    if lane >= lanes.len() {
        lanes.resize(lane + 1, T::default());
    }
    &mut lanes[lane]
}
