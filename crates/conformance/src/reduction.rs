//! Reductions: two disciplines that must be the same one where their distinction is switched off.

use sched::Spec;

use crate::ledger::{Violation, hold};
use crate::operation::{Arrival, Operation};
use crate::run::{Step, run};

/// Two specs with identical departures and drops on the same traffic.
///
/// `$th` and `$w` stand for the same random threshold and weight on both sides; both sides get
/// the same `limit`.
#[derive(Clone, Copy, Debug)]
pub struct Reduction(pub &'static str, pub &'static str, pub Traffic);

/// The traffic for which a reduction holds.
#[derive(Clone, Copy, Debug)]
pub enum Traffic {
    /// Any.
    Any,
    /// Of a single flow.
    OneFlow,
    /// A new flow with every packet.
    OnePacketFlows,
    /// Any, with the limits as the specs have them.
    OwnLimits,
    /// The same, of flows that no hash table of sane size mistakes for each other.
    OwnBuckets,
    /// Tagged as short by an edge, every packet of it.
    Tagged,
}

use Traffic::{Any, OneFlow, OnePacketFlows, OwnBuckets, OwnLimits, Tagged};

/// Every reduction; a new one is a line here.
pub const ALL: &[Reduction] = &[
    Reduction("efd:threshold=inf", "fifo", Any),
    Reduction("efd:threshold=inf,hold-on-wire=yes", "fifo", Any),
    Reduction("efd:threshold=0packets", "fifo", OnePacketFlows),
    Reduction("run2c:threshold=0packets", "fifo", Any),
    Reduction("run2c:threshold=inf", "fifo", Any),
    Reduction("run2c:threshold=inf,buffer=knockout", "fifo", Any),
    Reduction("run2c-seq:threshold=0packets", "fifo", Any),
    Reduction("run2c-seq:threshold=inf", "fifo", Any),
    Reduction("x-protect:probability=0", "fifo", Any),
    Reduction("x-protect:probability=1,threshold=inf", "fifo", Any),
    Reduction("sift:probability=0,weight=$w", "fifo", Any),
    Reduction("sb:threshold=inf,weight=$w", "fifo", Any),
    Reduction("sb-ko:threshold=inf,weight=$w", "fifo", Any),
    Reduction("sb-sh:threshold=inf,weight=$w,probability=1", "fifo", Any),
    Reduction("sb-sh:probability=0,weight=$w", "fifo", Any),
    Reduction("sb:threshold=$th,weight=1", "run2c:threshold=$th,idle=30s", Any),
    Reduction("sb:threshold=$th,weight=1,sharing=coin", "run2c:threshold=$th,idle=30s", Any),
    Reduction("sb-ko:threshold=$th,weight=1", "run2c:threshold=$th,idle=30s,buffer=knockout", Any),
    Reduction("sb-sh:probability=1,threshold=$th,weight=$w", "sb-ko:threshold=$th,weight=$w", Any),
    Reduction("auto:threshold=inf,weight=$w", "fifo", Any),
    Reduction("auto:update=inf,threshold=$th,weight=$w", "sb-ko:threshold=$th,weight=$w", Any),
    Reduction("auto:range=1,threshold=$th,weight=$w", "sb-ko:threshold=$th,weight=$w", Any),
    Reduction(
        "sb-sh:probability=1,threshold=$th,weight=$w,buffer=drop-tail",
        "sb:threshold=$th,weight=$w",
        Any,
    ),
    Reduction(
        "x-protect:probability=1,threshold=$th,sampled-to=rule",
        "run2c:threshold=$th,idle=30s",
        Any,
    ),
    // One queue, no law: the head goes when it is full. Flows that never come back have no load.
    Reduction("cake:rtt=inf", "drr:victim=head", OneFlow),
    Reduction("cake:rtt=inf,isolation=flowblind", "fifo:limit=1gb", OwnLimits),
    Reduction("cake", "cake:isolation=flows", OnePacketFlows),
    Reduction("cake:isolation=hosts", "cake:isolation=flowblind", OneFlow),
    // With one tin in use there is nothing to choose; without a rate nothing is ever long.
    Reduction("cake:tins=diffserv3,rate=10mbit", "cake:rate=10mbit", OneFlow),
    Reduction("cake:tins=diffserv3", "cake", OneFlow),
    Reduction("marked", "cake:tins=diffserv3", OwnLimits),
    Reduction("marked:queues=prio", "fq-codel", OwnLimits),
    Reduction("las", "fifo", OnePacketFlows),
    Reduction("las", "fifo", OneFlow),
    Reduction("las:victim=most-served", "fifo", OneFlow),
    Reduction("las:charge-drops=yes", "fifo", OneFlow),
    Reduction("lars", "fifo", OnePacketFlows),
    Reduction("lars", "fifo", OneFlow),
    Reduction("lars:victim=key", "fifo", OneFlow),
    Reduction("lars:half-life=inf", "las:victim=most-served", Any),
    Reduction("lars:half-life=inf,victim=key", "las", Any),
    Reduction("srpt", "fifo", OneFlow),
    Reduction("drr", "fifo", OneFlow),
    Reduction("drr:quantum=64b", "fifo", OneFlow),
    Reduction("scfq", "fifo", OneFlow),
    Reduction("scfq:drop=longest-queue", "fifo", OneFlow),
    Reduction("scfq:drop=longest-queue,limit=10000packets", "scfq:limit=10000packets", OwnLimits),
    Reduction("wfq", "fifo", OneFlow),
    Reduction("wfq:rate=10mbit,weights=3", "fifo", OneFlow),
    Reduction("wfq:drop=tail", "fifo", OneFlow),
    Reduction("wfq:drop=tail,limit=10000packets", "wfq:limit=10000packets", OwnLimits),
    Reduction("wf2q+", "fifo", OneFlow),
    Reduction("wf2q+:rate=10mbit,weights=3", "fifo", OneFlow),
    Reduction("wf2q+:drop=tail,limit=10000packets", "wf2q+:limit=10000packets", OwnLimits),
    Reduction("fsc", "fifo", OneFlow),
    Reduction("fsc:bpr=1", "fsc:pbs=0b", Any),
    Reduction("fsc:bpr=1,pbs=1500b", "fsc:bpr=100,pbs=0b", Any),
    Reduction("h-fsc", "fifo", OneFlow),
    Reduction("h-fsc:classes=all=1", "fsc", Any),
    Reduction("h-fsc:classes=a=1(b=1(c=5)),pbs=1500b", "fsc:pbs=1500b", Any),
    Reduction("h-fsc:classes=a=3+b=1,bpr=1", "h-fsc:classes=a=3+b=1,pbs=0b", Any),
    Reduction("h-fsc:classes=a=1x4/0b@ef+b=1", "h-fsc:classes=a=1@ef+b=1x1/6kb", Any),
    Reduction("codel:target=inf", "fifo", Any),
    // One bucket is one queue, as long as nothing overflows.
    Reduction("fq-codel:buckets=1", "codel:limit=10240packets,ecn=yes", OwnLimits),
    Reduction("fq-codel:buckets=1,target=inf", "fifo:limit=10240packets", OwnLimits),
    // Without ages and hosts it is FQ-CoDel, whose CoDel leaves a frame of Ethernet alone here.
    Reduction(
        "fq-lanes:without=ages,hosts=none,limit=10240packets,target=5ms",
        "fq-codel:mtu=1514b,memory=1gb,buckets=1048576",
        OwnBuckets,
    ),
    Reduction(
        "fq-lanes:without=ages,hosts=none,limit=10240packets,target=1us,interval=1us",
        "fq-codel:mtu=1514b,memory=1gb,buckets=1048576,target=1us,interval=1us",
        OwnBuckets,
    ),
    Reduction("red:min=inf,max=inf", "fifo", Any),
    Reduction("red:max-probability=0,max=inf,averaging=1", "fifo", Any),
    Reduction("fred:min=inf,max=inf,averaging=1", "fifo", Any),
    Reduction("rio:in-min=inf,in-max=inf,out-min=inf,out-max=inf", "fifo", Any),
    // Without a packet that is In, or one that is Out, RIO is RED: with the same dice as well.
    Reduction("rio:in-dscp=63,averaging=0.5", "red:min=0.1,max=0.3,averaging=0.5", Any),
    Reduction(
        "rio:averaging=0.5,wait=no",
        "red:min=0.3,max=0.6,max-probability=0.02,averaging=0.5,wait=no",
        Tagged,
    ),
    Reduction("rio-ps:classifier=tag,short-dscp=63,averaging=1", "red:averaging=1", Any),
    Reduction(
        "rio-ps:threshold=1000000,averaging=0.5",
        "red:max=0.35,max-probability=0.05,averaging=0.5",
        Any,
    ),
    Reduction(
        "rio-ps:classifier=tag,averaging=0.5",
        "rio:in-min=0.15,in-max=0.35,in-probability=0.05,out-min=0.15,out-max=0.5,averaging=0.5",
        Any,
    ),
    Reduction("sift:probability=0,retest=yes,weight=$w", "fifo", Any),
    Reduction("lanes:accounting=mark,short-dscp=63", "fifo", Any),
    Reduction("lanes:accounting=mark,service=weighted,buffer=drop-tail,weight=$w", "fifo", Tagged),
    // Free composition of the parts is the named discipline.
    Reduction(
        "lanes:accounting=retest,service=weighted,buffer=drop-tail,threshold=0packets,sampled-to=high,probability=0.3,weight=$w",
        "sift:retest=yes,probability=0.3,weight=$w",
        Any,
    ),
    Reduction(
        "lanes:accounting=while-queued,service=guaranteed,buffer=knockout,threshold=$th,low-share=0.3",
        "efd:threshold=$th,low-share=0.3",
        Any,
    ),
    Reduction(
        "lanes:accounting=every-flow,service=strict,buffer=drop-tail,threshold=$th,boundary=after",
        "run2c:threshold=$th,idle=30s",
        Any,
    ),
    Reduction(
        "lanes:accounting=offset,service=strict,buffer=drop-tail,threshold=$th,boundary=after",
        "run2c-seq:threshold=$th",
        Any,
    ),
    Reduction(
        "lanes:accounting=every-flow,service=weighted,buffer=knockout,threshold=$th,boundary=after,weight=$w",
        "sb-ko:threshold=$th,weight=$w",
        Any,
    ),
    Reduction(
        "lanes:accounting=sample-and-hold,service=weighted,threshold=$th,boundary=after,weight=$w,probability=0.2",
        "sb-sh:threshold=$th,weight=$w,probability=0.2",
        Any,
    ),
    Reduction(
        "lanes:accounting=sampled,service=strict,buffer=drop-tail,threshold=$th,boundary=after,sampled-to=high,probability=0.2",
        "x-protect:threshold=$th,probability=0.2",
        Any,
    ),
];

