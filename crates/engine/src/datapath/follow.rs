//! What a direction tells of itself so that its rate can follow the link: what it carries, and when
//! a probe passed. Counters that one thread writes and another reads, without a lock.

use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use autorate::PROBES;
use frame::LinkType;
use sched::Nanos;

use super::trips::Trips;

/// Bytes of a probe behind its ICMP header: eight of nothing, the token, the number, four of nothing.
/// With them its frame is longer than the shortest of Ethernet, so that none is padded.
pub(crate) const PAYLOAD: usize = 24;
const TOKEN: usize = 8;
/// How far from the end of a probe its token begins.
#[cfg(feature = "kernel")]
pub(crate) const TOKEN_FROM_END: usize = PAYLOAD - TOKEN;
const NUMBER: usize = 16;
/// No frame of a probe is longer, with tags and an IPv6 header.
pub(crate) const LONGEST: usize = 128;

/// What a direction carries, in bytes as they count on the link.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
}

/// When probes left for the link, and when their answers came from it. Their waiting in this
/// machine's own queues is not in between.
#[derive(Debug)]
pub(crate) struct Stamps {
    token: [u8; 8],
    stamps: [Stamp; PROBES],
}

#[derive(Debug, Default)]
struct Stamp {
    /// Of the probe that it is for, the latest of those that share it.
    number: AtomicU32,
    departed: AtomicU64,
    bytes_before: AtomicU64,
    returned: AtomicU64,
}

impl Stamps {
    /// For probes with a token that nobody guesses.
    pub(crate) fn new(token: [u8; 8]) -> Self {
        Self { token, stamps: array::from_fn(|_| Stamp::default()) }
    }

    /// What a probe carries.
    pub(crate) fn payload(&self, number: u32) -> [u8; PAYLOAD] {
        let mut payload = [0; PAYLOAD];
        payload[TOKEN..NUMBER].copy_from_slice(&self.token);
        payload[NUMBER..NUMBER + 4].copy_from_slice(&number.to_be_bytes());
        payload
    }

    /// The number of the probe that a frame or packet ends with, if it is one or the answer to one.
    #[inline]
    pub(crate) fn number(&self, frame: &[u8]) -> Option<u32> {
        if frame.len() > LONGEST {
            return None;
        }
        let payload = frame.last_chunk::<PAYLOAD>()?;
        let number = payload[NUMBER..].first_chunk::<4>()?;
        (payload[TOKEN..NUMBER] == self.token).then(|| u32::from_be_bytes(*number))
    }

    /// Nothing has been seen of the next probe of this number.
    pub(crate) fn clear(&self, number: u32) {
        let stamp = self.slot(number);
        stamp.departed.store(0, Ordering::Relaxed);
        stamp.returned.store(0, Ordering::Relaxed);
        stamp.number.store(number, Ordering::Release);
    }

    /// A probe departs at this time, as nothing sees it pass.
    pub(crate) fn departs(&self, number: u32, at: Nanos) {
        if let Some(stamp) = self.of(number) {
            stamp.departed.store(at.0, Ordering::Release);
        }
    }

    fn slot(&self, number: u32) -> &Stamp {
        &self.stamps[number as usize % PROBES]
    }

    /// None of a probe that is forgotten or was never sent: what is said of it would be taken to be
    /// said of another one.
    fn of(&self, number: u32) -> Option<&Stamp> {
        let stamp = self.slot(number);
        (stamp.number.load(Ordering::Acquire) == number).then_some(stamp)
    }

    /// When it left, and behind how many bytes, if that was seen.
    pub(crate) fn departed(&self, number: u32) -> Option<(Nanos, u64)> {
        let stamp = self.of(number)?;
        let at = stamp.departed.load(Ordering::Acquire);
        (at > 0).then(|| (Nanos(at), stamp.bytes_before.load(Ordering::Relaxed)))
    }

    /// When its answer came, if that was seen.
    pub(crate) fn returned(&self, number: u32) -> Option<Nanos> {
        let at = self.of(number)?.returned.load(Ordering::Relaxed);
        (at > 0).then_some(Nanos(at))
    }
}

/// Which part of a probe's way a direction sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    /// Probes pass on their way to the link.
    Departing,
    /// Their answers pass.
    Returning,
}

