use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::disciplines::sorted::FlowState;
use crate::interface::{Amount, Backlog, DropReason, Event, FlowId, Nanos, Packet};
use crate::testkit::{Bench, Random};

use super::Attained;

#[test]
fn a_flow_costs_thirty_two_bytes() {
    assert_eq!(size_of::<FlowState<Attained>>(), 32);
}

/// Flow 1 sends 4 packets of 1500 B, flow 2 two of 1000, flow 3 one of 500.
#[test]
fn the_flow_with_the_least_service_goes_first() {
    let mut las = Bench::new("las");
    for _ in 0..4 {
        las.enqueue(1, 1500); // ids 0 to 3, keys 0, 1500, 3000, 4500
    }
    las.enqueue(2, 1000); // id 4, key 0
    las.enqueue(2, 1000); // id 5, key 1000
    las.enqueue(3, 500); // id 6, key 0
    assert_eq!(las.depart(5), [0, 4, 6, 5, 1]);
    las.enqueue(3, 500); // id 7, key 500: flow 3 has received least
    las.enqueue(4, 1500); // id 8, key 0: a new flow goes ahead of everyone
    assert_eq!(las.drain(), [8, 7, 2, 3]);
    assert_eq!(las.dequeue(), None);
}

#[test]
fn a_full_queue_loses_the_largest_key_and_rolls_its_flow_back() {
    let mut las = Bench::new("las:limit=3packets");
    for _ in 0..3 {
        las.enqueue(1, 1000); // ids 0, 1, 2
    }
    las.enqueue(1, 1000); // id 3, key 3000: itself the largest
    assert_eq!(las.take_drops(), [(3, DropReason::Full)]);
    las.enqueue(2, 1000); // id 4, key 0: pushes out id 2, key 2000
    assert_eq!(las.take_drops(), [(2, DropReason::PushedOut)]);
    assert_eq!(las.depart(2), [0, 4]);
    // Without roll-back its key would be 4000; with it, 2000, and flow 2 at 2000 is later.
    las.enqueue(1, 1000); // id 5
    las.enqueue(2, 1000); // id 6, key 1000
    assert_eq!(las.drain(), [1, 6, 5]);
}

#[test]
fn charged_drops_count_as_service() {
    let mut las = Bench::new("las:limit=1packets,charge-drops=yes");
    las.enqueue(1, 1000); // id 0, key 0
    las.enqueue(1, 1000); // id 1, key 1000, lost
    assert_eq!(las.drain(), [0]);
    las.enqueue(1, 1000); // id 2, key 2000
    las.enqueue(2, 1500); // id 3, key 0: pushes it out
    assert_eq!(las.take_drops(), [(1, DropReason::Full), (2, DropReason::PushedOut)]);
}

/// A young flow with a long queue holds the largest key, an old one has most service.
#[test]
fn the_two_readings_of_the_victim_differ() {
    for (victim, lost) in [("key", 5), ("most-served", 1)] {
        let mut las = Bench::new(&format!("las:limit=5packets,victim={victim}"));
        las.enqueue(1, 1000); // id 0
        assert_eq!(las.drain(), [0]);
        las.enqueue(1, 1000); // id 1: key 1000, its flow was served 1000
        for _ in 0..4 {
            las.enqueue(2, 1000); // ids 2 to 5: keys 0 to 3000, its flow was served nothing
        }
        las.enqueue(3, 1000); // id 6
        assert_eq!(las.take_drops(), [(lost, DropReason::PushedOut)], "{victim}");
    }
}

#[test]
fn a_packet_that_can_never_fit_pushes_nobody_out() {
    let mut las = Bench::new("las:limit=3000b");
    las.enqueue(1, 1500);
    las.enqueue(1, 1500);
    las.enqueue(2, 3001);
    assert_eq!(las.take_drops(), [(2, DropReason::Full)]);
    assert_eq!(las.drain(), [0, 1]);
}

