//! Reference models, written the obvious slow way: a list, searched from end to end.
//!
//! They share no code with the disciplines but the types of the interface, and each keeps its
//! state in another form than the discipline does, so that one mistake is not made twice.

mod auto;
mod buffer;
mod cake;
mod codel;
mod early;
mod fq_lanes;
mod fred;
mod fsc;
mod idle;
mod lanes;
mod lars;
mod las;
mod marked;
mod marks;
mod red;
mod scfq;
mod turns;
mod wf2q;
mod wfq;
mod wire;

use std::hash::Hasher;

use sched::{Amount, Dequeue, Nanos, Packet, Params, Spec};

use crate::ledger::{Violation, hold};
use crate::operation::Operation;
use crate::run::{Call, Step, run};

pub use auto::Auto;
pub use cake::Cake;
pub use fq_lanes::FqLanes;
pub use fred::Fred;
pub use fsc::Fsc;
pub use lanes::{Efd, Sb};
pub use lars::Lars;
pub(crate) use lars::is_near;
pub use las::Las;
pub use marked::Marked;
pub use red::Red;
pub use scfq::Scfq;
pub use wf2q::Wf2q;
pub use wfq::Wfq;

/// A queue whose only virtue is to be obvious.
pub trait Model {
    /// Takes a packet in. Returns the ids of the packets lost by it, in order. `said` is what the
    /// discipline did, for what its definition leaves to it: dice, and the rounding of reals.
    fn enqueue(&mut self, packet: Packet, now: Nanos, said: &Step) -> Vec<u64>;

    /// The id of the packet that leaves.
    fn dequeue(&mut self, now: Nanos, said: &Step) -> Option<u64>;

    /// Whether the packet that left last is to carry a mark.
    fn marks(&self) -> bool {
        false
    }

    /// The packets that the last departure cost, in the order of their loss.
    fn losses(&self) -> &[u64] {
        &[]
    }

    /// Takes over parameters.
    fn change(&mut self, params: &Params);

    /// Entries in the flow table.
    fn flows(&self) -> usize;

    /// Hashes all that decides what it will do, as [`sched::Queue::digest`] does; false if it cannot.
    fn digest(&self, _into: &mut dyn Hasher) -> bool {
        false
    }
}

/// The disciplines that have a model, with the parameters that the model leaves at their
/// defaults: the table's bound, and what takes dice or a clock of its own. (Tests set half-lives
/// themselves; none changes in a run. So it is with the curve of flows.)
pub const MODELS: &[(&str, &[&str])] = &[
    ("efd", &["flows"]),
    ("lars", &["flows", "half-life"]),
    ("las", &["flows"]),
    ("sb", &["flows", "sharing", "cap-high"]),
    ("sb-ko", &["flows", "sharing", "cap-high"]),
    ("sb-sh", &["flows", "sharing", "cap-high"]),
    ("auto", &["flows", "sharing", "cap-high"]),
    ("scfq", &[]),
    ("red", &[]),
    ("fred", &["flows"]),
    ("rio", &[]),
    ("rio-ps", &["flows", "update", "sweep"]),
    ("wfq", &[]),
    ("wf2q+", &[]),
    ("fsc", &["bpr", "pbs"]),
    ("h-fsc", &["bpr", "pbs"]),
    ("cake", &[]),
    ("marked", &[]),
    ("fq-lanes", &[]),
];

/// The model of a discipline with these parameters; `None` where there is no model of it.
#[must_use]
pub fn model(spec: &Spec) -> Option<Box<dyn Model>> {
    let params = spec.params();
    match spec.info().name {
        "efd" => Some(Box::new(Efd::new(params))),
        "lars" => Some(Box::new(Lars::new(params))),
        "las" => Some(Box::new(Las::new(params))),
        "sb" => Some(Box::new(Sb::every_flow(params, false))),
        "sb-ko" => Some(Box::new(Sb::every_flow(params, true))),
        "sb-sh" => Some(Box::new(Sb::sample_and_hold(params))),
        "auto" => Some(Box::new(Auto::new(params))),
        "scfq" => Some(Box::new(Scfq::new(params))),
        "red" | "rio" | "rio-ps" => Some(Box::new(Red::new(params))),
        "fred" => Some(Box::new(Fred::new(params))),
        "wfq" => Some(Box::new(Wfq::new(params))),
        "wf2q+" => Some(Box::new(Wf2q::new(params))),
        "fsc" | "h-fsc" => Some(Box::new(Fsc::new(params))),
        "cake" => Some(Box::new(Cake::new(params))),
        "marked" => Some(Box::new(Marked::new(params))),
        "fq-lanes" => Some(Box::new(FqLanes::new(params))),
        _ => None,
    }
}

/// Whether there is a model of `spec` that holds throughout `operations`.
#[must_use]
pub fn covers(spec: &Spec, operations: &[Operation]) -> bool {
    let Some((_, except)) = MODELS.iter().find(|(name, _)| *name == spec.info().name) else {
        return false;
    };
    let changes = operations.iter().filter_map(|operation| match operation {
        Operation::Change(name, _) => Some(*name),
        _ => None,
    });
    changes
        .chain(except.iter().copied().filter(|name| spec.params().is_given(name)))
        .all(|name| !except.contains(&name))
}

/// Runs `spec` and its model through `operations`: departures, drops and flow tables must be
/// identical after every call.
///
/// # Errors
/// The first difference, with the step at which it showed.
///
/// # Panics
/// If there is no model of the discipline.
pub fn compare(spec: &Spec, operations: &[Operation], seed: u64) -> Result<(), Violation> {
    let mut model = model(spec).unwrap_or_else(|| panic!("no model of {spec}"));
    for (index, step) in run(spec, operations, seed).iter().enumerate() {
        follow(model.as_mut(), step)
            .map_err(|violation| format!("{spec}, step {index}, {:?}: {violation}", step.call))?;
    }
    Ok(())
}

/// The model takes the same step, and must answer the same.
///
/// # Errors
/// The first difference.
pub fn follow(model: &mut dyn Model, step: &Step) -> Result<(), Violation> {
    match &step.call {
        Call::Enqueue(packet) => {
            let expected = model.enqueue(*packet, step.now, step);
            let lost: Vec<_> = step.dropped().map(|(packet, _)| packet.id).collect();
            hold!(lost == expected, "lost {lost:?}, the model {expected:?}");
        }
        Call::Dequeue(answer) => {
            let expected = model.dequeue(step.now, step);
            let left = answer.packet().map(|packet| packet.id);
            hold!(left == expected, "{left:?} left, in the model {expected:?}");
            let marked = matches!(answer, Dequeue::Packet { mark: true, .. });
            hold!(marked == model.marks(), "marked is {marked}, in the model {}", model.marks());
            let lost: Vec<_> = step.dropped().map(|(packet, _)| packet.id).collect();
            hold!(lost == model.losses(), "lost {lost:?}, the model {:?}", model.losses());
        }
        Call::Change(_, Ok(())) => model.change(&step.params),
        Call::Change(_, Err(_)) | Call::Advance => {}
    }
    let expected = model.flows();
    hold!(step.flows == expected, "{} flows, in the model {expected}", step.flows);
    Ok(())
}

/// What a packet counts for, in the unit of `amount`.
fn cost(amount: Amount, packet: &Packet) -> u64 {
    match amount {
        Amount::Packets(_) => u64::from(packet.segments),
        Amount::Bytes(_) => u64::from(packet.size),
    }
}
