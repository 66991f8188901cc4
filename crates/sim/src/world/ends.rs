//! The ends of flows: arrivals and timers.

use sched::Nanos;
use tcp::{Config, Segment, State};

use super::{Event, Notice, World};
use crate::flow::{CLIENT, Flow, Kind, SERVER, Tcp, TcpId};
use crate::recorder::{Advance, Probe};

impl World {
    /// A datagram has arrived with so many bytes, or is lost.
    pub(super) fn datagram_over(&mut self, slot: u32, seq: u64, sent: Nanos, arrived: Option<u32>) {
        let flow = &mut self.flows[slot as usize];
        let Kind::Datagrams(stream) = &mut flow.kind else { return };
        match arrived {
            Some(bytes) => {
                stream.received += 1;
                stream.received_bytes += u64::from(bytes);
            }
            None => stream.lost += 1,
        }
        if stream.probed {
            self.notices.push(Notice::Probe(Probe {
                source: flow.source,
                index: flow.index,
                seq,
                sent,
                arrived: arrived.map(|_| self.now),
            }));
        }
        if stream.closed {
            self.finish_if_over(slot);
        }
    }

    pub(super) fn segment(&mut self, slot: u32, end: usize, segment: &Segment, ce: bool) {
        let now = self.now;
        let Some((tcp, config)) = tcp_of(&mut self.flows, &self.tcps, slot) else { return };
        let before = tcp.ends[end].received();
        tcp.ends[end].on_segment(config, segment, ce, now);
        let is_new = tcp.ends[end].received() != before;
        if tcp.connected.is_none() && end == CLIENT && tcp.ends[CLIENT].state() != State::SynSent {
            tcp.connected = Some(self.now);
            tcp.advanced = self.now;
        }
        if is_new {
            self.progress(slot, end);
        }
        self.transmit(slot, end);
        self.finish_if_over(slot);
    }

    pub(super) fn timer(&mut self, slot: u32, end: usize) {
        let now = self.now;
        let Some((tcp, config)) = tcp_of(&mut self.flows, &self.tcps, slot) else { return };
        if tcp.timer_at[end] != now {
            return; // an earlier event took its place
        }
        tcp.timer_at[end] = Nanos::MAX;
        if tcp.ends[end].next_timer().is_some_and(|due| due <= now) {
            tcp.ends[end].on_timer(config, now);
        }
        self.transmit(slot, end);
        self.finish_if_over(slot);
    }

    /// Sends what an end has to send, and schedules its next timer.
    pub(super) fn transmit(&mut self, slot: u32, end: usize) {
        let now = self.now;
        loop {
            let Some((tcp, config)) = tcp_of(&mut self.flows, &self.tcps, slot) else { return };
            let Some(segment) = tcp.ends[end].poll_transmit(config, now) else { break };
            let header_bytes = config.header_bytes;
            let flow = &self.flows[slot as usize];
            let (hop, dscp) = (flow.ways[end].0, flow.dscp);
            let packet =
                self.transits.add_segment(&segment, header_bytes, flow.name(slot), end, hop);
            self.transits.get_mut(packet).dscp = dscp;
            self.forward(packet);
        }
        let Some((tcp, _)) = tcp_of(&mut self.flows, &self.tcps, slot) else { return };
        // One event an end: timers mostly move back, and an event that comes too early is
        // scheduled again, instead of being cancelled with every acknowledgment.
        if let Some(due) = tcp.ends[end].next_timer().filter(|due| *due < tcp.timer_at[end]) {
            let due = due.max(now);
            tcp.timer_at[end] = due;
            self.events.push(due.0, Event::Timer(2 * slot + end as u32));
        }
    }

    pub(super) fn start_exchange(&mut self, slot: u32, request_bytes: u64, response_bytes: u64) {
        let Kind::Tcp(tcp) = &mut self.flows[slot as usize].kind else { return };
        tcp.busy = true;
        tcp.answered = false;
        tcp.response_bytes = response_bytes;
        tcp.request_goal += request_bytes;
        tcp.response_goal += response_bytes;
        tcp.ends[CLIENT].write(request_bytes);
        if !tcp.keep_open && response_bytes == 0 {
            tcp.ends[CLIENT].close();
        }
    }

    /// An end received new bytes. If they are data, a recorder that watches is told, and what has
    /// become of the packets until now.
    #[inline]
    fn advance(&mut self, slot: u32, end: usize) {
        let Kind::Tcp(tcp) = &mut self.flows[slot as usize].kind else { return };
        let sender = tcp.data_sender();
        if end == sender {
            return;
        }
        tcp.advance(self.now);
        if !tcp.watched {
            return;
        }
        let (at, received) = (self.now, tcp.ends[end].received());
        let (mut packets, mut dropped) = (0, 0);
        for (_, account) in self.ports(slot, sender) {
            packets = packets.max(u64::from(account.arrived_packets));
            dropped += account.dropped_packets();
        }
        let Flow { source, index, .. } = self.flows[slot as usize];
        let advance = Advance { source, index, at, received, packets, dropped };
        self.notices.push(Notice::Advance(advance));
    }

    /// An end received new bytes: the server may have to answer, or the exchange may be over.
    fn progress(&mut self, slot: u32, end: usize) {
        self.advance(slot, end);
        let flow = &mut self.flows[slot as usize];
        let Kind::Tcp(tcp) = &mut flow.kind else { return };
        if !tcp.busy || tcp.ends[SERVER].received() < tcp.request_goal {
            return;
        }
        if !tcp.answered {
            tcp.answered = true;
            tcp.ends[SERVER].write(tcp.response_bytes);
            if !tcp.keep_open {
                tcp.ends[SERVER].close();
            }
            if tcp.response_bytes > 0 {
                self.transmit(slot, SERVER);
                return;
            }
        }
        if tcp.ends[CLIENT].received() < tcp.response_goal {
            return;
        }
        tcp.busy = false;
        flow.completed.get_or_insert(self.now);
        let (source, index) = (flow.source, flow.index);
        let stays_open = tcp.keep_open;
        if !stays_open {
            tcp.ends[CLIENT].close();
        }
        self.notices.push(Notice::Exchanged { source, flow: flow.name(slot), index });
        if !stays_open {
            self.transmit(slot, CLIENT);
        }
    }
}

/// A connection and its configuration.
#[inline]
pub(super) fn tcp_of<'a>(
    flows: &'a mut [Flow],
    configs: &'a [Config],
    slot: u32,
) -> Option<(&'a mut Tcp, &'a Config)> {
    let Kind::Tcp(tcp) = &mut flows.get_mut(slot as usize)?.kind else { return None };
    let TcpId(id) = tcp.tcp;
    Some((tcp, &configs[usize::from(id)]))
}
