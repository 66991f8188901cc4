//! Round trips of the traffic itself: what left for the link, and when the answer to it came.
//!
//! One thread notes what leaves, one looks for what is answered, a third takes what was found; the
//! tables are fixed, and nobody waits for anybody.

use std::array;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use autorate::Trip;
use frame::{Fingerprinter, FlowKey, LinkType, TcpSegment, tcp_segment};
use sched::Nanos;

/// Packets that are waited for.
const SOUGHT: usize = 1 << 10;
/// Of a number that has been answered.
const SPENT: u64 = 1;
/// Answers that nobody has taken yet.
const FOUND: usize = 1 << 8;
/// Who is answered later than this has waited for something else.
const LATEST: Nanos = Nanos::from_secs(1);

/// What passes sooner after the last that was looked at is not: reading and hashing take time, and more
/// would tell no more.
const NOTE_APART: Nanos = Nanos(500_000);
const SEEK_APART: Nanos = Nanos(100_000);

/// What left, by an even number that its answer leads to as well; 0 is nothing. Once it is answered,
/// [`SPENT`] is added: what leaves later with the same timestamp, of a burst that waited here for
/// longer than a round trip, would be taken to be answered by what answers the first of them.
#[derive(Debug, Default)]
struct Sought {
    number: AtomicU64,
    departed: AtomicU64,
    bytes_before: AtomicU64,
}

#[derive(Debug, Default)]
struct Found {
    host: AtomicU64,
    departed: AtomicU64,
    returned: AtomicU64,
    bytes_before: AtomicU64,
}

pub(crate) struct Trips {
    fingerprinter: Fingerprinter,
    sought: Vec<Sought>,
    found: [Found; FOUND],
    /// When a packet that left was looked at last, and one that came: of one thread each.
    noted: AtomicU64,
    looked: AtomicU64,
    /// How many were found, and how many were taken.
    put: AtomicUsize,
    taken: AtomicUsize,
}

impl std::fmt::Debug for Trips {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trips").finish_non_exhaustive()
    }
}

impl Trips {
    pub(crate) fn new(fingerprinter: Fingerprinter) -> Self {
        Self {
            fingerprinter,
            sought: (0..SOUGHT).map(|_| Sought::default()).collect(),
            found: array::from_fn(|_| Found::default()),
            noted: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            put: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
        }
    }

    /// A frame leaves for the link.
    pub(crate) fn leaves(&self, link: LinkType, frame: &[u8], bytes_before: u64, now: Nanos) {
        if !is_time(&self.noted, NOTE_APART, now) {
            return;
        }
        let Some(segment) = tcp_segment(link, frame) else { return };
        let Some(waits_for) = waits_for(&segment) else { return };
        self.noted.store(now.0, Ordering::Relaxed);
        let number = self.number(&segment.key, waits_for);
        let sought = &self.sought[number as usize % SOUGHT];
        let before = sought.number.load(Ordering::Relaxed);
        let age = now - Nanos(sought.departed.load(Ordering::Relaxed));
        let may_be_replaced = before & SPENT != 0 && before != number | SPENT;
        if before != 0 && age <= LATEST && !may_be_replaced {
            // The first of those with one timestamp is what is echoed. One that is sent again may be
            // answered for either time.
            if before == number && !is_stamped(&segment) {
                sought.number.store(0, Ordering::Relaxed);
            }
            return;
        }
        sought.number.store(0, Ordering::Relaxed);
        sought.departed.store(now.0, Ordering::Release);
        sought.bytes_before.store(bytes_before, Ordering::Release);
        sought.number.store(number, Ordering::Release);
    }

