//! FSC, fair service curve: fair queueing in which a flow's first bytes are worth more.
//!
//! Every flow has a concave curve of two pieces that says how much service it has earned at a
//! virtual time: for its first `pbs` bytes (preferred burst size) it earns `bpr` times (burst to
//! preferred ratio) as fast as afterwards. The backlogged flow whose service is reached earliest by
//! its curve is served. So a short flow, or the first bytes of any, get up to `bpr` times the share
//! of a long one, and a flow that has used its burst up gets it back by not sending. With `bpr=1` or
//! `pbs=0b` this is plain fair queueing: the FSC paper's PFQ.
//!
//! When a flow becomes backlogged at virtual time v with a service of w, its curve becomes the
//! lesser of what it was and a new one that begins at (v, w). How little has to be kept for that is
//! in `curve`. When nothing is queued, all curves are forgotten.
//!
//! Cost: a table look-up per arrival, an operation on a queue of flows per departure.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::curve::{Curve, MOST_BPR, MOST_PBS};
use super::group::{Group, Member};
use super::marks::{self, ByCode};
use super::{DROP, Fair, Joined, Queues, Service};
use crate::interface::{
    Discipline, Factor, Form, Info, Nanos, Packet, Param, Params, Qdisc, Sink, Takes, shared,
};

/// Fair service curve.
pub(crate) struct Fsc {
    by_code: ByCode,
    /// The curve of all flows, and those of flows with certain code points.
    curves: Vec<Curve>,
    group: Group,
}

/// `bpr`: how much more the first bytes are worth.
pub(crate) const BPR: Param<Factor> = Param {
    name: "bpr",
    kind: Takes::factor(1000, MOST_BPR),
    default: "4",
    effect: "burst to preferred ratio: how many times faster than later ones a flow's first bytes are \
             served; 1: fair queueing",
    source: "FSC paper, where it is recommended",
    live: true,
};

/// `pbs`: how many first bytes.
pub(crate) const PBS: Param<u64> = Param {
    name: "pbs",
    kind: Takes::bytes(0, MOST_PBS),
    default: "6000b",
    effect: "preferred burst size: how many bytes count as a flow's first ones; 0b: fair queueing",
    source: "FSC paper, where it is recommended",
    live: true,
};

const CURVES: Param<Box<str>> = Param {
    name: "curves",
    kind: Takes::form(&Form {
        name: "curves by DSCP",
        pattern: "none, or curves WEIGHTxBPR/PBS with the DSCP they are for: 2x4/6000b@ef+1@le",
        examples: &["2x4/6000b@ef+1@le", "8@be", "3x1.5/1kb@cs1/cs2+2x100/0b@af11"],
        check: |text| parse(text).map(|_| ()),
    }),
    default: "none",
    effect: "curves of flows whose first packet has such a DSCP; all others have 1xbpr/pbs",
    source: "ours",
    live: false,
};

impl Discipline for Fsc {
    const INFO: Info = Info {
        name: "fsc",
        summary: "fair service curve: fair queueing in which a flow's first bytes count less",
        source: "Stoica, Zhang, Ng, \"A hierarchical fair service curve algorithm for link-sharing, \
                 real-time and priority services\", 1997; FSC paper for bpr and pbs",
        params: &[shared::LIMIT.any(), BPR.any(), PBS.any(), CURVES.any(), DROP.any()],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Fair::<Self>::boxed(params)
    }
}

/// The curves of certain code points; number 0 is for all others.
fn parse(text: &str) -> Result<(ByCode, Vec<Curve>), String> {
    let (mut by_code, mut curves) = (ByCode::NONE, [Curve::new(1, 1000, 0)].to_vec());
    if text == "none" {
        return Ok((by_code, curves));
    }
    for marked in marks::list(text)? {
        if marked.codes.is_empty() {
            return Err(alloc::format!("'{}' is for no DSCP: {0}@ef", marked.what));
        }
        by_code.set(&marked.codes, curves.len() as u8);
        curves.push(Curve::parse(marked.what)?);
    }
    Ok((by_code, curves))
}

