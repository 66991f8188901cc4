//! Queue disciplines that schedule packets by the size of their flow.
//!
//! The crate is pure: `no_std` + `alloc`, no `unsafe`, no clock, no I/O and no hidden
//! randomness. Time is an argument ([`Nanos`]), every sampling discipline owns one generator
//! seeded at construction, and dropped packets go back to the caller with their reason. So the
//! same object runs in a simulator, on a live link and in a test, and a run is a function of
//! (trace, parameters, seed).
//!
//! * [`Qdisc`] is what every discipline does with packets: `enqueue`, `dequeue`; [`Queue`] is what
//!   can be asked of it: `backlog`, `flows`, `change`.
//! * [`Sink`] receives drops and, if it asks for them, typed [`Event`]s. A sink that ignores
//!   events costs nothing: disciplines are compiled per sink type.
//! * [`Spec`] is a discipline by name with its parameters (`efd:threshold=20packets`);
//!   [`registry`] lists all of them.
//!
//! ```
//! use sched::{Dequeue, FlowId, Nanos, Packet, Spec};
//!
//! let spec: Spec = "efd:threshold=2packets,limit=10packets".parse().unwrap();
//! let mut efd = spec.build(1);
//! let mut dropped = Vec::new();
//! for _ in 0..3 {
//!     efd.enqueue(Packet::new(FlowId::new(7), 1500), Nanos::ZERO, &mut dropped);
//! }
//! efd.enqueue(Packet::new(FlowId::new(8), 100), Nanos::ZERO, &mut dropped);
//! // Flow 8 overtakes the third packet of flow 7, and nobody else.
//! let sizes: Vec<u32> = std::iter::from_fn(|| match efd.dequeue(Nanos::ZERO, &mut dropped) {
//!     Dequeue::Packet { packet, .. } => Some(packet.size),
//!     _ => None,
//! })
//! .collect();
//! assert_eq!(sizes, [1500, 1500, 100, 1500]);
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod disciplines;
pub mod interface;
pub mod queues;
pub mod registry;
mod spec;
#[cfg(test)]
mod testkit;

pub use disciplines::early::edge;
pub use disciplines::fq_lanes::standing as standing_of_age;
pub use disciplines::lanes;
pub use disciplines::marks;
pub use interface::params;
pub use interface::{
    Amount, Backlog, Dequeue, Discipline, Drop, DropReason, Ecn, Event, Factor, FlowId, HostId,
    Info, Lane, Level, Nanos, Needs, Packet, ParamDef, ParamError, Params, Qdisc, Queue, Rate,
    Share, Sink, Standing,
};
pub use spec::{Spec, SpecError, limit_for};
