//! Frame I/O over `AF_XDP`: what a thread of a direction holds of the rings of two interfaces.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libc::xdp_desc;
use sched::Nanos;

use super::bpf::Heartbeats;
use super::checksum;
use super::ring::{Consumer, Producer};
use super::socket::{self, RING};
use crate::datapath::buffers::Buffers;
use crate::datapath::clock;
use crate::io::{BATCH, FrameIo};

/// How often an idle input asks whether its interface is still there: no system call tells on its
/// own.
const CHECK_PERIOD: Nanos = Nanos::from_millis(10);

/// The receiving half of a port.
pub(super) struct Input {
    pub(super) socket: OwnedFd,
    pub(super) port: u32,
    pub(super) heartbeats: Arc<Heartbeats>,
    pub(super) fill: Producer<u64>,
    pub(super) frames: Consumer<xdp_desc>,
    /// Buffers in the kernel's hands, with a frame or without.
    pub(super) armed: u32,
    pub(super) received: u64,
    /// What [`FrameIo::arrived`] has told before.
    pub(super) told: u64,
    pub(super) checked: Nanos,
    /// Whether a bridge of the kernel lies beneath, so that frames that pass by arrive.
    pub(super) is_bridged: bool,
    /// Whether frames bypass the engine while it does not attend to them.
    pub(super) is_beating: bool,
    /// Whether frames may come with checksums that the sender left to its interface.
    pub(super) completes: bool,
    /// The program and the promiscuous mode of the interface; both end when these are closed.
    pub(super) _holds: [OwnedFd; 2],
}

impl Input {
    /// Hands the kernel buffers until it has as many as the ring takes.
    pub(super) fn arm(&mut self, buffers: &mut Buffers) {
        let before = self.armed;
        while self.armed < RING && self.fill.has_room() {
            let Some(buffer) = buffers.take() else { break };
            self.fill.push(buffers.offset(buffer));
            self.armed += 1;
        }
        if self.armed > before {
            self.fill.publish();
            if self.fill.needs_wakeup() {
                socket::wake(self.socket.as_fd());
            }
        }
    }

    /// Frames that the kernel dropped for want of a buffer or of room in the ring.
    fn lost(&self) -> io::Result<u64> {
        let statistics = socket::statistics(self.socket.as_fd())?;
        Ok(statistics.rx_dropped + statistics.rx_ring_full)
    }
}

impl FrameIo for Input {
    fn receive(&mut self, buffers: &mut Buffers, received: &mut Vec<u32>) -> io::Result<()> {
        let now = clock::now();
        if self.is_beating {
            self.heartbeats.beat(self.port, now);
        }
        let before = received.len();
        while received.len() - before < BATCH {
            let Some(frame) = self.frames.pop() else { break };
            self.armed -= 1;
            // Whatever the kernel says, a frame lies in a buffer of this direction.
            let Some(buffer) = buffers.received_at(frame.addr, frame.len) else { continue };
            if self.completes {
                checksum::complete(buffers.frame_mut(buffer));
            }
            received.push(buffer);
        }
        let count = received.len() - before;
        if count > 0 {
            self.frames.release();
            self.received += count as u64;
            self.checked = now;
        } else if now - self.checked > CHECK_PERIOD {
            self.checked = now;
            socket::check(self.socket.as_fd())?;
        }
        self.arm(buffers);
        Ok(())
    }

    fn let_pass(&mut self) -> bool {
        if self.is_bridged {
            self.is_beating = false;
            self.heartbeats.beat(self.port, Nanos::ZERO);
        }
        self.is_bridged
    }

    fn send(&mut self, _: &mut Buffers, _: &[u32]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn arrived(&mut self) -> io::Result<u64> {
        let total = self.received + u64::from(self.frames.waiting()) + self.lost()?;
        let before = std::mem::replace(&mut self.told, total);
        Ok(total - before)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The sending half of a port.
pub(super) struct Output {
    pub(super) socket: OwnedFd,
    pub(super) frames: Producer<xdp_desc>,
    pub(super) completion: Consumer<u64>,
}

impl Output {
    /// Makes the kernel send what is in the ring, as far as it can for now. In copy mode a call
    /// sends a bounded number of frames.
    fn kick(&mut self) -> io::Result<()> {
        let mut left = self.frames.outstanding();
        while left > 0 && self.frames.needs_wakeup() {
            let result = socket::kick(self.socket.as_fd());
            let before = std::mem::replace(&mut left, self.frames.outstanding());
            match result {
                Err(error) if is_fault(&error) => return Err(error),
                // No progress: no memory for more frames, or the interface is busy.
                _ if left == before => break,
                _ => {}
            }
        }
        Ok(())
    }
}

impl FrameIo for Output {
    fn receive(&mut self, _: &mut Buffers, _: &mut Vec<u32>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn send(&mut self, buffers: &mut Buffers, frames: &[u32]) -> io::Result<usize> {
        let mut taken = 0;
        for buffer in frames.iter().copied() {
            if !self.frames.has_room() {
                break;
            }
            let (addr, len) = (buffers.frame_offset(buffer), buffers.frame(buffer).len() as u32);
            self.frames.push(xdp_desc { addr, len, options: 0 });
            taken += 1;
        }
        self.frames.publish();
        self.kick()?;
        Ok(taken)
    }

    /// Also sends what an earlier call has left in the ring; what is wrong then shows in the next
    /// one.
    fn reclaim(&mut self, buffers: &mut Buffers) {
        let _ = self.kick();
        while let Some(offset) = self.completion.pop() {
            if let Some(buffer) = buffers.at_offset(offset) {
                buffers.give(buffer);
            }
        }
        self.completion.release();
    }

    fn arrived(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether the interface is gone or down, other than busy or out of memory.
fn is_fault(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV))
}
