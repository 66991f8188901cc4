//! RED, random early detection: one queue that signals congestion before it is full.
//!
//! Floyd and Jacobson 1993. Arrivals are dropped, or marked where ECN allows, with a probability
//! that grows with the average queue between two thresholds. The defaults are those of the mice
//! and elephants slides, whose runs have ns-2's `gentle`, `wait` and `ecn` all on.

use alloc::boxed::Box;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::disciplines::early::{self, Average, Curve, Decision, Dropper, Wire};
use crate::interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, DropReason, Info, Lane, Level, Nanos, Packet,
    Param, ParamError, Params, Qdisc, Queue, Share, Sink, Takes, shared,
};
use crate::queues::ring::Ring;

const SLIDES: &str = "mice and elephants slides, table III";

/// `min`: the lower threshold.
pub(crate) const MIN: Param<Level> = Param {
    name: "min",
    kind: Takes::LEVEL,
    default: "0.15",
    effect: "average queue below which nothing is dropped early",
    source: SLIDES,
    live: true,
};

/// `max`: the upper threshold.
pub(crate) const MAX: Param<Level> = Param {
    name: "max",
    kind: Takes::LEVEL,
    default: "0.5",
    effect: "average queue at which the probability of a drop is max-probability",
    source: SLIDES,
    live: true,
};

/// `max-probability`: how likely a drop is there.
pub(crate) const MAX_PROBABILITY: Param<Share> = Param {
    name: "max-probability",
    kind: Takes::share(Share::ZERO, Share::ONE),
    default: "0.1",
    effect: "probability of a drop or mark where the average queue is max",
    source: SLIDES,
    live: true,
};

/// Random early detection.
pub(crate) struct Red {
    limit: Amount,
    dropper: Dropper,
    wait: bool,
    ecn: bool,
    wire: Wire,
    rng: Xoshiro256PlusPlus,
    queue: Ring,
}

/// The curve of `min`, `max`, `max-probability` and `gentle`.
pub(crate) fn curve(limit: Amount, params: &Params) -> Curve {
    let (min, max) = (params.get(MIN), params.get(MAX));
    Curve::new(limit, min, max, params.get(MAX_PROBABILITY), params.get(early::GENTLE))
}

impl Discipline for Red {
    const INFO: Info = Info {
        name: "red",
        summary: "random early detection: one queue, drops or marks by its average length",
        source: "Floyd, Jacobson, \"Random early detection gateways\", 1993; ns-2",
        params: &[
            shared::LIMIT.any(),
            MIN.any(),
            MAX.any(),
            MAX_PROBABILITY.any(),
            early::AVERAGING.any(),
            early::GENTLE.any(),
            early::WAIT.any(),
            early::ECN.any(),
            early::RATE.any(),
            early::MEAN_PACKET.any(),
        ],
        check,
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        let limit = params.get(shared::LIMIT);
        let average = Average::new(params.get(early::AVERAGING));
        Box::new(Self {
            limit,
            dropper: Dropper::new(average, curve(limit, params)),
            wait: params.get(early::WAIT),
            ecn: params.get(early::ECN),
            wire: Wire::new(params),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            queue: Ring::with_capacity(shared::ring_capacity(limit)),
        })
    }
}

fn check(params: &Params) -> Result<(), ParamError> {
    early::check_thresholds(params, params.get(shared::LIMIT), MIN, MAX)
}

impl Red {
    #[cold]
    fn drop<S: Sink>(&mut self, packet: Packet, reason: DropReason, now: Nanos, sink: &mut S) {
        if self.queue.is_empty() {
            self.dropper.average.idle(now);
        }
        sink.dropped(packet, Drop { reason, lane: Lane::ONLY }, now);
    }
}

impl<S: Sink> Qdisc<S> for Red {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut S) {
        let queued = self.queue.in_unit_of(self.limit);
        self.dropper.average.arrival(queued, now, &self.wire);
        let decision = self.dropper.decide(self.queue.len(), self.wait, &mut self.rng);
        if !self.queue.backlog().has_room(self.limit, &packet) {
            self.dropper.overflowed();
            return self.drop(packet, DropReason::Full, now, sink);
        }
        let mark = match decision {
            Decision::Accept => false,
            Decision::Signal { may_mark } if may_mark && self.ecn && packet.ecn().is_capable() => {
                true
            }
            Decision::Signal { .. } => {
                return self.drop(packet, DropReason::Congested, now, sink);
            }
        };
        self.queue.push(packet).set_marked(mark);
        sink.enqueued(&packet, Lane::ONLY, now);
        if mark {
            sink.marked(&packet, now);
        }
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut S) -> Dequeue {
        let Some(packet) = self.queue.pop() else { return Dequeue::Empty };
        if self.queue.is_empty() {
            self.dropper.average.idle(self.wire.free_after(&packet, now));
        }
        sink.dequeued(&packet, Lane::ONLY, now);
        Dequeue::Packet { packet, mark: packet.is_marked() }
    }
}

impl Queue for Red {
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        check(params)?;
        let limit = params.get(shared::LIMIT);
        if !limit.same_unit(self.limit) {
            self.dropper.average.restart(self.queue.in_unit_of(limit));
        }
        self.limit = limit;
        self.dropper.average.set_weight(params.get(early::AVERAGING));
        self.dropper.curve = curve(limit, params);
        self.wait = params.get(early::WAIT);
        self.ecn = params.get(early::ECN);
        self.wire = Wire::new(params);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::interface::Event;
    use crate::interface::{Ecn, FlowId};
    use crate::spec::Spec;
    use crate::testkit::Bench;

