//! A queue and the transmitter behind it.

use account::Account;
use sched::{Backlog, Dequeue, Drop, Nanos, Packet, Qdisc, Rate, Spec};

use crate::flow_names::{FlowName, FlowNames};
use crate::ledger::{FlowAccount, Flows, Ledger};
use crate::packet_log::PacketRecord;
use crate::transmitter::Transmitter;
use crate::varying::{Course, Varying};

/// A discipline in front of a link that sends one packet at a time.
///
/// The packet being sent occupies no buffer, and a transmission that ends at `t` frees the link
/// before a packet that arrives at `t` is enqueued. The caller keeps time: it calls
/// [`Port::arrive`] when a packet arrives, and [`Port::serve`] at [`Port::next_service`], never
/// going back in time. Packets are named by their ids; the caller uses an id again only after the
/// packet was sent or lost.
pub struct Port {
    qdisc: Box<dyn Qdisc<Account<Flows>>>,
    link: Transmitter,
    /// Where the rate varies.
    course: Option<Box<Course>>,
    /// The discipline asked not to be called before.
    wait_until: Nanos,
    /// The time of the latest call.
    now: Nanos,
    ledger: Ledger,
}

/// A packet whose transmission has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The packet.
    pub packet: Packet,
    /// Set "congestion experienced" in its IP header.
    pub mark: bool,
    /// When it arrived.
    pub arrival: Nanos,
    /// Its place in its flow, from 1; 0 if the flow's name has gone to another.
    pub place: u32,
    /// When its last bit has left.
    pub end: Nanos,
}

impl Port {
    /// A port of this rate with the discipline of `spec`, which draws its random numbers from
    /// `seed`. `names` made the fingerprints of the flows. With `log`, a record per packet is
    /// kept until [`Port::records`] takes it.
    #[must_use]
    pub fn new(spec: &Spec, rate: Rate, seed: u64, names: FlowNames, log: bool) -> Self {
        Self {
            qdisc: spec.clone().on_link(rate).build(seed),
            link: Transmitter::new(rate),
            course: None,
            wait_until: Nanos::ZERO,
            now: Nanos::ZERO,
            ledger: Ledger::new(names, log),
        }
    }

    /// The same with a rate that varies; that of [`Port::new`] is what the discipline was told.
    #[must_use]
    pub fn varying(mut self, rates: Varying) -> Self {
        self.course = Some(Box::new(Course::new(rates)));
        self
    }

    /// A packet arrives; `tag` stands in its record. Services due before or at `now` must have
    /// been done. Packets lost by it are in [`Port::take_lost`].
    #[inline]
    pub fn arrive(&mut self, packet: Packet, tag: u64, now: Nanos) {
        self.now = now;
        self.ledger.arriving(&packet, tag, now);
        self.qdisc.enqueue(packet, now, self.ledger.sink());
        self.wait_until = Nanos::ZERO;
        self.look();
    }

    /// When [`Port::serve`] is to be called next: at once if the link is idle and packets are
    /// queued. `None` if none is.
    #[inline]
    #[must_use]
    pub fn next_service(&self) -> Option<Nanos> {
        // The ledger knows: a discipline would add up what it has just changed.
        (self.ledger.backlog().value() > 0)
            .then(|| self.link.free_at().max(self.wait_until).max(self.now))
    }

    /// Starts the next transmission. `None` if the link is busy at `now`, or nothing may leave.
    #[inline]
    pub fn serve(&mut self, now: Nanos) -> Option<Sent> {
        let free_at = self.link.free_at();
        if now < free_at {
            return None;
        }
        self.now = now;
        let answer = self.qdisc.dequeue(now, self.ledger.sink());
        self.look();
        match answer {
            Dequeue::Packet { packet, mark } => {
                // Without a pause, a packet that waited starts where the one before ended, a
                // fraction of a nanosecond ago.
                let (arrival, place) = self.ledger.arrival(&packet);
                let ready = if now > free_at { now } else { arrival };
                let end = match &mut self.course {
                    None => self.link.start(packet.size, ready),
                    Some(course) => self.link.busy_until(course.start(packet.size, ready)),
                };
                self.ledger.sent(&packet, end);
                Some(Sent { packet, mark, arrival, place, end })
            }
            Dequeue::Wait(until) => {
                // A discipline that says "wait until now" must not make its caller spin.
                self.wait_until = until.max(now + Nanos(1));
                None
            }
            Dequeue::Empty => None,
        }
    }

