//! What is at the bottleneck: one of our disciplines, or a qdisc that this kernel brings along.

use std::fmt;

use sched::{Amount, Spec, SpecError};
use serde::Serialize;

use crate::config::ConfigError;
use crate::kernel;

/// What the bottleneck's queue is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The userspace engine.
    #[default]
    Userspace,
    /// Qdiscs of this kernel.
    Kernel,
}

impl Engine {
    /// The name of a run with it in results.
    #[must_use]
    pub const fn run(self) -> &'static str {
        match self {
            Self::Userspace => "lab",
            Self::Kernel => "lab-kernel",
        }
    }

    /// Its name in options and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Userspace => "userspace",
            Self::Kernel => "kernel",
        }
    }
}

/// A discipline of a lab.
#[derive(Clone, Debug)]
pub enum Scheduler {
    /// One of ours.
    Ours(Spec),
    /// One of the kernel's own.
    Own(Own),
    /// Marks in front of queues of the kernel's own, as `attach --engine marks` puts them there:
    /// the name of these queues.
    Marks(&'static str),
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(spec) => spec.fmt(f),
            Self::Own(own) => own.fmt(f),
            Self::Marks(queues) => write!(f, "{MARKS}:{queues}"),
        }
    }
}

impl From<Spec> for Scheduler {
    fn from(spec: Spec) -> Self {
        Self::Ours(spec)
    }
}

impl Scheduler {
    /// Whether it is the discipline of ours of this name, or the kernel's own form of it.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        match self {
            Self::Ours(spec) => spec.info().name == name,
            Self::Own(own) => own.qdisc.twin == Some(name),
            Self::Marks(_) => false,
        }
    }

    /// The same, with this limit where it has no other.
    ///
    /// # Errors
    /// If the discipline does not take it.
    pub fn with_limit(self, limit: Amount) -> Result<Self, SpecError> {
        Ok(match self {
            Self::Ours(spec) => Self::Ours(spec.with_default("limit", &limit.to_string())?),
            Self::Own(own) => Self::Own(Own::new(own.qdisc, limit)),
            // They keep what `attach` gives them.
            Self::Marks(queues) => Self::Marks(queues),
        })
    }

    /// The discipline of ours, if it is one.
    #[must_use]
    pub const fn ours(&self) -> Option<&Spec> {
        match self {
            Self::Ours(spec) => Some(spec),
            Self::Own(_) | Self::Marks(_) => None,
        }
    }
}

/// A qdisc of the kernel's own, as `kernel:NAME` names it.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    pub(crate) qdisc: &'static Qdisc,
    /// Packets that it may hold, if it can be told.
    pub(crate) limit: u64,
}

/// What is known of a qdisc of the kernel's own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Qdisc {
    /// As `tc` calls it.
    pub(crate) kind: &'static str,
    /// Our discipline that is the same thing.
    pub(crate) twin: Option<&'static str>,
    /// Whether it takes a limit in packets. CAKE reckons in memory, and keeps its own.
    pub(crate) limited: bool,
    /// Whether it has to be told to mark instead of drop.
    pub(crate) asks_for_ecn: bool,
}

impl Qdisc {
    /// Whether it paces by itself; the others stand behind `tbf`.
    pub(crate) fn shapes(&self) -> bool {
        self.kind == "cake"
    }
}

const fn qdisc(kind: &'static str, twin: Option<&'static str>) -> Qdisc {
    Qdisc { kind, twin, limited: true, asks_for_ecn: false }
}

const fn asked_for_ecn(kind: &'static str, twin: Option<&'static str>) -> Qdisc {
    Qdisc { asks_for_ecn: true, ..qdisc(kind, twin) }
}

const OWN: [Qdisc; 8] = [
    Qdisc { limited: false, ..qdisc("cake", Some("cake")) },
    asked_for_ecn("codel", Some("codel")),
    qdisc("fq_codel", Some("fq-codel")),
    asked_for_ecn("fq_pie", None),
    qdisc("hhf", None),
    qdisc("pfifo", Some("fifo")),
    asked_for_ecn("pie", None),
    qdisc("sfq", None),
];

/// What stands before the names of qdiscs of the kernel's own.
const KERNEL: &str = "kernel";
/// What stands before the names of queues with marks in front of them, and these names.
const MARKS: &str = "marks";
const MARKED: [&str; 3] = ["cake", "prio", "htb"];
/// Until it is given another.
const LIMIT: Amount = Amount::Packets(1000);
/// A full frame, to reckon limits in bytes in packets.
const FULL_FRAME: u64 = 1514;

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KERNEL}:{}", self.qdisc.kind)
    }
}

impl Own {
    fn new(qdisc: &'static Qdisc, limit: Amount) -> Self {
        let packets = match limit {
            Amount::Packets(packets) => packets,
            Amount::Bytes(bytes) => bytes.div_ceil(FULL_FRAME),
        };
        Self { qdisc, limit: packets.clamp(1, u32::MAX.into()) }
    }

