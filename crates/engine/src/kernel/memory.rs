//! The types of the object file as bytes of its maps.

use std::mem::MaybeUninit;

use super::skeleton::types::{sl_config, sl_event, sl_histogram, sl_instance};

/// A type that any bytes are a value of.
///
/// # Safety
/// Implement it only for `repr(C)` structures of integers without padding that matters.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers and arrays of integers throughout, as the header defines them.
unsafe impl Plain for sl_config {}
// SAFETY: as above.
unsafe impl Plain for sl_event {}
// SAFETY: as above.
unsafe impl Plain for sl_histogram {}
// SAFETY: as above.
unsafe impl Plain for sl_instance {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}

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

/// The bytes of a value, padding as 0.
pub(crate) fn to_bytes<T: Plain>(value: &T) -> Vec<u8> {
    let start = std::ptr::from_ref(value).cast::<u8>();
    // SAFETY: the value is as long as that, and lives; its types have no padding.
    unsafe { std::slice::from_raw_parts(start, size_of::<T>()) }.to_vec()
}
