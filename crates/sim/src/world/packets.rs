//! Movement of packets: into queues, over links, to their ends.

use sched::{Ecn, HostId, Nanos, Packet};

use super::ways::Feeder;
use super::{END, Event, World, queue_name};
use crate::flow::FlowLabel;
use crate::link::slot_of;
use crate::network::LinkId;
use crate::transit::Payload;

impl World {
    /// A packet enters the queue of its next link.
    #[inline]
    pub(super) fn forward(&mut self, slot: u32) {
        let transit = self.transits.get(slot);
        let id = self.hops[transit.hop as usize];
        let link = &mut self.links[id.index()];
        if link.port_link().is_some() {
            self.enqueue(id, slot);
            return;
        }
        match link.fifo.accept(transit.size, self.now) {
            Some(end) => self.carry(id, slot, end),
            None => self.lose(slot),
        }
    }

    pub(super) fn enqueue(&mut self, id: LinkId, slot: u32) {
        // A transmission that ends now frees the link first, whatever the order of events.
        self.service(id);
        let (mut packet, label) = self.packet(slot);
        let Some(link) = self.links[id.index()].port_link() else { return };
        if let Some(tagger) = &mut link.tagger {
            tagger.tag(&mut packet, self.now);
            self.transits.get_mut(slot).dscp = packet.dscp;
        }
        packet.size += link.overhead;
        link.port.arrive(packet, label.word(), self.now);
        if link.service_at == Nanos::MAX {
            link.service_at = self.now;
        }
        self.service(id);
        self.lose_dropped(id);
    }

    /// The packet as a discipline sees it, and what its records say of its flow.
    pub(super) fn packet(&self, slot: u32) -> (Packet, FlowLabel) {
        let transit = self.transits.get(slot);
        let (name, sender) = (transit.flow(), transit.sender());
        let flow = &self.flows[name.slot as usize];
        let (from, to) = flow.nodes(sender);
        // To a queue, the directions of a connection are two flows.
        let id = self.names.id(queue_name(name.slot, sender, name));
        let mut packet = Packet::new(id, transit.size)
            .with_id(u64::from(slot))
            .with_hosts(HostId(from.0 + 1), HostId(to.0 + 1))
            .with_dscp(transit.dscp)
            .with_ecn(match (transit.is_ect(), transit.ce()) {
                (_, true) => Ecn::Ce,
                (true, false) => Ecn::Ect0,
                (false, false) => Ecn::NotEct,
            });
        if let Some(offset) = transit.offset() {
            packet = packet.with_offset(offset);
        }
        if let Some(bytes) = flow.bytes(sender) {
            packet = packet.with_flow_size(bytes);
        }
        (packet, flow.label(sender))
    }

    /// Starts what may start now at a port, and schedules the next service.
    pub(super) fn service(&mut self, id: LinkId) {
        let Some(link) = self.links[id.index()].port_link() else { return };
        if link.service_at > self.now {
            return;
        }
        let sent = link.port.serve(self.now);
        let next = link.port.next_service();
        link.service_at = next.unwrap_or(Nanos::MAX);
        if let Some(next) = next {
            self.events.push(next.0, Event::Service(id.0));
        }
        if let Some(sent) = sent {
            let slot = slot_of(&sent.packet);
            if sent.mark {
                self.transits.get_mut(slot).mark_ce();
            }
            self.carry(id, slot, sent.end);
        }
        self.lose_dropped(id);
    }

    pub(super) fn lose_dropped(&mut self, id: LinkId) {
        loop {
            let Some(link) = self.links[id.index()].port_link() else { return };
            let Some(packet) = link.port.pop_lost() else { return };
            self.lose(slot_of(&packet));
        }
    }

    /// Links carry a packet whose last bit leaves the first at `end`.
    ///
    /// A plain link that is fed by this one alone gets its packets in the order in which they
    /// leave here, so its part is settled at once: one event for both links.
    pub(super) fn carry(&mut self, mut id: LinkId, slot: u32, mut end: Nanos) {
        loop {
            let Some(arrival) = self.links[id.index()].arrival(end) else {
                return self.lose(slot);
            };
            let transit = self.transits.get_mut(slot);
            let next = self.hops[transit.hop as usize + 1];
            if next == END || self.feeders[next.index()] != Feeder::Link(id) {
                self.events.push(arrival.0, Event::Arrive(slot));
                return;
            }
            transit.hop += 1;
            self.packet_hops += 1;
            let Some(next_end) = self.links[next.index()].fifo.accept(transit.size, arrival) else {
                return self.lose(slot);
            };
            (id, end) = (next, next_end);
        }
    }

    #[inline]
    pub(super) fn arrive(&mut self, slot: u32) {
        self.packet_hops += 1;
        let transit = self.transits.get_mut(slot);
        transit.hop += 1;
        if self.hops[transit.hop as usize] == END {
            self.deliver(slot);
        } else {
            self.forward(slot);
        }
    }

    #[inline]
    pub(super) fn deliver(&mut self, slot: u32) {
        let (transit, payload) = self.transits.remove(slot);
        let Some(flow) = self.live(transit.flow()) else { return };
        match payload {
            Payload::Segment(segment) => {
                self.segment(flow, 1 - transit.sender(), &segment, transit.ce());
            }
            Payload::Datagram { seq, sent } => {
                self.datagram_over(flow, seq, sent, Some(transit.size));
            }
        }
    }

    pub(super) fn lose(&mut self, slot: u32) {
        let (transit, payload) = self.transits.remove(slot);
        let Some(flow) = self.live(transit.flow()) else { return };
        if let Payload::Datagram { seq, sent } = payload {
            self.datagram_over(flow, seq, sent, None);
        }
    }
}
