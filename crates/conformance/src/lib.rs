//! The conformance suite: what every discipline of `sched` must satisfy.
//!
//! A test is a [`Spec`](sched::Spec) and a sequence of [`Operation`]s. [`run`](run::run) writes
//! down all that the discipline says in answer; everything else is a pure function of that
//! record: the global invariants ([`global`]), those of one discipline ([`invariants`]), and
//! comparisons with other disciplines and with naive models.
//!
//! The suite reads the registry. A new discipline gets every generic check from its one line there.

#![forbid(unsafe_code)]

pub mod case;
pub mod global;
pub mod golden;
pub mod invariants;
pub mod label;
pub mod ledger;
pub mod mutant;
pub mod naive;
pub mod operation;
pub mod reduction;
pub mod run;
pub mod search;
pub mod strategy;
pub mod values;

pub use case::Case;
pub use global::check;
pub use operation::{Arrival, Offset, Operation};
