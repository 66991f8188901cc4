//! Who loses packets when the buffer is full.

use super::FqLanes;
use super::clock::Stamp;
use super::rules::QUANTUM;
use super::table::{Fattest, Flow, Host, Table};
use crate::interface::{Drop, DropReason, Nanos, Packet, Sink};
use crate::queues::per_flow::Flows;

/// A flow with no more quanta than this is not made to lose packets for another of its host.
const THIN: u64 = 4;
/// Most packets that a flow loses at once.
const DROP_BATCH: u32 = 64;
/// Most flows that are looked at for one with more than one packet.
const LOOK_AT: usize = 64;

const fn is_thin(bytes: u64) -> bool {
    bytes <= THIN * QUANTUM as u64
}

/// The first flow in turn that has more than one packet, if it is among those looked at.
fn first_with_several(host: &Host, flows: &Flows<Flow>) -> Option<u32> {
    if host.backlog.packets <= u64::from(host.stage.listed()) {
        return None;
    }
    let mut in_turn = host.stage.in_turn(|index| &flows[index].member).take(LOOK_AT);
    in_turn.find(|index| !flows[*index].queue.is_short())
}

impl FqLanes {
    /// Keeps account of a packet of `flow` that was lost.
    pub(super) fn left(&mut self, flow: u32, packet: &Packet) {
        self.backlog.remove(packet);
        let Table { hosts, flows, .. } = &mut self.table;
        let state = &mut flows[flow];
        state.bytes -= u64::from(packet.size);
        hosts[state.host()].lose(flow, state.bytes, packet);
    }

    /// The flow of a host that makes room: the fattest, unless that would take the last packet of
    /// a thin flow. Then it is one with more than one packet, which would otherwise not be known
    /// until its next arrival. If all flows have about one, the first of the youngest loses: an
    /// older one has waited for its turn for long, and must not miss it.
    fn fattest_of(&mut self, host: u32) -> Option<Fattest> {
        let Table { hosts, flows, .. } = &mut self.table;
        let host = &mut hosts[host];
        let Fattest { index, bytes } = host.fattest;
        if bytes == 0 || is_thin(bytes) && flows[index].queue.is_short() {
            let index = match first_with_several(host, flows) {
                Some(index) => index,
                None => host.stage.next_of_youngest(flows, &self.rules)?,
            };
            host.fattest = Fattest { index, bytes: flows[index].bytes };
        }
        Some(host.fattest)
    }

    /// The fattest flow of the fattest host loses half of its bytes, or a batch, at its head; a
    /// host of thin flows alone loses what arrives for it. Returns whether the arrival, which is
    /// the newest packet of flow `arrival`, is still there.
    #[cold]
    pub(super) fn make_room<S: Sink>(&mut self, arrival: u32, now: Nanos, sink: &mut S) -> bool {
        let host = self.fattest;
        let is_own = host == self.table.flows[arrival].host();
        let refuses = is_own && is_thin(self.table.hosts[host].fattest.bytes);
        let loser = if refuses { None } else { self.fattest_of(host) };
        let Some(Fattest { index, bytes }) = loser else {
            let queue = &mut self.table.flows[arrival].queue;
            if let Some((packet, stamp)) = self.packets.pop_back(queue) {
                self.left(arrival, &packet);
                sink.refused(packet, Stamp(stamp).lane(), now);
            }
            return false;
        };
        let (mut dropped, mut survived) = (0, true);
        while dropped < DROP_BATCH {
            let flow = &mut self.table.flows[index];
            // One goes in any case, or packets without bytes would stay for ever.
            if dropped > 0 && (flow.bytes <= bytes / 2 || flow.queue.is_short()) {
                break;
            }
            let queue = &mut flow.queue;
            let Some((packet, stamp)) = self.packets.pop_front(queue) else { break };
            dropped += 1;
            let is_arrival = index == arrival && queue.is_empty();
            survived &= !is_arrival;
            let reason = if is_arrival { DropReason::Full } else { DropReason::PushedOut };
            self.left(index, &packet);
            sink.dropped(packet, Drop { reason, lane: Stamp(stamp).lane() }, now);
        }
        self.table.courses[index as usize].count_drops(dropped);
        survived
    }
}

#[cfg(test)]
mod tests;
