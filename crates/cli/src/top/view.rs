//! What is shown: the latest look at each direction, and what has changed since the one before.

use std::collections::VecDeque;

use engine::status::{Histogram, Status};
use sched::Nanos;

/// Looks that the sparkline goes back.
const HISTORY: usize = 300;

/// Everything that is shown, or could be.
pub(super) struct View {
    /// Egress first.
    ways: Vec<Way>,
    shown: usize,
    pub(super) paused: bool,
}

/// One direction of a device.
pub(super) struct Way {
    pub(super) now: Status,
    /// The look before.
    before: Option<Status>,
    /// Rates at all looks, in bit/s; the latest is the last.
    pub(super) rates: VecDeque<u64>,
}

impl View {
    /// After the first look.
    pub(super) fn new(statuses: Vec<Status>) -> Self {
        let ways = statuses.into_iter().map(Way::new).collect();
        Self { ways, shown: 0, paused: false }
    }

    /// After another look.
    pub(super) fn update(&mut self, statuses: Vec<Status>) {
        if self.paused {
            return;
        }
        let mut former: Vec<Way> = self.ways.drain(..).collect();
        for status in statuses {
            let found = former.iter().position(|way| way.is_of(&status));
            self.ways.push(match found {
                Some(at) => former.swap_remove(at).after(status),
                None => Way::new(status),
            });
        }
        self.shown = self.shown.min(self.ways.len().saturating_sub(1));
    }

    pub(super) fn pause(&mut self) {
        self.paused = !self.paused;
    }

    /// Shows the other direction, or the next instance.
    pub(super) fn turn(&mut self) {
        self.shown = (self.shown + 1) % self.ways.len().max(1);
    }

    /// Egress first.
    pub(super) fn ways(&self) -> &[Way] {
        &self.ways
    }

    pub(super) fn shown(&self) -> Option<&Way> {
        self.ways.get(self.shown)
    }

    /// Number of the one that is shown, from 1, and how many there are.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.shown + 1, self.ways.len())
    }
}

impl Way {
    fn new(now: Status) -> Self {
        Self { now, before: None, rates: VecDeque::new() }
    }

    /// Whether this is the same attachment at a later time.
    fn is_of(&self, status: &Status) -> bool {
        let place = |of: &Status| {
            let qdisc = of.qdisc.as_ref().map(|qdisc| qdisc.handle.clone());
            (of.ifindex, of.direction, of.attached_at, qdisc)
        };
        place(&self.now) == place(status)
    }

    fn after(mut self, now: Status) -> Self {
        let before = std::mem::replace(&mut self.now, now);
        let bits = self.now.sent_bytes().saturating_sub(before.sent_bytes()).saturating_mul(8);
        self.before = Some(before);
        let elapsed = self.elapsed();
        if elapsed > Nanos::ZERO {
            let rate = u128::from(bits) * 1_000_000_000 / u128::from(elapsed.0);
            self.rates.push_back(u64::try_from(rate).unwrap_or(u64::MAX));
        }
        if self.rates.len() > HISTORY {
            self.rates.pop_front();
        }
        self
    }

    /// The look before; none at the first one of what is attached.
    pub(super) fn before(&self) -> Option<&Status> {
        self.before.as_ref()
    }

    /// Time between the last two looks; 0 if there was only one.
    pub(super) fn elapsed(&self) -> Nanos {
        let before = self.before.as_ref();
        before.map_or(Nanos::ZERO, |before| self.now.uptime.since(before.uptime))
    }

    /// Bits per second that left the queue between the last two looks.
    pub(super) fn rate(&self) -> Option<u64> {
        self.rates.back().copied()
    }

    /// How much a counter grew between the last two looks.
    pub(super) fn grown(&self, counter: impl Fn(&Status) -> u64) -> u64 {
        let before = self.before.as_ref().map(&counter);
        before.map_or(0, |before| counter(&self.now).saturating_sub(before))
    }

    /// Bytes that a lane sent between the last two looks, or ever if there was only one.
    pub(super) fn sent_bytes(&self, lane: usize) -> u64 {
        let of = |status: &Status| status.lanes.get(lane).map_or(0, |lane| lane.sent_bytes);
        match &self.before {
            Some(_) => self.grown(of),
            None => of(&self.now),
        }
    }

    /// How long packets that a lane sent between the last two looks had waited, or all of them.
    pub(super) fn sojourn(&self, lane: usize) -> Histogram {
        let now = &self.now.lanes[lane].sojourn;
        let before = self.before.as_ref().and_then(|before| before.lanes.get(lane));
        before.map_or_else(|| now.clone(), |before| now.since(&before.sojourn))
    }
}
