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
            Self::Own(own) => Self::Own(Own { limit: own.qdisc.packets(limit), ..own }),
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

/// A qdisc of the kernel's own, as `kernel:NAME` or `kernel:NAME:OPTION,...` names it.
#[derive(Clone, Debug)]
pub struct Own {
    pub(crate) qdisc: &'static Qdisc,
    /// Packets that it may hold, if it can be told.
    pub(crate) limit: u64,
    /// Its options, each a word for `tc`, or two with `=` between them.
    pub(crate) options: Box<[String]>,
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

    /// A limit in packets that it takes.
    fn packets(&self, limit: Amount) -> u64 {
        let packets = match limit {
            Amount::Packets(packets) => packets,
            Amount::Bytes(bytes) => bytes.div_ceil(FULL_FRAME),
        };
        packets.clamp(1, u32::MAX.into())
    }

    /// It with its default limit, and with these options.
    fn with(&'static self, options: Box<[String]>) -> Scheduler {
        Scheduler::Own(Own { qdisc: self, limit: self.packets(LIMIT), options })
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

/// What the lab gives a qdisc, so that no option may.
const GIVEN: [&str; 7] = ["bandwidth", "unlimited", "limit", "dev", "root", "parent", "handle"];

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KERNEL}:{}", self.qdisc.kind)?;
        if self.options.is_empty() {
            return Ok(());
        }
        write!(f, ":{}", self.options.join(","))
    }
}

impl Own {
    /// Whether it has queues of its own for some DSCPs.
    pub(crate) fn has_tins(&self) -> bool {
        self.options.iter().any(|option| option.starts_with("diffserv"))
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
        for option in &self.options {
            words += &format!(" {}", option.replacen('=', " ", 1));
        }
        words
    }
}

/// The options in `diffserv4,rtt=20ms`. Whether a qdisc has them, `tc` says.
fn options(text: &str) -> Result<Box<[String]>, String> {
    let is_word = |word: &str| {
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.%".contains(&byte);
        word.starts_with(|first: char| first.is_ascii_alphanumeric()) && word.bytes().all(letters)
    };
    let one = |option: &str| {
        let (name, value) = option.split_once('=').unwrap_or((option, "1"));
        if GIVEN.contains(&name) {
            return Err(format!("the lab gives every qdisc its rate, limit and place: no {name}"));
        }
        match is_word(name) && is_word(value) {
            true => Ok(option.to_owned()),
            false => Err(format!("'{option}' is no option: a word of tc, or two as NAME=VALUE")),
        }
    };
    text.split(',').map(one).collect()
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
    if family == MARKS {
        let queues = MARKED.into_iter().find(|queues| *queues == kind);
        return queues.map(Scheduler::Marks).ok_or_else(|| none(name, MARKS, &MARKED));
    }
    let (kind, given) = kind.split_once(':').map_or((kind, None), |(kind, of)| (kind, Some(of)));
    let own = OWN.iter().find(|own| own.kind == kind);
    let own = own.ok_or_else(|| none(name, KERNEL, &OWN.map(|own| own.kind)))?;
    let given = given.map(options).transpose().map_err(|why| format!("{name}: {why}"))?;
    Ok(own.with(given.unwrap_or_default()))
}

fn none(name: &str, family: &str, all: &[&str]) -> String {
    format!("there is no {name}; {family}: stands before {}", all.join(", "))
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
        Some(qdisc) => Ok(qdisc.with(Box::default())),
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
    fn the_kernels_own_have_options() {
        let limited = |name: &str| named(name).unwrap().remove(0).with_limit(Amount::Packets(300));
        for (name, words) in [
            ("kernel:cake:diffserv4,rtt=20ms,ack-filter", "cake diffserv4 rtt 20ms ack-filter"),
            ("kernel:fq_codel:target=2.5ms", "fq_codel limit 300 target 2.5ms"),
        ] {
            let Scheduler::Own(own) = limited(name).unwrap() else { panic!("{name}") };
            assert_eq!((own.to_string(), own.words(false)), (name.into(), words.into()));
        }
        for (name, says) in [
            ("kernel:cake:bandwidth=1mbit", "no bandwidth"),
            ("kernel:fq_codel:limit=9", "no limit"),
            ("kernel:cake:nat,root", "no root"),
            ("kernel:cake:", "'' is no option"),
            ("kernel:cake:nat,,flows", "'' is no option"),
            ("kernel:cake:rtt=", "'rtt=' is no option"),
            ("kernel:cake:rtt 1ms", "'rtt 1ms' is no option"),
            ("kernel:cake:-nat", "'-nat' is no option"),
            ("kernel:nope:nat", "there is no kernel:nope:nat"),
            ("marks:cake:nat", "there is no marks:cake:nat"),
        ] {
            let error = named(name).unwrap_err();
            assert!(error.contains(says), "{name}: {error}");
        }
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