impl Reduction {
    /// Whether both disciplines of it are in the registry.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        let known = |spec: &str| {
            let name = spec.split(':').next().unwrap_or_default();
            sched::registry::find(name).is_some()
        };
        known(self.0) && known(self.1)
    }

    /// Checks that both sides lose and send the same packets.
    ///
    /// # Errors
    /// The first difference, with the step at which it showed.
    ///
    /// # Panics
    /// If a spec cannot be read.
    pub fn check(
        &self,
        limit: &str,
        threshold: &str,
        weight: &str,
        operations: &[Operation],
        seed: u64,
    ) -> Result<(), Violation> {
        let spec = |template: &str| -> Spec {
            let text = template.replace("$th", threshold).replace("$w", weight);
            let spec = text.parse().and_then(|spec: Spec| match self.2 {
                OwnLimits | OwnBuckets => Ok(spec),
                _ => spec.with("limit", limit),
            });
            spec.unwrap_or_else(|error| panic!("{text}: {error}"))
        };
        let (left, right) = (spec(self.0), spec(self.1));
        let operations = self.2.of(operations);
        let pairs = run(&left, &operations, seed).into_iter().zip(run(&right, &operations, seed));
        for (index, (a, b)) in pairs.enumerate() {
            hold!(
                outcome(&a) == outcome(&b),
                "step {index}, {:?}: {left} lost and sent {:?}, {right} {:?}",
                a.call,
                outcome(&a),
                outcome(&b)
            );
        }
        Ok(())
    }
}

