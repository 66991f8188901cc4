//! The queues that marks are in front of: made, changed, and joined where somebody has them.
//!
//! All are the kernel's own, and for each a packet's priority (`skb->priority`) names the class
//! that it goes to. A packet without a mark goes where it would have gone, which is the short
//! class of the queues made here.

use netdev::netlink::{Refusal, attributes};
use netdev::tc::{Place, Qdisc, TrafficControl, handle_text};
use netlink_packet_core::{DefaultNla, Emitable};
use sched::{Nanos, Rate};
use serde::{Deserialize, Serialize};

use super::tins::{self, Tins};
use crate::kernel::error::KernelError;
use crate::kernel::work::on;
use crate::settings::framing::{Cells, Framing};

/// Queues with a class for short flows and one for long ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Queues {
    /// CAKE with three tins: long flows go to Bulk, which has a sixteenth of the rate for certain
    /// and all that is left over.
    Cake,
    /// A `tbf` with a `prio` of two `fq_codel`: long flows get what is left over.
    Prio,
    /// An `htb` with two `fq_codel`: long flows have a sixteenth of the rate for certain.
    Htb,
}

/// What the queues are made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) rate: Rate,
    pub(super) framing: Framing,
    /// Bytes of a packet before its IP header.
    pub(super) link_header: u32,
    pub(super) burst_time: Nanos,
    /// Whether packets have crossed the link already when they get here.
    pub(super) received: bool,
}

/// Where packets of short flows and of long ones go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Classes {
    pub(super) short: u32,
    pub(super) long: u32,
}

impl Queues {
    /// Those that are tried if none is asked for.
    pub const CHOSEN: [Self; 2] = [Self::Cake, Self::Prio];

    /// Its name, as `--queues` takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cake => "cake",
            Self::Prio => "prio",
            Self::Htb => "htb",
        }
    }

    /// The kinds of qdisc that it takes, that of the root first.
    pub(super) const fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Cake => &["cake"],
            Self::Prio => &["tbf", "prio"],
            Self::Htb => &["htb"],
        }
    }

    /// Handles that it takes behind that of its root.
    pub(super) const fn more_handles(self) -> u32 {
        match self {
            Self::Cake => 0,
            Self::Prio => 3,
            Self::Htb => 2,
        }
    }

    /// The classes of one whose root has this handle.
    pub(super) const fn classes(self, handle: u32) -> Classes {
        match self {
            // Best Effort and Bulk of diffserv3.
            Self::Cake => Classes { short: handle | 2, long: handle | 1 },
            Self::Prio => Classes { short: next(handle, 1) | 1, long: next(handle, 1) | 2 },
            Self::Htb => Classes { short: handle | 2, long: handle | 3 },
        }
    }

    /// Refuses what it cannot do.
    pub(super) fn check(self, link: &Link) -> Result<(), KernelError> {
        let Framing { overhead, cells, .. } = link.framing;
        let reason = match self {
            Self::Cake => return Ok(()),
            _ if cells == Cells::Ptm => "they know ATM cells only",
            _ if overhead < 0 => "they can only add to a packet",
            _ => return Ok(()),
        };
        Err(KernelError::Marks(format!(
            "the queues {} cannot count that overhead: {reason}; cake can",
            self.name()
        )))
    }

    /// Puts all of it on a device. Tells what it had to do without.
    pub(super) fn put(
        self,
        tc: &mut TrafficControl,
        device: (u32, &str),
        handle: u32,
        link: &Link,
    ) -> Result<Vec<String>, KernelError> {
        let (ifindex, name) = device;
        let doing = || on(name, "putting the queues in place");
        let root = self.kinds()[0];
        tc.replace_root(ifindex, root, handle, Some(&self.options(link))).map_err(doing())?;
        let leaves = match self {
            Self::Cake => return Ok(Vec::new()),
            Self::Prio => {
                let (parent, prio) = (handle | 1, next(handle, 1));
                let place = Place { ifindex, parent, handle: prio };
                tc.put_qdisc(place, "prio", Some(&two_bands())).map_err(doing())?;
                [(prio | 1, next(handle, 2)), (prio | 2, next(handle, 3))]
            }
            Self::Htb => {
                self.put_classes(tc, ifindex, handle, link).map_err(doing())?;
                [(handle | 2, next(handle, 1)), (handle | 3, next(handle, 2))]
            }
        };
        for (parent, handle) in leaves {
            match tc.put_qdisc(Place { ifindex, parent, handle }, "fq_codel", None) {
                Err(refusal) if refusal.number() == Some(libc::ENOENT) => {
                    return Ok(vec![format!(
                        "{name}: this kernel has no fq_codel: within a class, packets wait in one \
                         line"
                    )]);
                }
                put => put.map_err(doing())?,
            }
        }
        Ok(Vec::new())
    }

    /// Gives one that is in place another rate, overhead or burst.
    pub(super) fn change(
        self,
        tc: &mut TrafficControl,
        device: (u32, &str),
        handle: u32,
        link: &Link,
    ) -> Result<(), KernelError> {
        let (ifindex, name) = device;
        let changed = match self {
            Self::Htb => self.put_classes(tc, ifindex, handle, link),
            _ => tc.change_root(ifindex, self.kinds()[0], handle, &self.options(link)),
        };
        changed.map_err(on(name, "changing the queues"))
    }

    fn put_classes(
        self,
        tc: &mut TrafficControl,
        ifindex: u32,
        handle: u32,
        link: &Link,
    ) -> Result<(), Refusal> {
        let Rate(all) = link.rate;
        let parts = [(1, all, 0), (2, all - all / 16, 0), (3, all / 16, 1)];
        for (minor, rate, precedence) in parts {
            let parent = if minor == 1 { u32::MAX } else { handle | 1 };
            let place = Place { ifindex, parent, handle: handle | minor };
            tc.put_class(place, "htb", &htb_class(link, Rate(rate), precedence))?;
        }
        Ok(())
    }

    /// Of the root.
    fn options(self, link: &Link) -> Vec<u8> {
        match self {
            Self::Cake => cake(link),
            Self::Prio => tbf(link),
            Self::Htb => htb(),
        }
    }
}

