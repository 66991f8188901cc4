//! The books of a run: what is queued, in which lane, and which flows have an entry.
//!
//! Kept from what the discipline says alone; whatever contradicts the books is a violation.
//! This covers G1 (conservation, in total and per flow), G2 (no duplicates or inventions) and
//! G8 (counters), and that the events tell the same story as drops and departures.

use std::collections::{BTreeMap, BTreeSet};

use sched::{Backlog, Dequeue, DropReason, Event, FlowId, Lane, Packet};

use crate::run::{Call, Record, Step};

/// What went wrong, in words.
pub type Violation = String;

/// Fails with the formatted message unless the condition holds.
macro_rules! hold {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}

pub(crate) use hold;

/// The state of a queue as its own reports have it.
#[derive(Clone, Debug, Default, Hash)]
pub struct Ledger {
    /// Queued packets by id, which is the order of arrival, with their lanes.
    pub queued: BTreeMap<u64, (Packet, Lane)>,
    /// Flows that have an entry in the flow table.
    pub entries: BTreeSet<FlowId>,
    /// Flows that count as long.
    pub demoted: BTreeSet<FlowId>,
    /// Queued packets that are to leave with a mark.
    pub marked: BTreeSet<u64>,
    /// The packet that left last, and its lane.
    pub on_wire: Option<(Packet, Lane)>,
    /// Ids that arrived so far are below this.
    arrivals: u64,
}

impl Ledger {
    /// Enters a step into the books.
    ///
    /// # Errors
    /// The contradiction, if there is one.
    pub fn enter(&mut self, step: &Step) -> Result<(), Violation> {
        let mut enqueued = None;
        let mut dequeued = None;
        let mut lost = false;
        let mut marked = None;
        for record in &step.records {
            match *record {
                Record::Dropped(packet, drop) => {
                    self.marked.remove(&packet.id);
                    if let Some((arrival, lane)) = self.queued.remove(&packet.id) {
                        hold!(same(&arrival, &packet), "{arrival:?} came back as {packet:?}");
                        hold!(drop.lane == lane, "{packet:?} was in {lane:?}, not in {drop:?}");
                        hold!(drop.reason != DropReason::Full, "{packet:?} had been accepted");
                        continue;
                    }
                    let arrival = self.expect_arrival(step, packet.id)?;
                    hold!(same(&arrival, &packet), "{arrival:?} came back as {packet:?}");
                    hold!(!lost && enqueued.is_none(), "{packet:?} was lost or sent before");
                    hold!(
                        drop.reason != DropReason::PushedOut,
                        "{packet:?} never was queued: {drop:?}"
                    );
                    lost = true;
                }
                Record::Event(Event::Enqueued { packet, flow, lane }) => {
                    let arrival = self.expect_arrival(step, packet)?;
                    hold!(arrival.flow == flow, "{arrival:?} joined as flow {flow:?}");
                    hold!(!lost && enqueued.is_none(), "{arrival:?} joined twice");
                    enqueued = Some(packet);
                    self.queued.insert(packet, (arrival, lane));
                }
                Record::Event(Event::Dequeued { packet, flow, lane }) => {
                    hold!(dequeued.is_none(), "two packets left in one call");
                    let Some((left, was)) = self.queued.remove(&packet) else {
                        return Err(format!("packet {packet} left and was not queued"));
                    };
                    hold!(left.flow == flow, "{left:?} left as flow {flow:?}");
                    hold!(was == lane, "{left:?} was in {was:?} and left {lane:?}");
                    dequeued = Some((left, lane));
                }
                Record::Event(Event::Marked { packet, flow }) => {
                    hold!(marked.is_none(), "two marks in one call");
                    marked = Some((packet, flow));
                }
                Record::Event(event) => self.enter_flow(event)?,
            }
        }
        match step.call {
            Call::Enqueue(arrival) => {
                self.arrivals = arrival.id + 1;
                hold!(lost || enqueued.is_some(), "{arrival:?} vanished");
                hold!(dequeued.is_none(), "a packet left while another arrived");
                if let Some((packet, flow)) = marked {
                    let found = self.queued.get(&packet);
                    hold!(
                        found.is_some_and(|(p, _)| p.flow == flow),
                        "{packet} is not there to mark"
                    );
                    hold!(self.marked.insert(packet), "{packet} was marked before");
                }
            }
            Call::Dequeue(answer) => {
                if let Some((packet, _)) = dequeued.filter(|(p, _)| self.marked.remove(&p.id)) {
                    hold!(marked.is_none(), "{packet:?} was marked before");
                    marked = Some((packet.id, packet.flow));
                }
                self.enter_answer(answer, dequeued, marked)?;
                self.on_wire = dequeued;
            }
            Call::Advance | Call::Change(..) => {
                hold!(step.records.is_empty(), "{:?}: {:?}", step.call, step.records);
            }
        }
        let sum = self.backlog();
        hold!(step.backlog == sum, "backlog() is {:?}, queued is {sum:?}", step.backlog);
        let entries = self.entries.len();
        hold!(step.flows == entries, "flows() is {}, events leave {entries}", step.flows);
        Ok(())
    }

