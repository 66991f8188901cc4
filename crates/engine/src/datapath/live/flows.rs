//! A bounded table of the flows that pass: the biggest stay in it, the newest are always in it.
//!
//! A flow belongs to one set of eight places, by its fingerprint. A new one takes a free place of
//! its set, or that of the flow that has been idle for long, or else that of the smallest one.
//! So the table needs no list and no sweep, a packet touches three or four cache lines, and a
//! flood of new flows displaces small ones only. What a displaced flow had counted is forgotten.

use frame::{Endpoints, FlowKey};
use sched::{FlowId, Nanos, Packet, Rate, Standing};

use crate::datapath::report::Tally;
use crate::status::{self, Flow, Seen};

/// Places of a set.
const WAYS: usize = 8;
/// Sets of a table; a power of two.
const SETS: usize = 512;
/// Flows in one list of a status.
const LISTED: usize = Seen::LISTED;
/// A flow without a packet for this long makes room for a new one, however big it was, and is not
/// listed.
const IDLE: Nanos = Nanos::from_secs(30);
/// Rates are those of about a second: windows of 2^30 ns.
const WINDOW_BITS: u32 = 30;

/// What the choice of a place looks at, in one cache line for a set.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Set {
    /// In KB of arrivals, rounded up.
    size: [u32; WAYS],
    /// In milliseconds.
    seen: [u32; WAYS],
}

/// Fingerprints of the flows in a set; 0 is a free place.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Tags([u64; WAYS]);

/// Where a flow is, if it still is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    index: u32,
    tag: u64,
}

/// A flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    key: FlowKey,
    pub(super) flow: FlowId,
    /// Found out when somebody looks.
    pub(super) standing: Option<Standing>,
    pub(super) lane: Option<u8>,
    arrived: Tally,
    pub(super) sent: Tally,
    pub(super) dropped: u64,
    pub(super) marked: u64,
    first: Nanos,
    last: Nanos,
    /// Bytes that arrived in the window of the latest packet, and in the one before.
    window: [u64; 2],
}

impl Entry {
    fn new(key: FlowKey, flow: FlowId, now: Nanos) -> Self {
        Self {
            key,
            flow,
            standing: None,
            lane: None,
            arrived: Tally::default(),
            sent: Tally::default(),
            dropped: 0,
            marked: 0,
            first: now,
            last: now,
            window: [0; 2],
        }
    }

    #[inline]
    fn arrives(&mut self, size: u32, now: Nanos) {
        self.window = self.windows(now);
        self.window[0] += u64::from(size);
        self.arrived.count(size);
        self.last = now;
    }

    /// The windows as they are now.
    fn windows(&self, now: Nanos) -> [u64; 2] {
        match (now.0 >> WINDOW_BITS).saturating_sub(self.last.0 >> WINDOW_BITS) {
            0 => self.window,
            1 => [0, self.window[0]],
            _ => [0, 0],
        }
    }

    /// What arrived during the last second, as if the window before had been even.
    fn arriving(&self, now: Nanos) -> Rate {
        let [current, before] = self.windows(now);
        let length = 1u128 << WINDOW_BITS;
        let gone = u128::from(now.0) % length;
        let bytes = u128::from(current) + u128::from(before) * (length - gone) / length;
        Rate((bytes * 8 * 1_000_000_000 / length) as u64)
    }

    fn part(&self, now: Nanos) -> Part {
        let (endpoints, sent) = (self.key.endpoints, self.sent);
        Part { endpoints, arriving: self.arriving(now), sent }
    }

    pub(crate) fn describe(&self, now: Nanos) -> Flow {
        Flow {
            flow: self.key.to_string(),
            lane: self.lane,
            standing: self.standing.map(|standing| status::Standing {
                lane: standing.lane.0,
                tier: standing.tier,
                excess_bytes: standing.excess_bytes,
            }),
            arrived: self.arrived,
            sent: self.sent,
            dropped_packets: self.dropped,
            marked_packets: self.marked,
            arriving_bps: self.arriving(now).0,
            age: now.since(self.first),
            idle: now.since(self.last),
        }
    }
}

/// What a flow has of the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(super) endpoints: Endpoints,
    pub(super) arriving: Rate,
    pub(super) sent: Tally,
}

pub(super) struct FlowTable {
    tags: Vec<Tags>,
    sets: Vec<Set>,
    entries: Vec<Entry>,
}

