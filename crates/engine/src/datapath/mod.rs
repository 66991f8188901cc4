//! The way of a frame: received, queued, paced, sent. It knows nothing of the floors above.

pub mod buffers;
pub mod clock;
pub(crate) mod command;
pub(crate) mod direction;
pub(crate) mod follow;
pub(crate) mod frame_io;
#[cfg(feature = "harness")]
pub mod harness;
pub mod live;
pub(crate) mod medium;
pub mod observe;
pub(crate) mod priority;
pub mod report;
pub mod segments;
pub mod shaper;
mod slab;
pub(crate) mod trips;
