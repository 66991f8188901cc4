//! What is fixed of `fq-lanes` when its qdisc is loaded.

use sched::params::Kind;
use sched::{Nanos, Params};

use super::compose::refused;
use super::error::KernelError;
use super::memory::to_bytes;
use super::skeleton::fq_lanes::types::fql_parts;

/// Its name.
pub(super) const NAME: &str = "fq-lanes";
/// A block of memory of more flows than this would be too large for one map entry.
pub(super) const MOST_FLOWS: u64 = 1 << 20;
/// `FQL_BEFORE_FLOWS` of the shared header: the entry of nobody, and those of spill queues.
const BEFORE_FLOWS: u64 = 1 + 64;
/// `FQL_MOST_HOSTS`.
const MOST_HOSTS: u64 = 1024;
/// `FQL_MOST_INTERVAL`: its square takes 63 bits.
const MOST_INTERVAL: Nanos = Nanos::from_secs(3);

/// The parts for queues of so many packets.
pub(super) fn parts(params: &Params, slots: u64) -> Result<fql_parts, KernelError> {
    if params.time("interval") > MOST_INTERVAL {
        return Err(refused(params, "interval", "it takes 3s at most"));
    }
    let bound = params.number("flows");
    Ok(fql_parts {
        without: choice(params, "without"),
        host_of: choice(params, "hosts"),
        flow_bound: bound as u32,
        host_bound: bound.min(MOST_HOSTS) as u32,
        flow_mask: ((bound + BEFORE_FLOWS).next_power_of_two() - 1) as u32,
        bucket_mask: (bound.next_power_of_two() - 1) as u32,
        slots: slots as u32 + 1,
        ecn: params.flag("ecn").into(),
        seen: (bound + BEFORE_FLOWS) as u32,
        ..fql_parts::default()
    })
}

/// The number of a word among those that a parameter takes: what the shared header calls it.
fn choice(params: &Params, name: &str) -> u32 {
    let word = params.word(name);
    let def = params.iter().map(|(def, _)| def).find(|def| def.name == name);
    let words =
        def.and_then(|def| if let Kind::Choice(words) = def.kind { Some(words) } else { None });
    words.and_then(|words| words.iter().position(|known| *known == word)).unwrap_or(0) as u32
}

/// What cannot change while the qdisc runs; its slots for packets may be more than are needed.
pub(super) fn fixed(parts: &fql_parts) -> Vec<u8> {
    to_bytes(&fql_parts { slots: 0, ..*parts })
}

/// Completes the parts by what the object file knows: the sizes of its types.
pub(super) const fn with_sizes(parts: &fql_parts, object: &fql_parts) -> fql_parts {
    let fql_parts { block_size, flow_size, .. } = *object;
    fql_parts { block_size, flow_size, ..*parts }
}

/// Bytes of a qdisc's block.
pub(super) const fn block_size(parts: &fql_parts) -> u32 {
    parts.block_size + (parts.flow_mask + 1) * parts.flow_size
}
