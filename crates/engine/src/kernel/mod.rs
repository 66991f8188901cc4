//! Disciplines with lanes inside the Linux kernel, as a BPF qdisc (Linux 6.16 and newer).
//!
//! The programs are in `bpf/`, in C, put together from the same three parts as
//! [`sched::lanes`]; a test in real kernels holds them to the same order of departures and drops.
//!
//! [`compose`] turns a discipline's name and parameters into parts and a configuration;
//! [`load`] verifies and registers them as a kind of qdisc; once a qdisc of that kind is in
//! place the registration can go, since the qdisc itself keeps programs and maps alive. So
//! nothing is pinned, and whatever removes the qdisc (this program, `tc`, the end of the
//! interface or its namespace) removes everything. [`Instance`] finds a qdisc at work again.

mod compose;
mod error;
mod instance;
mod load;
mod memory;
mod skeleton;

pub use compose::{Composition, DISCIPLINES, Shaping, compose};
pub use error::KernelError;
pub use instance::{Histogram, Instance, LaneCounters, Status};
pub use load::{ProgramCost, Registered, load};

/// What only tests need: the records that a qdisc loaded for a test makes.
pub mod testing {
    pub use super::load::TestHooks;
    pub use super::skeleton::types::sl_event as Event;
}
