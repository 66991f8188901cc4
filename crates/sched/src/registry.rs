//! Every discipline there is.
//!
//! A new discipline is one file that implements [`Discipline`], and its line in the list below.
//! From that line it is in the command line, in scenario files, in the conformance suite, in the
//! fuzzer and in the benchmarks.

use alloc::boxed::Box;

use crate::disciplines::{
    cake, codel, drr, early, fair, fifo, fq_codel, fq_lanes, lanes, marked, sorted,
};
use crate::interface::{Discipline, Info, Params, Qdisc, Sink};

macro_rules! disciplines {
    ($($discipline:path),* $(,)?) => {
        /// Every discipline, in the order of lists and tables.
        pub static ALL: &[&Info] = &[$(&<$discipline as Discipline>::INFO),*];

        /// A new instance of the discipline that `info` describes.
        pub(crate) fn build<S: Sink + 'static>(
            info: &Info,
            params: &Params,
            seed: u64,
        ) -> Box<dyn Qdisc<S>> {
            $(if info.name == <$discipline as Discipline>::INFO.name {
                return <$discipline as Discipline>::build(params, seed);
            })*
            unreachable!("{} is not in the registry", info.name)
        }
    };
}

disciplines![
    fifo::Fifo,
    lanes::efd::Efd,
    lanes::named::Run2c,
    lanes::named::Run2cSeq,
    lanes::named::XProtect,
    lanes::named::Sift,
    lanes::named::Sb,
    lanes::named::SbKo,
    lanes::named::SbSh,
    lanes::auto::Auto,
    lanes::compose::Composed,
    sorted::las::Las,
    sorted::lars::Lars,
    sorted::srpt::Srpt,
    drr::Drr,
    fair::Scfq,
    fair::Wfq,
    fair::Wf2q,
    fair::Fsc,
    fair::Hfsc,
    codel::Codel,
    fq_codel::FqCodel,
    fq_lanes::FqLanes,
    cake::Cake,
    marked::Marked<cake::Cake>,
    early::red::Red,
    early::fred::Fred,
    early::rio::Rio,
    early::rio_ps::RioPs,
];

/// The discipline of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Info> {
    ALL.iter().copied().find(|info| info.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec::Vec;

    #[test]
    fn every_name_is_used_once_and_every_default_is_in_range() {
        let mut names: Vec<_> = ALL.iter().map(|info| info.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        for info in ALL {
            let params = info.defaults();
            let mut names: Vec<_> = params.iter().map(|(def, _)| def.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), info.params.len(), "{}", info.name);
        }
    }

    #[test]
    fn every_default_reads_back_as_it_is_shown() {
        for info in ALL {
            let defaults = info.defaults();
            let mut again = info.defaults();
            for (def, value) in defaults.iter() {
                again.set(def.name, &value).unwrap_or_else(|e| panic!("{e}"));
            }
            assert_eq!(again, defaults, "{}", info.name);
            let _: String = alloc::format!("{again:?}");
        }
    }
}
