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
//! the kernel: in `buffers`, `kernel`, `netns`, `offload`,
//! `packet_socket`, `punctual`, `tcx`, `userspace`, `watch` and `xdp`.

mod bridge;
pub mod buffers;
pub mod clock;
#[cfg(feature = "kernel")]
mod clsact;
pub mod control;
mod direction;
mod error;
pub mod framing;
#[cfg(feature = "harness")]
pub mod harness;
pub mod io;
#[cfg(feature = "kernel")]
pub mod kernel;
pub mod link;
pub mod live;
mod netlink;
pub mod netns;
pub mod observe;
mod offload;
pub mod overhead;
pub mod packet_socket;
mod ports;
mod punctual;
pub mod report;
pub mod segments;
pub mod shaper;
pub mod status;
#[cfg(feature = "kernel")]
mod tcx;
#[cfg(feature = "kernel")]
pub mod userspace;
#[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "for an attached engine"))]
mod watch;
mod xdp;

pub use bridge::{Engine, LinkConfig};
pub use error::EngineError;
pub use framing::Framing;
pub use observe::Observe;
pub use overhead::Overhead;
pub use ports::Io;
pub use report::{DirectionReport, Report};
pub use shaper::Rate;
pub use xdp::Unavailable;