    /// A frame has come from the link.
    pub(crate) fn comes(&self, link: LinkType, frame: &[u8], now: Nanos) {
        if !is_time(&self.looked, SEEK_APART, now) {
            return;
        }
        let Some(segment) = tcp_segment(link, frame) else { return };
        let Some(answers) = answers(&segment) else { return };
        self.looked.store(now.0, Ordering::Relaxed);
        let key = segment.key.reversed();
        let number = self.number(&key, answers);
        let sought = &self.sought[number as usize % SOUGHT];
        if sought.number.load(Ordering::Acquire) != number {
            return;
        }
        let departed = sought.departed.load(Ordering::Acquire);
        let bytes_before = sought.bytes_before.load(Ordering::Acquire);
        // Taken by nobody else meanwhile, so that these go together.
        let spent = number | SPENT;
        let same =
            sought.number.compare_exchange(number, spent, Ordering::AcqRel, Ordering::Relaxed);
        let put = self.put.load(Ordering::Relaxed);
        let is_full = put.wrapping_sub(self.taken.load(Ordering::Acquire)) >= FOUND;
        // Packets are stamped one by one, so that an answer may seem to be the earlier one.
        let is_trip = Nanos(departed) <= now && now - Nanos(departed) <= LATEST;
        if same.is_err() || is_full || !is_trip {
            return;
        }
        let found = &self.found[put % FOUND];
        found.host.store(self.fingerprinter.hosts(&key).1.0.into(), Ordering::Relaxed);
        found.departed.store(departed, Ordering::Relaxed);
        found.returned.store(now.0, Ordering::Relaxed);
        found.bytes_before.store(bytes_before, Ordering::Relaxed);
        self.put.store(put.wrapping_add(1), Ordering::Release);
    }

    /// The next that was found.
    pub(crate) fn take(&self) -> Option<Trip> {
        let taken = self.taken.load(Ordering::Relaxed);
        if taken == self.put.load(Ordering::Acquire) {
            return None;
        }
        let Found { host, departed, returned, bytes_before } = &self.found[taken % FOUND];
        let trip = Trip {
            host: host.load(Ordering::Relaxed),
            departed: Nanos(departed.load(Ordering::Relaxed)),
            returned: Nanos(returned.load(Ordering::Relaxed)),
            bytes_before: bytes_before.load(Ordering::Relaxed),
        };
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
        Some(trip)
    }

    /// The number by which a packet and its answer find each other: nobody who does not know the
    /// fingerprinter's key aims at it.
    fn number(&self, key: &FlowKey, mark: Mark) -> u64 {
        let mark = match mark {
            Mark::Stamp(stamp) => u64::from(stamp),
            Mark::End(end) => 1 << 32 | u64::from(end),
        };
        let mixed = (self.fingerprinter.flow(key).get() ^ mark).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 32) & !SPENT).max(SPENT << 1)
    }
}

fn is_time(last: &AtomicU64, apart: Nanos, now: Nanos) -> bool {
    now.0.abs_diff(last.load(Ordering::Relaxed)) >= apart.0
}

/// By what an answer is known.
#[derive(Clone, Copy)]
enum Mark {
    /// It echoes this timestamp.
    Stamp(u32),
    /// It acknowledges what ends here.
    End(u32),
}

const fn is_stamped(segment: &TcpSegment) -> bool {
    segment.stamps.is_some()
}

fn waits_for(segment: &TcpSegment) -> Option<Mark> {
    match segment.stamps {
        Some((own, _)) => Some(Mark::Stamp(own)),
        None => segment.end.map(Mark::End),
    }
}

