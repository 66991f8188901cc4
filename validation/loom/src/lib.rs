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

    use loom::sync::atomic::Ordering;
    use loom::thread;
    use sched::Nanos;

    use super::follow::{Gauge, Note, Passing, Stamps};
    use super::ring;

    fn note(stamps: &Arc<Stamps>, gauge: &Arc<Gauge>) -> Note {
        let (stamps, gauge) = (Arc::clone(stamps), Arc::clone(gauge));
        Note { gauge, stamps, passing: Passing::Departing }
    }

    /// Who sees that a probe has left sees behind how many bytes.
    #[test]
    fn a_departure_comes_with_the_bytes_before_it() {
        loom::model(|| {
            let stamps = Arc::new(Stamps::new(*b"a secret"));
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
