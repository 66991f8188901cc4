//! Hosts behind NAT on this machine. A qdisc may not ask conntrack who they are; the program in front
//! of it, which sets marks, may.

use std::fs;

use sched::Params;

/// Whose packets a qdisc has, where this machine translates addresses: `enum fql_nat` of the shared
/// header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Nat {
    /// It does not, or hosts are not the clients.
    #[default]
    Absent = 0,
    /// What clients send.
    Leaves = 1,
    /// What is sent to them.
    Arrives = 2,
}

impl Nat {
    /// What this machine does at present, for a qdisc of what a device sends or, on an ifb, receives.
    pub(super) fn of(params: &Params, received: bool) -> Self {
        let clients = match (received, params.has("hosts").then(|| params.word("hosts"))) {
            (false, Some("source")) => Self::Leaves,
            (true, Some("destination")) => Self::Arrives,
            _ => Self::Absent,
        };
        if clients != Self::Absent && is_translating() { clients } else { Self::Absent }
    }
}

/// Whether the kernel has what translates addresses: a module, which is there once it is needed.
fn is_translating() -> bool {
    let symbols = fs::read("/proc/kallsyms").unwrap_or_default();
    let name = b" nf_nat_setup_info";
    symbols.windows(name.len()).any(|text| text == name)
}