/// The handle after this one, or the one after that.
const fn next(handle: u32, by: u32) -> u32 {
    handle + (by << 16)
}

/// What somebody has at the root of a device, for marks to be put in front of it.
pub(super) struct Joined {
    pub(super) classes: Classes,
    /// Whether packets of short flows are to be marked as well.
    pub(super) mark_short: bool,
    /// What it shapes to, if it tells.
    pub(super) rate: Option<Rate>,
}

/// The classes of a root qdisc that somebody has: those that are named, or CAKE's tins.
pub(super) fn join(
    tc: &mut TrafficControl,
    (ifindex, device): (u32, &str),
    root: &Qdisc,
    named: Option<(u32, u32)>,
) -> Result<Joined, KernelError> {
    let refuse = |text: String| Err(KernelError::Marks(format!("{device}: {text}")));
    let handle = handle_text(root.handle);
    match (root.kind.as_str(), named) {
        ("cake", None) => match Tins::of(root) {
            Ok(tins) => Ok(Joined {
                classes: tins.classes(root.handle),
                mark_short: false,
                rate: tins.rate,
            }),
            Err(reason) => refuse(format!("its cake {handle} cannot be joined: {reason}")),
        },
        ("cake", Some(_)) => {
            refuse("the tins of cake are found by their names: --join cake".into())
        }
        ("prio" | "ets" | "htb" | "hfsc" | "drr" | "tbf", Some((short, long))) => {
            let classes = tc.class_stats(ifindex).map_err(on(device, "reading its classes"))?;
            for class in [short, long] {
                if !classes.iter().any(|(there, _)| *there == class) {
                    let there: Vec<String> =
                        classes.iter().map(|(class, _)| class_text(*class)).collect();
                    return refuse(format!(
                        "there is no class {}; there are {}",
                        class_text(class),
                        there.join(", ")
                    ));
                }
            }
            // With `prio` and the strict bands of `ets` short flows would wait for all of the long.
            let first = strictly_first(root);
            if long < short && (long & 0xffff) <= first {
                return refuse(format!(
                    "{} {handle} sends all of {} before {}, so that is for short flows: --join {1},{2}",
                    root.kind,
                    class_text(long),
                    class_text(short)
                ));
            }
            Ok(Joined { classes: Classes { short, long }, mark_short: true, rate: None })
        }
        (kind @ ("prio" | "ets" | "htb" | "hfsc" | "drr" | "tbf"), None) => refuse(format!(
            "which classes of {kind} {handle} are for short flows and for long ones? \
             --join SHORT,LONG names them, such as --join 1:10,1:20"
        )),
        (kind, _) => refuse(format!(
            "its root qdisc, {kind} {handle}, has no classes to mark for; --join takes cake, or \
             prio, ets, htb, hfsc and drr by the names of two classes"
        )),
    }
}

/// The last class that is served before all classes behind it.
fn strictly_first(root: &Qdisc) -> u32 {
    /// `TCA_ETS_NSTRICT`.
    const STRICT: u16 = 2;
    match root.kind.as_str() {
        "prio" => u32::MAX,
        "ets" => {
            let options = attributes(root.options.as_deref().unwrap_or_default());
            let of =
                |(kind, value): &(u16, Vec<u8>)| (*kind == STRICT).then(|| value.first().copied());
            let bands = options.unwrap_or_default().iter().find_map(of).flatten();
            bands.unwrap_or_default().into()
        }
        _ => 0,
    }
}

/// A class as `tc` writes it.
pub(super) fn class_text(class: u32) -> String {
    format!("{:x}:{:x}", class >> 16, class & 0xffff)
}

fn emitted(nlas: &[DefaultNla]) -> Vec<u8> {
    let mut bytes = vec![0; nlas.buffer_len()];
    nlas.emit(&mut bytes);
    bytes
}

fn number(kind: u16, value: u32) -> DefaultNla {
    DefaultNla::new(kind, value.to_ne_bytes().to_vec())
}