    /// What is wrong with a spec once the limit of an experiment is in.
    fn refusal(spec: &str) -> alloc::string::String {
        let checked =
            spec.parse::<Spec>().and_then(|spec| spec.with_default("limit", "100packets"));
        checked.map(|spec| panic!("{spec} is accepted")).unwrap_err().to_string()
    }

    #[test]
    fn thresholds_that_cannot_be_are_refused() {
        for (spec, error) in [
            (
                "red:min=20packets,max=10packets",
                "red: min=20packets is not accepted with max=10packets; min takes at most that",
            ),
            ("red:min=0.6", "red: min=0.6 is not accepted with max=0.5; min takes at most that"),
            (
                "red:min=20packets,max=0.1",
                "red: min=20packets is not accepted with max=0.1; min takes at most that",
            ),
            ("red:min=inf", "red: min=inf is not accepted with max=0.5; min takes at most that"),
            (
                "red:max=101packets",
                "red: max=101packets is not accepted with limit=100packets; max takes at most \
                 that, or inf",
            ),
            (
                "red:max=9kb",
                "red: max=9kb is not accepted with limit=100packets; max takes a share, or an \
                 amount in its unit",
            ),
            (
                "fred:limit=10kb,min=21packets,max=inf",
                "fred: min=21packets is not accepted with limit=10kb; min takes at most that, \
                 or inf",
            ),
            (
                "rio:out-min=0.4",
                "rio: out-min=0.4 is not accepted with out-max=0.3; out-min takes at most that",
            ),
            (
                "rio-ps:short-max=200packets",
                "rio-ps: short-max=200packets is not accepted with limit=100packets; short-max \
                 takes at most that, or inf",
            ),
        ] {
            assert_eq!(refusal(spec), error);
        }
        let fits = "red:min=20packets,max=100packets".parse::<Spec>().unwrap();
        assert_eq!(fits.with_default("limit", "100packets").map(|_| ()), Ok(()));
        let shares = "red:min=0.2,max=1".parse::<Spec>().unwrap();
        assert_eq!(shares.with_default("limit", "100kb").map(|_| ()), Ok(()));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let range = "0 to 1 of the limit, or packets or b, kb, mb, or inf";
        for value in ["1.1", "-0.1", "-5packets", "5", "packets", "101%"] {
            let error = format_error("min", value, range);
            assert_eq!(refusal(&alloc::format!("red:min={value}")), error);
        }
        let error = format_error("averaging", "0", "0.000001 to 1");
        assert_eq!(refusal("red:averaging=0"), error);
        assert_eq!(
            refusal("red:max-probability=-1"),
            format_error("max-probability", "-1", "0 to 1")
        );
    }

    fn format_error(name: &str, value: &str, range: &str) -> alloc::string::String {
        alloc::format!("red: {name}={value} is not accepted; {name} takes {range}")
    }

    #[test]
    fn a_contradiction_changes_nothing() {
        let mut red = Bench::new("red:limit=10packets,min=4packets,max=8packets");
        let error = red.change("red:limit=10packets,min=9packets,max=8packets");
        assert!(error.unwrap_err().to_string().contains("min=9packets"));
        let error = red.change("red:limit=7packets,min=4packets,max=8packets");
        assert!(error.unwrap_err().to_string().contains("limit=7packets"));
        for _ in 0..10 {
            red.enqueue(1, 1000);
        }
        assert_eq!(red.take_drops(), []);
    }

    /// Where RED signals among packets of two flows: dropped, and marked.
    fn signals(ecn: [Ecn; 2], spec: &str) -> (usize, usize) {
        let mut red = Bench::new(spec);
        for n in 0..4_000 {
            let packet = Packet::new(FlowId::new(n % 2 + 1), 1500);
            red.offer(packet.with_ecn(ecn[n as usize % 2]));
            if n % 100 > 50 {
                red.dequeue();
                red.dequeue();
            }
        }
        let is_mark = |event: &&Event| matches!(event, Event::Marked { .. });
        let congested = red.log.drops.iter().filter(|(_, reason)| *reason == DropReason::Congested);
        (congested.count(), red.log.events.iter().filter(is_mark).count())
    }

    #[test]
    fn ecn_marks_who_is_capable_and_drops_the_others() {
        let spec = "red:averaging=0.1,min=0.05,max=0.9,max-probability=0.3";
        let (dropped, marked) = signals([Ecn::Ect0, Ecn::Ect1], spec);
        assert!(dropped == 0 && marked > 50, "{dropped} dropped, {marked} marked");
        let (dropped, marked) = signals([Ecn::NotEct, Ecn::Ect0], spec);
        assert!(dropped > 20 && marked > 20, "{dropped} dropped, {marked} marked");
        let (dropped, marked) = signals([Ecn::NotEct, Ecn::NotEct], spec);
        assert!(dropped > 50 && marked == 0, "{dropped} dropped, {marked} marked");
        let (dropped, marked) = signals([Ecn::Ect0, Ecn::Ect0], &alloc::format!("{spec},ecn=no"));
        assert!(dropped > 50 && marked == 0, "{dropped} dropped, {marked} marked");
    }

    #[test]
    fn the_average_restarts_with_the_unit_of_the_limit() {
        let mut red = Bench::new("red:averaging=0.01,limit=100packets,min=0.05,max=0.05,gentle=no");
        for _ in 0..4 {
            red.enqueue(1, 1000);
        }
        // 4000 of 20000 bytes are above 0.05 at once; the average in packets had not come far.
        red.change("red:averaging=0.01,limit=20000b,min=0.05,max=0.05,gentle=no").unwrap();
        red.enqueue(1, 1000);
        assert_eq!(red.take_drops(), [(4, DropReason::Congested)]);
    }
}
