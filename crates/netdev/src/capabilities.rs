//! What the process may do, so that a refusal names all that is missing, before anything is done.

/// One of `capabilities(7)`.
#[derive(Clone, Copy, Debug)]
pub struct Capability {
    name: &'static str,
    bit: u32,
}

const SYS_ADMIN: Capability = Capability { name: "CAP_SYS_ADMIN", bit: 21 };

/// To change qdiscs and offloads.
pub const NET_ADMIN: Capability = Capability { name: "CAP_NET_ADMIN", bit: 12 };
/// To load programs.
pub const BPF: Capability = Capability { name: "CAP_BPF", bit: 39 };
/// To open packet sockets.
pub const NET_RAW: Capability = Capability { name: "CAP_NET_RAW", bit: 13 };
/// To load programs that look at kernel memory.
pub const PERFMON: Capability = Capability { name: "CAP_PERFMON", bit: 38 };
/// To find the maps of a qdisc at work.
pub const FIND: Capability = SYS_ADMIN;

/// The capabilities that are needed and that the process has not; `None` if it has all.
#[must_use]
pub fn lacking(needed: &[Capability]) -> Option<String> {
    missing(effective(), needed)
}

/// The capabilities that are needed and not in this set.
fn missing(effective: u64, needed: &[Capability]) -> Option<String> {
    let has = |capability: &Capability| effective >> capability.bit & 1 == 1;
    // It stands for those that were split from it.
    let stands_in =
        |of: &Capability| has(&SYS_ADMIN) && ![NET_ADMIN.bit, NET_RAW.bit].contains(&of.bit);
    let names: Vec<&str> = needed
        .iter()
        .filter(|capability| !has(capability) && !stands_in(capability))
        .map(|capability| capability.name)
        .collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

/// What the calling thread may do; everything if the system does not tell, for it to refuse.
fn effective() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let needed = [NET_ADMIN, BPF, PERFMON];
        assert_eq!(missing(u64::MAX, &needed), None);
        assert_eq!(missing(1 << 12 | 1 << 21, &needed), None);
        assert_eq!(missing(1 << 21, &needed).as_deref(), Some("CAP_NET_ADMIN"));
        assert_eq!(missing(1 << 12, &needed).as_deref(), Some("CAP_BPF and CAP_PERFMON"));
        let all = "CAP_NET_ADMIN and CAP_BPF and CAP_PERFMON";
        assert_eq!(missing(0, &needed).as_deref(), Some(all));
        assert_eq!(missing(1 << 39, &[FIND]).as_deref(), Some("CAP_SYS_ADMIN"));
    }
}
