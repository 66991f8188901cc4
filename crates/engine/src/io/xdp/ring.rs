//! The rings that an `AF_XDP` socket shares with the kernel: one side produces, the other consumes,
//! and neither waits for the other.
//!
//! Indices run freely and wrap; a ring of a power of two entries is indexed by their low bits. A
//! side publishes its index with release order after it has touched the entries, and reads the
//! other's with acquire order before.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use libc::xdp_ring_offset;

use super::shared::{Entry, Shared};

/// A ring that this process fills: buffers to receive into, or frames to send.
pub(super) struct Producer<T: Entry> {
    ring: Shared<T>,
    /// Entries written so far, published or not.
    written: u32,
    /// What the kernel had consumed when it was last looked at.
    consumed: u32,
}

impl<T: Entry> Producer<T> {
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        page_offset: u64,
        at: &xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let ring = Shared::map(socket, page_offset, at, size)?;
        Ok(Self { ring, written: 0, consumed: 0 })
    }

    /// Whether there is room for an entry. The kernel's index is read only when there seems to be
    /// none: it shares a cache line with nothing of ours.
    pub(super) fn has_room(&mut self) -> bool {
        if self.written.wrapping_sub(self.consumed) < self.ring.size {
            return true;
        }
        self.outstanding() < self.ring.size
    }

    /// Entries that the kernel has not consumed yet.
    pub(super) fn outstanding(&mut self) -> u32 {
        self.consumed = self.ring.consumer().load(Ordering::Acquire);
        self.written.wrapping_sub(self.consumed)
    }

    /// Writes an entry, for which there must be room; the kernel sees it when it is published.
    pub(super) fn push(&mut self, entry: T) {
        self.ring.write(self.written, entry);
        self.written = self.written.wrapping_add(1);
    }

    /// Shows the kernel everything written so far.
    pub(super) fn publish(&mut self) {
        self.ring.producer().store(self.written, Ordering::Release);
    }

    /// Whether the kernel wants a system call before it looks at the ring.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.flags().load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that the kernel fills: frames received, or buffers that have been sent.
pub(super) struct Consumer<T: Entry> {
    ring: Shared<T>,
    /// Entries read so far, released or not.
    read: u32,
    /// What the kernel had produced when it was last looked at.
    produced: u32,
}

impl<T: Entry> Consumer<T> {
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        page_offset: u64,
        at: &xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let ring = Shared::map(socket, page_offset, at, size)?;
        Ok(Self { ring, read: 0, produced: 0 })
    }

    /// Entries that were not read yet.
    pub(super) fn waiting(&self) -> u32 {
        self.ring.producer().load(Ordering::Acquire).wrapping_sub(self.read)
    }

    /// Takes the oldest entry.
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.read == self.produced {
            self.produced = self.ring.producer().load(Ordering::Acquire);
            if self.read == self.produced {
                return None;
            }
        }
        let entry = self.ring.read(self.read);
        self.read = self.read.wrapping_add(1);
        Some(entry)
    }

    /// Gives the kernel the places of everything read so far.
    pub(super) fn release(&mut self) {
        self.ring.consumer().store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use nix::sys::memfd::{MFdFlags, memfd_create};

    use super::*;

    const SIZE: u32 = 4;
    const AT: xdp_ring_offset =
        xdp_ring_offset { producer: 0, consumer: 64, desc: 192, flags: 128 };

    /// Both ends of one ring, as the kernel and a process have them.
    fn ends() -> (Producer<u64>, Consumer<u64>) {
        let memory = memfd_create("ring", MFdFlags::MFD_CLOEXEC).unwrap();
        nix::unistd::ftruncate(&memory, 4096).unwrap();
        let producer = Producer::map(memory.as_fd(), 0, &AT, SIZE).unwrap();
        (producer, Consumer::map(memory.as_fd(), 0, &AT, SIZE).unwrap())
    }

    #[test]
    fn entries_are_seen_when_published_and_their_places_when_released() {
        let (mut producer, mut consumer) = ends();
        for entry in 10..14 {
            assert!(producer.has_room());
            producer.push(entry);
        }
        assert!(!producer.has_room());
        assert_eq!(consumer.pop(), None);
        producer.publish();
        assert_eq!(consumer.pop(), Some(10));
        assert_eq!(consumer.pop(), Some(11));
        assert!(!producer.has_room(), "nothing was released");
        consumer.release();
        assert_eq!(producer.outstanding(), 2);
        assert!(producer.has_room());
    }

    #[test]
    fn the_order_holds_round_and_round_and_where_indices_wrap() {
        let (mut producer, mut consumer) = ends();
        let begin = u32::MAX - 5;
        (producer.written, producer.consumed) = (begin, begin);
        (consumer.read, consumer.produced) = (begin, begin);
        producer.publish();
        consumer.release();
        for round in 0..10 {
            for entry in 0..3 {
                assert!(producer.has_room());
                producer.push(round * 3 + entry);
            }
            producer.publish();
            for entry in 0..3 {
                assert_eq!(consumer.pop(), Some(round * 3 + entry));
            }
            assert_eq!(consumer.pop(), None);
            consumer.release();
        }
    }

    #[test]
    fn the_wish_for_a_wakeup_is_read() {
        let (producer, consumer) = ends();
        assert!(!producer.needs_wakeup());
        consumer.ring.flags().store(libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
        assert!(producer.needs_wakeup());
    }
}
