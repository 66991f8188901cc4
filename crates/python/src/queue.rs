//! A discipline as an object.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use sched::{Dequeue, Nanos, Qdisc, Sink, Spec};

use crate::errors::InputError;
use crate::packet::Packet;

/// A packet that was lost.
#[pyclass(frozen, get_all, eq, module = "shortlane.disciplines")]
#[derive(Clone, PartialEq)]
pub struct Dropped {
    /// The packet.
    packet: Packet,
    /// Why: `full`, `pushed-out` or `congested`.
    reason: &'static str,
    /// The lane it was in, or would have joined; 0 is the short one.
    lane: u8,
}

#[pymethods]
impl Dropped {
    fn __repr__(&self) -> String {
        let packet = self.packet.__repr__();
        format!("Dropped({packet}, reason='{}', lane={})", self.reason, self.lane)
    }
}

/// What a discipline decided.
#[pyclass(frozen, get_all, eq, module = "shortlane.disciplines")]
#[derive(Clone, PartialEq)]
pub struct Event {
    /// `enqueued`, `dequeued`, `marked`, `dropped`, `demoted`, `promoted`, `flow-created`,
    /// `flow-removed` or `flow-untracked`.
    kind: &'static str,
    /// The flow.
    flow: u64,
    /// The packet's id, of events about one.
    packet: Option<u64>,
    /// The lane, of events about one.
    lane: Option<u8>,
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        let mut text = format!("Event('{}', flow={}", self.kind, self.flow);
        if let Some(packet) = self.packet {
            text += &format!(", packet={packet}");
        }
        if let Some(lane) = self.lane {
            text += &format!(", lane={lane}");
        }
        text + ")"
    }
}

/// Packets are queued, and none may leave yet.
#[pyclass(frozen, get_all, eq, module = "shortlane.disciplines")]
#[derive(Clone, PartialEq)]
pub struct Wait {
    /// When the first may, in seconds.
    until: f64,
}

#[pymethods]
impl Wait {
    fn __repr__(&self) -> String {
        format!("Wait(until={})", self.until)
    }
}

/// What is queued.
#[pyclass(frozen, get_all, eq, module = "shortlane.disciplines")]
#[derive(Clone, PartialEq)]
pub struct Backlog {
    /// Packets; a super-packet is one.
    packets: u64,
    /// Segments: what packet limits count.
    segments: u64,
    /// Bytes.
    bytes: u64,
}

#[pymethods]
impl Backlog {
    fn __repr__(&self) -> String {
        let Self { packets, segments, bytes } = self;
        format!("Backlog(packets={packets}, segments={segments}, bytes={bytes})")
    }
}

/// What a dequeue gives.
#[derive(IntoPyObject)]
pub enum Answer {
    Packet(Packet),
    Wait(Wait),
}

/// A discipline; those with a name are its subclasses, in Python.
#[pyclass(frozen, subclass, module = "shortlane._native")]
pub struct Queue(Mutex<State>);

struct State {
    spec: Spec,
    qdisc: Box<dyn Qdisc<Log>>,
    /// The time of the latest call.
    now: Nanos,
    /// What happened in the latest call.
    log: Log,
}

#[derive(Default)]
struct Log {
    dropped: Vec<Dropped>,
    events: Vec<Event>,
}

#[pymethods]
impl Queue {
    /// The discipline `name` with these parameters, as on the command line.
    #[new]
    fn new(name: &str, parameters: Vec<(String, String)>, seed: u64) -> PyResult<Self> {
        let spec = Spec::named(name).map_err(|error| InputError::new_err(error.to_string()))?;
        let spec = with(spec, &parameters)?;
        let qdisc = spec.build(seed);
        Ok(Self(Mutex::new(State { spec, qdisc, now: Nanos::ZERO, log: Log::default() })))
    }

