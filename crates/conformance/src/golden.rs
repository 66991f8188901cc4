//! Sequences with their outcome, worked out by hand and written as a line of text.
//!
//! | token | meaning |
//! |---|---|
//! | `+A` | a packet of flow A arrives (1000 bytes): the first is A1, then A2, ... |
//! | `+A=3000x2` | ... of 3000 bytes in 2 segments |
//! | `+A/low` | ... and joins, or would have joined, the long lane (or `/high`) |
//! | `+A!B2,A3` | ... and B2, A3 are lost by it (in this order; A3 may be the arrival) |
//! | `+A^` | ... and is ECN-capable |
//! | `+A~` | ... and an edge has tagged it as short |
//! | `>B1` | B1 leaves; `>-`: nothing does |
//! | `>B2*` | B2 leaves with a mark |
//! | `>B3!B2` | B2 is lost, then B3 leaves |
//! | `@5ms` | the time is now 5 ms |
//! | `limit=3packets` | a parameter is set |
//!
//! What is not written does not happen: a token without `!` says that nothing is lost.

use std::collections::HashMap;
use std::fmt::Write;

use sched::{Dequeue, Ecn, Event, FlowId, Lane, Nanos, Spec};

use crate::operation::{Arrival, Offset, Operation, flow_id};
use crate::run::{Call, Step, run};

/// Runs the sequence and compares what happens with what is written.
///
/// # Panics
/// If anything differs, or a token cannot be read.
pub fn golden(spec: &str, sequence: &str) {
    let built: Spec = spec.parse().unwrap_or_else(|error| panic!("{spec}: {error}"));
    let tokens: Vec<_> = sequence.split_whitespace().collect();
    let mut now = Nanos::ZERO;
    let operations: Vec<_> = tokens.iter().map(|token| read(token, &built, &mut now)).collect();
    let steps = run(&built, &operations, 1);
    let mut names = Names::default();
    let happened: Vec<_> =
        steps.iter().zip(&tokens).map(|(step, token)| names.write(step, token)).collect();
    assert_eq!(happened.join(" "), tokens.join(" "), "\n{spec}: left happened, right is written");
}

fn read(token: &str, spec: &Spec, now: &mut Nanos) -> Operation {
    let bad = || -> ! { panic!("cannot read {token}") };
    if let Some(arrival) = token.strip_prefix('+') {
        let (capable, tagged) = (arrival.contains('^'), arrival.contains('~'));
        let arrival = arrival.split(['!', '/', '^', '~']).next().unwrap_or_default();
        let (flow, amount) = arrival.split_once('=').unwrap_or((arrival, "1000"));
        let (size, segments) = amount.split_once('x').unwrap_or((amount, "1"));
        let Ok([letter @ b'A'..=b'Z']) = <&[u8; 1]>::try_from(flow.as_bytes()) else { bad() };
        let (Ok(size), Ok(segments)) = (size.parse(), segments.parse()) else { bad() };
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        let flow = letter - b'A';
        let offset = Offset::Next;
        return Operation::Enqueue(Arrival { flow, size, segments, ecn, offset, tagged });
    }
    if token.starts_with('>') {
        return Operation::Dequeue;
    }
    if let Some(time) = token.strip_prefix('@') {
        let then: Nanos = time.parse().unwrap_or_else(|_| bad());
        let span = then - *now;
        *now = then;
        return Operation::Advance(span);
    }
    let Some((name, value)) = token.split_once('=') else { bad() };
    let Some(def) = spec.info().params.iter().find(|def| def.name == name) else { bad() };
    Operation::Change(def.name, value.to_owned())
}

/// Packets by the names that a sequence gives them.
#[derive(Default)]
struct Names {
    by_id: HashMap<u64, String>,
    seen: HashMap<FlowId, u32>,
}

impl Names {
    /// What happened, written as the token would be.
    fn write(&mut self, step: &Step, token: &str) -> String {
        let mut written = match &step.call {
            Call::Enqueue(packet) => {
                let count = self.seen.entry(packet.flow).or_default();
                *count += 1;
                let of_flow = |letter: &u8| flow_id(letter - b'A') == packet.flow;
                let letter = (b'A'..=b'Z').find(of_flow).map_or('?', char::from);
                self.by_id.insert(packet.id, format!("{letter}{count}"));
                let given = token.split(['!', '/']).next().unwrap_or_default();
                let lane = if token.contains('/') { lane_joined(step) } else { "" };
                format!("{given}{lane}")
            }
            Call::Dequeue(Dequeue::Packet { packet, mark }) => {
                format!(">{}{}", self.by_id[&packet.id], if *mark { "*" } else { "" })
            }
            Call::Dequeue(_) => ">-".to_owned(),
            Call::Advance | Call::Change(_, Ok(())) => token.to_owned(),
            Call::Change(name, Err(error)) => format!("{name}: {error}"),
        };
        for (index, (packet, _)) in step.dropped().enumerate() {
            let separator = if index == 0 { '!' } else { ',' };
            let name = &self.by_id[&packet.id];
            write!(written, "{separator}{name}").expect("a string takes everything");
        }
        written
    }
}

/// The lane that an arrival joined, or would have joined had it not been lost.
fn lane_joined(step: &Step) -> &'static str {
    let joined = step.events().find_map(|event| match event {
        Event::Enqueued { lane, .. } => Some(lane),
        _ => None,
    });
    let lost = step.dropped().last().map(|(_, drop)| drop.lane);
    match joined.or(lost) {
        Some(Lane::SHORT) => "/high",
        Some(Lane::LONG) => "/low",
        Some(_) => "/other",
        None => "/none",
    }
}
