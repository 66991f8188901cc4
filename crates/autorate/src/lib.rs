//! Follows the rate of a link by the delay and the throughput that it shows.
//!
//! Pure state machines, without clock and I/O. [`Path`] is told of probes and knows how much
//! longer than at best a packet takes: the *extra delay*. So does [`Traffic`], of what the traffic
//! itself is answered. [`Controller`], one for each direction,
//! is told that and what the direction carries, and decides on its rate. Each decision has its
//! reason with the evidence, as one line.
//!
//! `docs/autorate.md` has the rules, their mathematics and what always holds.
//!
//! ```
//! use autorate::{Bounds, Controller, Load, Path};
//! use units::{Nanos, Rate};
//!
//! let bounds: Bounds = "5mbit..20mbit..100mbit".parse().unwrap();
//! let mut controller = Controller::new(bounds, Nanos::ZERO);
//! let mut path = Path::new();
//! let view = path.look(Nanos::from_millis(25));
//! // Nothing is known yet: it stays at its base.
//! assert!(controller.decide(&view, &Load::default(), Nanos::from_millis(25)).is_none());
//! assert_eq!(controller.rate(), Rate(20_000_000));
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod bounds;
mod controller;
mod decision;
mod least;
mod meter;
mod path;
mod tolerance;
mod traffic;

pub use bounds::{Bounds, BoundsError};
pub use controller::{Controller, Load};
pub use decision::{Decision, Reason};
pub use meter::Meter;
pub use path::{Echo, PROBES, Path, View};
pub use traffic::{Traffic, Trip};
