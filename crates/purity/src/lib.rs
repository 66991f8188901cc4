//! Proof that `sched` does without the standard library: no I/O, no clock, no threads.
//!
//! A program has one panic handler. This one brings its own, so as soon as any crate below it
//! links `std`, which has one too, the build fails with E0152. `scripts/purity.sh` builds this,
//! and checks that the build does fail when `sched` is made to link `std`.

#![no_std]

extern crate alloc;

use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::ptr::null_mut;

use sched::{FlowId, Nanos, Packet, Spec, registry};

/// There is no memory; this is compiled and linked, not run.
struct NoMemory;

// SAFETY: a null pointer is how an allocator says that it has no memory, so nothing is ever
// given out that could be misused or given back.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _layout: Layout) -> *mut u8 {
        null_mut()
    }

    unsafe fn dealloc(&self, _pointer: *mut u8, _layout: Layout) {}
}

#[global_allocator]
static MEMORY: NoMemory = NoMemory;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Uses every discipline, so that all of the crate is linked. Returns packets sent.
#[unsafe(no_mangle)]
pub extern "C" fn shortlane_purity() -> usize {
    let mut lost = Vec::new();
    let mut sent = 0;
    for info in registry::ALL {
        let Ok(spec) = Spec::named(info.name) else { continue };
        let mut queue = spec.build(1);
        queue.enqueue(Packet::new(FlowId::new(1), 1500), Nanos::ZERO, &mut lost);
        sent += usize::from(queue.dequeue(Nanos::ZERO, &mut lost).packet().is_some());
    }
    sent
}
