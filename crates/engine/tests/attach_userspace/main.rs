//! The engine on a single interface, between two hosts.
#![cfg(feature = "kernel")]

mod bare_ip;
mod device_faults;
mod frames;
mod hosts;
mod nat;
mod neighbours;
mod probe;
mod process;
mod process_faults;
mod works;

use engine::kernel::inspect::machine;
use engine::userspace::HookKind;

/// The ways of putting programs on a device that this kernel has.
fn hooks() -> Vec<HookKind> {
    if machine().tcx { vec![HookKind::Tcx, HookKind::Clsact] } else { vec![HookKind::Clsact] }
}
