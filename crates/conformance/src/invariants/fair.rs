//! Fair queues: nobody gets ahead of anybody by more than a turn, or a few packets.

use std::collections::{BTreeMap, BTreeSet};

use sched::{FlowId, HostId, Packet, Params};

use super::{Check, Invariant, Of, always};
use crate::ledger::{Ledger, hold};
use crate::run::Call;

pub(super) const ALL: &[Invariant] = &[
    Invariant { of: Of::Named(&["drr"]), given: always, check: flows_take_turns },
    Invariant { of: Of::Named(&["scfq"]), given: always, check: flows_share_by_the_packet },
    Invariant {
        of: Of::Named(&["wfq", "wf2q+"]),
        given: weights_are_equal,
        check: flows_share_as_fluids,
    },
    Invariant { of: Of::Named(&["fsc"]), given: has_no_burst, check: flows_share_by_the_packet },
    Invariant { of: Of::Named(&["fq-codel"]), given: always, check: buckets_take_turns },
    Invariant { of: Of::Named(&["cake"]), given: has_one_tin, check: few_flows_keep_their_order },
    Invariant { of: Of::Named(&["cake"]), given: shares_by_source, check: sources_take_turns },
    Invariant {
        of: Of::Named(&["cake"]),
        given: shares_by_destination,
        check: destinations_take_turns,
    },
    Invariant { of: Of::Named(&["fq-lanes"]), given: knows_its_hosts, check: hosts_with_lanes },
];

/// Flows of CAKE that find queues of their own, whatever their hashes: as many as a set has.
const FEW: usize = 8;

/// Flows that a run has at most, spill queues of `fq-lanes` aside.
const ROOM: u64 = 64;

/// Hosts are told apart, and none has to share with others for want of room.
fn knows_its_hosts(params: &Params) -> bool {
    params.word("hosts") != "none" && params.number("flows") >= ROOM
}

/// Hosts take turns, and each may be ahead of its share by 15 kB and the packet with which it gets
/// there. The share is that of one more among all that is sent, what is sent ahead included: where
/// there are two hosts, a third of it, so that it may be half as much again.
fn hosts_with_lanes() -> Check {
    const QUANTUM: i64 = 1514;
    let host = |params: &Params, packet: &Packet| match params.word("hosts") {
        "source" => u64::from(packet.source.0),
        _ => u64::from(packet.destination.0),
    };
    take_turns(host, |_, packet| 3 * QUANTUM + 2 * packet + 3 * (15_000 + packet))
}

/// CAKE sends a flow's packets in order while no set of queues is full, and all are in one tin.
fn few_flows_keep_their_order() -> Check {
    let mut seen = BTreeSet::new();
    Box::new(move |before, step, _after| {
        if let Call::Enqueue(packet) = step.call {
            seen.insert(packet.flow);
        }
        let Some(sent) = step.departed().filter(|_| seen.len() <= FEW) else { return Ok(()) };
        let first = before.queued.values().map(|(packet, _)| packet).find(|p| p.flow == sent.flow);
        let lost = step.dropped().any(|(packet, _)| Some(packet.id) == first.map(|p| p.id));
        let id = first.map(|packet| packet.id);
        hold!(lost || id == Some(sent.id), "{sent:?} left before {first:?}");
        Ok(())
    })
}

fn has_one_tin(params: &Params) -> bool {
    params.word("tins") == "besteffort"
}

fn shares_by_source(params: &Params) -> bool {
    has_one_tin(params) && params.word("isolation") == "dual-srchost"
}

fn shares_by_destination(params: &Params) -> bool {
    has_one_tin(params) && params.word("isolation") == "dual-dsthost"
}

fn sources_take_turns() -> Check {
    hosts_take_turns(|packet| packet.source)
}

fn destinations_take_turns() -> Check {
    hosts_take_turns(|packet| packet.destination)
}

