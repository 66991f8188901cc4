//! Marks: a program in front of the kernel's own queues, which tells them what is of a long flow.
//!
//! The rule is [`sched::marks`]. The program sets a packet's priority, which names a class of the
//! queues behind; those are made here ([`Queues`]), or are what somebody has there already and
//! stay untouched ([`Join`]). It takes nothing that Linux 5.15 has not. Where the program is gone
//! the queues are what they were, and a mark that names no class of theirs counts for nothing.
//!
//! The journal, `detach`, and the `ifb` for what a device receives are those of the qdisc.

mod change;
mod fault;
mod flows;
mod program;
mod queues;
mod show;
mod tins;

use std::ops::RangeInclusive;

use netdev::device::Device;
use netdev::netns::Namespace;
use netdev::root_qdisc::Former;
use netdev::tc::{Qdisc, TrafficControl, handle_text};
use sched::marks::Marks;
use sched::{Nanos, Rate};
use serde::{Deserialize, Serialize};

pub use self::change::change;
pub use self::fault::fault;
use self::program::Config;
pub use self::program::Trial;
pub use self::queues::Queues;
use self::queues::{Classes, Link, join};
pub use self::show::show;
use super::attach::link_header;
use super::error::KernelError;
use super::ingress::{attach_ifb, ifb_of};
use super::is_ours;
use super::journal::Journal;
use super::privileges::{BPF, NET_ADMIN, require};
use super::work::{
    Work, all_devices, caveats, describe, find_device, free_handle, journal, on, refuse_configured,
};
use crate::datapath::clock;
use crate::settings::framing::Framing;
use crate::settings::link::LinkSettings;

/// Rates that can be marked for.
pub const RATES: RangeInclusive<Rate> = Rate(8_000)..=Rate(1_000_000_000_000);

/// What is to be attached.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// The device, by name.
    pub device: &'a str,
    /// The link. If its rate is unlimited, what is joined tells it; CAKE has no burst time.
    pub link: LinkSettings,
    /// The queues to make; the first that this kernel has, if that is open.
    pub queues: Option<Queues>,
    /// What is there is joined instead.
    pub join: Option<Join>,
    /// Bytes from which on a flow is long, in place of what follows from the rate.
    pub threshold: Option<u64>,
    /// Whether to take the place of what somebody configured.
    pub replace: bool,
}

/// Somebody's queues that marks are put in front of: those of CAKE by the names of its tins, or the
/// classes for short flows and for long ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Join {
    /// The classes; none with CAKE.
    pub classes: Option<(u32, u32)>,
}

/// What an attached device's marks are for, as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marked {
    /// The kind of the root, and its handle.
    kind: String,
    handle: u32,
    /// Whether it is somebody's.
    pub(super) joined: bool,
    /// Whether a clsact was there before.
    pub(super) had_clsact: bool,
    /// The queues that were made.
    queues: Option<Queues>,
    short: u32,
    long: u32,
    mark_short: bool,
    #[serde(flatten)]
    link: LinkSettings,
    threshold: Option<u64>,
    link_header: u32,
    received: bool,
    #[serde(rename = "attached_at_ns")]
    attached_at: Nanos,
}

impl Marked {
    /// Whether this is the root that the marks are for.
    pub(super) fn is_in_front_of(&self, root: &Qdisc) -> bool {
        root.handle == self.handle && root.kind == self.kind
    }

    fn framing(&self) -> Framing {
        self.link.overhead.framing(self.link_header)
    }

    fn link(&self) -> Link {
        Link {
            rate: self.link.rate,
            framing: self.framing(),
            link_header: self.link_header,
            burst_time: self.link.burst_time,
            received: self.received,
        }
    }

    fn rule(&self) -> Marks {
        match self.threshold {
            Some(bytes) => Marks::with_threshold(self.link.rate, bytes),
            None => Marks::for_rate(self.link.rate),
        }
    }

    fn threshold_bytes(&self) -> u64 {
        self.threshold.unwrap_or_else(|| Marks::threshold_bytes(self.link.rate))
    }

    fn config(&self) -> Config {
        let classes = Classes { short: self.short, long: self.long };
        Config { rule: self.rule(), classes, mark_short: self.mark_short }
    }

    fn describe(&self) -> String {
        format!("marks in front of {} {}", self.kind, handle_text(self.handle))
    }
}

