//! What threads of the userspace engine share, under every interleaving and every reordering that the
//! memory model allows: [loom](https://docs.rs/loom) runs each test once for each of them.
//!
//! The code is the engine's own (`build.rs`); only memory shared with the kernel is stood in for.

mod shared;

/// Fewer probes than the engine has: each is three atomics more to keep track of.
pub const PROBES: usize = 4;

/// `datapath/follow.rs`: counters and stamps of probes.
#[allow(dead_code, unreachable_pub, missing_debug_implementations)]
mod follow {
    include!(concat!(env!("OUT_DIR"), "/follow.rs"));
}

/// `datapath/trips.rs`: round trips of the traffic.
#[allow(dead_code, unreachable_pub, missing_debug_implementations)]
mod trips {
    include!(concat!(env!("OUT_DIR"), "/trips.rs"));
}

/// `io/xdp/ring.rs`: the rings of an `AF_XDP` socket.
#[allow(dead_code, unreachable_pub)]
mod ring {
    include!(concat!(env!("OUT_DIR"), "/ring.rs"));

    /// Both ends of a ring of two entries, as the kernel and a process have them, where indices wrap.
    #[cfg(test)]
    pub(super) fn ends() -> (Producer<u64>, Consumer<u64>) {
        let begin = u32::MAX;
        let [ring, other] = Shared::pair(2, begin);
        let consumer = Consumer { ring: other, read: begin, produced: begin };
        (Producer { ring, written: begin, consumed: begin }, consumer)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use frame::{Fingerprinter, LinkType};
    use loom::sync::atomic::Ordering;
    use loom::thread;
    use sched::Nanos;

    use super::follow::{Gauge, Note, Passing, Stamps};
    use super::ring;
    use super::trips::Trips;

    fn note(stamps: &Arc<Stamps>, gauge: &Arc<Gauge>) -> Note {
        let (stamps, gauge) = (Arc::clone(stamps), Arc::clone(gauge));
        Note { gauge, stamps, passing: Passing::Departing, trips: None, link: LinkType::RawIp }
    }

    /// Who sees that a probe has left sees behind how many bytes.
    #[test]
    fn a_departure_comes_with_the_bytes_before_it() {
        loom::model(|| {
            let stamps = Arc::new(Stamps::new(*b"a secret"));
            stamps.clear(2);
            let gauge = Arc::<Gauge>::default();
            let (direction, probe) = (note(&stamps, &gauge), stamps.payload(2));
            let sends = thread::spawn(move || {
                direction.left(&[7; 60], 150, Nanos(5));
                direction.left(&probe, 66, Nanos(7));
            });
            let seen = stamps.departed(2);
            assert!(seen.is_none() || seen == Some((Nanos(7), 150)), "{seen:?}");
            sends.join().unwrap();
            assert_eq!(stamps.departed(2), Some((Nanos(7), 150)));
        });
    }

    /// What two directions count is there in the end.
    #[test]
    fn no_bytes_are_lost_between_two_directions() {
        loom::model(|| {
            let stamps = Arc::new(Stamps::new(*b"a secret"));
            let gauge = Arc::<Gauge>::default();
            let other = note(&stamps, &gauge);
            let sends = thread::spawn(move || {
                other.left(&[7; 60], 100, Nanos(5));
                other.came(&[7; 60], 10, Nanos(5));
            });
            let one = note(&stamps, &gauge);
            one.left(&[7; 60], 200, Nanos(6));
            one.came(&[7; 60], 20, Nanos(6));
            sends.join().unwrap();
            let count = |of: &loom::sync::atomic::AtomicU64| of.load(Ordering::Relaxed);
            assert_eq!((count(&gauge.sent), count(&gauge.received)), (300, 30));
        });
    }

    /// An IPv4 packet from one host to another, or back, with TCP timestamps.
    fn segment(back: bool, own: u8, echoed: u8) -> Vec<u8> {
        let (from, to) = if back { (2, 1) } else { (1, 2) };
        let ip = [0x45, 0, 0, 52, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
        let ports = if back { [0, 80, 9, 9] } else { [9, 9, 0, 80] };
        let rest = [0, 0, 0, 1, 0, 0, 0, 1, 8 << 4, 16, 255, 255, 0, 0, 0, 0];
        let stamps = [1, 1, 8, 10, 0, 0, 0, own, 0, 0, 0, echoed];
        [&ip[..], &ports, &rest, &stamps].concat()
    }

    const LINK: LinkType = LinkType::RawIp;

    /// A trip has the times and the bytes of one packet, although two take the same place.
    #[test]
    fn a_round_trip_is_of_one_packet() {
        let ms = Nanos::from_millis;
        let whole = [(ms(1), ms(900), 100), (ms(1100), ms(1200), 200)];
        loom::model(move || {
            let trips = Arc::new(Trips::new(Fingerprinter::from_seed(1)));
            trips.leaves(LINK, &segment(false, 1, 0), 100, ms(1));
            let departing = Arc::clone(&trips);
            let leaves = thread::spawn(move || {
                departing.leaves(LINK, &segment(false, 2, 0), 200, ms(1100));
            });
            let returning = Arc::clone(&trips);
            let comes = thread::spawn(move || {
                returning.comes(LINK, &segment(true, 7, 1), ms(900));
                returning.comes(LINK, &segment(true, 8, 2), ms(1200));
            });
            leaves.join().unwrap();
            comes.join().unwrap();
            while let Some(trip) = trips.take() {
                let parts = (trip.departed, trip.returned, trip.bytes_before);
                assert!(whole.contains(&parts), "{parts:?}");
            }
        });
    }

    /// Entries come out whole and in order, and no place is written before it was released: loom ends a
    /// test in which one side touches an entry while the other may.
    #[test]
    fn a_ring_passes_entries_on_in_order() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring::ends();
            let writes = thread::spawn(move || {
                for entry in 1..=3 {
                    while !producer.has_room() {
                        thread::yield_now();
                    }
                    producer.push(entry);
                    producer.publish();
                }
            });
            for expected in 1..=3 {
                let entry = loop {
                    if let Some(entry) = consumer.pop() {
                        break entry;
                    }
                    thread::yield_now();
                };
                assert_eq!(entry, expected);
                consumer.release();
            }
            writes.join().unwrap();
            assert_eq!(consumer.waiting(), 0);
        });
    }

    /// The same if several are published, and released, at once.
    #[test]
    fn a_ring_passes_entries_on_in_batches() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring::ends();
            let writes = thread::spawn(move || {
                producer.push(1);
                producer.push(2);
                producer.publish();
                while !producer.has_room() {
                    thread::yield_now();
                }
                producer.push(3);
                producer.publish();
            });
            while consumer.waiting() < 2 {
                thread::yield_now();
            }
            assert_eq!([consumer.pop(), consumer.pop()], [Some(1), Some(2)]);
            consumer.release();
            writes.join().unwrap();
            assert_eq!([consumer.pop(), consumer.pop()], [Some(3), None]);
        });
    }
}