fn long_number(kind: u16, value: u64) -> DefaultNla {
    DefaultNla::new(kind, value.to_ne_bytes().to_vec())
}

/// Bytes per second, in which the kernel's queues are told rates.
const fn bytes(rate: Rate) -> u64 {
    rate.0 / 8
}

/// `TCA_CAKE_*`.
fn cake(link: &Link) -> Vec<u8> {
    const ATM: u16 = 4;
    const OVERHEAD: u16 = 6;
    const NAT: u16 = 11;
    const MPU: u16 = 14;
    const INGRESS: u16 = 15;
    let Framing { overhead, mpu, cells } = link.framing;
    let cells = match cells {
        Cells::None => 0,
        Cells::Atm => 1,
        Cells::Ptm => 2,
    };
    // CAKE adds to the IP packet.
    let overhead = overhead.saturating_add_unsigned(link.link_header);
    emitted(&[
        long_number(tins::BASE_RATE64, bytes(link.rate)),
        number(tins::DIFFSERV_MODE, tins::DIFFSERV3),
        number(ATM, cells),
        number(OVERHEAD, overhead.cast_unsigned()),
        number(MPU, mpu),
        // Hosts behind an address translation on this machine.
        number(NAT, 1),
        // Dropped packets have used the link as well.
        number(INGRESS, link.received.into()),
    ])
}

/// `struct tc_ratespec`: a rate that a rate of 64 bits overrides, and what a packet counts.
fn rate_spec(link: &Link, rate: Rate) -> [u8; 12] {
    const ETHERNET: u8 = 1;
    const ATM: u8 = 2;
    let Framing { overhead, mpu, cells } = link.framing;
    let link_layer = if cells == Cells::Atm { ATM } else { ETHERNET };
    let mut spec = [0; 12];
    spec[1] = link_layer;
    spec[2..4].copy_from_slice(&(overhead.clamp(0, 0xffff) as u16).to_ne_bytes());
    spec[6..8].copy_from_slice(&(mpu.min(0xffff) as u16).to_ne_bytes());
    spec[8..].copy_from_slice(&u32::try_from(bytes(rate)).unwrap_or(u32::MAX).to_ne_bytes());
    spec
}

/// Bytes that may leave at once: a few packets at least.
fn burst_bytes(link: &Link) -> u32 {
    const LEAST: u64 = 3200;
    let bytes = u128::from(bytes(link.rate)) * u128::from(link.burst_time.0) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX).clamp(LEAST, u32::MAX.into()) as u32
}

/// `TCA_TBF_*`.
fn tbf(link: &Link) -> Vec<u8> {
    const PARMS: u16 = 1;
    const RATE64: u16 = 4;
    const BURST: u16 = 6;
    /// Of the queue that it makes until it gets its own.
    const LIMIT: u32 = 1_000_000;
    let mut parms = rate_spec(link, link.rate).to_vec();
    parms.extend([0; 12]); // no peak rate
    for word in [LIMIT, 0, 0] {
        parms.extend(word.to_ne_bytes());
    }
    emitted(&[
        DefaultNla::new(PARMS, parms),
        long_number(RATE64, bytes(link.rate)),
        number(BURST, burst_bytes(link)),
    ])
}

/// `struct tc_prio_qopt`: two bands, and what has no mark goes to the first.
fn two_bands() -> Vec<u8> {
    let mut options = 2_u32.to_ne_bytes().to_vec();
    options.extend([0; 16]);
    options
}

/// `struct tc_htb_glob`: what has no mark goes to the class of short flows.
fn htb() -> Vec<u8> {
    const INIT: u16 = 2;
    let words = [3_u32, 10, 2, 0, 0]; // version, rate2quantum, defcls, debug, direct_pkts
    emitted(&[DefaultNla::new(INIT, words.iter().flat_map(|word| word.to_ne_bytes()).collect())])
}

/// `TCA_HTB_*` of a class.
fn htb_class(link: &Link, rate: Rate, precedence: u32) -> Vec<u8> {
    const PARMS: u16 = 1;
    const RATE64: u16 = 6;
    const CEIL64: u16 = 7;
    /// Nanoseconds of the clock that bursts are told in.
    const TICK: u64 = 64;
    let ceiling = link.rate;
    let burst = |Rate(rate)| {
        let ns = u128::from(burst_bytes(link)) * 8_000_000_000 / u128::from(rate.max(1_u64));
        u32::try_from(ns / u128::from(TICK)).unwrap_or(u32::MAX)
    };
    let quantum = (ceiling.0 / 800).clamp(1514, 60_000) as u32;
    let mut parms = rate_spec(link, rate).to_vec();
    parms.extend(rate_spec(link, ceiling));
    for word in [burst(rate), burst(ceiling), quantum, 0, precedence] {
        parms.extend(word.to_ne_bytes());
    }
    emitted(&[
        DefaultNla::new(PARMS, parms),
        long_number(RATE64, bytes(rate)),
        long_number(CEIL64, bytes(ceiling)),
    ])
}
