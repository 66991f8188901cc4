//! A flood in which every packet has another source address: what `fq-lanes` leaves to a flow that
//! was there before, and how much memory it takes.
//!
//! An allocator that counts must be a program's only one, and takes `unsafe`: hence its own file.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sched::{Dequeue, Drop, FlowId, HostId, Nanos, Packet, Sink, Spec};

thread_local! {
    /// Allocations by this thread, and bytes held now.
    static HELD: Cell<(u64, i64)> = const { Cell::new((0, 0)) };
}

struct Counting;

// SAFETY: hands everything to the system's allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = HELD.try_with(|held| {
            let (count, bytes) = held.get();
            held.set((count + 1, bytes + layout.size() as i64));
        });
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let _ = HELD.try_with(|held| {
            let (count, bytes) = held.get();
            held.set((count, bytes - layout.size() as i64));
        });
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory of a queued packet, with what a list that doubles keeps in reserve.
const PACKET_BYTES: i64 = 2 * 64;
/// What the page of the discipline says of all flows and hosts.
const TABLES_BYTES: i64 = 1_000_000;

const RATE: u64 = 10_000_000;
const FLOOD_PER_SECOND: u64 = 100_000;
const SECOND: u64 = 1_000_000_000;
const SECONDS: u64 = 2;
/// Packets of the established flow on their way, and how soon one that has left is followed by
/// another, or one that was dropped.
const WINDOW: usize = 40;
const ROUND_TRIP: Nanos = Nanos::from_millis(5);
const REPAIR: Nanos = Nanos::from_millis(20);

/// Counts the established flow's drops.
#[derive(Default)]
struct Lost(usize);

impl Sink for Lost {
    fn dropped(&mut self, packet: Packet, _drop: Drop, _now: Nanos) {
        self.0 += usize::from(packet.size == 1500);
    }
}

struct Flooded {
    /// The established flow's part of the link, over the second half.
    part: f64,
    flows: usize,
    /// Bytes that the queue took at last, and allocations in the second half.
    bytes: i64,
    allocations: u64,
}

/// Packets of 64 bytes at five times the rate, each of another source and flow, to one host, and a
/// flow of 1500 to another.
fn flooded(spec: &str) -> Flooded {
    let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{spec}: {error}"));
    let mut due = BinaryHeap::with_capacity(4 * WINDOW);
    due.extend([Reverse(Nanos::ZERO); WINDOW]);
    let (mut sink, mut sent, mut free_at) = (Lost::default(), 0, Nanos::ZERO);
    let before = HELD.get();
    let mut queue = spec.build::<Lost>(1);
    let (mut flows, mut halfway) = (0, 0);
    let packets = FLOOD_PER_SECOND * SECONDS;
    for number in 0..packets {
        let now = Nanos(number * SECOND / FLOOD_PER_SECOND);
        let established = Packet::new(FlowId::new(1), 1500).with_hosts(HostId(1), HostId(2));
        while due.peek().is_some_and(|at| at.0 <= now) {
            due.pop();
            queue.enqueue(established, now, &mut sink);
        }
        let scattered = (number + 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let spoofed = Packet::new(FlowId::new(scattered ^ (scattered >> 32)), 64);
        queue.enqueue(spoofed.with_hosts(HostId(number as u32 + 10), HostId(3)), now, &mut sink);
        flows = flows.max(queue.flows());
        if now >= free_at
            && let Dequeue::Packet { packet, .. } = queue.dequeue(now, &mut sink)
        {
            // There is always something to send.
            free_at += Nanos(u64::from(packet.size) * 8 * SECOND / RATE);
            if packet.size == 1500 {
                due.push(Reverse(now + ROUND_TRIP));
                sent += u64::from(number > packets / 2) * 1500;
            }
        }
        let repaired = Reverse(now + REPAIR);
        due.extend(std::iter::repeat_n(repaired, std::mem::take(&mut sink.0)));
        if number == packets / 2 {
            halfway = HELD.get().0;
        }
    }
    let after = HELD.get();
    Flooded {
        part: sent as f64 * 16.0 / (RATE * SECONDS) as f64,
        flows,
        bytes: after.1 - before.1,
        allocations: after.0 - halfway,
    }
}

/// Once the tables are full, the flood has the spill queues, which are one host, and the established
/// flow's host has half of the link.
#[test]
fn an_established_flow_keeps_its_share() {
    for hosts in ["destination", "none", "source"] {
        let spec = format!("fq-lanes:hosts={hosts},target=inf");
        let Flooded { part, flows, .. } = flooded(&spec);
        println!("{spec}: {part:.4} of the link, {flows} flows");
        assert!(part >= 0.49, "{spec}: {part}");
        assert_eq!(flows, 4096, "{spec}: the table is full");
    }
    let Flooded { part, .. } = flooded("fq-codel");
    assert!(part < 0.005, "fq-codel leaves as good as nothing: {part}");
}

/// A queue of fewer packets than the tables have room for: every packet is a host of its own where
/// that is the address, and the established flow's host has a turn for a packet of each.
#[test]
fn in_a_short_queue_hosts_keep_their_turns() {
    let turn = 1514.0;
    let of_all_hosts = turn / (turn + 1024.0 * 64.0);
    for (hosts, share) in [("destination", 0.3), ("source", of_all_hosts)] {
        let spec = format!("fq-lanes:hosts={hosts},target=inf,limit=900packets");
        let Flooded { part, .. } = flooded(&spec);
        println!("{spec}: {part:.4} of the link, {share:.4} wanted");
        assert!(part >= share, "{spec}: {part}");
    }
}

#[test]
fn a_flood_takes_no_more_memory_than_tables_and_limit() {
    for hosts in ["source", "destination", "none"] {
        for (limit, packets) in [("64000b", 1000), ("1000packets", 1000)] {
            let spec = format!("fq-lanes:hosts={hosts},limit={limit}");
            let Flooded { bytes, allocations, .. } = flooded(&spec);
            println!("{spec}: {bytes} bytes");
            assert!(bytes <= TABLES_BYTES + packets * PACKET_BYTES, "{spec}: {bytes} bytes");
            assert_eq!(allocations, 0, "{spec}: it is as full as it gets");
        }
    }
}

/// A limit in bytes counts bytes that the link carries. A packet of one byte takes as much memory as
/// any other, so that the limit is worth 64 times as much, or twice that while the list grows.
#[test]
fn a_limit_in_bytes_bounds_packets_of_one_byte() {
    let spec: Spec = "fq-lanes:limit=100000b,target=inf".parse().expect("a spec");
    let before = HELD.get().1;
    let (mut queue, mut sink) = (spec.build::<Lost>(1), Lost::default());
    for number in 0..300_000 {
        queue.enqueue(Packet::new(FlowId::new(1 + number % 300), 1), Nanos(number), &mut sink);
        assert!(queue.backlog().bytes <= 100_000);
    }
    let backlog = queue.backlog();
    let bytes = HELD.get().1 - before;
    println!("{} packets take {bytes} bytes", backlog.packets);
    assert_eq!(backlog.packets, backlog.bytes);
    assert!(backlog.packets > 99_000, "{backlog:?}");
    assert!(bytes <= TABLES_BYTES + 100_000 * PACKET_BYTES, "{bytes} bytes");
}