fn answers(segment: &TcpSegment) -> Option<Mark> {
    let acknowledges = segment.acknowledges?;
    match segment.stamps {
        Some((_, echoed)) => Some(Mark::Stamp(echoed)),
        None => Some(Mark::End(acknowledges)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkType = LinkType::RawIp;

    /// A packet from 10.0.0.1 to 10.0.0.2, or back, with timestamps or without.
    fn packet(back: bool, number: u32, stamps: Option<(u32, u32)>, payload: usize) -> Vec<u8> {
        let (from, to) = if back { (2, 1) } else { (1, 2) };
        let ports = if back { [0, 80, 9, 9] } else { [9, 9, 0, 80] };
        let mut options = Vec::new();
        if let Some((own, echoed)) = stamps {
            options = [&[1, 1, 8, 10][..], &own.to_be_bytes(), &echoed.to_be_bytes()].concat();
        }
        // What it acknowledges is what it sends, for the sake of the test.
        let header = [&ports[..], &number.to_be_bytes(), &number.to_be_bytes()].concat();
        let rest = [(5 + options.len() as u8 / 4) << 4, 16, 255, 255, 0, 0, 0, 0];
        let tcp = [&header[..], &rest, &options, &vec![7; payload]].concat();
        let length = ((20 + tcp.len()) as u16).to_be_bytes();
        let ip = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 6, 0, 0];
        [&ip[..], &[10, 0, 0, from, 10, 0, 0, to], &tcp].concat()
    }

    fn trips() -> Trips {
        Trips::new(Fingerprinter::from_seed(1))
    }

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn times(trips: &Trips) -> Vec<(u64, u64, u64)> {
        let milli = |time: Nanos| time.0 / 1_000_000;
        std::iter::from_fn(|| trips.take())
            .map(|trip| (milli(trip.departed), milli(trip.returned), trip.bytes_before))
            .collect()
    }

    #[test]
    fn an_echo_ends_the_trip_of_the_first_packet_with_its_timestamp() {
        let trips = trips();
        trips.leaves(LINK, &packet(false, 1, Some((50, 0)), 100), 1_000, ms(5));
        trips.leaves(LINK, &packet(false, 101, Some((50, 0)), 100), 1_152, ms(6));
        // Without payload as well: what is acknowledged lets more come.
        trips.leaves(LINK, &packet(false, 201, Some((51, 0)), 0), 1_304, ms(7));
        trips.comes(LINK, &packet(true, 1, Some((900, 50)), 0), ms(25));
        trips.comes(LINK, &packet(true, 1, Some((900, 50)), 0), ms(26));
        trips.comes(LINK, &packet(true, 1, Some((901, 51)), 500), ms(30));
        trips.comes(LINK, &packet(true, 1, Some((901, 77)), 500), ms(31));
        assert_eq!(times(&trips), [(5, 25, 1_000), (7, 30, 1_304)]);
    }

    #[test]
    fn without_timestamps_an_acknowledgement_of_just_that_ends_it() {
        let trips = trips();
        let data = |number| packet(false, number, None, 100);
        trips.leaves(LINK, &data(0), 0, ms(1));
        trips.leaves(LINK, &data(100), 140, ms(2));
        trips.comes(LINK, &packet(true, 200, None, 0), ms(30));
        trips.comes(LINK, &packet(true, 150, None, 0), ms(31));
        assert_eq!(times(&trips), [(2, 30, 140)]);
        // Nobody knows which of two is acknowledged.
        trips.leaves(LINK, &data(300), 0, ms(40));
        trips.leaves(LINK, &data(300), 0, ms(60));
        trips.comes(LINK, &packet(true, 400, None, 0), ms(70));
        assert_eq!(times(&trips), []);
        // An acknowledgement alone is never answered.
        trips.leaves(LINK, &packet(false, 500, None, 0), 0, ms(80));
        trips.comes(LINK, &packet(true, 500, None, 0), ms(90));
        assert_eq!(times(&trips), []);
    }

    #[test]
    fn what_takes_a_second_has_waited_for_something_else_and_makes_room() {
        let trips = trips();
        trips.leaves(LINK, &packet(false, 1, Some((50, 0)), 100), 0, ms(5));
        trips.comes(LINK, &packet(true, 1, Some((1, 50)), 0), ms(1_500));
        assert_eq!(times(&trips), []);
        trips.leaves(LINK, &packet(false, 1, Some((51, 0)), 100), 0, ms(5));
        trips.leaves(LINK, &packet(false, 1, Some((51, 0)), 100), 0, ms(2_000));
        trips.comes(LINK, &packet(true, 1, Some((1, 51)), 0), ms(2_020));
        assert_eq!(times(&trips), [(2_000, 2_020, 0)]);
    }

    #[test]
    fn what_seems_to_be_answered_before_it_left_gives_none() {
        let trips = trips();
        trips.leaves(LINK, &packet(false, 1, Some((50, 0)), 100), 0, ms(5));
        trips.comes(LINK, &packet(true, 1, Some((1, 50)), 0), ms(4));
        assert_eq!(times(&trips), []);
    }

    #[test]
    fn tables_are_bounded() {
        let trips = trips();
        for stamp in 0..1_600u32 {
            let now = ms(5) + Nanos(600_000 * u64::from(stamp));
            trips.leaves(LINK, &packet(false, 1, Some((stamp, 0)), 100), 0, now);
        }
        for stamp in 0..1_600u32 {
            let now = ms(970) + Nanos(100_000 * u64::from(stamp));
            trips.comes(LINK, &packet(true, 1, Some((1, stamp)), 0), now);
        }
        assert_eq!(times(&trips).len(), FOUND);
        // A table that was full serves again.
        trips.leaves(LINK, &packet(false, 1, Some((7, 0)), 100), 0, ms(3_000));
        trips.comes(LINK, &packet(true, 1, Some((1, 7)), 0), ms(3_020));
        assert_eq!(times(&trips), [(3_000, 3_020, 0)]);
    }

    #[test]
    fn a_burst_with_one_timestamp_may_leave_for_longer_than_a_round_trip() {
        let trips = trips();
        let at = |number: u32| ms(100 + 4 * u64::from(number));
        for number in 0..10 {
            // Packets leave every 4 ms, and are answered after 20.
            trips.leaves(LINK, &packet(false, 1 + number, Some((50, 0)), 100), 0, at(number));
            if number >= 5 {
                let answer = packet(true, number, Some((900, 50)), 0);
                trips.comes(LINK, &answer, at(number) + Nanos(200_000));
            }
        }
        assert_eq!(times(&trips), [(100, 120, 0)]);
        // The next timestamp is another one's.
        trips.leaves(LINK, &packet(false, 99, Some((51, 0)), 100), 0, ms(160));
        trips.comes(LINK, &packet(true, 99, Some((901, 51)), 0), ms(180));
        assert_eq!(times(&trips), [(160, 180, 0)]);
    }

    #[test]
    fn what_is_in_a_tunnel_gives_no_trip() {
        const UDP: [u8; 8] = [200, 200, 0, 53, 0, 0, 0, 0];
        let trips = trips();
        let [out, back] = [(false, 50, 0), (true, 900, 50)]
            .map(|(back, own, echoed)| packet(back, 1, Some((own, echoed)), 100));
        // IPv4 in IPv4, GRE, ESP and UDP.
        let outer = [(4, &[][..]), (47, &[0, 0, 8, 0]), (50, &[1; 8]), (17, &UDP)];
        for (at, (protocol, header)) in (1..).zip(outer) {
            let tunnelled = |inner: &[u8]| {
                let length = ((20 + header.len() + inner.len()) as u16).to_be_bytes();
                let ip = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0];
                [&ip[..], &inner[12..20], header, inner].concat()
            };
            trips.leaves(LINK, &tunnelled(&out), 0, ms(10 * at));
            trips.comes(LINK, &tunnelled(&back), ms(10 * at + 5));
        }
        assert_eq!(times(&trips), []);
        assert!(trips.sought.iter().all(|sought| sought.number.load(Ordering::Relaxed) == 0));
        // The same packets outside of a tunnel do.
        trips.leaves(LINK, &out, 0, ms(100));
        trips.comes(LINK, &back, ms(105));
        assert_eq!(times(&trips), [(100, 105, 0)]);
    }

    #[test]
    fn connections_of_which_one_direction_is_seen_give_none_and_tables_do_not_grow() {
        let trips = trips();
        let before = trips.sought.capacity();
        let mut now = ms(5);
        for stamp in 0..100_000u32 {
            now += NOTE_APART;
            // What leaves is answered elsewhere, and what comes answers what left elsewhere.
            trips.leaves(LINK, &packet(false, stamp, Some((stamp, 0)), 100), 0, now);
            trips.comes(LINK, &packet(true, stamp, Some((1, stamp | 1 << 31)), 0), now);
        }
        assert_eq!(times(&trips), []);
        assert_eq!((trips.sought.len(), trips.sought.capacity()), (SOUGHT, before));
        // A second later, all of that is forgotten.
        now = now + LATEST + ms(1);
        trips.leaves(LINK, &packet(false, 1, Some((7, 0)), 100), 0, now);
        trips.comes(LINK, &packet(true, 1, Some((1, 7)), 0), now + ms(20));
        assert_eq!(times(&trips).len(), 1);
    }

    #[test]
    fn of_many_packets_some_are_looked_at() {
        let trips = trips();
        let begin = ms(10).0;
        for packets in 0..10_000 {
            let now = Nanos(begin + 10_000 * packets);
            let stamp = Some(((now.0 / 1_000_000) as u32, 0));
            trips.leaves(LINK, &packet(false, 1, stamp, 100), 0, now);
            if packets >= 1_000 {
                let echo = Some((1, (now.0 / 1_000_000) as u32 - 10));
                trips.comes(LINK, &packet(true, 1, echo, 0), now);
            }
        }
        let taken = times(&trips);
        // One for each timestamp, but for those that share a slot with another one.
        assert!((70..=90).contains(&taken.len()), "{}", taken.len());
        assert!(taken.iter().all(|(departed, returned, _)| returned - departed == 10));
    }
}