/// While the same flows of two hosts are backlogged, the difference of bytes sent by the hosts is
/// at most two quanta for the round, and, for each flow, what it carries over (a packet and a
/// quantum) at both ends: a host's first flows have turns of more than their part until all of
/// its flows are known to be backlogged.
fn hosts_take_turns(host_of: fn(&Packet) -> HostId) -> Check {
    type Hosts = BTreeMap<HostId, BTreeSet<FlowId>>;
    let (mut largest, mut quantum) = (0, 0);
    let mut seen = BTreeSet::new();
    let mut leads: BTreeMap<(HostId, HostId), (i64, i64, i64)> = BTreeMap::new();
    Box::new(move |before, step, after| {
        if let Call::Enqueue(packet) = step.call {
            largest = largest.max(i64::from(packet.size));
            seen.insert(packet.flow);
        }
        if matches!(step.call, Call::Change(..)) {
            leads.clear();
        }
        let bytes_per_second = step.params.number("rate") / 8;
        quantum = quantum.max((bytes_per_second / 4096).clamp(300, 1514) as i64);
        let backlogged = |ledger: &Ledger| {
            let mut hosts = Hosts::new();
            for (packet, _) in ledger.queued.values() {
                hosts.entry(host_of(packet)).or_default().insert(packet.flow);
            }
            hosts
        };
        let (was, is) = (backlogged(before), backlogged(after));
        let stays = |host: &HostId| was.contains_key(host) && was.get(host) == is.get(host);
        leads.retain(|(a, b), _| stays(a) && stays(b));
        let Some(sent) = step.departed().filter(|_| seen.len() <= FEW) else { return Ok(()) };
        let (host, size) = (host_of(&sent), i64::from(sent.size));
        if !stays(&host) {
            return Ok(());
        }
        for other in is.keys().filter(|other| **other != host && stays(other)) {
            let (pair, bytes) =
                if host < *other { ((host, *other), size) } else { ((*other, host), -size) };
            let (now, least, most) = leads.entry(pair).or_default();
            *now += bytes;
            (*least, *most) = ((*least).min(*now), (*most).max(*now));
            let flows = (is[&host].len() + is[other].len()) as i64;
            let (apart, bound) = (*most - *least, 2 * quantum + 2 * flows * (quantum + largest));
            hold!(apart <= bound, "hosts {pair:?} are {apart} apart, bound {bound}");
        }
        Ok(())
    })
}

/// Of two flows that are both backlogged throughout an interval, the difference of bytes sent is
/// at most a quantum and two packets (Shreedhar and Varghese 1996, theorem 2).
fn flows_take_turns() -> Check {
    take_turns(|_, packet| packet.flow.get(), |quantum, packet| quantum + 2 * packet)
}

/// ... at most the largest packets of the two (Golestani 1994, theorem 1).
fn flows_share_by_the_packet() -> Check {
    take_turns(|_, packet| packet.flow.get(), |_, packet| 2 * packet)
}

/// ... at most two packets each: a packet system is within a packet of its fluid system, ahead or
/// behind, and a flow that is idle in the latter starts again there.
fn flows_share_as_fluids() -> Check {
    take_turns(|_, packet| packet.flow.get(), |_, packet| 4 * packet)
}

fn weights_are_equal(params: &Params) -> bool {
    !params.text("weights").contains('@')
}

fn has_no_burst(params: &Params) -> bool {
    params.text("curves") == "none" && (params.number("bpr") == 1000 || params.number("pbs") == 0)
}

/// A bucket has its quantum in each round, and carries over less than a quantum or a packet, so
/// two differ by one round and what both carry.
fn buckets_take_turns() -> Check {
    let bucket = |params: &Params, packet: &Packet| {
        u64::from(packet.flow.get() as u32) % params.number("buckets")
    };
    take_turns(bucket, |quantum, packet| 3 * quantum + 2 * packet)
}

/// Checks `bound(quantum, largest packet)` on the difference of bytes sent between any two queues
/// that are both backlogged.
fn take_turns(queue_of: fn(&Params, &Packet) -> u64, bound: fn(i64, i64) -> i64) -> Check {
    let (mut largest, mut quantum) = (0, 0);
    // Lead of the first over the second queue: now, least and most.
    let mut leads: BTreeMap<(u64, u64), (i64, i64, i64)> = BTreeMap::new();
    Box::new(move |before, step, after| {
        if let Call::Enqueue(packet) = step.call {
            largest = largest.max(i64::from(packet.size));
        }
        if matches!(step.call, Call::Change(..)) {
            leads.clear();
        }
        // What was granted under another quantum is still there.
        if step.params.has("quantum") {
            quantum = quantum.max(step.params.number("quantum") as i64);
        }
        let backlogged = |ledger: &Ledger| -> BTreeSet<_> {
            ledger.queued.values().map(|(packet, _)| queue_of(&step.params, packet)).collect()
        };
        let still = &backlogged(after) & &backlogged(before);
        leads.retain(|(a, b), _| still.contains(a) && still.contains(b));
        let Some(sent) = step.departed() else { return Ok(()) };
        let (queue, size) = (queue_of(&step.params, &sent), i64::from(sent.size));
        if !still.contains(&queue) {
            return Ok(());
        }
        let bound = bound(quantum, largest);
        for other in still.iter().filter(|other| **other != queue) {
            let (pair, bytes) =
                if queue < *other { ((queue, *other), size) } else { ((*other, queue), -size) };
            let (now, least, most) = leads.entry(pair).or_default();
            *now += bytes;
            (*least, *most) = ((*least).min(*now), (*most).max(*now));
            let apart = *most - *least;
            hold!(apart <= bound, "queues {pair:?} are {apart} apart, bound {bound}");
        }
        Ok(())
    })
}
