//! The rings that an `AF_XDP` socket shares with the kernel: one side produces, the other consumes,
//! and neither waits for the other.
//!
//! Indices run freely and wrap; a ring of a power of two entries is indexed by their low bits. A
//! side publishes its index with release order after it has touched the entries, and reads the
//! other's with acquire order before.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::xdp_ring_offset;

/// What may stand in a ring: plain data that the kernel may write as it likes.
pub(super) trait Entry: Copy {}
/// The address of a buffer, in the fill and completion rings.
impl Entry for u64 {}
/// A frame, in the rings for reception and transmission.
impl Entry for libc::xdp_desc {}

/// A ring in memory shared with the kernel; unmapped at the end.
struct Shared<T> {
    mapping: NonNull<u8>,
    length: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
}

// SAFETY: the ring is reached through this value alone, and the other side is the kernel, which
// does not care which thread of the process holds it.
unsafe impl<T: Entry> Send for Shared<T> {}

impl<T: Entry> Shared<T> {
    /// Maps the ring of `size` entries that lies at `page_offset` of a socket.
    fn map(
        socket: BorrowedFd<'_>,
        page_offset: u64,
        at: &xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let length = at.desc as usize + size as usize * size_of::<T>();
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.as_raw_fd(),
                page_offset as libc::off_t,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = NonNull::new(address.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the kernel has told these offsets for the mapping that it has just made, whose
        // length covers the entries, which lie behind the indices.
        unsafe {
            Ok(Self {
                mapping,
                length,
                producer: mapping.add(at.producer as usize).cast(),
                consumer: mapping.add(at.consumer as usize).cast(),
                flags: mapping.add(at.flags as usize).cast(),
                entries: mapping.add(at.desc as usize).cast(),
                size,
            })
        }
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: it lies in the mapping, which lives as long as `self`, and is only ever accessed
        // atomically.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for the producer.
        unsafe { self.consumer.as_ref() }
    }

    fn flags(&self) -> &AtomicU32 {
        // SAFETY: as for the producer.
        unsafe { self.flags.as_ref() }
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the masked index is below `size`, the number of entries that are mapped.
        unsafe { self.entries.add((index & (self.size - 1)) as usize) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.length) };
    }
}

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
        // SAFETY: the kernel does not look at entries that are not published.
        unsafe { self.ring.entry(self.written).write(entry) };
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
        // SAFETY: the kernel has published the entry, and does not touch it before its release.
        let entry = unsafe { self.ring.entry(self.read).read() };
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