/// The queues to make: those that are wanted, or the first of [`Queues::CHOSEN`] that this kernel
/// has.
///
/// # Errors
/// Says what is missing.
pub fn can(wanted: Option<Queues>) -> Result<Queues, KernelError> {
    let missing = |queues: &Queues| queues.kinds().iter().find(|kind| !has_kind(kind)).copied();
    if let Some(queues) = wanted {
        return match missing(&queues) {
            Some(kind) => Err(KernelError::Marks(format!("this kernel has no {kind}"))),
            None => Ok(queues),
        };
    }
    // Without fq_codel a class is one line, which nobody is to get unasked.
    let is_whole = |queues: &Queues| *queues == Queues::Cake || has_kind("fq_codel");
    let first = Queues::CHOSEN.into_iter().find(|queues| missing(queues).is_none());
    first.filter(is_whole).ok_or_else(|| {
        KernelError::Marks("this kernel has neither cake, nor tbf, prio and fq_codel".into())
    })
}

/// Whether the kernel has a kind of qdisc, or a module with it: tried out on the loopback of a
/// fresh network namespace.
fn has_kind(kind: &str) -> bool {
    const LOOPBACK: u32 = 1;
    let attempt = || {
        let made = TrafficControl::open().ok()?.replace_root(LOOPBACK, kind, 1 << 16, None);
        // One that wants options is there.
        Some(!made.is_err_and(|refusal| refusal.number() == Some(libc::ENOENT)))
    };
    let Ok(namespace) = Namespace::new() else { return false };
    namespace.run(attempt).ok().flatten().unwrap_or(false)
}

/// Makes queues on what a device sends, or joins those that are there, and marks packets for them.
/// Tells what else there is to know.
///
/// # Errors
/// If the device is not one to attach to or has something already, if permission is lacking, or
/// the kernel cannot do it. Then everything is as it was.
pub fn attach(order: &Order<'_>) -> Result<Vec<String>, KernelError> {
    let devices = all_devices()?;
    let device = find_device(&devices, order.device)?;
    if device.loopback {
        return Err(KernelError::Loopback { device: device.name.clone() });
    }
    require("attaching", &[NET_ADMIN, BPF])?;
    let link_header = u32::from(link_header(&devices, device));
    let mut work = Work::begin()?;
    let mut notes: Vec<String> = work.tidy_up()?.into_iter().map(|(_, note)| note).collect();
    let mut journal = work.journals.begin(device.index, &device.name);
    if work.journal(device.index)?.is_some() {
        let found = "something of ours".into();
        return Err(KernelError::Attached { device: device.name.clone(), found });
    }
    let mut marked = match order.join {
        Some(wanted) => joined(&mut work, device, order, wanted, link_header)?,
        None => made(&mut work, device, order, link_header, &mut journal)?,
    };
    let qdiscs = work.tc.qdiscs(device.index).map_err(on(&device.name, "reading its qdiscs"))?;
    marked.had_clsact = qdiscs.iter().any(|qdisc| qdisc.kind == "clsact");
    journal.marks = Some(marked.clone());
    work.journals.write(&journal).map_err(self::journal)?;
    let placed = put(&mut work, device, &marked);
    match placed {
        Ok(more) => notes.extend(more),
        Err(error) => {
            work.restore(&journal)?;
            return Err(error);
        }
    }
    notes.extend(caveats(device, &journal, "marks work"));
    Ok(notes)
}

/// The same for what a device receives, on an ifb that it is sent through.
///
/// # Errors
/// As [`attach`], and if somebody has filters at the ingress of the device.
pub fn attach_ingress(order: &Order<'_>) -> Result<Vec<String>, KernelError> {
    if order.join.is_some() {
        return Err(KernelError::Marks(format!(
            "{}: --join is for what a device sends; name the ifb that has what it receives",
            order.device
        )));
    }
    attach_ifb(order.device, order.replace, |ifb| attach(&Order { device: ifb, ..order.clone() }))
}

