//! FRED as its paper has it, in reals, with the queue as a plain list.

use std::collections::HashMap;

use sched::{Amount, DropReason, FlowId, Nanos, Packet, Params};

use super::early::{Average, Between, Curve, Maybe, Wire, both, coin, either};
use super::{Model, cost};
use crate::run::Step;

/// The model of `fred`.
pub struct Fred {
    limit: Amount,
    curve: Curve,
    min_queue: u64,
    two_packets: bool,
    average: Average,
    wire: Wire,
    /// Of flows with a packet queued; unknown where it could not be told what a flow was
    /// refused for.
    strikes: HashMap<FlowId, Option<u64>>,
    /// FRED's count, from -1 on, where it is known.
    count: Option<i64>,
    queue: Vec<Packet>,
}

/// What the early dropper says.
enum Verdict {
    Pass,
    Drop,
}

impl Fred {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            limit: params.amount("limit"),
            curve: curve(params),
            min_queue: params.number("min-queue"),
            two_packets: params.flag("two-packets"),
            average: Average::new(params),
            wire: Wire::new(params),
            strikes: HashMap::new(),
            count: Some(-1),
            queue: Vec::new(),
        }
    }

    fn segments(&self) -> u64 {
        self.queue.iter().map(|packet| u64::from(packet.segments)).sum()
    }

    /// The verdict on an arrival of `flow`; `dropped` is that of the discipline.
    fn judge(&mut self, flow: FlowId, dropped: bool) -> Verdict {
        let queued: u64 =
            self.queue.iter().filter(|p| p.flow == flow).map(|p| u64::from(p.segments)).sum();
        let queued = Between::exactly(queued as f64);
        let average = self.average.get();
        let active = self.strikes.len().max(1) as f64;
        let share = average.map(|average| (average / active).max(1.0));
        let beyond = average.reaches(self.curve.max.max(self.curve.min));
        let above = average.reaches(self.curve.min);
        // A share is rounded down to 2^-30.
        let share = Between(share.0 - 1e-8, share.1);

        let most = self.curve.min.max(1.0);
        let strikes = match self.strikes.get(&flow) {
            None => Some(false),
            Some(strikes) => strikes.map(|strikes| strikes > 1),
        };
        let too_much = either(
            either(
                both(beyond.map(|b| !b), queued.reaches(most)),
                both(beyond, queued.reaches(2.0)),
            ),
            either(
                both(beyond, share.map(|s| 2.0 * s).is_at_least(queued).map(|no| !no)),
                both(queued.is_at_least(share), strikes),
            ),
        );
        if too_much == Some(true) || (too_much.is_none() && dropped) {
            if let Some(strikes) = self.strikes.get_mut(&flow) {
                *strikes = strikes.filter(|_| too_much.is_some()).map(|strikes| strikes + 1);
            }
            self.count = self.count.filter(|_| too_much.is_some());
            return Verdict::Drop;
        }
        self.judge_average(queued, share, (above, beyond), dropped)
    }

    fn judge_average(
        &mut self,
        queued: Between,
        share: Between,
        (above, beyond): (Maybe, Maybe),
        dropped: bool,
    ) -> Verdict {
        let drops = match (above, beyond) {
            (Some(false), _) => {
                self.count = Some(-1);
                return Verdict::Pass;
            }
            (Some(true), Some(true)) if self.two_packets => return Verdict::Pass,
            (Some(true), Some(true)) => true,
            (Some(true), Some(false)) => {
                self.count = self.count.map(|count| count + 1);
                let p = self.average.get().map(|average| self.curve.at(average));
                let falls =
                    self.count.map_or(if p.1 == 0.0 { Some(false) } else { None }, |count| {
                        coin(p, count as u64, false)
                    });
                let needed =
                    Between(share.0.max(self.min_queue as f64), share.1.max(self.min_queue as f64));
                both(queued.is_at_least(needed), falls).unwrap_or(dropped)
            }
            _ => {
                self.count = None;
                dropped
            }
        };
        if !drops {
            return Verdict::Pass;
        }
        self.count = Some(0);
        Verdict::Drop
    }
}

fn curve(params: &Params) -> Curve {
    let limit = match params.amount("limit") {
        Amount::Bytes(n) => Amount::Packets(n / params.number("mean-packet")),
        packets => packets,
    };
    let most = f64::from(params.share("max-probability").ppb()) / 1e9;
    Curve::new(limit, params.level("min"), params.level("max"), most, false)
}

impl Model for Fred {
    fn enqueue(&mut self, packet: Packet, now: Nanos, said: &Step) -> Vec<u64> {
        self.average.arrival(self.segments(), now, self.wire);
        let dropped = said.dropped().any(|(_, drop)| drop.reason == DropReason::Congested);
        let verdict = self.judge(packet.flow, dropped);
        let used: u64 = self.queue.iter().map(|packet| cost(self.limit, packet)).sum();
        let has_room = used + cost(self.limit, &packet) <= self.limit.value();
        if matches!(verdict, Verdict::Drop) || !has_room {
            if self.queue.is_empty() {
                self.average.idle(now);
            }
            return vec![packet.id];
        }
        self.strikes.entry(packet.flow).or_insert(Some(0));
        self.queue.push(packet);
        Vec::new()
    }

    fn dequeue(&mut self, now: Nanos, _said: &Step) -> Option<u64> {
        if self.queue.is_empty() {
            return None;
        }
        let packet = self.queue.remove(0);
        self.average.step(self.segments());
        if self.queue.is_empty() {
            self.average.idle(self.wire.end(&packet, now));
        }
        let queue = &self.queue;
        self.strikes.retain(|flow, _| queue.iter().any(|packet| packet.flow == *flow));
        Some(packet.id)
    }

    fn change(&mut self, params: &Params) {
        self.limit = params.amount("limit");
        self.curve = curve(params);
        self.min_queue = params.number("min-queue");
        self.two_packets = params.flag("two-packets");
        self.average.change(params);
        self.wire = Wire::new(params);
    }

    fn flows(&self) -> usize {
        self.strikes.len()
    }
}
