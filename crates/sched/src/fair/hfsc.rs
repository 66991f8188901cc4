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
use crate::discipline::{self, Discipline, Info, Needs, shared};
use crate::packet::Packet;
use crate::params::Params;
use crate::qdisc::{Qdisc, Sink};
use crate::units::Nanos;

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
        parts: None,
        params: &[shared::LIMIT, CLASSES, BPR, PBS, DROP],
        needs: Needs::NOTHING,
        keeps_order: discipline::always,
        work_conserving: discipline::always,
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
