//! What is proved or stated of a harm.

use sched::Spec;
use units::Amount;

use crate::judge::Outcome;
use crate::{Harm, Setting};

/// A bound on a harm.
#[derive(Clone, Debug)]
pub struct Bound {
    /// In the unit of the harm.
    pub value: f64,
    /// Where it comes from.
    pub source: &'static str,
}

/// The bound that holds for this run, if one is stated. `outcome` says how many flows there were.
pub(crate) fn bound(spec: &Spec, setting: &Setting, outcome: &Outcome) -> Option<Bound> {
    let name = spec.info().name;
    let known = |value: f64, source| Some(Bound { value, source });
    match (name, setting.harm) {
        ("fifo", Harm::Wait) => {
            let packets = packets(limit(spec, setting)) + 1.0;
            known(ms(packets * 1500.0, setting) + path_ms(setting), "limit / rate")
        }
        ("fq-lanes", Harm::Starvation) => {
            // docs/disciplines/fq-lanes.md, "How long a flow can wait", with every flow of the run
            // listed for the victim's host, however many are in its tier, and two hosts that share;
            // what may go ahead is 15 kB a host.
            let flows = outcome.entries.max(1) as f64;
            let quantum = 1514.0;
            let bytes = (4.0 * flows + 358.0) * quantum;
            let ahead = 2.0 * 15_000.0;
            known(
                ms(2.0 * bytes + ahead, setting) + path_ms(setting),
                "docs/disciplines/fq-lanes.md",
            )
        }
        ("fq-lanes", Harm::Memory) => {
            known(spec.params().number("flows") as f64, "the parameter `flows`")
        }
        // A flow is known while one of its packets is queued (the EFD paper, section 3).
        ("efd", Harm::Memory) => known(packets(limit(spec, setting)), "one for each queued packet"),
        _ => None,
    }
}

fn limit(spec: &Spec, setting: &Setting) -> Amount {
    let spec = spec.clone().with_default("limit", &setting.limit.to_string());
    spec.map_or(setting.limit, |spec| spec.params().amount("limit"))
}

/// How many packets fit, the smallest of an attack where it is bytes.
fn packets(limit: Amount) -> f64 {
    match limit {
        Amount::Packets(packets) => packets as f64,
        Amount::Bytes(bytes) => bytes as f64 / 64.0,
    }
}

fn ms(bytes: f64, setting: &Setting) -> f64 {
    bytes * 8e3 / setting.rate.0 as f64
}

/// On the way beside the queue: propagation, and a packet's transmission on three links.
fn path_ms(setting: &Setting) -> f64 {
    setting.delay.0 as f64 / 1e6 + 1.0 + ms(1500.0, setting)
}
