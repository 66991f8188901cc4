//! Memory that rings lie in, shared with the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use libc::xdp_ring_offset;

/// What may stand in a ring: plain data that the kernel may write as it likes.
pub(super) trait Entry: Copy {}
/// The address of a buffer, in the fill and completion rings.
impl Entry for u64 {}
/// A frame, in the rings for reception and transmission.
impl Entry for libc::xdp_desc {}

/// A ring in memory shared with the kernel; unmapped at the end.
pub(super) struct Shared<T> {
    mapping: NonNull<u8>,
    length: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    pub(super) size: u32,
}

// SAFETY: the ring is reached through this value alone, and the other side is the kernel, which
// does not care which thread of the process holds it.
unsafe impl<T: Entry> Send for Shared<T> {}

impl<T: Entry> Shared<T> {
    /// Maps the ring of `size` entries that lies at `page_offset` of a socket.
    pub(super) fn map(
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

    pub(super) fn producer(&self) -> &AtomicU32 {
        // SAFETY: it lies in the mapping, which lives as long as `self`, and is only ever accessed
        // atomically.
        unsafe { self.producer.as_ref() }
    }

    pub(super) fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for the producer.
        unsafe { self.consumer.as_ref() }
    }

    pub(super) fn flags(&self) -> &AtomicU32 {
        // SAFETY: as for the producer.
        unsafe { self.flags.as_ref() }
    }

    /// Writes an entry that the other side does not look at now.
    pub(super) fn write(&self, index: u32, entry: T) {
        // SAFETY: the place is mapped, and the kernel does not look at entries that are not published.
        unsafe { self.entry(index).write(entry) };
    }

    /// Reads an entry that the other side does not write now.
    pub(super) fn read(&self, index: u32) -> T {
        // SAFETY: the place is mapped, and the kernel has published what is there; any bytes are a value.
        unsafe { self.entry(index).read() }
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