fn rate_of(order: &Order<'_>, told: Option<Rate>) -> Result<Rate, KernelError> {
    let given = Some(order.link.rate).filter(|rate| !rate.is_unlimited());
    match given.or(told) {
        Some(rate) if RATES.contains(&rate) => Ok(rate),
        Some(_) => Err(KernelError::Marks(format!(
            "{}: marks are for rates of 8kbit to 1tbit",
            order.device
        ))),
        None => Err(KernelError::Marks(format!(
            "{}: what is joined does not tell its rate; --rate does",
            order.device
        ))),
    }
}

/// What is to be made, with what was there noted in the journal.
fn made(
    work: &mut Work,
    device: &Device,
    order: &Order<'_>,
    link_header: u32,
    journal: &mut Journal,
) -> Result<Marked, KernelError> {
    let name = &device.name;
    let root = work.root(device)?;
    if let Some(ours) = root.as_ref().filter(|root| is_ours(root)) {
        return Err(KernelError::Attached { device: name.clone(), found: describe(ours) });
    }
    let former = Former::of(&mut work.tc, device.index);
    journal.former = former.map_err(on(name, "reading its root qdisc"))?;
    refuse_configured(name, journal.former.as_ref().filter(|_| !order.replace))?;
    let queues = can(order.queues)?;
    let handle = free_handle(work, device, queues.more_handles())?;
    let Classes { short, long } = queues.classes(handle);
    let marked = Marked {
        kind: queues.kinds()[0].to_owned(),
        handle,
        joined: false,
        had_clsact: false,
        queues: Some(queues),
        short,
        long,
        mark_short: false,
        link: LinkSettings { rate: rate_of(order, Some(Rate::UNLIMITED))?, ..order.link },
        threshold: order.threshold,
        link_header,
        received: super::ingress::ingress_of(name).is_some(),
        attached_at: clock::now(),
    };
    queues.check(&marked.link())?;
    Ok(marked)
}

fn joined(
    work: &mut Work,
    device: &Device,
    order: &Order<'_>,
    wanted: Join,
    link_header: u32,
) -> Result<Marked, KernelError> {
    let name = &device.name;
    let Some(root) = work.root(device)?.filter(Qdisc::is_configured) else {
        return Err(KernelError::Marks(format!(
            "{name}: there is nothing to join: nobody configured its root qdisc"
        )));
    };
    let joined = join(&mut work.tc, (device.index, name), &root, wanted.classes)?;
    Ok(Marked {
        kind: root.kind,
        handle: root.handle,
        joined: true,
        had_clsact: false,
        queues: None,
        short: joined.classes.short,
        long: joined.classes.long,
        mark_short: joined.mark_short,
        link: LinkSettings { rate: rate_of(order, joined.rate)?, ..LinkSettings::default() },
        threshold: order.threshold,
        link_header,
        received: false,
        attached_at: clock::now(),
    })
}

/// Queues first, then marks for them.
fn put(work: &mut Work, device: &Device, marked: &Marked) -> Result<Vec<String>, KernelError> {
    let at = (device.index, device.name.as_str());
    let mut notes = Vec::new();
    if let Some(queues) = marked.queues {
        notes = queues.put(&mut work.tc, at, marked.handle, &marked.link())?;
        if queues == Queues::Cake {
            let root = work.root(device)?;
            // The tins of one that was just made are held to their names as well.
            let found = root.map(|root| join(&mut work.tc, at, &root, None)).transpose()?;
            let wanted = Classes { short: marked.short, long: marked.long };
            if found.is_none_or(|found| found.classes != wanted) {
                let text = format!("{}: the tins of cake have other numbers here", device.name);
                return Err(KernelError::Marks(text));
            }
        }
    }
    program::place(device.index, marked.link_header > 0, marked.config())?;
    Ok(notes)
}

/// What of marks is on a device, in words: on what it sends, or on what it receives.
///
/// # Errors
/// If there is no such device, or the kernel does not tell.
pub fn holder(name: &str) -> Result<Option<String>, KernelError> {
    let devices = all_devices()?;
    let device = find_device(&devices, name)?;
    let of_ifb = ifb_of(&devices, device).map(|ifb| ifb.index);
    let journals = super::journal::Journals::lock().and_then(|journals| journals.all());
    let journals = journals.map_err(journal)?;
    let marks = journals
        .into_iter()
        .filter(|journal| journal.ifindex == device.index || Some(journal.ifindex) == of_ifb)
        .find_map(|journal| journal.marks);
    Ok(marks.map(|marks| marks.describe()))
}
