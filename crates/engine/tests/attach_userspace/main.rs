//! The engine on a single interface, between two hosts.
#![cfg(feature = "kernel")]

mod bare_ip;
mod device_faults;
mod frames;
mod hosts;
mod neighbours;
mod probe;
mod process;
mod process_faults;
mod works;

use engine::userspace::HookKind;

/// Both ways of putting programs on a device, where the kernel has both.
const HOOKS: [HookKind; 2] = [HookKind::Tcx, HookKind::Clsact];
