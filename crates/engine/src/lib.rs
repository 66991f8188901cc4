//! A queue discipline on a real link.
//!
//! [`Engine::bridge`] joins two interfaces of the current network namespace: frames that come
//! in at one go out at the other, through a queue under any discipline of [`sched`], a link of
//! any rate and overhead, and a propagation delay, in each direction on its own. It counts
//! whatever it drops, by reason, and how punctual it was.
//!
//! [`netns`] and [`link`] make private namespaces and interfaces to try that in.
//!
//! `unsafe` stands only around system calls that no library wraps and memory that is shared with
//! the kernel: in `buffers`, `io`, `kernel`, `netns`, `offload`, `priority`, `tcx`, `userspace` and
//! `watch`.

mod bridge;
#[cfg(feature = "kernel")]
mod clsact;
pub mod control;
mod datapath;
mod error;
pub mod io;
#[cfg(feature = "kernel")]
pub mod kernel;
pub mod link;
mod netlink;
pub mod netns;
mod offload;
mod settings;
pub mod status;
#[cfg(feature = "kernel")]
mod tcx;
#[cfg(feature = "kernel")]
pub mod userspace;
#[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "for an attached engine"))]
mod watch;

pub use bridge::ports::Io;
pub use bridge::{Engine, LinkConfig};
#[cfg(feature = "harness")]
pub use datapath::harness;
pub use datapath::observe::Observe;
pub use datapath::report::{DirectionReport, Report};
pub use datapath::shaper::Rate;
pub use datapath::{buffers, clock, live, observe, report, segments, shaper};
use datapath::{direction, priority};
pub use error::EngineError;
pub use io::packet_socket;
use io::xdp;
pub use io::xdp::Unavailable;
pub use settings::framing::Framing;
pub use settings::overhead::Overhead;
pub use settings::{framing, overhead};