    /// The words that `tc` makes it by.
    pub(crate) fn words(&self, ecn: bool) -> String {
        let mut words = self.qdisc.kind.to_owned();
        if self.qdisc.limited {
            words += &format!(" limit {}", self.limit);
        }
        if ecn && self.qdisc.asks_for_ecn {
            words += " ecn";
        }
        words
    }
}

/// The disciplines of these names, `kernel:cake`, `marks:cake` and their like among them.
///
/// # Errors
/// Says which name, parameter or value is not accepted, and what is.
pub fn parse(names: &[String], engine: Engine) -> Result<Vec<Scheduler>, String> {
    names.iter().map(|name| named(name, engine)).collect()
}

fn named(name: &str, engine: Engine) -> Result<Scheduler, String> {
    let of_kernel = name.split_once(':').filter(|(family, _)| [KERNEL, MARKS].contains(family));
    let Some((family, kind)) = of_kernel else {
        return name.parse().map(Scheduler::Ours).map_err(|error: SpecError| error.to_string());
    };
    if engine == Engine::Userspace {
        return Err(format!("{name} is made of this kernel's qdiscs, which --engine kernel has"));
    }
    let own = OWN.iter().find(|own| family == KERNEL && own.kind == kind);
    let marked = MARKED.into_iter().find(|queues| family == MARKS && *queues == kind);
    own.map(|qdisc| Scheduler::Own(Own::new(qdisc, LIMIT)))
        .or_else(|| marked.map(Scheduler::Marks))
        .ok_or_else(|| {
            let own = OWN.map(|own| own.kind).join(", ");
            let all = if family == KERNEL { own } else { MARKED.join(", ") };
            format!("there is no {name}; {family}: stands before {all}")
        })
}

/// What a discipline is inside the kernel: ours, where the kernel takes it, or else its twin
/// among the kernel's own.
///
/// # Errors
/// Says what has neither.
pub fn in_kernel(spec: &Spec) -> Result<Scheduler, ConfigError> {
    let missing = match kernel::can(spec) {
        Ok(()) => return Ok(Scheduler::Ours(spec.clone())),
        Err(missing) => missing,
    };
    // A twin knows nothing of our parameters.
    let name = spec.info().name;
    let plain = spec.to_string() == name;
    match OWN.iter().find(|own| plain && own.twin == Some(name)) {
        Some(qdisc) => Ok(Scheduler::Own(Own::new(qdisc, LIMIT))),
        None => Err(ConfigError(missing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Result<Vec<Scheduler>, String> {
        parse(&[name.to_owned()], Engine::Kernel)
    }

    #[test]
    fn the_kernels_own_are_known_by_name() {
        let limited = |name: &str| named(name).unwrap().remove(0).with_limit(Amount::Packets(300));
        let words = |name: &str, ecn| match limited(name).unwrap() {
            Scheduler::Own(own) => own.words(ecn),
            other => panic!("{other} is no qdisc of the kernel's own"),
        };
        assert_eq!(words("kernel:cake", true), "cake");
        assert_eq!(words("kernel:fq_codel", true), "fq_codel limit 300");
        assert_eq!(words("kernel:fq_pie", true), "fq_pie limit 300 ecn");
        assert_eq!(words("kernel:pfifo", false), "pfifo limit 300");
        assert_eq!(named("kernel:sfq").unwrap()[0].to_string(), "kernel:sfq");
        assert!(named("efd:threshold=9packets").unwrap()[0].is("efd"));
        assert!(named("kernel:pfifo").unwrap()[0].is("fifo"));
        assert_eq!(limited("marks:prio").unwrap().to_string(), "marks:prio");
    }

    #[test]
    fn what_there_is_not_is_refused_by_name() {
        let error = named("kernel:fq").unwrap_err();
        assert!(error.contains("kernel:fq;") && error.contains("fq_codel"), "{error}");
        let error = named("marks:hfsc").unwrap_err();
        assert!(error.contains("marks:hfsc;") && error.contains("cake, prio, htb"), "{error}");
        assert!(named("nope").unwrap_err().contains("'nope'"));
        for name in ["kernel:cake", "marks:cake"] {
            let here = parse(&[name.into()], Engine::Userspace);
            assert!(here.unwrap_err().contains("--engine kernel"));
        }
        // LAS has no form in any kernel, and the twin of CoDel knows nothing of our parameters.
        for spec in ["las", "codel:target=9ms"] {
            assert!(in_kernel(&spec.parse().unwrap()).is_err(), "{spec}");
        }
        let codel = in_kernel(&"codel".parse().unwrap()).unwrap();
        let codel = codel.with_limit(Amount::Bytes(15_140)).unwrap();
        assert!(matches!(codel, Scheduler::Own(Own { limit: 10, .. })), "{codel:?}");
    }
}
