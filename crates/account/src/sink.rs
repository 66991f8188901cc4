//! The sink that counts.

use sched::{Drop, Event, Lane, Nanos, Packet, Sink};

use crate::{LaneTotals, Totals};

/// What an account's user keeps of packets and flows beside the [`Totals`].
pub trait Book {
    /// What the book wants to know of a packet again while it is queued.
    type Ticket: Copy + Default;

    /// A packet has joined a lane.
    #[inline(always)]
    fn enqueued(&mut self, _packet: &Packet, _lane: Lane, _held: Held<Self::Ticket>) {}

    /// A packet has left a lane for transmission.
    fn dequeued(&mut self, packet: &Packet, lane: Lane, held: Held<Self::Ticket>, now: Nanos);

    /// A packet is lost.
    fn dropped(&mut self, packet: Packet, drop: Drop, held: Held<Self::Ticket>);

    /// A packet is to carry "congestion experienced".
    fn marked(&mut self, packet: &Packet, held: Held<Self::Ticket>);

    /// The flow table has changed.
    #[inline(always)]
    fn flow(&mut self, _event: Event) {}
}

/// What is known of a packet from its arrival on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held<T> {
    /// When it arrived.
    pub arrival: Nanos,
    /// The lane it is in, if it is in one.
    lane: Option<Lane>,
    /// The book's own.
    pub ticket: T,
}

/// The account of a queue, and the sink its discipline reports to.
///
/// Packets are named by their ids, which are small numbers: the account has a place for each. Nothing
/// is allocated per packet once the queue has been as full as it gets.
#[derive(Clone, Debug)]
pub struct Account<B: Book> {
    /// What its user keeps.
    pub book: B,
    totals: Totals,
    queued: u64,
    /// By packet id.
    held: Vec<Held<B::Ticket>>,
    moving: bool,
}

impl<B: Book> Account<B> {
    /// An account that begins with this many lanes; more are made when packets join them.
    #[must_use]
    pub fn new(book: B, lanes: usize) -> Self {
        let totals = Totals { lanes: vec![LaneTotals::default(); lanes], ..Totals::default() };
        Self { book, totals, queued: 0, held: Vec::new(), moving: false }
    }

    /// What was counted.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Counts anew from here on.
    pub fn restart(&mut self) {
        self.totals.restart();
    }

    /// Packets in the short lane now.
    #[must_use]
    pub fn short_lane(&self) -> u64 {
        self.totals.lanes.first().map_or(0, |lane| lane.backlog.packets)
    }

    /// A packet is about to be enqueued.
    #[inline]
    pub fn arriving(&mut self, packet: &Packet, ticket: B::Ticket, now: Nanos) {
        self.totals.arrived.count(packet.size);
        let id = packet.id as usize;
        if id >= self.held.len() {
            self.held.resize(id + 1, Held::default());
        }
        self.held[id] = Held { arrival: now, lane: None, ticket };
    }

    /// What is known of a packet, queued or just sent.
    #[inline]
    #[must_use]
    pub fn held(&self, packet: &Packet) -> Held<B::Ticket> {
        self.held[packet.id as usize]
    }

    /// From now on packets that leave the queue join another one, until they no longer do. They
    /// have neither been sent nor arrived.
    pub fn moving(&mut self, moving: bool) {
        self.moving = moving;
    }

    /// Takes a packet out of its lane's backlog.
    #[inline]
    fn leaves(&mut self, packet: &Packet) -> Held<B::Ticket> {
        let held = &mut self.held[packet.id as usize];
        if let Some(lane) = held.lane.take() {
            self.totals.lanes[usize::from(lane.0)].backlog.remove(packet);
            self.queued -= 1;
        }
        *held
    }
}

impl<B: Book> Sink for Account<B> {
    fn dropped(&mut self, packet: Packet, drop: Drop, now: Nanos) {
        let held = self.leaves(&packet);
        self.totals.drops.count(packet.size, drop);
        self.totals.dropped_sojourn_ns += u128::from(now.since(held.arrival).0);
        self.book.dropped(packet, drop, held);
    }

    #[inline]
    fn enqueued(&mut self, packet: &Packet, lane: Lane, _now: Nanos) {
        let held = &mut self.held[packet.id as usize];
        held.lane = Some(lane);
        let totals = self.totals.lane(lane);
        totals.enqueued += u64::from(!self.moving);
        totals.backlog.add(packet);
        self.queued += 1;
        self.totals.most_packets = self.totals.most_packets.max(self.queued);
        self.book.enqueued(packet, lane, *held);
    }

    #[inline]
    fn dequeued(&mut self, packet: &Packet, lane: Lane, now: Nanos) {
        let held = self.leaves(packet);
        if self.moving {
            return;
        }
        self.totals.lane(lane).sent.count(packet.size);
        self.totals.sojourn_ns += u128::from(now.since(held.arrival).0);
        self.book.dequeued(packet, lane, held, now);
    }

    #[inline]
    fn marked(&mut self, packet: &Packet, _now: Nanos) {
        self.totals.marked_packets += 1;
        self.book.marked(packet, self.held(packet));
    }

    #[inline]
    fn event(&mut self, event: Event) {
        match event {
            Event::FlowCreated { .. } => self.totals.flows_created += 1,
            Event::FlowRemoved { .. } => self.totals.flows_removed += 1,
            Event::FlowUntracked { .. } => self.totals.flows_untracked += 1,
            Event::Demoted { .. } => self.totals.demotions += 1,
            Event::Promoted { .. } => self.totals.promotions += 1,
            // These are told with their packet.
            Event::Enqueued { .. } | Event::Dequeued { .. } | Event::Marked { .. } => {}
        }
        self.book.flow(event);
    }
}

