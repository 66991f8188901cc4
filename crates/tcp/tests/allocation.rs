//! A transfer without loss allocates nothing, and what a loss needed is given back.
//!
//! An allocator that counts must be a program's only one, and takes `unsafe`: hence its own file.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tcp::{Config, Endpoint, Nanos, Segment};

thread_local! {
    /// Blocks allocated by this thread, and held now.
    static BLOCKS: Cell<(u64, i64)> = const { Cell::new((0, 0)) };
}

struct Counting;

// SAFETY: hands everything to the system's allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = BLOCKS.try_with(|blocks| {
            let (all, held) = blocks.get();
            blocks.set((all + 1, held + 1));
        });
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let _ = BLOCKS.try_with(|blocks| {
            let (all, held) = blocks.get();
            blocks.set((all, held - 1));
        });
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DELAY: Nanos = Nanos::from_millis(10);

/// Runs a transfer of `bytes` in which every `loss`-th data segment is lost; blocks allocated by
/// the endpoints, and still held by them.
fn transfer(config: &Config, bytes: u64, loss: u64) -> (u64, i64) {
    // The network's own memory is there before the count begins.
    let mut wire: [Vec<Segment>; 2] = [Vec::with_capacity(1 << 14), Vec::with_capacity(1 << 14)];
    let mut arriving: [Vec<Segment>; 2] = wire.clone().map(|_| Vec::with_capacity(1 << 14));
    let before = BLOCKS.get();
    let mut ends = [Endpoint::client(config), Endpoint::server(config)];
    let (mut now, mut sent) = (Nanos::ZERO, 0u64);
    ends[0].connect(config, now);
    ends[0].write(bytes);
    while ends[0].acked() < bytes {
        for end in 0..2 {
            ends[end].on_timer(config, now);
            for segment in arriving[end].drain(..) {
                ends[end].on_segment(config, &segment, false, now);
                pump(config, &mut ends[end], &mut wire[1 - end], now, loss, &mut sent);
            }
            pump(config, &mut ends[end], &mut wire[1 - end], now, loss, &mut sent);
        }
        std::mem::swap(&mut wire, &mut arriving);
        now += DELAY;
    }
    let after = BLOCKS.get();
    (after.0 - before.0, after.1 - before.1)
}

fn pump(
    config: &Config,
    end: &mut Endpoint,
    wire: &mut Vec<Segment>,
    now: Nanos,
    loss: u64,
    sent: &mut u64,
) {
    while let Some(segment) = end.poll_transmit(config, now) {
        *sent += u64::from(segment.len > 0);
        if segment.len == 0 || !sent.is_multiple_of(loss) {
            wire.push(segment);
        }
    }
}

#[test]
fn only_losses_allocate() {
    let without_rack = Config { rack: false, ..Config::linux() };
    for config in [Config::default(), without_rack, Config::ns3(), Config::ns2()] {
        let (allocated, held) = transfer(&config, 5_000_000, u64::MAX);
        assert_eq!((allocated, held), (0, 0));
        let (allocated, held) = transfer(&config, 5_000_000, 100);
        assert!(allocated > 0);
        assert_eq!(held, 0);
    }
}

/// RACK keeps an entry for each segment that is out: room for them grows with the largest window.
#[test]
fn rack_allocates_for_its_largest_window() {
    let (allocated, _) = transfer(&Config::linux(), 5_000_000, u64::MAX);
    // A block for each end, and doublings.
    assert!((2..20).contains(&allocated), "{allocated}");
}
