//! A discipline in front of a link, alone: arrivals from standard input, fates to standard output.
//!
//! `behind_a_link SPEC RUNS RATE < arrivals`. A line of arrivals is a time in ns, a size in bytes,
//! whether the packet is ECN-capable (0 or 1), and its flow, a number. The output has a line for
//! each: in how many of the runs, with seeds 1, 2, ..., it was dropped, in how many marked, and how
//! long it waited, in ns, all runs together. The link sends one packet at a time; a transmission that
//! ends frees it before a packet that arrives at that time.

use std::error::Error;
use std::io::{Read, Write, stdin, stdout};

use sched::{Dequeue, Drop, Ecn, FlowId, Nanos, Packet, Qdisc, Rate, Spec};

type Drops = Vec<(Packet, Drop)>;

struct Link {
    queue: Box<dyn Qdisc<Drops>>,
    rate: u64,
    free_at: Nanos,
}

impl Link {
    /// Starts every transmission that is due before `now`, or at it.
    fn serve(&mut self, now: Nanos, drops: &mut Drops, fates: &mut [Fate]) {
        while self.free_at <= now && self.queue.backlog().packets > 0 {
            let start = self.free_at;
            let Dequeue::Packet { packet, mark } = self.queue.dequeue(start, drops) else { return };
            self.free_at = start + Nanos(u64::from(packet.size) * 8_000_000_000 / self.rate);
            let fate = &mut fates[packet.id as usize];
            fate.marked += u32::from(mark);
            fate.waited += start.since(fate.arrived).0;
        }
    }
}

/// What became of a packet, in all runs together.
struct Fate {
    arrived: Nanos,
    dropped: u32,
    marked: u32,
    waited: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [spec, runs, rate] = &arguments[..] else {
        return Err("behind_a_link SPEC RUNS RATE < arrivals".into());
    };
    let (runs, rate): (u64, u64) = (runs.parse()?, rate.parse()?);
    let spec = spec.parse::<Spec>()?.on_link(Rate(rate));
    spec.check()?;
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    let mut arrivals = Vec::new();
    for line in text.lines() {
        let fields: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [time, size, capable, flow] = fields[..] else { return Err(line.into()) };
        let ecn = if capable == 1 { Ecn::Ect0 } else { Ecn::NotEct };
        let packet = Packet::new(FlowId::new(flow + 1), size as u32).with_ecn(ecn);
        arrivals.push((Nanos(time), packet.with_id(arrivals.len() as u64)));
    }
    let fate = |&(arrived, _)| Fate { arrived, dropped: 0, marked: 0, waited: 0 };
    let mut fates: Vec<Fate> = arrivals.iter().map(fate).collect();
    for seed in 1..=runs {
        let mut link = Link { queue: spec.build(seed), rate, free_at: Nanos::ZERO };
        let mut drops = Drops::new();
        for (now, packet) in &arrivals {
            link.serve(*now, &mut drops, &mut fates);
            link.free_at = link.free_at.max(*now);
            link.queue.enqueue(*packet, *now, &mut drops);
            link.serve(*now, &mut drops, &mut fates);
        }
        link.serve(Nanos::MAX, &mut drops, &mut fates);
        drops.iter().for_each(|(packet, _)| fates[packet.id as usize].dropped += 1);
    }
    let mut out = stdout().lock();
    for Fate { dropped, marked, waited, .. } in fates {
        writeln!(out, "{dropped} {marked} {waited}")?;
    }
    Ok(())
}
