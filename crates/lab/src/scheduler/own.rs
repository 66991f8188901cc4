//! Qdiscs of the kernel's own, by name and with options.

use std::fmt;

use sched::Amount;

use super::{KERNEL, Scheduler};

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
    pub(super) fn packets(&self, limit: Amount) -> u64 {
        let packets = match limit {
            Amount::Packets(packets) => packets,
            Amount::Bytes(bytes) => bytes.div_ceil(FULL_FRAME),
        };
        packets.clamp(1, u32::MAX.into())
    }

    /// It with its default limit, and with these options.
    pub(super) fn with(&'static self, options: Box<[String]>) -> Scheduler {
        Scheduler::Own(Own { qdisc: self, limit: self.packets(LIMIT), options })
    }
}

const fn qdisc(kind: &'static str, twin: Option<&'static str>) -> Qdisc {
    Qdisc { kind, twin, limited: true, asks_for_ecn: false }
}

const fn asked_for_ecn(kind: &'static str, twin: Option<&'static str>) -> Qdisc {
    Qdisc { asks_for_ecn: true, ..qdisc(kind, twin) }
}

pub(super) const OWN: [Qdisc; 8] = [
    Qdisc { limited: false, ..qdisc("cake", Some("cake")) },
    asked_for_ecn("codel", Some("codel")),
    qdisc("fq_codel", Some("fq-codel")),
    asked_for_ecn("fq_pie", None),
    qdisc("hhf", None),
    qdisc("pfifo", Some("fifo")),
    asked_for_ecn("pie", None),
    qdisc("sfq", None),
];

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
pub(super) fn options(text: &str) -> Result<Box<[String]>, String> {
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