#[test]
fn idle_flows_are_forgotten_and_backlogged_ones_are_not() {
    let mut las = Bench::new("las:sweep=5s,idle=30s");
    las.enqueue(1, 1500);
    las.enqueue(2, 1500);
    assert_eq!(las.depart(1), [0]);
    las.advance(Nanos::from_secs(30));
    assert_eq!((las.depart(0).len(), las.qdisc.flows()), (0, 2));
    las.enqueue(3, 1500); // a sweep; nobody has been idle for more than 30 s
    assert_eq!(las.qdisc.flows(), 3);
    las.advance(Nanos::from_secs(5));
    las.enqueue(3, 1500);
    assert_eq!(las.qdisc.flows(), 2, "flow 1 is forgotten, flow 2 has a packet queued");
    assert!(las.log.events.contains(&Event::FlowRemoved { flow: FlowId::new(1) }));
    las.enqueue(1, 1500); // id 4: restarts at 0
    assert_eq!(las.drain(), [1, 2, 4, 3]);
    las.advance(Nanos::from_secs(36));
    assert_eq!((las.dequeue(), las.qdisc.flows()), (None, 0), "nothing stays behind");
}

#[test]
fn at_the_bound_an_idle_flow_gives_way_and_then_newcomers_are_untracked() {
    let mut las = Bench::new("las:flows=2");
    las.enqueue(1, 1500); // id 0
    las.advance(Nanos(1));
    las.enqueue(2, 1500); // id 1
    las.enqueue(3, 1500); // id 2: both are backlogged
    las.enqueue(3, 1500); // id 3
    let untracked = Event::FlowUntracked { flow: FlowId::new(3) };
    assert_eq!(las.log.events.iter().filter(|event| **event == untracked).count(), 2);
    // Nothing is counted for flow 3: both of its packets have key 0.
    las.enqueue(1, 1500); // id 4, key 1500
    assert_eq!(las.depart(4), [0, 1, 2, 3]);
    // Flow 2 has nothing queued and gives way.
    las.enqueue(4, 1500); // id 5
    assert!(las.log.events.contains(&Event::FlowRemoved { flow: FlowId::new(2) }));
    assert_eq!(las.drain(), [5, 4]);
}

#[test]
fn what_is_not_live_is_refused_by_name() {
    let mut las = Bench::new("las");
    let error = las.change("las:flows=9").unwrap_err();
    assert_eq!(format!("{error}"), "las: flows cannot change while the discipline runs");
    assert!(las.change("las:charge-drops=yes").is_err());
    assert!(las.change("las:victim=most-served,sweep=inf,idle=1s,limit=9kb").is_ok());
}

#[test]
fn a_lowered_limit_loses_nothing_and_refuses_arrivals() {
    let mut las = Bench::new("las:limit=4packets");
    for _ in 0..4 {
        las.enqueue(1, 1500);
    }
    las.change("las:limit=2packets").unwrap();
    las.enqueue(2, 1500);
    assert_eq!(las.take_drops(), [(4, DropReason::Full)]);
    assert_eq!(las.depart(2), [0, 1]);
    las.enqueue(2, 1500); // id 5 pushes out id 3
    assert_eq!(las.take_drops(), [(3, DropReason::PushedOut)]);
    assert_eq!(las.drain(), [5, 2]);
}

/// Two flows that are backlogged since equal counts never differ by more than a packet.
#[test]
fn backlogged_flows_share_to_within_a_packet() {
    let mut random = Random(11);
    let mut las = Bench::new("las:limit=100000packets");
    for _ in 0..2000 {
        let (a, b) = (random.below(1500), random.below(1500));
        las.enqueue(1, 1 + a as u32);
        las.enqueue(2, 1 + b as u32);
    }
    let mut served = BTreeMap::from([(1, 0i64), (2, 0)]);
    for _ in 0..3000 {
        let packet = las.dequeue().unwrap();
        *served.get_mut(&packet.flow.get()).unwrap() += i64::from(packet.size);
        assert!((served[&1] - served[&2]).abs() <= 1500);
    }
}

/// What both models share: the limit, and when a flow is forgotten.
struct Rules {
    limit: Amount,
    charge_drops: bool,
    most_served: bool,
    sweep: Nanos,
    idle: Nanos,
}

/// An obvious and slow LAS.
trait Model {
    fn enqueue(&mut self, packet: Packet, now: Nanos) -> Vec<(u64, DropReason)>;
    fn dequeue(&mut self, now: Nanos) -> Option<u64>;
    fn rules(&mut self) -> &mut Rules;
}

/// One queue of packets, each stamped with the bytes its flow had attained.
struct Stamped {
    rules: Rules,
    queue: Vec<(u64, u64, Packet)>,
    attained: BTreeMap<FlowId, (u64, Nanos)>,
    arrivals: u64,
    next_sweep: Nanos,
}

impl Stamped {
    fn backlog(&self) -> Backlog {
        let mut backlog = Backlog::default();
        self.queue.iter().for_each(|(_, _, packet)| backlog.add(packet));
        backlog
    }

