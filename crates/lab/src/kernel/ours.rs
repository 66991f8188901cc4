//! Our disciplines and marks inside the kernel.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::kernel::marks::{self, Queues};
use engine::kernel::{self, KernelError, Shaping, compose, load};
use engine::{LinkChanges, LinkSettings};
use sched::{Nanos, Rate, Spec};

use super::queue::BURST_PER_SECOND;
use super::tc;

fn link(rate: Rate) -> LinkSettings {
    let burst_time = Nanos(1_000_000_000 / BURST_PER_SECOND);
    LinkSettings { rate, burst_time, ..LinkSettings::default() }
}

fn to(rate: Rate) -> LinkChanges {
    LinkChanges { rate: Some(rate), ..LinkChanges::default() }
}

fn failed(error: KernelError) -> io::Error {
    io::Error::other(error.to_string())
}

/// Whether this kernel takes this discipline of ours.
pub(crate) fn can(spec: &Spec) -> Result<(), String> {
    kernel::can(spec, link(Rate(1_000_000))).map_err(|error| error.to_string())
}

pub(super) fn put(device: &str, spec: &Spec, rate: Rate) -> io::Result<()> {
    // The kernel has one list of names for all namespaces, and takes 15 bytes.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed) % 100_000;
    let name = format!("sl{:x}_{number}", std::process::id());
    let composition =
        compose(spec, &Shaping { link: link(rate), link_header: 14 }).map_err(failed)?;
    // The qdisc itself keeps its programs; their name is free again when this goes.
    let registered = load(&name, &composition, 1, None).map_err(failed)?;
    tc(&format!("qdisc add dev {device} root {name}"))?;
    registered.mark_on(device).map_err(failed)
}

pub(super) fn change(device: &str, rate: Rate) -> io::Result<()> {
    kernel::change(device, to(rate), None).map(drop).map_err(failed)
}

/// Whether this kernel has the queues of this name for marks.
pub(super) fn can_mark(queues: &str) -> io::Result<()> {
    marks::can(queues_of(queues)).map(drop).map_err(failed)
}

fn queues_of(name: &str) -> Option<Queues> {
    [Queues::Cake, Queues::Prio, Queues::Htb].into_iter().find(|queues| queues.name() == name)
}

pub(super) fn put_marks(device: &str, queues: &str, rate: Rate) -> io::Result<()> {
    let order = marks::Order {
        device,
        link: link(rate),
        queues: queues_of(queues),
        join: None,
        threshold: None,
        replace: false,
    };
    marks::attach(&order).map(drop).map_err(failed)
}

pub(super) fn change_marks(device: &str, rate: Rate) -> io::Result<()> {
    marks::change(device, to(rate), LinkChanges::default()).map_err(failed)
}

/// What was written down of the device goes with them.
pub(super) fn take_marks_off(device: &str) -> io::Result<()> {
    kernel::detach(device).map(drop).map_err(failed)
}
