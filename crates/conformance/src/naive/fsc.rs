//! Fair service curves by their definition: every curve that was ever begun, and the least of them;
//! flows alone (`fsc`), and in a tree of classes (`h-fsc`).

use std::collections::HashMap;

use sched::{Event, FlowId, Nanos, Packet, Params};

use super::buffer::{Buffer, NEAR, least_or_said};
use super::{Model, marks};
use crate::run::Step;

/// Slopes, and the size of the burst.
type Curve = (f64, f64, f64);

/// The virtual time after its beginning at which a curve has given so much.
fn inverse((steep, flat, burst): Curve, service: f64) -> f64 {
    if service <= burst { service / steep } else { burst / steep + (service - burst) / flat }
}

/// Somebody's service, and the curves that were begun: when, at which service.
#[derive(Clone, Default)]
struct Share {
    curve: Curve,
    service: f64,
    begun: Vec<(f64, f64)>,
}

impl Share {
    fn new(curve: Curve) -> Self {
        Self { curve, ..Self::default() }
    }

    /// When the least of all the curves gives what was served: the latest of the times at which
    /// each of them does.
    fn time(&self) -> f64 {
        let reached =
            |(time, service): &(f64, f64)| time + inverse(self.curve, self.service - service);
        self.begun.iter().map(reached).fold(0.0, f64::max)
    }

    fn begin(&mut self, time: f64) {
        self.begun.push((time, self.service));
    }

    /// Whether a curve begun at `time` would be the least of all from there on: it is where it
    /// begins, and at the end of its burst.
    fn is_as_new(&self, time: f64) -> bool {
        let (_, _, burst) = self.curve;
        [0.0, burst].into_iter().all(|more| {
            let own = Self { service: self.service + more, ..self.clone() };
            own.time() <= time + inverse(self.curve, more) + NEAR
        })
    }
}

/// The virtual time of those with the same parent.
#[derive(Clone, Copy, Default)]
struct Clock {
    least_served: f64,
    largest: f64,
}

impl Clock {
    fn now(self) -> f64 {
        f64::midpoint(self.least_served, self.largest)
    }

    fn serve(&mut self, share: &mut Share, size: u32) {
        self.least_served = self.least_served.max(share.time());
        share.service += f64::from(size);
        self.largest = self.largest.max(share.time());
    }

    fn begin(&mut self, share: &mut Share) {
        share.begin(self.now());
        self.largest = self.largest.max(share.time());
    }

    fn rest(&mut self) {
        self.least_served = self.largest;
    }
}

/// The model of `fsc` and `h-fsc`. A node of the tree is a path of names; flows are below.
pub struct Fsc {
    buffer: Buffer,
    /// The curve of flows for which there is no other.
    curve: Curve,
    curves: String,
    classes: &'static [Class],
    shares: HashMap<String, Share>,
    clocks: HashMap<String, Clock>,
    /// By flow: its class.
    homes: HashMap<FlowId, &'static str>,
}