    /// Takes a packet in; gives what is lost by it, this packet or others.
    #[pyo3(signature = (packet = None, now = None, **fields))]
    fn enqueue(
        &self,
        py: Python<'_>,
        packet: Option<Py<Packet>>,
        now: Option<f64>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<Dropped>> {
        let packet = match (packet, fields) {
            (Some(packet), None) => packet,
            (None, fields) => py.get_type::<Packet>().call((), fields)?.extract()?,
            (Some(_), Some(_)) => {
                let error = "enqueue takes a packet or the fields of one, not both";
                return Err(InputError::new_err(error));
            }
        };
        let state = &mut *self.state();
        let now = state.begin(now)?;
        state.qdisc.enqueue(packet.get().to_sched(), now, &mut state.log);
        Ok(state.log.dropped.clone())
    }

    /// Hands out the packet whose transmission starts now.
    #[pyo3(signature = (now = None))]
    fn dequeue(&self, now: Option<f64>) -> PyResult<Option<Answer>> {
        let state = &mut *self.state();
        let now = state.begin(now)?;
        Ok(match state.qdisc.dequeue(now, &mut state.log) {
            Dequeue::Packet { packet, mark } => {
                Some(Answer::Packet(Packet::from_sched(&packet, mark)))
            }
            Dequeue::Wait(until) => Some(Answer::Wait(Wait { until: until.0 as f64 / 1e9 })),
            Dequeue::Empty => None,
        })
    }

    /// Takes over parameters while packets are queued.
    fn set_parameters(&self, parameters: Vec<(String, String)>) -> PyResult<()> {
        let state = &mut *self.state();
        let spec = with(state.spec.clone(), &parameters)?;
        let changed = state.qdisc.change(spec.params());
        changed.map_err(|error| InputError::new_err(error.to_string()))?;
        state.spec = spec;
        Ok(())
    }

    /// What is queued.
    #[getter]
    fn backlog(&self) -> Backlog {
        let sched::Backlog { packets, segments, bytes } = self.state().qdisc.backlog();
        Backlog { packets, segments, bytes }
    }

    /// Entries in the flow table.
    #[getter]
    fn flows(&self) -> usize {
        self.state().qdisc.flows()
    }

    /// What was lost in the latest call.
    #[getter]
    fn dropped(&self) -> Vec<Dropped> {
        self.state().log.dropped.clone()
    }

    /// What was decided in the latest call, in order; drops among it.
    #[getter]
    fn events(&self) -> Vec<Event> {
        self.state().log.events.clone()
    }

    /// The discipline with the parameters that were given, as on the command line.
    #[getter]
    fn spec(&self) -> String {
        self.state().spec.to_string()
    }

    /// All parameters as they are, in order.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parameters = PyDict::new(py);
        for (definition, value) in self.state().spec.params().iter() {
            parameters.set_item(definition.name, value)?;
        }
        Ok(parameters)
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with(spec: Spec, parameters: &[(String, String)]) -> PyResult<Spec> {
    let set = |spec: Spec, (name, value): &(String, String)| spec.with(name, value);
    let spec = parameters.iter().try_fold(spec, set);
    let checked = spec.and_then(|spec| spec.check().map(|()| spec));
    checked.map_err(|error| InputError::new_err(error.to_string()))
}

impl State {
    /// Begins a call at `now` seconds, or at the time of the latest one.
    fn begin(&mut self, now: Option<f64>) -> PyResult<Nanos> {
        /// 100 years: far from where a double no longer tells nanoseconds from each other, or a
        /// discipline's sum of times ends.
        const MOST: f64 = 3e9;
        if let Some(seconds) = now {
            if !(0.0..=MOST).contains(&seconds) {
                let takes = "it takes seconds from 0 to 3e9";
                return Err(InputError::new_err(format!("now {seconds} is not accepted: {takes}")));
            }
            let now = Nanos((seconds * 1e9).round() as u64);
            if now < self.now {
                let latest = self.now.0 as f64 / 1e9;
                let error = format!("now {seconds} is before {latest}, when the latest call was");
                return Err(InputError::new_err(error));
            }
            self.now = now;
        }
        self.log = Log::default();
        Ok(self.now)
    }
}

impl Sink for Log {
    fn dropped(&mut self, packet: sched::Packet, drop: sched::Drop, _now: sched::Nanos) {
        let (reason, lane) = (drop.reason.name(), drop.lane.0);
        let (flow, id) = (packet.flow.get(), packet.id);
        let packet = Packet::from_sched(&packet, false);
        self.dropped.push(Dropped { packet, reason, lane });
        self.events.push(Event { kind: "dropped", flow, packet: Some(id), lane: Some(lane) });
    }

    fn event(&mut self, event: sched::Event) {
        use sched::Event as E;
        let (kind, flow, packet, lane) = match event {
            E::Enqueued { packet, flow, lane } => ("enqueued", flow, Some(packet), Some(lane.0)),
            E::Dequeued { packet, flow, lane } => ("dequeued", flow, Some(packet), Some(lane.0)),
            E::Marked { packet, flow } => ("marked", flow, Some(packet), None),
            E::Demoted { flow } => ("demoted", flow, None, None),
            E::Promoted { flow } => ("promoted", flow, None, None),
            E::FlowCreated { flow } => ("flow-created", flow, None, None),
            E::FlowRemoved { flow } => ("flow-removed", flow, None, None),
            E::FlowUntracked { flow } => ("flow-untracked", flow, None, None),
        };
        self.events.push(Event { kind, flow: flow.get(), packet, lane });
    }
}