    fn sweep(&mut self, now: Nanos) {
        if now >= self.next_sweep {
            self.next_sweep = now + self.rules.sweep;
            let (queue, idle) = (&self.queue, self.rules.idle);
            self.attained.retain(|flow, (_, last)| {
                queue.iter().any(|(_, _, p)| p.flow == *flow) || now.since(*last) <= idle
            });
        }
    }
}

impl Model for Stamped {
    fn enqueue(&mut self, packet: Packet, now: Nanos) -> Vec<(u64, DropReason)> {
        self.sweep(now);
        let refuse = self.backlog().must_refuse(self.rules.limit, &packet);
        let (attained, last) = self.attained.entry(packet.flow).or_default();
        *last = now;
        if refuse {
            *attained += if self.rules.charge_drops { u64::from(packet.size) } else { 0 };
            return [(packet.id, DropReason::Full)].into();
        }
        self.queue.push((*attained, self.arrivals, packet));
        *attained += u64::from(packet.size);
        let mut drops = Vec::new();
        while self.backlog().in_unit_of(self.rules.limit) > self.rules.limit.value() {
            let end = self.queue.iter().enumerate().max_by_key(|(_, q)| (q.0, q.1)).unwrap().0;
            let (_, index, victim) = self.queue.remove(end);
            let is_arrival = index == self.arrivals;
            let reason = if is_arrival { DropReason::Full } else { DropReason::PushedOut };
            drops.push((victim.id, reason));
            if !self.rules.charge_drops {
                self.attained.get_mut(&victim.flow).unwrap().0 -= u64::from(victim.size);
            }
        }
        self.arrivals += 1;
        drops
    }

    fn dequeue(&mut self, now: Nanos) -> Option<u64> {
        self.sweep(now);
        let first = self.queue.iter().enumerate().min_by_key(|(_, q)| (q.0, q.1))?.0;
        Some(self.queue.remove(first).2.id)
    }

    fn rules(&mut self) -> &mut Rules {
        &mut self.rules
    }
}

/// A queue per flow, and the bytes the flow was served.
struct PerFlow {
    rules: Rules,
    flows: BTreeMap<FlowId, ServedFlow>,
    arrivals: u64,
    next_sweep: Nanos,
}

#[derive(Default)]
struct ServedFlow {
    served: u64,
    queue: VecDeque<(u64, Packet)>,
    last: Nanos,
}

impl PerFlow {
    fn backlog(&self) -> Backlog {
        let mut backlog = Backlog::default();
        let queues = self.flows.values().flat_map(|flow| &flow.queue);
        queues.for_each(|(_, packet)| backlog.add(packet));
        backlog
    }

    fn sweep(&mut self, now: Nanos) {
        if now >= self.next_sweep {
            self.next_sweep = now + self.rules.sweep;
            let idle = self.rules.idle;
            self.flows.retain(|_, f| !f.queue.is_empty() || now.since(f.last) <= idle);
        }
    }
}

impl Model for PerFlow {
    fn enqueue(&mut self, packet: Packet, now: Nanos) -> Vec<(u64, DropReason)> {
        self.sweep(now);
        let refuse = self.backlog().must_refuse(self.rules.limit, &packet);
        let flow = self.flows.entry(packet.flow).or_default();
        flow.last = now;
        if refuse {
            return [(packet.id, DropReason::Full)].into();
        }
        flow.queue.push_back((self.arrivals, packet));
        let mut drops = Vec::new();
        while self.backlog().in_unit_of(self.rules.limit) > self.rules.limit.value() {
            let most_served = self.rules.most_served;
            let rank = |flow: &ServedFlow| {
                let ahead: u64 = flow.queue.iter().map(|(_, p)| u64::from(p.size)).sum();
                let tail = flow.queue.back()?;
                let ahead = ahead - u64::from(tail.1.size);
                Some((flow.served + if most_served { 0 } else { ahead }, tail.0))
            };
            let victim = self.flows.values_mut().max_by_key(|flow| rank(flow)).unwrap();
            let (index, packet) = victim.queue.pop_back().unwrap();
            let is_arrival = index == self.arrivals;
            let reason = if is_arrival { DropReason::Full } else { DropReason::PushedOut };
            drops.push((packet.id, reason));
        }
        self.arrivals += 1;
        drops
    }