#[cfg(test)]
mod tests {
    use sched::{Backlog, DropReason, FlowId, Qdisc, Spec};

    use super::*;

    /// Writes down how long packets waited.
    #[derive(Default)]
    struct Waits(Vec<(u64, u64)>);

    impl Book for Waits {
        type Ticket = u64;

        fn dequeued(&mut self, _: &Packet, _: Lane, held: Held<u64>, now: Nanos) {
            self.0.push((held.ticket, now.since(held.arrival).0));
        }

        fn dropped(&mut self, _: Packet, _: Drop, _: Held<u64>) {}

        fn marked(&mut self, _: &Packet, _: Held<u64>) {}
    }

    struct Bench {
        qdisc: Box<dyn Qdisc<Account<Waits>>>,
        account: Account<Waits>,
    }

    impl Bench {
        fn new(spec: &str) -> Self {
            let spec: Spec = spec.parse().expect("a discipline");
            Self { qdisc: spec.build(1), account: Account::new(Waits::default(), 0) }
        }

        fn arrive(&mut self, id: u64, flow: u64, now: Nanos) {
            let packet = Packet::new(FlowId::new(flow), 100 + id as u32).with_id(id);
            self.account.arriving(&packet, id, now);
            self.qdisc.enqueue(packet, now, &mut self.account);
            self.check();
        }

        fn leave(&mut self, now: Nanos) -> bool {
            let left = self.qdisc.dequeue(now, &mut self.account).packet().is_some();
            self.check();
            left
        }

        /// What is counted is what the discipline says.
        fn check(&self) {
            let lanes = self.account.totals().lanes.iter();
            let counted = lanes.fold(Backlog::default(), |sum, lane| sum + lane.backlog);
            assert_eq!(counted, self.qdisc.backlog());
        }
    }

    #[test]
    fn what_arrives_is_sent_dropped_or_queued_under_every_discipline() {
        for info in sched::registry::ALL {
            let mut bench = Bench::new(info.name);
            for id in 0..3000 {
                bench.arrive(id, id * 7919 % 23, Nanos(id * 10_000));
                if id % 3 == 0 {
                    bench.leave(Nanos(id * 10_000));
                }
            }
            let totals = bench.account.totals();
            let (sent, lost) = (totals.sent(), totals.drops.total());
            let queued = bench.qdisc.backlog();
            assert_eq!(sent.packets + lost.packets + queued.packets, 3000, "{}", info.name);
            assert_eq!(
                sent.bytes + lost.bytes + queued.bytes,
                totals.arrived.bytes,
                "{}",
                info.name
            );
            assert_eq!(totals.queued(), queued.packets, "{}", info.name);
        }
    }

    #[test]
    fn a_packet_waits_from_its_arrival_until_it_leaves() {
        let mut bench = Bench::new("fifo:limit=2packets");
        for id in 0..3 {
            bench.arrive(id, 1, Nanos(id * 10));
        }
        bench.leave(Nanos(100));
        bench.leave(Nanos(200));
        assert_eq!(bench.account.book.0, [(0, 100), (1, 190)]);
        let totals = bench.account.totals();
        assert_eq!((totals.sojourn_ns, totals.dropped_sojourn_ns), (290, 0));
        assert_eq!(totals.drops.of(Lane::ONLY, DropReason::Full).packets, 1);
        assert_eq!((totals.most_packets, totals.lanes[0].enqueued), (2, 2));
    }

    #[test]
    fn what_moves_to_another_queue_has_neither_left_nor_arrived() {
        let mut bench = Bench::new("efd");
        (0..4).for_each(|id| bench.arrive(id, 1, Nanos(id)));
        bench.account.moving(true);
        let mut new: Box<dyn Qdisc<Account<Waits>>> = Spec::build(&"fifo".parse().unwrap(), 1);
        while let Some(packet) = bench.qdisc.dequeue(Nanos(50), &mut bench.account).packet() {
            new.enqueue(packet, Nanos(50), &mut bench.account);
        }
        bench.account.moving(false);
        bench.qdisc = new;
        bench.check();
        while bench.leave(Nanos(100)) {}
        let totals = bench.account.totals();
        assert_eq!((totals.sent().packets, totals.sojourn_ns), (4, 400 - 6));
        assert_eq!(totals.lanes.iter().map(|lane| lane.enqueued).sum::<u64>(), 4);
    }

    #[test]
    fn totals_before_and_after_a_restart_make_those_of_the_whole() {
        let mut bench = Bench::new("efd:threshold=2packets,limit=5packets");
        let mut whole = Bench::new("efd:threshold=2packets,limit=5packets");
        let mut before = Totals::default();
        for id in 0..40 {
            if id == 20 {
                before = bench.account.totals().clone();
                bench.account.restart();
                assert_eq!(bench.account.totals().queued(), before.queued());
                assert_eq!(bench.account.totals().sent().packets, 0);
            }
            for bench in [&mut bench, &mut whole] {
                bench.arrive(id, id % 3, Nanos(id));
                if id % 2 == 0 {
                    bench.leave(Nanos(id));
                }
            }
        }
        assert_eq!(&before.and(bench.account.totals()), whole.account.totals());
    }
}
