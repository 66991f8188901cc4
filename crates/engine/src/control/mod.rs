//! The control plane of the userspace engine: who holds an interface, and talking to it.
//!
//! The lock on an interface is the socket by which its engine is asked: a Unix stream listener
//! whose name lies in the abstract space, so that it belongs to the network namespace as the
//! interface does, and vanishes with the process. One connection carries one request and its
//! answer, a line of JSON each. Only root and the user of the engine are answered, and a client
//! believes only root and its own user.
//!
//! A direction is never locked or shared: the control thread sends it a `Command`, which it
//! looks for once a step, and it answers from in between two packets.

mod client;
mod decisions;
#[cfg(feature = "harness")]
pub mod harness;
mod lock;
mod pilot;
mod prober;
mod protocol;
mod server;
mod threads;

pub use client::{ControlError, change, status, stop};
pub use protocol::Changes;

pub(crate) use lock::Lock;
pub use pilot::Following;
pub(crate) use pilot::{Followed, Log, Pilot};
pub use server::Refusal;
#[cfg(feature = "kernel")]
pub(crate) use server::Steered;
pub(crate) use server::{Port, Server};
pub(crate) use threads::{Adjust, Handle, Threads};
