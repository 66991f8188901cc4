//! Kinds of interfaces that frames come from and go to.

pub mod packet_socket;
pub(crate) mod xdp;

pub(crate) use crate::datapath::frame_io::Half;
pub use crate::datapath::frame_io::{BATCH, FrameIo};
