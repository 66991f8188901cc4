//! What Shortlane asks of the kernel about the network devices of a namespace.
//!
//! [`link`] and [`device`] make, look at and set interfaces, [`offload`] switches what their
//! drivers do, [`tc`] has their qdiscs and classes, [`clsact`] and [`tcx`] the programs on them,
//! [`root_qdisc`] puts back a qdisc that was there. [`netns`] has the namespaces themselves,
//! [`capabilities`] says what the process may do, and [`watch`] whether a device stays.
//!
//! `unsafe` stands only around system calls that no library wraps: in `netns`, `offload`, `tcx` and
//! `watch`.

pub mod capabilities;
pub mod clsact;
pub mod device;
pub mod link;
pub mod netlink;
pub mod netns;
pub mod offload;
pub mod root_qdisc;
pub mod routes;
pub mod tc;
#[cfg(feature = "bpf")]
pub mod tcx;
pub mod watch;
