//! H-FSC, hierarchical fair service curve: link sharing among classes, and inside them.
//!
//! Classes form a tree. Each has a concave curve, as flows have in `fsc`; where several children of
//! a class are backlogged, the one whose service is reached earliest by its curve is served, from
//! the root down. What a class leaves goes to its siblings before it goes to others. In a class at
//! the bottom, flows share by their own curves (`bpr`, `pbs`): there it is `fsc`.
//!
//! A flow is in the class that has the DSCP of its first packet, until it is forgotten: so its
//! packets keep their order. Flows with another DSCP are spread, by their fingerprints, over the
//! classes at the bottom that name none.
//!
//! This is the link-sharing half of H-FSC. There is no real-time criterion: curves say how the
//! link is shared, and guarantee no delay.
//!
//! Cost: that of `fsc`, and per level a look at each child.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::curve::{Clock, Curve, Position};
use super::fsc::{BPR, PBS, curve_of};
use super::group::{Group, Member};
use super::tree::{CLASSES, Tree};
use super::{DROP, Fair, Joined, Queues, Service};
use crate::interface::{Discipline, Info, Nanos, Packet, Params, Qdisc, Sink, shared};

/// Hierarchical fair service curve.
pub(crate) struct Hfsc {
    tree: Tree,
    /// By number: what changes of a class. The first is the root.
    classes: Vec<Class>,
    /// The curve of flows.
    curve: [Curve; 1],
    /// Flows of the classes at the bottom.
    groups: Vec<Group>,
}

/// A class at work.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    /// Among its siblings.
    position: Position,
    /// Of its children.
    clock: Clock,
    /// Its children with something queued; at the bottom 1 if there is something.
    active: u32,
}

impl Discipline for Hfsc {
    const INFO: Info = Info {
        name: "h-fsc",
        summary: "hierarchical fair service curve: a tree of classes by DSCP, fsc inside them",
        source: "Stoica, Zhang, Ng, \"A hierarchical fair service curve algorithm for link-sharing, \
                 real-time and priority services\", 1997 (its link-sharing part)",
        params: &[shared::LIMIT.any(), CLASSES.any(), BPR.any(), PBS.any(), DROP.any()],
        ..Info::PLAIN
    };

    fn build<S: Sink + 'static>(params: &Params, _seed: u64) -> Box<dyn Qdisc<S>> {
        Fair::<Self>::boxed(params)
    }
}

impl Hfsc {
    /// A class has something to send, after it had not.
    fn activate(&mut self, class: usize) {
        let mut child = class;
        self.classes[child].active = 1;
        while let Some(parent) = self.tree.parent(child) {
            let clock = self.classes[parent].clock;
            let position = &mut self.classes[child].position;
            position.restart(self.tree.curve(child), clock.now());
            let time = position.time();
            let above = &mut self.classes[parent];
            above.clock.reaches(time);
            above.active += 1;
            if above.active > 1 {
                break;
            }
            child = parent;
        }
    }

    /// A class has nothing to send any more.
    fn deactivate(&mut self, class: usize) {
        let mut child = class;
        self.classes[child].active = 0;
        while let Some(parent) = self.tree.parent(child) {
            let above = &mut self.classes[parent];
            above.active -= 1;
            if above.active > 0 {
                break;
            }
            above.clock.rest();
            child = parent;
        }
    }

    /// The class at the bottom that is served next.
    fn descend(&self) -> usize {
        let mut class = 0;
        while let Some(children) = self.tree.children(class) {
            let active = children.iter().filter(|child| self.classes[**child].active > 0);
            let least = active.min_by_key(|child| self.classes[**child].position.time());
            let Some(least) = least else { break };
            class = *least;
        }
        class
    }

