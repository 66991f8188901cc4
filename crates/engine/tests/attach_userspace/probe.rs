//! A steady stream of packets in both directions, to see what becomes of each.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::hosts::{A4, B4, Hosts, Stop};

/// Between two probes of a direction.
const PERIOD: Duration = Duration::from_millis(1);

/// Numbered packets in one direction, all the time.
pub(crate) struct Probe {
    /// When each was sent.
    pub(crate) sent: Vec<Instant>,
    /// When each has arrived, every time.
    arrived: BTreeMap<usize, Vec<Instant>>,
}

impl Probe {
    /// Sends from one host to the other until the flag is set.
    fn run(from: UdpSocket, to: &UdpSocket, stop: &AtomicBool) -> Self {
        from.connect(to.local_addr().unwrap()).unwrap();
        to.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let mut arrived = BTreeMap::<_, Vec<_>>::new();
                let mut packet = [0; 8];
                loop {
                    match to.recv(&mut packet) {
                        Ok(_) => arrived
                            .entry(usize::from_ne_bytes(packet))
                            .or_default()
                            .push(Instant::now()),
                        // The silence after the last one.
                        Err(_) if stop.load(Ordering::Relaxed) => return arrived,
                        Err(_) => {}
                    }
                }
            });
            let mut sent = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let number = sent.len();
                sent.push(Instant::now());
                // That the sender's own queue is full, or its interface down, is no fault of ours.
                let _ = from.send(&number.to_ne_bytes());
                thread::sleep(PERIOD);
            }
            Self { sent, arrived: receiving.join().unwrap() }
        })
    }

    /// The longest time without an arrival between two times.
    pub(crate) fn longest_silence(&self, from: Instant, to: Instant) -> Duration {
        let mut times: Vec<Instant> = self.arrived.values().flatten().copied().collect();
        times.retain(|time| *time >= from && *time <= to);
        times.extend([from, to]);
        times.sort_unstable();
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }

    /// How many that were sent between two times have not arrived.
    pub(crate) fn lost(&self, from: Instant, to: Instant) -> usize {
        let sent = self.sent.iter().enumerate();
        let is_lost = |(number, sent): &(usize, &Instant)| {
            **sent >= from && **sent < to && !self.arrived.contains_key(number)
        };
        sent.filter(is_lost).count()
    }

    pub(crate) fn none_came_twice(&self) {
        let twice: Vec<_> = self.arrived.iter().filter(|(_, times)| times.len() > 1).collect();
        assert!(twice.is_empty(), "came more than once: {twice:?}");
    }
}

/// Probes both directions while `job` does what it does: from `a` to `b`, and back.
pub(crate) fn probed<T>(hosts: &Hosts, job: impl FnOnce() -> T) -> (T, [Probe; 2]) {
    let stop = AtomicBool::new(false);
    let sockets = || (Hosts::udp(&hosts.a, A4), Hosts::udp(&hosts.b, B4));
    let (from_a, to_b) = sockets();
    let (to_a, from_b) = sockets();
    thread::scope(|scope| {
        let forth = scope.spawn(|| Probe::run(from_a, &to_b, &stop));
        let back = scope.spawn(|| Probe::run(from_b, &to_a, &stop));
        // The hosts have found each other, and the probes run.
        thread::sleep(Duration::from_millis(500));
        let stopping = Stop(&stop);
        let done = job();
        drop(stopping);
        (done, [forth.join().unwrap(), back.join().unwrap()])
    })
}
