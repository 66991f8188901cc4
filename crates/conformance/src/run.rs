//! Runs a discipline through a sequence of operations and writes down everything it says.

use std::rc::Rc;

use sched::{Backlog, Dequeue, Drop, Event, Nanos, Packet, ParamError, Params, Qdisc, Sink, Spec};

use crate::operation::{Operation, packets};

/// What a discipline told its sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A packet was lost.
    Dropped(Packet, Drop),
    /// Something was decided.
    Event(Event),
}

/// Everything a discipline said, in order.
#[derive(Debug, Default)]
pub struct Recorder(Vec<Record>);

impl Recorder {
    /// What was said since the last call.
    pub fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.0)
    }
}

impl Sink for Recorder {
    fn dropped(&mut self, packet: Packet, drop: Drop, _now: Nanos) {
        self.0.push(Record::Dropped(packet, drop));
    }

    fn event(&mut self, event: Event) {
        self.0.push(Record::Event(event));
    }
}

/// One operation and all that could be seen of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When.
    pub now: Nanos,
    /// What was asked.
    pub call: Call,
    /// What was told meanwhile.
    pub records: Vec<Record>,
    /// What is queued afterwards.
    pub backlog: Backlog,
    /// Entries in the flow table afterwards.
    pub flows: usize,
    /// The parameters in force afterwards.
    pub params: Rc<Params>,
}

/// An operation with its answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// This packet was offered.
    Enqueue(Packet),
    /// A packet was asked for.
    Dequeue(Dequeue),
    /// Time passed.
    Advance,
    /// A parameter was set.
    Change(&'static str, Result<(), ParamError>),
}

impl Step {
    /// The packet that left for transmission.
    #[must_use]
    pub fn departed(&self) -> Option<Packet> {
        match self.call {
            Call::Dequeue(answer) => answer.packet(),
            _ => None,
        }
    }

    /// The packets that were lost, in the order of their loss.
    pub fn dropped(&self) -> impl Iterator<Item = (&Packet, Drop)> {
        self.records.iter().filter_map(|record| match record {
            Record::Dropped(packet, drop) => Some((packet, *drop)),
            Record::Event(_) => None,
        })
    }

    /// The events.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.records.iter().filter_map(|record| match record {
            Record::Event(event) => Some(*event),
            Record::Dropped(..) => None,
        })
    }
}

/// A discipline under way.
pub struct Run {
    /// The discipline.
    pub queue: Box<dyn Qdisc<Recorder>>,
    /// The parameters in force.
    pub params: Rc<Params>,
    /// When.
    pub now: Nanos,
    sink: Recorder,
}

impl Run {
    /// A new instance of `spec`, at time 0.
    #[must_use]
    pub fn new(spec: &Spec, seed: u64) -> Self {
        let (queue, params) = (spec.build::<Recorder>(seed), Rc::new(spec.params().clone()));
        Self { queue, sink: Recorder::default(), params, now: Nanos::ZERO }
    }

    /// Does one operation; `packet` is called for the packet that arrives in it.
    pub fn step(&mut self, operation: &Operation, packet: impl FnOnce() -> Packet) -> Step {
        let Self { queue, sink, params, now } = self;
        let call = match operation {
            Operation::Enqueue(_) => {
                let packet = packet();
                queue.enqueue(packet, *now, sink);
                Call::Enqueue(packet)
            }
            Operation::Dequeue => Call::Dequeue(queue.dequeue(*now, sink)),
            Operation::Advance(span) => {
                *now += *span;
                Call::Advance
            }
            Operation::Change(name, value) => {
                let mut changed = Params::clone(params);
                let answer = match changed.set(name, value) {
                    Ok(()) => queue.change(&changed),
                    Err(error) => Err(error),
                };
                if answer.is_ok() {
                    *params = Rc::new(changed);
                }
                Call::Change(name, answer)
            }
        };
        Step {
            now: *now,
            call,
            records: sink.take(),
            backlog: queue.backlog(),
            flows: queue.flows(),
            params: Rc::clone(params),
        }
    }
}

/// Runs a new instance of `spec` through `operations`.
#[must_use]
pub fn run(spec: &Spec, operations: &[Operation], seed: u64) -> Vec<Step> {
    let mut arrivals = packets(operations).into_iter();
    let mut run = Run::new(spec, seed);
    let mut step = |operation| run.step(operation, || arrivals.next().expect("one each"));
    operations.iter().map(&mut step).collect()
}