    /// The packets lost since the last call.
    #[inline]
    pub fn take_lost(&mut self) -> impl Iterator<Item = (Packet, Drop)> + '_ {
        self.ledger.lost().drain(..)
    }

    /// One of the packets lost since [`Port::take_lost`] took them all.
    #[inline]
    pub(crate) fn pop_lost(&mut self) -> Option<Packet> {
        self.ledger.lost().pop().map(|(packet, _)| packet)
    }

    /// The records of packets whose fate, and that of all packets before them, is settled.
    pub fn records(&mut self) -> impl Iterator<Item = PacketRecord> + '_ {
        self.ledger.log().into_iter().flat_map(|log| log.take_settled())
    }

    /// The records left at the end of a run, queued packets among them.
    pub fn last_records(&mut self) -> impl Iterator<Item = PacketRecord> + '_ {
        self.ledger.log().into_iter().flat_map(|log| log.take_all())
    }

    /// The records of all but the latest `keep` packets, settled or not: for who cannot have them
    /// held back for as long as one packet waits. Those not settled come again, out of order, in
    /// [`Port::late_records`].
    pub fn early_records(&mut self, keep: usize) -> impl Iterator<Item = PacketRecord> + '_ {
        self.ledger.log().into_iter().flat_map(move |log| log.take_early(keep))
    }

    /// The records that were taken early and have been settled since.
    pub fn late_records(&mut self) -> impl Iterator<Item = PacketRecord> + '_ {
        self.ledger.log().into_iter().flat_map(|log| log.take_late())
    }

    /// Keeps no more records.
    pub fn stop_log(&mut self) {
        self.ledger.stop_log();
    }

    /// What is queued.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.qdisc.backlog()
    }

    /// Entries in the discipline's flow table.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.qdisc.flows()
    }

    /// What happened so far.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What happened to one flow so far.
    #[must_use]
    pub fn flow(&self, name: FlowName) -> FlowAccount {
        self.ledger.flow(name)
    }

    /// The link's rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.link.rate()
    }

    /// Starts totals and time means anew at `now`: what was before does not count.
    pub fn restart_totals(&mut self, now: Nanos) {
        self.ledger.restart(now);
    }

    #[inline]
    fn look(&mut self) {
        self.ledger.queue_is(self.qdisc.backlog(), self.qdisc.flows(), self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_log::Outcome;
    use sched::DropReason;

    const NAMES: FlowNames = FlowNames::new(7);

    fn port(spec: &str) -> Port {
        Port::new(&spec.parse().expect("a discipline"), Rate(8_000_000), 1, NAMES, true)
    }

    fn packet(id: u64) -> Packet {
        let name = FlowName { slot: id as u32, generation: 0 };
        Packet::new(NAMES.id(name), 1000).with_id(id)
    }

    #[test]
    fn the_short_lane_is_counted_through_arrivals_departures_and_push_outs() {
        let mut port = port("efd:threshold=2packets,limit=4packets");
        let of_one_flow = |id| packet(0).with_id(id);
        for (id, short) in [(0, 1), (1, 2), (2, 2), (3, 2)] {
            port.arrive(of_one_flow(id), id, Nanos(1));
            assert_eq!(port.ledger().short_lane(), short, "after packet {id}");
        }
        // A full queue gives up a long packet for a short one.
        port.arrive(packet(4), 4, Nanos(1));
        assert_eq!((port.backlog().packets, port.ledger().short_lane()), (4, 3));
        let mut now = Nanos(1);
        for (packets, short) in [(3, 2), (2, 1), (1, 0), (0, 0)] {
            now = port.serve(now).expect("packets are queued").end;
            assert_eq!((port.backlog().packets, port.ledger().short_lane()), (packets, short));
        }
    }

    #[test]
    fn the_packet_being_sent_occupies_no_buffer() {
        let mut port = port("fifo:limit=1packets");
        for id in 0..3 {
            port.arrive(packet(id), id, Nanos(10));
            port.serve(Nanos(10));
        }
        assert_eq!(port.take_lost().map(|(packet, _)| packet.id).collect::<Vec<_>>(), [2]);
        assert_eq!(port.next_service(), Some(Nanos(1_000_010)));
        assert_eq!(port.serve(Nanos(1_000_009)), None, "the link is busy");
        let second = port.serve(Nanos(1_000_010)).expect("it may start");
        assert_eq!((second.packet.id, second.end), (1, Nanos(2_000_010)));
        let outcomes: Vec<Outcome> = port.records().map(|record| record.outcome).collect();
        assert_eq!(
            outcomes,
            [
                Outcome::Departed(Nanos(1_000_010)),
                Outcome::Departed(Nanos(2_000_010)),
                Outcome::Dropped(DropReason::Full)
            ]
        );
        assert_eq!(
            port.flow(FlowName { slot: 1, generation: 0 }).sojourn_sum,
            Nanos::from_millis(1)
        );
        assert_eq!(port.ledger().backlog().mean(Nanos(2_000_010)), 1_000_000.0 / 2_000_010.0);
    }

    /// Who is sent second: flow 0 with 1000 and 500 bytes at once, or flow 1 with 1000 bytes that
    /// arrive when 900 have been sent.
    fn second(spec: &str) -> u64 {
        let of_flow = |slot, bytes| {
            Packet::new(NAMES.id(FlowName { slot, generation: 0 }), bytes).with_id(u64::from(slot))
        };
        let mut port = port(spec);
        port.arrive(of_flow(0, 1000), 0, Nanos::ZERO);
        port.arrive(of_flow(0, 500), 0, Nanos::ZERO);
        assert!(port.serve(Nanos::ZERO).is_some());
        port.arrive(of_flow(1, 1000), 0, Nanos(900_000));
        port.serve(Nanos(1_000_000)).map(|sent| sent.packet.id).expect("the link is free")
    }

    /// By finish, that is 1500 against 900 + 1000; without a rate, against 0 + 1000.
    #[test]
    fn a_discipline_that_reckons_with_the_links_rate_is_given_it() {
        assert_eq!(second("wfq"), 0);
        assert_eq!(second("wfq:rate=8mbit"), 0);
        assert_eq!(second("wfq:rate=inf"), 1);
    }
}
