//! A queue discipline on a real link.
//!
//! [`Forwarder::bridge`] joins two interfaces of the current network namespace: frames that come
//! in at one go out at the other, through a queue under any discipline of [`sched`], a link of
//! any rate and overhead, and a propagation delay, in each direction on its own. It counts
//! whatever it drops, by reason, and how punctual it was.
//!
//! `unsafe` stands only around system calls that no library wraps and memory that is shared with
//! the kernel: in `buffers`, `io`, `kernel`, `priority` and `userspace`.

mod bridge;
pub mod control;
mod datapath;
mod error;
#[cfg(feature = "kernel")]
pub mod follower;
mod forwarder;
pub mod io;
#[cfg(feature = "kernel")]
pub mod kernel;
mod settings;
pub mod status;
#[cfg(feature = "kernel")]
pub mod userspace;

pub use autorate::{Bounds, BoundsError};
pub use bridge::ports::Io;
pub use control::Following;
#[cfg(feature = "harness")]
pub use datapath::harness;
pub use datapath::observe::Observe;
pub use datapath::report::{DirectionReport, Report};
pub use datapath::{buffers, clock, live, observe, report, segments, shaper};
pub use error::EngineError;
pub use forwarder::{Forwarder, RateChange};
pub use io::packet_socket;
pub use io::xdp::Unavailable;
pub use sched::Rate;
pub use settings::framing::Framing;
pub use settings::link::{LinkChanges, LinkSettings};
pub use settings::merge::SpecChangeError;
pub use settings::overhead::Overhead;
pub use settings::{LinkConfig, SettingsError};
pub use settings::{burst_time, framing, overhead};
