//! Frames in, frames out: the seam between the engine and a kind of interface.

use std::io;
use std::os::fd::BorrowedFd;

use frame::FlowKey;

use crate::datapath::buffers::Buffers;
use crate::datapath::report::Tally;

/// Most frames that one call moves.
pub const BATCH: usize = 64;

/// Moves batches of frames between an interface and [`Buffers`], without waiting.
///
/// It takes the buffers that it receives into itself, and keeps them until a frame comes. A buffer
/// whose frame it has received is the caller's; one whose frame it has taken to send is its own, and
/// it gives that back when the frame has left.
pub trait FrameIo: Send {
    /// Receives as many frames as are there, at most [`BATCH`] and as buffers can be had, and adds
    /// their buffers to `received`.
    ///
    /// # Errors
    /// If the interface is gone or down.
    fn receive(&mut self, buffers: &mut Buffers, received: &mut Vec<u32>) -> io::Result<()>;

    /// Sends frames (at most [`BATCH`]) and returns how many the interface took, from the first
    /// on; 0 if it takes none for now.
    ///
    /// # Errors
    /// If the first of the frames cannot be sent.
    fn send(&mut self, buffers: &mut Buffers, frames: &[u32]) -> io::Result<usize>;

    /// From now on frames pass by themselves, as if the engine were not there; those that are
    /// here already can still be received. Returns whether it is so.
    fn let_pass(&mut self) -> bool {
        false
    }

    /// The key that a frame would have if this machine did not translate addresses (NAT), if it is
    /// another one, and known.
    fn reveal(&self, _key: &FlowKey) -> Option<FlowKey> {
        None
    }

    /// Whether it can [reveal](Self::reveal) any.
    fn reveals(&self) -> bool {
        false
    }

    /// Frames that have passed by themselves since the engine did not answer in time.
    fn passed(&self) -> Tally {
        Tally::default()
    }

    /// Gives back the buffers of frames that have left meanwhile.
    fn reclaim(&mut self, _buffers: &mut Buffers) {}

    /// Frames that came in at the interface since the last call, whether they were received,
    /// still wait to be, or were lost for want of room.
    ///
    /// # Errors
    /// If the kernel does not tell.
    fn arrived(&mut self) -> io::Result<u64>;

    /// What to poll for frames to receive or room to send.
    fn fd(&self) -> BorrowedFd<'_>;
}

/// What one direction works with.
pub(crate) struct Half {
    pub(crate) input: Box<dyn FrameIo>,
    pub(crate) output: Box<dyn FrameIo>,
    /// Memory for frames that they share with the kernel, if they do.
    pub(crate) buffers: Option<Buffers>,
}
