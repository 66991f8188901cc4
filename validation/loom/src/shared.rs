//! In place of memory that is mapped with the kernel: the same in cells that loom watches.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use libc::xdp_ring_offset;
use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU32;

pub(crate) trait Entry: Copy {}
impl Entry for u64 {}

struct Memory<T> {
    producer: AtomicU32,
    consumer: AtomicU32,
    flags: AtomicU32,
    entries: Vec<UnsafeCell<T>>,
}

pub(crate) struct Shared<T> {
    memory: Arc<Memory<T>>,
    pub(crate) size: u32,
}

// SAFETY: loom ends a test in which a cell is reached from two threads at once.
unsafe impl<T: Entry> Send for Shared<T> {}

impl<T: Entry> Shared<T> {
    /// There is no socket here.
    pub(crate) fn map(_: BorrowedFd<'_>, _: u64, _: &xdp_ring_offset, _: u32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn producer(&self) -> &AtomicU32 {
        &self.memory.producer
    }

    pub(crate) fn consumer(&self) -> &AtomicU32 {
        &self.memory.consumer
    }

    pub(crate) fn flags(&self) -> &AtomicU32 {
        &self.memory.flags
    }

    pub(crate) fn write(&self, index: u32, entry: T) {
        // SAFETY: loom checks that nobody else reaches it now.
        self.entry(index).with_mut(|place| unsafe { place.write(entry) });
    }

    pub(crate) fn read(&self, index: u32) -> T {
        // SAFETY: loom checks that nobody writes it now.
        self.entry(index).with(|place| unsafe { place.read() })
    }

    fn entry(&self, index: u32) -> &UnsafeCell<T> {
        &self.memory.entries[(index & (self.size - 1)) as usize]
    }
}

#[cfg(test)]
impl Shared<u64> {
    /// Two views of a ring of so many entries whose indices begin there.
    pub(crate) fn pair(size: u32, begin: u32) -> [Self; 2] {
        let memory = Arc::new(Memory {
            producer: AtomicU32::new(begin),
            consumer: AtomicU32::new(begin),
            flags: AtomicU32::new(0),
            entries: (0..size).map(|_| UnsafeCell::new(0)).collect(),
        });
        [Arc::clone(&memory), memory].map(|memory| Self { memory, size })
    }
}