    /// A class at the bottom has sent so many bytes.
    fn charge(&mut self, class: usize, bytes: u32) {
        let mut child = class;
        while let Some(parent) = self.tree.parent(child) {
            let position = &mut self.classes[child].position;
            let before = position.time();
            position.serve(self.tree.curve(child), bytes);
            let after = position.time();
            let clock = &mut self.classes[parent].clock;
            clock.serves(before);
            clock.reaches(after);
            if let Some(base) = clock.excess() {
                self.lower(parent, base);
            }
            child = parent;
        }
    }

    #[cold]
    fn lower(&mut self, parent: usize, base: u64) {
        self.classes[parent].clock.lower(base);
        for child in self.tree.children(parent).unwrap_or_default() {
            self.classes[*child].position.lower(base);
        }
    }

    fn after_departure<S: Sink>(&mut self, queues: &mut Queues<Member>, group: u8, sink: &mut S) {
        if self.groups[usize::from(group)].is_idle() {
            self.deactivate(self.tree.class_of(group));
        }
        if queues.packets() == 0 {
            self.groups.iter_mut().for_each(|group| group.restart(queues, sink));
            self.classes.fill(Class::default());
        }
    }
}

impl Service for Hfsc {
    type Flow = Member;

    fn new(params: &Params) -> Self {
        let tree = Tree::from_params(params);
        let classes = alloc::vec![Class::default(); tree.classes()];
        let groups = (0..tree.groups()).map(|_| Group::default()).collect();
        Self { tree, classes, curve: [curve_of(params)], groups }
    }

    fn change(&mut self, queues: &Queues<Member>, params: &Params) {
        self.curve = [curve_of(params)];
        self.groups.iter_mut().for_each(|group| group.change(queues, &self.curve));
    }

    fn joined(&mut self, queues: &mut Queues<Member>, joined: Joined<'_>) {
        let number = match joined.is_new {
            true => self.tree.group_of(joined.packet),
            false => queues.get(joined.slot).group,
        };
        let group = &mut self.groups[usize::from(number)];
        let was_idle = group.is_idle();
        group.joined(queues, &self.curve, &joined, (0, number));
        if was_idle {
            self.activate(self.tree.class_of(number));
        }
    }

