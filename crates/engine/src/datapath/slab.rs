//! Pieces of memory of one size, reserved at once.

use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Memory from the system, all 0.
pub(super) struct Region {
    pub(super) start: NonNull<u8>,
    pub(super) length: usize,
}

// SAFETY: it is no more than an address; what lies there is reached through slabs only.
unsafe impl Send for Region {}
// SAFETY: a shared reference gives nothing but the address.
unsafe impl Sync for Region {}

impl Region {
    pub(super) fn new(length: usize) -> io::Result<Self> {
        let Some(bytes) = NonZeroUsize::new(length) else {
            return Ok(Self { start: NonNull::dangling(), length });
        };
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: new memory, wherever the kernel likes.
        let start = unsafe { mmap_anonymous(None, bytes, access, flags) }?;
        Ok(Self { start: start.cast(), length })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: what `new` has mapped; nobody has a reference into it any more.
            let _ = unsafe { munmap(self.start.cast(), self.length) };
        }
    }
}

/// Pieces of memory of one size.
pub(super) struct Slab {
    pub(super) size: usize,
    pub(super) bound: usize,
    pub(super) region: Arc<Region>,
    /// Where in the region the first piece begins; `bound` times `size` bytes from there on are
    /// this slab's alone.
    pub(super) offset: usize,
    /// Pieces that were used and are free again.
    free: Vec<u32>,
    /// Pieces from this one on were never used.
    fresh: u32,
}

impl Slab {
    pub(super) fn new(size: usize, bound: usize) -> io::Result<Self> {
        let length = size.checked_mul(bound).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self::in_region(&Arc::new(Region::new(length)?), 0, size, bound))
    }

    pub(super) fn in_region(
        region: &Arc<Region>,
        offset: usize,
        size: usize,
        bound: usize,
    ) -> Self {
        let region = Arc::clone(region);
        debug_assert!(offset + size * bound <= region.length);
        Self { size, bound, region, offset, free: Vec::with_capacity(bound), fresh: 0 }
    }

    pub(super) fn take(&mut self) -> Option<u32> {
        let fresh = || {
            let piece = self.fresh;
            ((piece as usize) < self.bound).then(|| {
                self.fresh += 1;
                piece
            })
        };
        self.free.pop().or_else(fresh)
    }

    pub(super) fn give(&mut self, piece: u32) {
        self.free.push(piece);
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.free.is_empty() && self.fresh as usize == self.bound
    }

    pub(super) fn get(&self, piece: u32) -> &[u8] {
        // SAFETY: the piece is inside the region, whose bytes are initialised (to 0), and nobody
        // changes it while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.at(piece).as_ptr(), self.size) }
    }

    pub(super) fn get_mut(&mut self, piece: u32) -> &mut [u8] {
        // SAFETY: as in `get`, and nobody else sees it while `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.at(piece).as_ptr(), self.size) }
    }

    fn at(&self, piece: u32) -> NonNull<u8> {
        assert!((piece as usize) < self.bound, "a piece of this slab");
        // SAFETY: inside the region, as `piece < bound`.
        unsafe { self.region.start.add(self.offset + piece as usize * self.size) }
    }
}