    fn dequeue(&mut self, now: Nanos) -> Option<u64> {
        self.sweep(now);
        let backlogged = self.flows.values_mut().filter(|flow| !flow.queue.is_empty());
        let next = backlogged.min_by_key(|flow| (flow.served, flow.queue[0].0))?;
        let (_, packet) = next.queue.pop_front()?;
        next.served += u64::from(packet.size);
        Some(packet.id)
    }

    fn rules(&mut self) -> &mut Rules {
        &mut self.rules
    }
}

fn stamped(rules: Rules) -> Stamped {
    let next_sweep = rules.sweep;
    Stamped { rules, queue: Vec::new(), attained: BTreeMap::new(), arrivals: 0, next_sweep }
}

fn per_flow(rules: Rules) -> PerFlow {
    let next_sweep = rules.sweep;
    PerFlow { rules, flows: BTreeMap::new(), arrivals: 0, next_sweep }
}

/// The same random operations on the discipline and on a model: every answer is the same.
fn compare(seed: u64, options: &str, make: impl Fn(Rules) -> Box<dyn Model>) {
    let mut random = Random(seed);
    let flows = 1 + random.below(12);
    let in_bytes = random.below(3) == 0;
    let limit = 1 + random.below(20);
    let limit = if in_bytes { Amount::Bytes(limit * 700) } else { Amount::Packets(limit) };
    let spec =
        |limit: Amount| -> String { format!("las:limit={limit},sweep=1ms,idle=3ms{options}") };
    let mut las = Bench::new(&spec(limit));
    let mut model = make(Rules {
        limit,
        charge_drops: options.contains("charge-drops=yes"),
        most_served: options.contains("most-served"),
        sweep: Nanos::from_millis(1),
        idle: Nanos::from_millis(3),
    });
    let mut arrivals_in_ten = 5;
    for step in 0..1500 {
        las.advance(Nanos(random.below(40_000)));
        match random.below(400) {
            0 => arrivals_in_ten = 3 + random.below(5),
            1 => las.advance(Nanos::from_millis(random.below(5))),
            2 => {
                let lowered = 1 + random.below(limit.value());
                let limit =
                    if in_bytes { Amount::Bytes(lowered) } else { Amount::Packets(lowered) };
                las.change(&spec(limit)).unwrap();
                model.rules().limit = limit;
            }
            _ => {}
        }
        if random.below(10) < arrivals_in_ten {
            let size = [40, 576, 1000, 1500][random.below(4) as usize];
            let segments = if random.below(9) == 0 { 1 + random.below(4) as u16 } else { 1 };
            let flow = FlowId::new(1 + random.below(flows));
            let packet = Packet::new(flow, size).with_segments(segments);
            let id = las.offer(packet);
            let expected = model.enqueue(packet.with_id(id), las.now);
            assert_eq!(las.take_drops(), expected, "seed {seed}, step {step}");
        } else {
            let departed = las.dequeue().map(|packet| packet.id);
            assert_eq!(departed, model.dequeue(las.now), "seed {seed}, step {step}");
        }
    }
}

#[test]
fn it_is_the_queue_of_stamped_packets() {
    for seed in 0..300 {
        compare(seed, "", |rules| Box::new(stamped(rules)));
        compare(seed, ",charge-drops=yes", |rules| Box::new(stamped(rules)));
    }
}

#[test]
fn it_is_the_queue_per_flow_with_the_least_service_first() {
    for seed in 0..300 {
        compare(seed, "", |rules| Box::new(per_flow(rules)));
        let options = ",victim=most-served";
        compare(seed, options, |rules| Box::new(per_flow(rules)));
    }
}

/// Few places for many flows: whatever is untracked or evicted, nothing is overtaken within
/// its flow, and nothing is lost or invented.
#[test]
fn order_within_a_flow_survives_a_table_that_is_too_small() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut las = Bench::new(&format!("las:flows={},limit=40packets", 1 + seed % 5));
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut arrivals, mut departures) = (0, 0);
        for _ in 0..2000 {
            las.advance(Nanos(1));
            if random.below(100) < 52 {
                las.enqueue(1 + random.below(12), 1 + random.below(1500) as u32);
                arrivals += 1;
            } else if let Some(packet) = las.dequeue() {
                departures += 1;
                let before = last.insert(packet.flow.get(), packet.id);
                assert!(before.is_none_or(|id| id < packet.id), "seed {seed}");
            }
        }
        let dropped = las.log.drops.len() as u64;
        assert_eq!(arrivals, departures + dropped + las.qdisc.backlog().packets);
        assert!(las.qdisc.flows() <= 5);
    }
}