impl FlowTable {
    pub(super) fn new() -> Self {
        let nobody = FlowKey {
            endpoints: Endpoints::Mac([0; 6], [0; 6]),
            selector: frame::Selector::None,
            protocol: 0,
            vlans: 0,
        };
        Self {
            tags: vec![Tags::default(); SETS],
            sets: vec![Set::default(); SETS],
            entries: vec![Entry::new(nobody, FlowId::new(0), Nanos::ZERO); SETS * WAYS],
        }
    }

    /// Counts an arrival, and takes its flow up if it is not in the table.
    #[inline]
    pub(super) fn arrives(&mut self, packet: &Packet, key: &FlowKey, now: Nanos) -> Place {
        let tag = packet.flow.get();
        let set = tag as usize % SETS;
        let way = match self.tags[set].0.iter().position(|other| *other == tag) {
            Some(way) => way,
            None => self.take_up(set, tag, key, now),
        };
        let index = set * WAYS + way;
        let entry = &mut self.entries[index];
        // Who is behind a translated address may be known only now.
        entry.key = *key;
        entry.arrives(packet.size, now);
        let set = &mut self.sets[set];
        set.size[way] = u32::try_from(entry.arrived.bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        set.seen[way] = millis(now);
        Place { index: index as u32, tag }
    }

    #[cold]
    fn take_up(&mut self, set: usize, tag: u64, key: &FlowKey, now: Nanos) -> usize {
        let Set { size, seen } = self.sets[set];
        let is_idle =
            |way: usize| millis(now).wrapping_sub(seen[way]) > (IDLE.0 / 1_000_000) as u32;
        let least = |way: &usize| {
            let size = if is_idle(*way) { 0 } else { size[*way] };
            (self.tags[set].0[*way] != 0, size, seen[*way])
        };
        let way = (0..WAYS).min_by_key(least).unwrap_or(0);
        self.tags[set].0[way] = tag;
        self.entries[set * WAYS + way] = Entry::new(*key, FlowId::new(tag), now);
        way
    }

    /// A flow, if it has not been displaced.
    #[inline]
    pub(super) fn at(&mut self, place: Place) -> Option<&mut Entry> {
        let index = place.index as usize;
        let is_there = place.tag != 0 && self.tags[index / WAYS].0[index % WAYS] == place.tag;
        is_there.then(|| &mut self.entries[index])
    }

    /// What everybody sends who was seen lately.
    pub(super) fn part(&self, now: Nanos) -> Vec<Part> {
        let tags = self.tags.iter().flat_map(|tags| tags.0);
        let all = tags.zip(&self.entries).filter(|(tag, _)| *tag != 0);
        let recent = all.filter(|(_, entry)| now.since(entry.last) <= IDLE);
        recent.map(|(_, entry)| entry.part(now)).collect()
    }

    /// The biggest of the flows that were seen lately, and the newest.
    pub(super) fn top(&self, now: Nanos) -> (Vec<Entry>, Vec<Entry>) {
        let tags = self.tags.iter().flat_map(|tags| tags.0);
        let all = tags.zip(&self.entries).filter(|(tag, _)| *tag != 0);
        let (mut biggest, mut newest) = (Greatest::new(), Greatest::new());
        for (_, entry) in all.filter(|(_, entry)| now.since(entry.last) <= IDLE) {
            biggest.offer(entry.arrived.bytes, entry);
            newest.offer(entry.first.0, entry);
        }
        (biggest.sorted(), newest.sorted())
    }
}

/// Modulo 2^32: 49 days.
fn millis(now: Nanos) -> u32 {
    (now.0 / 1_000_000) as u32
}

/// The few greatest of many.
struct Greatest<'a> {
    least: u64,
    found: Vec<(u64, &'a Entry)>,
}

impl<'a> Greatest<'a> {
    fn new() -> Self {
        Self { least: 0, found: Vec::with_capacity(2 * LISTED) }
    }

    fn offer(&mut self, value: u64, entry: &'a Entry) {
        if self.found.len() >= LISTED && value <= self.least {
            return;
        }
        self.found.push((value, entry));
        if self.found.len() == 2 * LISTED {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.found.sort_by_key(|(value, _)| std::cmp::Reverse(*value));
        self.found.truncate(LISTED);
        self.least = self.found.last().map_or(0, |(value, _)| *value);
    }

    fn sorted(mut self) -> Vec<Entry> {
        self.cut();
        self.found.into_iter().map(|(_, entry)| *entry).collect()
    }
}

#[cfg(test)]
mod tests;