impl Traffic {
    /// The operations with their arrivals spread over flows as this traffic has it.
    fn of(self, operations: &[Operation]) -> Vec<Operation> {
        let mut next = 0u8;
        let mut flow = |given: u8| match self {
            Any | OwnLimits | Tagged => given,
            // Flows come in pairs with the same low bits: see `flow_id`.
            OwnBuckets => given.wrapping_mul(2),
            OneFlow => 0,
            OnePacketFlows => {
                next += 1;
                next
            }
        };
        let change = |operation: &Operation| match operation {
            Operation::Enqueue(arrival) => {
                let tagged = arrival.tagged || matches!(self, Tagged);
                Operation::Enqueue(Arrival { flow: flow(arrival.flow), tagged, ..*arrival })
            }
            other => other.clone(),
        };
        let is_kept = |operation: &&Operation| match operation {
            Operation::Change(..) => !matches!(self, OwnLimits | OwnBuckets),
            _ => true,
        };
        operations.iter().filter(is_kept).map(change).collect()
    }
}

/// Ids of the packets that a step lost, and of the one that left.
fn outcome(step: &Step) -> (Vec<u64>, Option<u64>) {
    let lost = step.dropped().map(|(packet, _)| packet.id).collect();
    (lost, step.departed().map(|packet| packet.id))
}
