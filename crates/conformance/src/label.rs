//! Which discipline a fuzzer's input is about: two bytes, made of its name.
//!
//! A place in the registry would do, but another discipline in the list would then make kept inputs
//! those of others. What a fuzzer makes up is mostly no discipline's label, and means any of them:
//! such an input gets its label when it is kept (`--example keep`), and a test refuses it without.

use sched::Info;

/// The first bytes of an input about the discipline of this name: FNV-1a, folded to 16 bits.
#[must_use]
pub fn of(name: &str) -> u16 {
    let step = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = name.bytes().fold(0x811c_9dc5, step);
    (hash >> 16 ^ hash) as u16
}

/// The discipline that `label` means among these, of which there is one.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn find(label: u16, among: &[&'static Info]) -> &'static Info {
    let named = among.iter().find(|info| of(info.name) == label);
    named.unwrap_or_else(|| &among[usize::from(label) % among.len()])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sched::registry;

    use super::*;

    #[test]
    fn every_discipline_has_a_label_of_its_own_and_keeps_it() {
        let labels: BTreeSet<u16> = registry::ALL.iter().map(|info| of(info.name)).collect();
        assert_eq!(labels.len(), registry::ALL.len());
        // As inputs are labelled that have been kept.
        assert_eq!((of("fifo"), of("efd")), (0x29cb, 0x0e5b));
    }

    #[test]
    fn a_label_means_the_same_beside_other_disciplines() {
        let efd = registry::find("efd").expect("efd");
        let others = |place: usize| {
            let all = registry::ALL.iter().copied().enumerate();
            all.filter(move |(at, info)| *at % 2 == place || *info == efd).map(|(_, info)| info)
        };
        for others in [others(0).collect::<Vec<_>>(), others(1).collect()] {
            assert_eq!(find(of("efd"), &others).name, "efd");
        }
        assert!(registry::ALL.contains(&find(0, registry::ALL)), "of no discipline's own");
    }
}
