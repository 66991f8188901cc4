//! What is at the bottleneck: one of our disciplines, or a qdisc that this kernel brings along.

mod own;

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use sched::{Amount, Spec, SpecError};
use serde::Serialize;

use crate::config::ConfigError;
use crate::kernel;

pub use own::Own;
use own::{OWN, options};

/// What stands before the names of qdiscs of the kernel's own.
const KERNEL: &str = "kernel";
/// What stands before the names of queues with marks in front of them, and these names.
const MARKS: &str = "marks";
const MARKED: [&str; 3] = ["cake", "prio", "htb"];
/// What stands before the path of a script.
const SCRIPT: &str = "script";

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
    /// Whatever this program puts there: `docs/lab.md` says how it is called.
    Script(PathBuf),
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(spec) => spec.fmt(f),
            Self::Own(own) => own.fmt(f),
            Self::Marks(queues) => write!(f, "{MARKS}:{queues}"),
            Self::Script(path) => {
                write!(f, "{SCRIPT}:{}", path.file_name().unwrap_or_default().to_string_lossy())
            }
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
            Self::Marks(_) | Self::Script(_) => false,
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
            // They keep what `attach`, or the script, gives them.
            other @ (Self::Marks(_) | Self::Script(_)) => other,
        })
    }

    /// The discipline of ours, if it is one.
    #[must_use]
    pub const fn ours(&self) -> Option<&Spec> {
        match self {
            Self::Ours(spec) => Some(spec),
            Self::Own(_) | Self::Marks(_) | Self::Script(_) => None,
        }
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
    let families = [KERNEL, MARKS, SCRIPT];
    let of_kernel = name.split_once(':').filter(|(family, _)| families.contains(family));
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
    if family == SCRIPT {
        return script(kind).map(Scheduler::Script).map_err(|why| format!("{name}: {why}"));
    }
    let (kind, given) = kind.split_once(':').map_or((kind, None), |(kind, of)| (kind, Some(of)));
    let own = OWN.iter().find(|own| own.kind == kind);
    let own = own.ok_or_else(|| none(name, KERNEL, &OWN.map(|own| own.kind)))?;
    let given = given.map(options).transpose().map_err(|why| format!("{name}: {why}"))?;
    Ok(own.with(given.unwrap_or_default()))
}

/// A program by its path, which holds for every working directory.
fn script(path: &str) -> Result<PathBuf, String> {
    let found = std::fs::canonicalize(path).map_err(|error| error.to_string())?;
    let mode = found.metadata().map_err(|error| error.to_string())?.permissions().mode();
    match found.is_file() && mode & 0o111 != 0 {
        true => Ok(found),
        false => Err("it is no program that can be run".into()),
    }
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
        for (name, says) in [("script:/no such", "No such file"), ("script:/", "can be run")] {
            let error = named(name).unwrap_err();
            assert!(error.contains(name) && error.contains(says), "{error}");
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
