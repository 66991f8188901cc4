//! A flood of new flows: what is left of a link to a flow that was there before.
//!
//! A million packets of 64 bytes a second, each of a flow of its own, onto 10 Mbit/s. The flow that
//! was there keeps 40 packets of 1500 bytes on their way, as TCP would with a round trip of 5 ms: one
//! that has left is followed by the next one after that time, one that was dropped after 20 ms.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sched::{Dequeue, Drop, FlowId, Nanos, Packet, Qdisc, Sink, Spec};

const RATE: u64 = 10_000_000;
const NEW_FLOWS: u64 = 1_000_000;
const DURATION: Nanos = Nanos::from_secs(1);
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

struct Established {
    flow: FlowId,
    /// When its next packets are due.
    due: BinaryHeap<Reverse<Nanos>>,
    sent: u64,
}

impl Established {
    fn arrive(&mut self, queue: &mut dyn Qdisc<Lost>, now: Nanos, sink: &mut Lost) {
        while self.due.peek().is_some_and(|due| due.0 <= now) {
            self.due.pop();
            queue.enqueue(Packet::new(self.flow, 1500), now, sink);
            self.lost(sink, now);
        }
    }

    fn lost(&mut self, sink: &mut Lost, now: Nanos) {
        let repaired = Reverse(now + REPAIR);
        self.due.extend(std::iter::repeat_n(repaired, std::mem::take(&mut sink.0)));
    }
}

/// The established flow's part of the link, over the second half, and the most flows known.
fn flooded(spec: &str) -> (f64, usize) {
    let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{spec}: {error}"));
    let mut queue = spec.build::<Lost>(1);
    let mut sink = Lost::default();
    let due = BinaryHeap::from(vec![Reverse(Nanos::ZERO); WINDOW]);
    let mut established = Established { flow: FlowId::new(1), due, sent: 0 };
    let (mut now, mut free_at, mut flows) = (Nanos::ZERO, Nanos::ZERO, 0);
    established.arrive(&mut *queue, now, &mut sink);
    for new in 0..NEW_FLOWS * DURATION.0 / 1_000_000_000 {
        now = Nanos(new * 1_000_000_000 / NEW_FLOWS);
        established.arrive(&mut *queue, now, &mut sink);
        // A fingerprint like any other; the least bits are the table's first look.
        let flow = FlowId::new((new + 2).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        queue.enqueue(Packet::new(flow, 64), now, &mut sink);
        established.lost(&mut sink, now);
        flows = flows.max(queue.flows());
        if now < free_at {
            continue;
        }
        if let Dequeue::Packet { packet, .. } = queue.dequeue(now, &mut sink) {
            free_at = now + Nanos(u64::from(packet.size) * 8 * 1_000_000_000 / RATE);
            if packet.size == 1500 {
                established.due.push(Reverse(now + ROUND_TRIP));
                established.sent += if now > Nanos(DURATION.0 / 2) { 1500 } else { 0 };
            }
        }
    }
    (established.sent as f64 * 16.0 / RATE as f64, flows)
}

#[test]
fn the_low_share_is_of_link_and_buffer() {
    for (spec, share) in [("efd:low-share=0.1", 0.1), ("efd:low-share=0.3", 0.3)] {
        let (part, flows) = flooded(spec);
        println!("{spec}: {part:.3} of the link, {flows} flows known");
        assert!((share - 0.01..share + 0.1).contains(&part), "{spec}: {part}");
        assert!(flows <= 300, "{spec}: {flows}");
    }
}

/// What the share is for: as the papers have them, and as a FIFO, they leave nearly nothing.
#[test]
fn without_a_share_little_is_left() {
    for spec in ["fifo", "efd", "run2c:flows=1024"] {
        let (part, _) = flooded(spec);
        println!("{spec}: {part:.3} of the link");
        assert!(part < 0.05, "{spec}: {part}");
    }
}