    fn next<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        _now: Nanos,
        _sink: &mut S,
    ) -> Option<u32> {
        let group = self.tree.group_at(self.descend())?;
        self.groups[usize::from(group)].next(queues)
    }

    fn served<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        slot: u32,
        packet: &Packet,
        _now: Nanos,
        sink: &mut S,
    ) {
        let number = queues.get(slot).group;
        let group = &mut self.groups[usize::from(number)];
        group.served(queues, &self.curve, slot, packet.size, sink);
        group.lower_if_due(queues, number);
        self.charge(self.tree.class_of(number), packet.size);
        self.after_departure(queues, number, sink);
    }

    fn pushed_out<S: Sink>(
        &mut self,
        queues: &mut Queues<Member>,
        slot: u32,
        _packet: &Packet,
        sink: &mut S,
    ) {
        if queues.is_idle(slot) {
            let number = queues.get(slot).group;
            self.groups[usize::from(number)].emptied(queues, &self.curve, slot, sink);
            self.after_departure(queues, number, sink);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::format;

    use super::*;
    use crate::interface::FlowId;
    use crate::testkit::{Bench, Random};

    const TREE: &str = "h-fsc:limit=100000packets,bpr=1,\
                        classes=voice=2@ef+office=5(web=3@af21+mail=1@af11)+guests=1";
    /// The DSCP of voice, web, mail and guests.
    const CODES: [u8; 4] = [46, 18, 10, 0];

    fn offer(queue: &mut Bench, class: usize, flow: u64, size: u32) {
        let mut packet = Packet::new(FlowId::new(10 * class as u64 + flow + 1), size);
        packet.dscp = CODES[class];
        queue.offer(packet);
    }

    /// Bytes of each class among the next `packets`, every one of which is replaced.
    fn served(queue: &mut Bench, packets: u32) -> [u64; 4] {
        let (mut served, mut random) = ([0; 4], Random(1));
        for _ in 0..packets {
            let sent = queue.dequeue().expect("everybody is backlogged");
            let class = (sent.flow.get() - 1) as usize / 10;
            served[class] += u64::from(sent.size);
            offer(queue, class, (sent.flow.get() - 1) % 10, 40 + random.below(1461) as u32);
        }
        served
    }

    #[test]
    fn classes_have_their_shares_whatever_their_flows() {
        for (active, expected) in [
            (&[0, 1, 2, 3][..], [2.0 / 8.0, 5.0 / 8.0 * 0.75, 5.0 / 8.0 * 0.25, 1.0 / 8.0]),
            // What mail leaves is for web; what the whole office leaves is for the others.
            (&[0, 1, 3], [2.0 / 8.0, 5.0 / 8.0, 0.0, 1.0 / 8.0]),
            (&[0, 3], [2.0 / 3.0, 0.0, 0.0, 1.0 / 3.0]),
            (&[2], [0.0, 0.0, 1.0, 0.0]),
        ] {
            let mut queue = Bench::new(TREE);
            for class in active {
                // One flow of voice, seven of guests.
                for flow in 0..=2 * *class as u64 {
                    (0..3).for_each(|_| offer(&mut queue, *class, flow, 1000));
                }
            }
            let served = served(&mut queue, 20_000);
            let total = served.iter().sum::<u64>() as f64;
            for (class, share) in expected.into_iter().enumerate() {
                let found = served[class] as f64 / total;
                assert!((found - share).abs() < 0.002, "{active:?}: {found} is not {share}");
            }
        }
    }

    #[test]
    fn flows_in_a_class_have_equal_shares() {
        let mut queue = Bench::new(TREE);
        for (class, flow) in [(1, 0), (1, 1), (1, 2), (3, 0)] {
            (0..4000).for_each(|_| offer(&mut queue, class, flow, 500));
        }
        let mut packets: BTreeMap<u64, u32> = BTreeMap::new();
        for _ in 0..6000 {
            *packets.entry(queue.dequeue().unwrap().flow.get()).or_default() += 1;
        }
        // Five sixths for web, in three.
        for flow in 11..14 {
            assert!(packets[&flow].abs_diff(6000 * 5 / 18) <= 2, "{packets:?}");
        }
    }

    #[test]
    fn a_flow_stays_in_its_class_whatever_is_marked_later() {
        let mut queue = Bench::new("h-fsc:classes=voice=1000@ef+rest=1");
        let mark = |dscp, flow| {
            let mut packet = Packet::new(FlowId::new(flow), 1000);
            packet.dscp = dscp;
            packet
        };
        for dscp in [0, 46, 0, 46] {
            queue.offer(mark(dscp, 7)); // ids 0 to 3
        }
        queue.offer(mark(46, 8)); // id 4: the only one in its class
        queue.offer(mark(46, 8)); // id 5
        assert_eq!(queue.depart(3)[..], [4, 0, 5]);
        assert_eq!(queue.drain(), [1, 2, 3]);
    }

    #[test]
    fn unmarked_flows_are_spread_over_the_classes_without_codes() {
        let classes = "classes=a=1+b=1+c=1@ef";
        let mut queue = Bench::new(&format!("h-fsc:limit=100000packets,bpr=1,{classes}"));
        // A hundred flows in either class, and one in the third: each of these has a hundredth of a
        // third, and that one has a third.
        for flow in 0..200u64 {
            (0..9).for_each(|_| {
                queue.enqueue((flow << 32) + flow + 1, 1000);
            });
        }
        for _ in 0..600 {
            let mut packet = Packet::new(FlowId::new(1 << 60), 1000);
            packet.dscp = 46;
            queue.offer(packet);
        }
        let ids = queue.depart(900);
        let third = ids.iter().filter(|id| **id >= 1800).count();
        assert!(third.abs_diff(300) <= 1, "{third}");
        let of_a = ids.iter().filter(|id| **id < 1800 && **id / 9 % 2 == 0).count();
        assert!(of_a.abs_diff(300) <= 1, "{of_a}");
    }
}