    /// Whether a queued packet belongs to this flow.
    #[must_use]
    pub fn has_queued(&self, flow: FlowId) -> bool {
        self.queued.values().any(|(packet, _)| packet.flow == flow)
    }

    /// Queued packets in this lane, in order of arrival.
    pub fn lane(&self, lane: Lane) -> impl Iterator<Item = &Packet> {
        self.queued.values().filter(move |(_, l)| *l == lane).map(|(packet, _)| packet)
    }

    /// What is queued.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        let mut sum = Backlog::default();
        self.queued.values().for_each(|(packet, _)| sum.add(packet));
        sum
    }

    fn expect_arrival(&self, step: &Step, id: u64) -> Result<Packet, Violation> {
        match step.call {
            Call::Enqueue(packet) if packet.id == id => Ok(packet),
            _ => Err(format!("packet {id} appears from nowhere in {:?}", step.call)),
        }
    }

    fn enter_answer(
        &self,
        answer: Dequeue,
        dequeued: Option<(Packet, Lane)>,
        marked: Option<(u64, FlowId)>,
    ) -> Result<(), Violation> {
        match answer {
            Dequeue::Packet { packet, mark } => {
                let Some((arrival, _)) = dequeued else {
                    return Err(format!("{packet:?} left without an event"));
                };
                hold!(same(&arrival, &packet), "arrived as {arrival:?}, left as {packet:?}");
                hold!(!mark || packet.ecn().is_capable(), "{packet:?} must not be marked");
                let told = marked.is_some_and(|(id, flow)| (id, flow) == (packet.id, packet.flow));
                hold!(mark == told && mark == marked.is_some(), "mark {mark}, event {marked:?}");
            }
            Dequeue::Wait(_) | Dequeue::Empty => {
                hold!(dequeued.is_none(), "an event says that {dequeued:?} left");
                hold!(marked.is_none(), "{marked:?} was marked and did not leave");
                let empty = self.queued.is_empty();
                hold!(
                    empty == (answer == Dequeue::Empty),
                    "{answer:?} with {} packets queued",
                    self.queued.len()
                );
            }
        }
        Ok(())
    }

    fn enter_flow(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::FlowCreated { flow } => {
                hold!(self.entries.insert(flow), "{flow:?} has an entry already");
            }
            Event::FlowRemoved { flow } => {
                hold!(self.entries.remove(&flow), "{flow:?} has no entry to remove");
                self.demoted.remove(&flow);
            }
            Event::FlowUntracked { flow } => {
                hold!(!self.entries.contains(&flow), "{flow:?} has an entry");
            }
            Event::Demoted { flow } => {
                hold!(self.demoted.insert(flow), "{flow:?} was demoted before");
            }
            Event::Promoted { flow } => {
                hold!(self.demoted.remove(&flow), "{flow:?} was not demoted");
            }
            Event::Enqueued { .. } | Event::Dequeued { .. } | Event::Marked { .. } => {}
        }
        Ok(())
    }
}

/// Whether a packet is the one that arrived, in all that its caller gave it.
fn same(arrived: &Packet, returned: &Packet) -> bool {
    let given =
        |p: &Packet| (p.id, p.flow, p.size, p.segments, p.dscp, p.ecn(), p.offset(), p.flow_size());
    given(arrived) == given(returned)
        && (arrived.source, arrived.destination) == (returned.source, returned.destination)
}