/// Path, curve, and the code points of a class at the bottom, or whether it is for the rest.
type Class = (&'static str, &'static str, Option<&'static [u8]>);

/// The trees that the model knows: the default of `classes` and its examples.
const TREES: [(&str, &[Class]); 7] = [
    (
        "marked=1@ef/cs5/cs6/cs7+rest=1",
        &[("/m", "1", Some(&[46, 40, 48, 56])), ("/r", "1", Some(&[]))],
    ),
    ("all=1", &[("/all", "1", Some(&[]))]),
    ("a=3+b=1", &[("/a", "3", Some(&[])), ("/b", "1", Some(&[]))]),
    ("voice=2x4/6000b@ef+rest=1", &[("/v", "2x4/6000b", Some(&[46])), ("/r", "1", Some(&[]))]),
    ("a=1(b=1(c=5))", &[("/a", "1", None), ("/a/b", "1", None), ("/a/b/c", "5", Some(&[]))]),
    (
        "a=2(b=3(c=1@ef+d=2)+e=1)+f=1",
        &[
            ("/a", "2", None),
            ("/a/b", "3", None),
            ("/a/b/c", "1", Some(&[46])),
            ("/a/b/d", "2", Some(&[])),
            ("/a/e", "1", Some(&[])),
            ("/f", "1", Some(&[])),
        ],
    ),
    (
        "office=5(web=3@be+mail=1)+guests=1x2/3000b(one=1+two=2x8/1500b@cs1)",
        &[
            ("/o", "5", None),
            ("/o/w", "3", Some(&[0])),
            ("/o/m", "1", Some(&[])),
            ("/g", "1x2/3000b", None),
            ("/g/1", "1", Some(&[])),
            ("/g/2", "2x8/1500b", Some(&[8])),
        ],
    ),
];

impl Fsc {
    /// An empty queue.
    ///
    /// # Panics
    /// If the tree of classes is not one that it knows.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let classes: &[Class] = if params.has("classes") {
            let text = params.text("classes");
            TREES.iter().find(|(tree, _)| *tree == text).expect("a tree of the examples").1
        } else {
            &[("", "1", Some(&[]))]
        };
        let curves = if params.has("curves") { params.text("curves") } else { "none" };
        Self {
            buffer: Buffer::new(params),
            curve: curve_of(params),
            curves: curves.to_owned(),
            classes,
            shares: HashMap::new(),
            clocks: HashMap::new(),
            homes: HashMap::new(),
        }
    }

    fn class_of(&self, packet: &Packet) -> &'static str {
        let at_bottom =
            || self.classes.iter().filter_map(|(path, _, codes)| Some((*path, (*codes)?)));
        let named = at_bottom().find(|(_, codes)| codes.contains(&packet.dscp));
        let others: Vec<_> = at_bottom().filter(|(_, codes)| codes.is_empty()).collect();
        let spread = || others[(packet.flow.get() >> 32) as usize % others.len()];
        named.unwrap_or_else(spread).0
    }

    /// The nodes from a flow up to below the root, each with its parent.
    fn line(&self, flow: FlowId) -> Vec<(String, String)> {
        let home = self.homes[&flow];
        let mut line = vec![(format!("{home}:{}", flow.get()), home.to_owned())];
        while let Some((parent, _)) = line[line.len() - 1].1.clone().rsplit_once('/') {
            line.push((line[line.len() - 1].1.clone(), parent.to_owned()));
        }
        line
    }

    /// Flows with something queued below a node.
    fn is_active(&self, node: &str) -> bool {
        let flows = self.homes.keys().filter(|flow| self.buffer.is_backlogged(**flow));
        flows
            .into_iter()
            .any(|flow| self.line(*flow).iter().any(|(own, parent)| own == node || parent == node))
    }

    /// Forgets whom the discipline does, if they are as good as new; when, is its own business.
    fn forget(&mut self, said: &Step) {
        for event in said.events() {
            if let Event::FlowRemoved { flow } = event
                && !self.buffer.is_backlogged(flow)
                && self.homes.contains_key(&flow)
            {
                let (node, parent) = self.line(flow).swap_remove(0);
                if self.shares[&node].is_as_new(self.clocks[&parent].now()) {
                    self.shares.remove(&node);
                    self.homes.remove(&flow);
                }
            }
        }
    }

    /// Notes what has become idle by the loss or departure of a packet.
    fn settle(&mut self, packet: &Packet) {
        if self.buffer.is_empty() {
            self.shares.clear();
            self.clocks.clear();
            self.homes.clear();
            return;
        }
        for (_, parent) in self.line(packet.flow) {
            if !self.is_active(&parent) {
                self.clocks.entry(parent).or_default().rest();
            }
        }
    }
}

fn curve_of(params: &Params) -> Curve {
    (params.number("bpr") as f64 / 1000.0, 1.0, params.number("pbs") as f64)
}

impl Model for Fsc {
    fn enqueue(&mut self, packet: Packet, _now: Nanos, said: &Step) -> Vec<u64> {
        if !self.buffer.admits(&packet) {
            return vec![packet.id];
        }
        let class = self.class_of(&packet);
        self.homes.entry(packet.flow).or_insert(class);
        for (node, parent) in self.line(packet.flow) {
            if self.is_active(&node) {
                break;
            }
            let own = self.classes.iter().find(|(path, ..)| *path == node);
            let marked = (self.curves != "none")
                .then(|| marks::of_code(&self.curves, packet.dscp))
                .flatten();
            let of_flow = marked.map_or(self.curve, marks::curve);
            let curve = own.map_or(of_flow, |(_, curve, _)| marks::curve(curve));
            let share = self.shares.entry(node).or_insert_with(|| Share::new(curve));
            self.clocks.entry(parent).or_default().begin(share);
        }
        self.buffer.join(packet);
        let mut lost = Vec::new();
        while let Some(packet) = self.buffer.overflow() {
            self.settle(&packet);
            lost.push(packet.id);
        }
        self.forget(said);
        lost
    }

    fn dequeue(&mut self, _now: Nanos, said: &Step) -> Option<u64> {
        // From the root down: the heads of the flows that are left at each level.
        let mut heads = self.buffer.heads();
        let said_id = said.departed().map(|packet| packet.id);
        let deepest = heads.iter().map(|head| self.line(head.flow).len()).max()?;
        let mut parent = String::new();
        for _ in 0..deepest {
            let below = |head: &Packet| {
                let line = self.line(head.flow);
                line.into_iter().find(|(_, above)| *above == parent).map(|(node, _)| node)
            };
            let ranked: Vec<_> = heads
                .iter()
                .filter_map(|head| Some((self.shares[&below(head)?].time(), head.id)))
                .collect();
            if ranked.is_empty() {
                break;
            }
            let chosen = least_or_said(&ranked, said_id)?;
            let chosen = heads.iter().find(|head| head.id == chosen).and_then(below)?;
            heads.retain(|head| below(head).as_ref() == Some(&chosen));
            parent = chosen;
        }
        let next = heads.first()?.id;
        let packet = self.buffer.take(next);
        for (node, parent) in self.line(packet.flow) {
            let share = self.shares.get_mut(&node).expect("it is active");
            self.clocks.entry(parent).or_default().serve(share, packet.size);
        }
        self.settle(&packet);
        self.forget(said);
        Some(next)
    }

    fn change(&mut self, params: &Params) {
        self.buffer.change(params);
    }

    fn flows(&self) -> usize {
        self.homes.len()
    }
}
