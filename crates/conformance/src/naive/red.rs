//! RED, RIO and RIO-PS as their definitions have them, in reals, with the queue as a plain list.

use std::collections::HashMap;

use sched::{Amount, DropReason, Ecn, Event, FlowId, Nanos, Packet, Params};

use super::early::{Average, Curve, Maybe, Wire, coin};
use super::{Model, cost};
use crate::run::Step;

/// The model of `red`, `rio` and `rio-ps`.
pub struct Red {
    limit: Amount,
    /// Names of the parameters of the curves: of the whole queue, and of spared packets.
    names: &'static [[&'static str; 3]],
    droppers: Vec<Dropper>,
    classes: Classes,
    wait: bool,
    ecn: bool,
    wire: Wire,
    /// In order of arrival, with whether they are spared and marked.
    queue: Vec<(Packet, bool, bool)>,
    /// Whether the packet that left last was marked.
    marks: bool,
}

struct Dropper {
    average: Average,
    curve: Curve,
    count: u64,
    /// Whether the average was above `min`; then whether `count` is known as well.
    above: Maybe,
}

/// Who is spared.
enum Classes {
    Nobody,
    Tagged(u64),
    Young(Edge),
}

impl Red {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let (names, classes): (&[_], _) = match params.discipline() {
            "red" => (&[["min", "max", "max-probability"]], Classes::Nobody),
            "rio" => (
                &[
                    ["out-min", "out-max", "out-probability"],
                    ["in-min", "in-max", "in-probability"],
                ],
                Classes::Tagged(params.number("in-dscp")),
            ),
            _ => (
                &[
                    ["long-min", "long-max", "long-probability"],
                    ["short-min", "short-max", "short-probability"],
                ],
                match params.word("classifier") {
                    "tag" => Classes::Tagged(params.number("short-dscp")),
                    _ => Classes::Young(Edge::new(params)),
                },
            ),
        };
        let limit = params.amount("limit");
        let droppers = names.iter().map(|names| Dropper {
            average: Average::new(params),
            curve: curve(limit, params, names),
            count: 0,
            above: Some(false),
        });
        Self {
            limit,
            names,
            droppers: droppers.collect(),
            classes,
            wait: params.flag("wait"),
            ecn: params.flag("ecn"),
            wire: Wire::new(params),
            queue: Vec::new(),
            marks: false,
        }
    }

    /// What a dropper sees of the queue: packets, and the sum in the limit's unit.
    fn seen(&self, dropper: usize) -> (usize, u64) {
        let seen = || self.queue.iter().filter(|(_, spared, _)| dropper == 0 || *spared);
        (seen().count(), seen().map(|(packet, ..)| cost(self.limit, packet)).sum())
    }

    fn note_idle(&mut self, since: Nanos, also_unspared: bool) {
        for at in 0..self.droppers.len() {
            if self.seen(at).0 == 0 && (at == 0 || also_unspared) {
                self.droppers[at].average.idle(since);
            }
        }
    }
}

fn curve(limit: Amount, params: &Params, [min, max, most]: &[&str; 3]) -> Curve {
    let most = f64::from(params.share(most).ppb()) / 1e9;
    Curve::new(limit, params.level(min), params.level(max), most, params.flag("gentle"))
}

impl Dropper {
    /// Whether the arrival is signalled to; `said` is what the discipline did.
    fn signals(&mut self, packets: usize, wait: bool, said: bool) -> bool {
        self.count += 1;
        let average = self.average.get();
        let reached = if packets > 1 { average.reaches(self.curve.min) } else { Some(false) };
        let signals = match (reached, average.reaches(self.curve.end)) {
            (Some(false), _) => {
                self.above = Some(false);
                return false;
            }
            (None, _) => {
                self.above = None;
                said
            }
            (Some(true), Some(true)) => true,
            (Some(true), beyond) => match (self.above, beyond) {
                (Some(false), Some(false)) => {
                    (self.above, self.count) = (Some(true), 1);
                    return false;
                }
                (Some(true), Some(false)) => {
                    coin(average.map(|a| self.curve.at(a)), self.count, wait).unwrap_or(said)
                }
                _ => {
                    // At the end of the curve it may still have been the first one above.
                    self.above = None;
                    said
                }
            },
        };
        if signals {
            self.count = 0;
        }
        signals
    }
}

