//! The types of the object file as bytes of its maps, and the map that is looked into.

use std::io;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::skeleton::fq_lanes::types as fq_lanes;
use super::skeleton::marks::types::{flow_key, sl_marks_config, sl_marks_flow, sl_marks_state};
use super::skeleton::types::{sl_config, sl_event, sl_parts, sl_qdisc, sl_shared};

/// A type that any bytes are a value of.
///
/// # Safety
/// Implement it only for `repr(C)` structures of integers without padding that matters.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers and arrays of integers throughout, as the header defines them.
unsafe impl Plain for sl_config {}
// SAFETY: as above.
unsafe impl Plain for sl_parts {}
// SAFETY: as above; the same structures of another object file.
unsafe impl Plain for fq_lanes::sl_config {}
// SAFETY: as above.
unsafe impl Plain for fq_lanes::sl_parts {}
// SAFETY: as above.
unsafe impl Plain for fq_lanes::fql_parts {}
// SAFETY: as above.
unsafe impl Plain for sl_event {}
// SAFETY: integers and arrays of integers throughout.
unsafe impl Plain for sl_qdisc {}
// SAFETY: integers and arrays of integers throughout.
unsafe impl Plain for sl_marks_config {}
// SAFETY: integers and arrays of integers throughout.
unsafe impl Plain for sl_marks_state {}
// SAFETY: integers and arrays of integers throughout.
unsafe impl Plain for sl_marks_flow {}
// SAFETY: integers and arrays of integers throughout.
unsafe impl Plain for flow_key {}
// SAFETY: integers and arrays of integers throughout.
unsafe impl Plain for fq_lanes::fql_seen {}
// SAFETY: integers and arrays of integers throughout.
unsafe impl Plain for fq_lanes::flow_key {}

/// A value from the bytes of a map; `None` if there are fewer than it takes.
pub(crate) fn from_bytes<T: Plain>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: both are as long as T, and any bytes are a T.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast(), size_of::<T>());
        Some(value.assume_init())
    }
}

/// The bytes of a map that a value is.
pub(crate) fn to_bytes<T: Plain>(value: &T) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<T>()];
    // SAFETY: both are as long as T, whose padding, if any, does not matter.
    unsafe {
        std::ptr::copy_nonoverlapping(
            std::ptr::from_ref(value).cast(),
            bytes.as_mut_ptr(),
            size_of::<T>(),
        );
    }
    bytes
}

/// What a loaded qdisc shares with its readers, as the kernel has it in memory.
pub(crate) struct Shared {
    start: NonNull<sl_shared>,
}

impl Shared {
    /// Looks into the map with this descriptor.
    ///
    /// # Errors
    /// If it is no such map, or the kernel does not let the process look.
    pub(crate) fn open(map: impl AsFd) -> io::Result<Self> {
        let length = NonZeroUsize::new(size_of::<sl_shared>()).ok_or(io::ErrorKind::InvalidData)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, of which nobody else in the process knows.
        let start = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, map, 0)? };
        Ok(Self { start: start.cast() })
    }

    /// Whether it is laid out as this program knows it, and not by another version of it.
    pub(crate) fn is_ours(&self) -> bool {
        // SAFETY: within the mapping.
        unsafe { (&raw const (*self.start.as_ptr()).layout).read() == LAYOUT }
    }

    /// What a new qdisc starts with, and how many there can be.
    pub(crate) fn template(&self) -> (sl_config, u64) {
        let shared = self.start.as_ptr();
        // SAFETY: within the mapping; any bytes are a value.
        unsafe { ((&raw const (*shared).template).read(), (&raw const (*shared).instances).read()) }
    }

    /// A qdisc as it stands; single counters may be a packet apart.
    pub(crate) fn qdisc(&self, index: usize) -> sl_qdisc {
        // SAFETY: within the mapping; any bytes are a value.
        unsafe { self.place(index).read_volatile() }
    }

    /// Puts a configuration in the place of the one that is not in use, then switches to it.
    pub(crate) fn configure(&self, index: usize, config: &sl_config) {
        let qdisc = self.place(index).cast::<u8>();
        // SAFETY: within the mapping, aligned; the kernel reads it as one word.
        let generation =
            unsafe { &*qdisc.add(offset_of!(sl_qdisc, generation)).cast::<AtomicU64>() };
        let next = generation.load(Ordering::Acquire) + 1;
        let at = offset_of!(sl_qdisc, config) + (next & 1) as usize * size_of::<sl_config>();
        // SAFETY: within the mapping; the kernel does not read it before the generation moves on.
        unsafe { qdisc.add(at).cast::<sl_config>().write_volatile(*config) };
        generation.store(next, Ordering::Release);
    }

    fn place(&self, index: usize) -> *mut sl_qdisc {
        let shared = self.start.as_ptr();
        // SAFETY: the array lies within the mapping, and the index is checked.
        unsafe {
            let first = (&raw mut (*shared).qdisc).cast::<sl_qdisc>();
            first.add(index.min(INSTANCES - 1))
        }
    }
}

/// `SL_LAYOUT` of the header.
const LAYOUT: u64 = 6;

/// Qdiscs that a load can serve at most.
pub(crate) const INSTANCES: usize =
    (size_of::<sl_shared>() - offset_of!(sl_shared, qdisc)) / size_of::<sl_qdisc>();

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: what `open` mapped, and nothing points into it any more.
        let _ = unsafe { munmap(self.start.cast(), size_of::<sl_shared>()) };
    }
}

/// The entries of an array that the kernel lets be mapped.
pub(crate) struct Table<T> {
    start: NonNull<u8>,
    entries: usize,
    entry: PhantomData<T>,
}

impl<T: Plain> Table<T> {
    /// Bytes of an entry: the kernel aligns each.
    const STEP: usize = size_of::<T>().next_multiple_of(8);

    /// Looks into the array with this descriptor, which has so many entries of this type.
    ///
    /// # Errors
    /// If the kernel does not let the process look.
    pub(crate) fn open(map: impl AsFd, entries: usize) -> io::Result<Self> {
        let length = NonZeroUsize::new(entries * Self::STEP).ok_or(io::ErrorKind::InvalidData)?;
        // SAFETY: a new mapping, of which nobody else in the process knows.
        let start =
            unsafe { mmap(None, length, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, map, 0)? };
        Ok(Self { start: start.cast(), entries, entry: PhantomData })
    }

    /// The entries as they stand; one that is being written may be half of it.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = T> {
        // SAFETY: within the mapping, aligned for integers; any bytes are a value.
        (0..self.entries)
            .map(|at| unsafe { self.start.add(at * Self::STEP).cast::<T>().read_volatile() })
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        let length = self.entries * size_of::<T>().next_multiple_of(8);
        // SAFETY: what `open` mapped, and nothing points into it any more.
        let _ = unsafe { munmap(self.start.cast(), length) };
    }
}
