//! The engine on a single interface, between two hosts.
#![cfg(feature = "kernel")]

mod faults;
mod hosts;
mod process;
mod works;

use engine::userspace::HookKind;

/// Both ways of putting programs on a device, where the kernel has both.
const HOOKS: [HookKind; 2] = [HookKind::Tcx, HookKind::Clsact];