/// What a direction is told to note.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) gauge: Arc<Gauge>,
    pub(crate) stamps: Arc<Stamps>,
    pub(crate) passing: Passing,
    /// Round trips of the traffic, if both directions pass here.
    pub(crate) trips: Option<Arc<Trips>>,
    pub(crate) link: LinkType,
}

impl Note {
    /// A frame has come in, which takes so many bytes on the link.
    #[inline]
    pub(crate) fn came(&self, frame: &[u8], bytes: u64, now: Nanos) {
        self.gauge.received.fetch_add(bytes, Ordering::Relaxed);
        if self.passing != Passing::Returning {
            return;
        }
        if let Some(number) = self.stamps.number(frame) {
            if let Some(stamp) = self.stamps.of(number) {
                stamp.returned.store(now.0, Ordering::Relaxed);
            }
        } else if let Some(trips) = &self.trips {
            trips.comes(self.link, frame, now);
        }
    }

    /// A frame leaves for the link.
    #[inline]
    pub(crate) fn left(&self, frame: &[u8], bytes: u64, now: Nanos) {
        let before = self.gauge.sent.fetch_add(bytes, Ordering::Relaxed);
        if self.passing != Passing::Departing {
            return;
        }
        if let Some(number) = self.stamps.number(frame) {
            if let Some(stamp) = self.stamps.of(number) {
                stamp.bytes_before.store(before, Ordering::Relaxed);
                stamp.departed.store(now.0, Ordering::Release);
            }
        } else if let Some(trips) = &self.trips {
            trips.leaves(self.link, frame, before, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_known_by_their_token_and_stamped_as_they_pass() {
        let stamps = Arc::new(Stamps::new(*b"a secret"));
        let gauge = Arc::<Gauge>::default();
        let note = |passing| Note {
            gauge: gauge.clone(),
            stamps: stamps.clone(),
            passing,
            trips: None,
            link: LinkType::Ethernet,
        };
        let [out, back] = [Passing::Departing, Passing::Returning].map(note);
        let frame = |number| [&[7; 42][..], &stamps.payload(number)].concat();
        stamps.clear(3);
        out.left(&[0; 66], 1000, Nanos(5));
        out.came(&frame(3), 66, Nanos(6));
        out.left(&frame(3), 66, Nanos(7));
        back.came(&frame(3), 66, Nanos(9));
        // On its way through the other one it says nothing.
        back.left(&frame(3), 66, Nanos(10));
        assert_eq!(stamps.departed(3), Some((Nanos(7), 1000)));
        assert_eq!(stamps.returned(3), Some(Nanos(9)));
        assert_eq!(gauge.sent.load(Ordering::Relaxed), 1132);
        assert_eq!(gauge.received.load(Ordering::Relaxed), 132);
        stamps.clear(3);
        assert_eq!((stamps.departed(3), stamps.returned(3)), (None, None));
    }

    #[test]
    fn an_answer_to_a_probe_of_long_ago_is_none_to_the_one_in_its_place() {
        let stamps = Arc::new(Stamps::new(*b"a secret"));
        let note = |passing| Note {
            gauge: Arc::default(),
            stamps: stamps.clone(),
            passing,
            trips: None,
            link: LinkType::Ethernet,
        };
        let [out, back] = [Passing::Departing, Passing::Returning].map(note);
        let (old, new) = (3, 3 + PROBES as u32);
        let frame = |number| [&[7; 42][..], &stamps.payload(number)].concat();
        stamps.clear(old);
        out.left(&frame(old), 66, Nanos(7));
        stamps.clear(new);
        out.left(&frame(new), 66, Nanos(9));
        back.came(&frame(old), 66, Nanos(10));
        back.came(&frame(new + PROBES as u32), 66, Nanos(11));
        assert_eq!((stamps.returned(new), stamps.returned(old)), (None, None));
        assert_eq!((stamps.departed(new), stamps.departed(old)), (Some((Nanos(9), 66)), None));
    }

    #[test]
    fn other_frames_are_none() {
        let stamps = Stamps::new(*b"a secret");
        let other = Stamps::new(*b"another!");
        let long = [&[0; LONGEST][..], &stamps.payload(1)].concat();
        for frame in [&[][..], &[0; 10], &[0; 1500], &other.payload(1), &long] {
            assert_eq!(stamps.number(frame), None);
        }
        assert_eq!(stamps.number(&stamps.payload(u32::MAX)), Some(u32::MAX));
    }
}
