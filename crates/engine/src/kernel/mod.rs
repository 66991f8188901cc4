//! Disciplines with lanes inside the Linux kernel, as a BPF qdisc (Linux 6.16 and newer).
//!
//! The programs are in `bpf/`, in C: one of `fq-lanes`, and one put together from the same three
//! parts as [`sched::lanes`]; a test in real kernels holds them to the same order of departures and
//! drops.
//!
//! [`compose`] turns a discipline's name and parameters into parts and a configuration;
//! [`load`] verifies and registers them as a kind of qdisc; once a qdisc of that kind is in
//! place the registration can go, since the qdisc itself keeps programs and maps alive. So
//! nothing is pinned, and whatever removes the qdisc (this program, `tc`, the end of the
//! interface or its namespace) removes everything. [`Instance`] finds a qdisc at work again.
//!
//! [`attach`], [`change`], [`detach`] and [`show`] are the commands: they do this to a device, and
//! with it switch and restore what else has to change for short queues. [`attach_ingress`] does it
//! to what a device receives, on another device which that is sent through.

mod attach;
mod change;
mod compose;
mod ecn;
mod error;
mod flows;
mod follows;
mod fq_lanes;
#[cfg(feature = "harness")]
pub mod harness;
mod ingress;
pub mod inspect;
mod instance;
mod journal;
mod load;
pub mod marks;
mod memory;
mod nat;
mod offloads;
mod privileges;
mod queues;
mod register;
mod seen;
mod show;
mod skeleton;
mod work;

pub use attach::{Order, attach, attached_qdisc, can, detach};
pub use change::{change, change_rate, check_change};
pub use compose::{Composition, DISCIPLINES, Shaping, compose};
pub use error::KernelError;
pub use follows::note_following;
pub use ingress::{attach_ingress, ingress_device};
pub use instance::Instance;
pub use journal::DIRECTORY;
pub use load::{ProgramCost, Registered, load};
pub use offloads::LONGEST;
pub use register::{Kind, kind_name, register, registered, unregister};
pub use show::show;

/// The kind of qdisc that [`attach`] makes, as `tc` shows it.
pub const KIND: &str = "shortlane";

/// Whether a qdisc is one of these, by [`attach`] or by a [registered](register) kind.
fn is_ours(qdisc: &netdev::tc::Qdisc) -> bool {
    qdisc.kind == KIND || qdisc.kind.starts_with("shortlane_")
}

/// What only tests need: the records that a qdisc loaded for a test makes.
pub mod testing {
    pub use super::load::TestHooks;
    pub use super::marks::Trial as MarksTrial;
    pub use super::skeleton::types::sl_event as Event;
}
