//! What a packet costs, for a tool that counts: enqueue + dequeue through `Box<dyn Qdisc>` in the
//! patterns of the benchmark, with nothing else in [`measured`]. `bench/instructions.py` counts.
//!
//! `cost steady|churn FLOWS SPEC PACKETS`; the spec `nothing` is the loop alone.

use std::error::Error;
use std::hint::black_box;

use sched::{Drop, Ecn, FlowId, HostId, Nanos, Packet, Qdisc, Spec};

/// The hosts that flows go to.
const HOSTS: u32 = 64;

type Queue = Option<Box<dyn Qdisc<Vec<(Packet, Drop)>>>>;

/// Feeds flows in turn, as the benchmark does; the clock moves as on a link of 10 Gbit/s.
struct Feed {
    flows: u64,
    next: u64,
    now: u64,
}

impl Feed {
    #[inline(always)]
    fn packet(&mut self) -> (Packet, Nanos) {
        let index = self.next;
        self.next = if index + 1 == self.flows { 0 } else { index + 1 };
        self.now += 1200;
        // A bijection that scatters, as a keyed hash does.
        let fingerprint = (index ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let fingerprint = fingerprint ^ (fingerprint >> 32);
        let packet = Packet::new(FlowId::new(fingerprint), 1500)
            .with_ecn(Ecn::Ect0)
            .with_hosts(HostId(1), HostId(index as u32 % HOSTS + 2))
            .with_id(index);
        (packet, Nanos(self.now))
    }
}

/// A packet in and a packet out, so often.
#[inline(always)]
fn work(queue: &mut Queue, feed: &mut Feed, lost: &mut Vec<(Packet, Drop)>, packets: u64) {
    for _ in 0..packets {
        let (packet, now) = black_box(feed.packet());
        if let Some(queue) = queue {
            queue.enqueue(packet, now, lost);
            black_box(queue.dequeue(now, lost));
        }
    }
}

/// The part that is counted.
#[inline(never)]
fn measured(queue: &mut Queue, feed: &mut Feed, lost: &mut Vec<(Packet, Drop)>, packets: u64) {
    work(queue, feed, lost, packets);
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pattern, flows, spec, packets] = arguments.as_slice() else {
        return Err("cost steady|churn FLOWS SPEC PACKETS".into());
    };
    let n: u64 = flows.parse()?;
    let (flows, resident) = match pattern.as_str() {
        "steady" => (n, 2 * n),
        "churn" => (10 * n, n),
        other => return Err(format!("{other}: neither steady nor churn").into()),
    };
    let mut queue: Queue = match spec.as_str() {
        "nothing" => None,
        // CoDel's queues stand above their target here by design: let them.
        spec => Some(
            spec.parse::<Spec>()?
                .with_default("limit", &format!("{}packets", 4 * n))?
                .with_default("flows", &format!("{}", 10 * n))?
                .with_default("memory", "64gb")?
                .with_default("target", "1s")?
                .build(1),
        ),
    };
    let mut feed = Feed { flows, next: 0, now: 0 };
    let mut lost = Vec::new();
    for _ in 0..resident {
        let (packet, now) = feed.packet();
        if let Some(queue) = &mut queue {
            queue.enqueue(packet, now, &mut lost);
        }
    }
    // Once round all flows: tables are as large as they get then.
    work(&mut queue, &mut feed, &mut lost, flows);
    measured(&mut queue, &mut feed, &mut lost, packets.parse()?);
    Ok(())
}