impl Model for Red {
    fn enqueue(&mut self, packet: Packet, now: Nanos, said: &Step) -> Vec<u64> {
        let spared = match &mut self.classes {
            Classes::Nobody => false,
            Classes::Tagged(dscp) => u64::from(packet.dscp) == *dscp,
            Classes::Young(edge) => edge.is_short(&packet, now),
        };
        let at = usize::from(spared);
        for index in 0..=at {
            let (_, queued) = self.seen(index);
            self.droppers[index].average.arrival(queued, now, self.wire);
        }
        let marked = said.events().any(|event| matches!(event, Event::Marked { .. }));
        let congested = said.dropped().any(|(_, drop)| drop.reason == DropReason::Congested);
        let packets = self.seen(at).0;
        let dropper = &mut self.droppers[at];
        let signals = dropper.signals(packets, self.wait, marked || congested);
        let has_room = self.seen(0).1 + cost(self.limit, &packet) <= self.limit.value();
        let dropper = &mut self.droppers[at];
        if !has_room {
            dropper.count = 0;
        }
        let may_mark = dropper.average.get().reaches(dropper.curve.max).map(|above| !above);
        let may_mark = may_mark.unwrap_or(marked) && self.ecn && packet.ecn() != Ecn::NotEct;
        if has_room && (!signals || may_mark) {
            self.queue.push((packet, spared, signals));
            return Vec::new();
        }
        self.note_idle(now, spared);
        vec![packet.id]
    }

    fn dequeue(&mut self, now: Nanos, _said: &Step) -> Option<u64> {
        self.marks = false;
        if self.queue.is_empty() {
            return None;
        }
        let (packet, spared, marked) = self.queue.remove(0);
        self.marks = marked;
        self.note_idle(self.wire.end(&packet, now), spared);
        Some(packet.id)
    }

    fn marks(&self) -> bool {
        self.marks
    }

    fn change(&mut self, params: &Params) {
        let limit = params.amount("limit");
        let same_unit = limit.same_unit(self.limit);
        self.limit = limit;
        for at in 0..self.droppers.len() {
            let queued = self.seen(at).1;
            let dropper = &mut self.droppers[at];
            dropper.average.change(params);
            if !same_unit {
                dropper.average.restart(queued);
            }
            dropper.curve = curve(limit, params, &self.names[at]);
        }
        (self.wait, self.ecn) = (params.flag("wait"), params.flag("ecn"));
        self.wire = Wire::new(params);
        match &mut self.classes {
            Classes::Nobody => {}
            Classes::Tagged(dscp) => {
                let name = if params.has("in-dscp") { "in-dscp" } else { "short-dscp" };
                *dscp = params.number(name);
            }
            Classes::Young(edge) => edge.change(params),
        }
    }

    fn flows(&self) -> usize {
        match &self.classes {
            Classes::Young(edge) => edge.packets.len(),
            _ => 0,
        }
    }
}

/// An edge that keeps the times of all packets.
struct Edge {
    given: u64,
    threshold: u64,
    ratio: u64,
    update: Nanos,
    idle: Nanos,
    sweep: Nanos,
    /// When the first packet came, and then the ends of these spans.
    next_update: Option<Nanos>,
    next_sweep: Nanos,
    packets: HashMap<FlowId, Vec<(Nanos, u64)>>,
}

impl Edge {
    fn new(params: &Params) -> Self {
        Self {
            given: params.number("threshold"),
            threshold: params.number("threshold"),
            ratio: params.number("ratio"),
            update: params.time("update"),
            idle: params.time("idle"),
            sweep: params.time("sweep"),
            next_update: None,
            next_sweep: Nanos::ZERO,
            packets: HashMap::new(),
        }
    }

    fn is_short(&mut self, packet: &Packet, now: Nanos) -> bool {
        match self.next_update {
            None => {
                self.next_update = Some(now + self.update);
                self.next_sweep = now + self.sweep;
            }
            Some(mut next) if now >= next => {
                self.adjust(next);
                while next <= now {
                    next += self.update;
                }
                self.next_update = Some(next);
            }
            Some(_) => {}
        }
        if now >= self.next_sweep {
            self.packets.retain(|_, packets| now - packets.last().unwrap().0 <= self.idle);
            self.next_sweep = now + self.sweep;
        }
        let packets = self.packets.entry(packet.flow).or_default();
        if packets.last().is_some_and(|(last, _)| now - *last > self.idle) {
            packets.clear();
        }
        let before: u64 = packets.iter().map(|(_, segments)| segments).sum();
        packets.push((now, u64::from(packet.segments)));
        before < self.threshold
    }

    fn adjust(&mut self, at: Nanos) {
        let active = self.packets.values().filter(|p| at - p.last().unwrap().0 <= self.idle);
        let counts: Vec<u64> = active.map(|p| p.iter().map(|(_, n)| n).sum()).collect();
        let long = counts.iter().filter(|count| **count > self.threshold).count() as u64;
        let short = counts.len() as u64 - long;
        if short > self.ratio * long {
            self.threshold = (self.threshold - 1).max(1);
        } else if short < self.ratio * long {
            self.threshold += 1;
        }
    }

    fn change(&mut self, params: &Params) {
        if params.number("threshold") != self.given {
            self.given = params.number("threshold");
            self.threshold = self.given;
        }
        (self.ratio, self.idle) = (params.number("ratio"), params.time("idle"));
    }
}