/// The curve that `bpr` and `pbs` describe.
pub(crate) fn curve_of(params: &Params) -> Curve {
    Curve::new(1, params.get(BPR).0, params.get(PBS))
}

impl Service for Fsc {
    type Flow = Member;

    fn new(params: &Params) -> Self {
        // Checked when the parameter was set.
        let parsed = parse(&params.get(CURVES));
        let (by_code, mut curves) = parsed.unwrap_or_else(|reason| panic!("curves: {reason}"));
        curves[0] = curve_of(params);
        Self { by_code, curves, group: Group::default() }
    }

    fn change(&mut self, queues: &Queues<Member>, params: &Params) {
        self.curves[0] = curve_of(params);
        self.group.change(queues, &self.curves);
    }

    #[inline]
    fn joined(&mut self, queues: &mut Queues<Member>, joined: Joined<'_>) {
        let curve = self.by_code.of(joined.packet);
        self.group.joined(queues, &self.curves, &joined, (curve, 0));
    }

    #[inline]
    fn next<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        _now: Nanos,
        _sink: &mut S,
    ) -> Option<u32> {
        self.group.next(queues)
    }

    #[inline]
    fn served<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        slot: u32,
        packet: &Packet,
        _now: Nanos,
        sink: &mut S,
    ) {
        self.group.served(queues, &self.curves, slot, packet.size, sink);
        if queues.packets() == 0 {
            self.group.restart(queues, sink);
        }
        self.group.lower_if_due(queues, 0);
    }

    fn pushed_out<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        slot: u32,
        _packet: &Packet,
        sink: &mut S,
    ) {
        if queues.is_idle(slot) {
            self.group.emptied(queues, &self.curves, slot, sink);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::super::Flow;
    use super::*;
    use crate::interface::{Drop, FlowId};
    use crate::spec::Spec;
    use crate::testkit::{Bench, Random};

    #[test]
    fn a_flow_costs_sixty_four_bytes() {
        assert_eq!(size_of::<Flow<Member>>(), 64);
    }

    /// Bytes of flow 2 that leave before flow 1 has sent each further packet, from when it comes.
    fn leads(spec: &str, size: u32, long: u32) -> Vec<u32> {
        let mut fsc = Bench::new(&format!("fsc:limit=100000packets,{spec}"));
        (0..400).for_each(|_| {
            fsc.enqueue(1, long);
        });
        fsc.depart(100);
        (0..60).for_each(|_| {
            fsc.enqueue(2, size);
        });
        let (mut sent, mut leads) = (0, Vec::new());
        while sent < 60 * size {
            match fsc.dequeue() {
                Some(packet) if packet.flow == FlowId::new(2) => sent += size,
                _ => leads.push(sent),
            }
        }
        leads
    }

    /// A fresh flow against one that has used its burst up: bpr to 1 for its first `pbs` bytes, then
    /// 1 to 1; to within a packet of each.
    #[test]
    fn first_bytes_are_served_at_the_ratio() {
        for (bpr, pbs) in [(1, 6000), (2, 6000), (4, 6000), (5, 12_000), (3, 1000), (4, 0)] {
            for (size, long) in [(500, 500), (1000, 250), (250, 1000)] {
                let leads = leads(&format!("bpr={bpr},pbs={pbs}b"), size, long);
                for (rounds, sent) in leads.iter().enumerate() {
                    let own = rounds as u32 * long;
                    let burst = (own * bpr).min(pbs);
                    let expected = burst + own - burst / bpr;
                    let apart = sent.abs_diff(expected);
                    let bound = size + bpr * long;
                    assert!(apart <= bound, "bpr {bpr} pbs {pbs}: {sent} after {own}, {expected}");
                }
            }
        }
    }

    /// A flow that has waited for half of it has half of its burst again.
    #[test]
    fn a_burst_is_given_back_by_waiting() {
        let burst_after = |waited: usize| {
            let mut fsc = Bench::new("fsc:limit=100000packets,bpr=4,pbs=8000b");
            (0..400).for_each(|_| {
                fsc.enqueue(1, 1000);
            });
            fsc.depart(60);
            (0..20).for_each(|_| {
                fsc.enqueue(2, 1000);
            });
            let mut sent = 0;
            while sent < 20 {
                sent += usize::from(fsc.dequeue().is_some_and(|p| p.flow == FlowId::new(2)));
            }
            fsc.depart(waited);
            (0..20).for_each(|_| {
                fsc.enqueue(2, 1000);
            });
            let first_ten = fsc.depart(10);
            first_ten.iter().filter(|id| **id >= 420).count()
        };
        // A full burst is 8 of 10 packets; it takes 6 packets of flow 1 to have it back.
        let bursts: Vec<usize> = [0, 3, 6, 50].map(burst_after).into();
        assert!(bursts[0] <= 6 && bursts[0] < bursts[1], "{bursts:?}");
        assert!(bursts[1] < bursts[2] && bursts[2] == bursts[3] && bursts[2] >= 8, "{bursts:?}");
    }

    /// Flows of a packet each come for ever: virtual time goes on, a long flow is served, and who was
    /// served is forgotten.
    #[test]
    fn a_flood_of_new_flows_neither_starves_nor_is_remembered() {
        let mut fsc = Bench::new("fsc:limit=100000packets");
        (0..5000).for_each(|_| {
            fsc.enqueue(1, 1500);
        });
        let (mut served, mut most) = (0, 0);
        for flow in 0..20_000 {
            fsc.enqueue(2 + flow, 40);
            // As many are served as come, beside the long flow.
            while fsc.dequeue().is_some_and(|packet| packet.flow == FlowId::new(1)) {
                served += 1;
            }
            most = most.max(fsc.qdisc.flows());
        }
        assert!(served > 20_000 / 20, "{served} packets of the long flow");
        assert!(most < 500, "{most} flows are remembered");
    }

    /// Packets so large that numbers are lowered every few of them.
    #[test]
    fn numbers_stay_small_however_long_the_busy_period() {
        let spec: Spec = "fsc:limit=100000packets".parse().unwrap();
        let mut fsc: Fair<Fsc> = Fair::new(spec.params());
        let mut sink: Vec<(Packet, Drop)> = Vec::new();
        let mut random = Random(5);
        let mut served = [0u64; 3];
        for n in 0..9006u64 {
            let flow = if n < 6 {
                n % 3
            } else {
                let sent = fsc.dequeue(Nanos::ZERO, &mut sink).packet().unwrap();
                served[sent.flow.get() as usize - 1] += u64::from(sent.size);
                sent.flow.get() - 1
            };
            let size = 1 + random.below(1 << 26) as u32;
            fsc.enqueue(Packet::new(FlowId::new(flow + 1), size), Nanos::ZERO, &mut sink);
            let spread = served.iter().max().unwrap() - served.iter().min().unwrap();
            assert!(spread <= 2 << 26, "{served:?}");
        }
        assert!(served[0] > 100 * ((1 << 54) / super::super::curve::UNIT), "lowered many times");
    }

    #[test]
    fn a_curve_that_is_not_concave_is_refused_with_the_reason() {
        for (spec, reason) in [
            ("fsc:bpr=0.5", "bpr takes 1 to 100"),
            ("fsc:bpr=-1", "bpr=-1 is not accepted"),
            ("fsc:pbs=-1b", "pbs takes 0b to"),
            ("fsc:curves=1x0.5/6000b@ef", "is convex"),
            ("fsc:curves=0@ef", "weight '0'"),
            ("fsc:curves=2", "'2' is for no DSCP"),
            ("h-fsc:classes=a=1x0.9/1kb", "class 'a': '1x0.9/1kb' is convex"),
            ("h-fsc:classes=a=0", "class 'a': weight '0'"),
        ] {
            let error = format!("{}", spec.parse::<Spec>().unwrap_err());
            assert!(error.contains(reason), "{spec}: {error}");
        }
    }
}
