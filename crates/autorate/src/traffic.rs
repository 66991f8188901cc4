//! How much longer than at best the packets of the traffic itself take.

use units::Nanos;

use crate::least::Least;
use crate::meter::bits_per_second;
use crate::path::{ENOUGH, LONGEST, RECENT, SLACK, View, WINDOW};

/// Hosts whose least round-trip time is known; one more takes the place of that which was silent
/// longest.
const HOSTS: usize = 64;
/// Groups that are remembered.
const GROUPS: usize = 16;
/// Round trips of a group, and the time over which they ended, at least. One alone may be late since
/// its acknowledgement waited for the next packet, or its sender for something to send.
const TRIPS: u32 = 3;
const SPREAD: Nanos = Nanos::from_millis(10);
/// What ended further apart is of different moments.
const TOGETHER: Nanos = Nanos::from_millis(100);
/// Packets whose sending at a direction's rate is no queue: one that is timed, the next, for which its
/// acknowledgement waits, and one ahead of it. Three take 18 ms at 2 Mbit/s.
const OWN: u64 = 3;
/// Without a group for so long, the traffic says nothing.
const FRESH: Nanos = Nanos::from_millis(250);

/// A packet of the traffic, and what a host beyond the link answered to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trip {
    /// Who answered, as a number.
    pub host: u64,
    /// When the packet left for the link.
    pub departed: Nanos,
    /// When the answer came from the link.
    pub returned: Nanos,
    /// Bytes that had left in front of it.
    pub bytes_before: u64,
}

#[derive(Clone, Debug, Default)]
struct Host {
    number: u64,
    /// When it was heard of last.
    heard: Nanos,
    least: Least,
}

/// Round trips that ended within a short time, by the fastest of them.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    began: Nanos,
    trips: u32,
    extra: Nanos,
    fastest: Trip,
    baseline: Nanos,
}

/// Round trips of the traffic, as a delay. A host is compared with itself.
#[derive(Clone, Debug)]
pub struct Traffic {
    hosts: [Host; HOSTS],
    groups: [Group; GROUPS],
    /// How many there have been.
    count: usize,
    /// The one that is not whole yet.
    open: Group,
    /// Smoothed difference between the extra delay of a group and that before.
    jitter: u64,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            hosts: core::array::from_fn(|_| Host::default()),
            groups: [Group::default(); GROUPS],
            count: 0,
            open: Group::default(),
            jitter: 0,
        }
    }
}

impl Traffic {
    /// A packet has been answered.
    pub fn answer(&mut self, trip: Trip) {
        let time = trip.returned - trip.departed;
        if trip.departed > trip.returned || time > LONGEST {
            return;
        }
        let host = self.host(trip.host);
        host.heard = trip.returned;
        host.least.keep(time, trip.returned);
        let Some(baseline) = host.least.get() else { return };
        let extra = time - baseline;
        let open = &mut self.open;
        let since = trip.returned.0.abs_diff(open.began.0);
        if open.trips == 0 || since > TOGETHER.0 {
            *open = Group { began: trip.returned, trips: 0, extra, fastest: trip, baseline };
        }
        open.trips += 1;
        if extra < open.extra {
            (open.extra, open.fastest, open.baseline) = (extra, trip, baseline);
        }
        if open.trips >= TRIPS && (SPREAD.0..=TOGETHER.0).contains(&since) {
            self.close();
        }
    }

    fn close(&mut self) {
        let group = core::mem::take(&mut self.open);
        if let Some(before) = self.back(0) {
            let difference = before.extra.0.abs_diff(group.extra.0);
            self.jitter = self.jitter - self.jitter / 16 + difference / 16;
        }
        self.groups[self.count % GROUPS] = group;
        self.count += 1;
    }

    fn host(&mut self, number: u64) -> &mut Host {
        let known = self.hosts.iter().position(|host| host.number == number);
        let at = known.unwrap_or_else(|| {
            let silent = (0..HOSTS).min_by_key(|at| self.hosts[*at].heard).unwrap_or(0);
            self.hosts[silent] = Host { number, ..Host::default() };
            silent
        });
        &mut self.hosts[at]
    }

    /// The newest group, or so many before it.
    fn back(&self, back: usize) -> Option<&Group> {
        let at = self.count.checked_sub(1 + back)?;
        (back < GROUPS).then(|| &self.groups[at % GROUPS])
    }

    /// What is known now; none without enough traffic of late. `packet` is how long a direction
    /// takes for a full packet at its rate, the slower one if there are two.
    #[must_use]
    pub fn look(&self, now: Nanos, packet: Nanos) -> Option<View> {
        let extra =
            |group: &Group| Nanos(group.extra.0.saturating_sub(OWN.saturating_mul(packet.0)));
        let newest = self.back(0)?;
        let oldest = self.back(WINDOW - 1)?;
        let end = newest.fastest.returned;
        let is_whole = now.0.abs_diff(end.0) <= FRESH.0
            && end.0.abs_diff(oldest.fastest.returned.0) <= TOGETHER.0 * WINDOW as u64;
        if !is_whole {
            return None;
        }
        let least = |groups: usize| {
            let of = (0..groups).filter_map(|back| self.back(back));
            of.fold((Nanos::MAX, Nanos::MAX), |(least, since), group| {
                (least.min(extra(group)), since.min(group.fastest.departed))
            })
        };
        let sum: u64 =
            (0..WINDOW).filter_map(|back| self.back(back)).map(|group| extra(group).0).sum();
        Some(View {
            blind: false,
            baseline: Some(newest.baseline),
            threshold: Nanos(SLACK.0 + 2 * self.jitter),
            extra: Some(least(WINDOW)),
            recent: Some(least(RECENT)),
            newest: Some((extra(newest), newest.fastest.departed)),
            mean: Nanos(sum / WINDOW as u64),
            passed: self.passed(),
            span: end - oldest.began,
        })
    }

    /// What got through between two groups.
    fn passed(&self) -> Option<u64> {
        let newest = self.back(0)?.fastest;
        let mut passed = None;
        for back in 1..GROUPS {
            let Some(Group { fastest, .. }) = self.back(back) else { break };
            let time = newest.returned - fastest.returned;
            let bytes = newest.bytes_before.checked_sub(fastest.bytes_before)?;
            passed = bits_per_second(bytes, time).or(passed);
            if time >= ENOUGH + Nanos(6 * self.jitter) {
                break;
            }
        }
        passed
    }
}

#[cfg(test)]
mod tests;
