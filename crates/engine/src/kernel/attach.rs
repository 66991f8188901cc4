//! Putting a qdisc on a device, and leaving the device as it was.

use std::fs;

use netdev::clsact;
use netdev::device::Device;
use netdev::root_qdisc::Former;
use sched::{Rate, Spec};

use super::compose::{Composition, Shaping, compose};
use super::ecn;
use super::error::KernelError;
use super::fq_lanes;
use super::ingress::{self, ingress_of};
use super::is_ours;
use super::journal::Journal;
use super::load::{Registered, check_kernel, load};
use super::nat::Nat;
use super::offloads::Switched;
use super::privileges::{BPF, NET_ADMIN, PERFMON, require};
use super::queues::{self, PerQueue};
use super::work::{
    Work, all_devices, caveats, describe, filters, find_device, free_handle, journal, not_attached,
    on, refuse_configured, traffic_control,
};
use crate::settings::link::LinkSettings;

/// What is to be attached.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// The device, by name.
    pub device: &'a str,
    /// The discipline.
    pub spec: &'a Spec,
    /// The link.
    pub link: LinkSettings,
    /// Whether to take the place of what somebody configured.
    pub replace: bool,
    /// Whether to leave all offloads as they are.
    pub keep_offloads: bool,
    /// Whether each transmit queue gets a qdisc of its own, all at the rate of one.
    pub per_queue: bool,
}

/// Puts a qdisc on a device, and switches the offloads that would keep its queue from working.
/// Tells what else it changed.
///
/// # Errors
/// If the device is not one to attach to or has something already, if permission is lacking, or
/// the kernel cannot do it. Then everything is as it was.
pub fn attach(order: &Order<'_>) -> Result<Vec<String>, KernelError> {
    compose(order.spec, &order.link.into())?;
    if order.per_queue && order.spec.info().name != fq_lanes::NAME {
        return Err(KernelError::PerQueue { found: order.spec.info().name });
    }
    let devices = all_devices()?;
    let device = find_device(&devices, order.device)?;
    let link_header = link_header(&devices, device);
    let mut composition = compose(order.spec, &Shaping { link: order.link, link_header })?;
    composition.nat = Nat::of(order.spec.params(), ingress_of(&device.name).is_some());
    if device.loopback {
        return Err(KernelError::Loopback { device: device.name.clone() });
    }
    require("attaching", &[NET_ADMIN, BPF, PERFMON])?;
    let mut work = Work::begin()?;
    let mut notes: Vec<String> = work.tidy_up()?.into_iter().map(|(_, note)| note).collect();
    let before = work.journal(device.index)?;
    let assisted = composition.program().is_some();
    let per_queue = order.per_queue.then(|| PerQueue::plan(&mut work, device)).transpose()?;
    let Plan { mut journal, wanted, anew } = plan(&mut work, device, order, per_queue, assisted)?;
    composition.parts.common = per_queue.is_some().into();
    let registered = load_for(&mut composition, per_queue.map_or(1, |per_queue| per_queue.queues))?;
    work.journals.write(&journal).map_err(self::journal)?;
    if let Err(error) = put(&mut work, device, per_queue) {
        match &before {
            // It noted more than is switched, which would keep an offload off for others.
            Some(before) if anew => work.journals.write(before).map_err(self::journal)?,
            _ => drop(work.restore(&journal)?),
        }
        return Err(error);
    }
    notes.extend(assist(device, &mut journal, &registered, &composition));
    if let Err(error) = settle(&work, device, &mut journal, wanted, order.link.rate) {
        if !anew {
            work.restore(&journal)?;
        }
        return Err(error);
    }
    // The qdisc itself keeps its programs from here on.
    drop(registered);
    notes.extend(switched(device, &journal, order.link.rate));
    notes.extend(caveats(device, &journal, "the qdisc works"));
    Ok(notes)
}

/// Loads what one device needs. Not every kernel lets programs ask conntrack: then without that.
fn load_for(composition: &mut Composition, instances: u32) -> Result<Registered, KernelError> {
    let error = match load(super::KIND, composition, instances, None) {
        Err(error) if composition.nat != Nat::Absent => error,
        loaded => return loaded,
    };
    if let KernelError::Refused { log } = error {
        // What the verifier says is kept only if it keeps the qdisc from being loaded.
        let _ = fs::remove_file(log);
    }
    composition.nat = Nat::Absent;
    load(super::KIND, composition, instances, None)
}

/// Bytes before the IP header of what a device sends, or of what was received by another one.
pub(super) fn link_header(devices: &[Device], device: &Device) -> u8 {
    let received = ingress_of(&device.name);
    let other = received.and_then(|index| devices.iter().find(|other| other.index == index));
    other.unwrap_or(device).link_header
}

/// Whether this kernel can, and has a form of the discipline; nothing is done.
///
/// # Errors
/// Says what is missing.
pub fn can(spec: &Spec, link: LinkSettings) -> Result<(), KernelError> {
    compose(spec, &link.into())?;
    check_kernel()
}

/// What of ours is at the root of a device, in words.
///
/// # Errors
/// If there is no such device, or the kernel does not tell.
pub fn attached_qdisc(name: &str) -> Result<Option<String>, KernelError> {
    let devices = all_devices()?;
    let device = find_device(&devices, name)?;
    let mut tc = traffic_control()?;
    let qdiscs = tc.qdiscs(device.index).map_err(on(name, "reading its qdiscs"))?;
    let root = qdiscs.iter().find(|qdisc| qdisc.is_root() && is_ours(qdisc)).map(describe);
    Ok(root.or_else(|| queues::root_of_queues(&qdiscs).map(queues::describe)))
}

/// What attaching is going to do.
struct Plan {
    /// What the device is like, and all that may be switched.
    journal: Journal,
    /// What is to be switched in the end.
    wanted: Switched,
    /// Whether a qdisc of ours is there.
    anew: bool,
}

/// Looks at what is there; refuses what is not to be replaced.
fn plan(
    work: &mut Work,
    device: &Device,
    order: &Order<'_>,
    per_queue: Option<PerQueue>,
    assisted: bool,
) -> Result<Plan, KernelError> {
    let name = &device.name;
    let root = work.root(device)?;
    let known = work.journal(device.index)?;
    let mut journal = known.unwrap_or_else(|| work.journals.begin(device.index, name));
    let ours = root.as_ref().filter(|root| is_ours(root) || journal.has_put(root));
    if let Some(ours) = ours.filter(|_| !order.replace) {
        let found = if is_ours(ours) { describe(ours) } else { queues::describe(ours) };
        return Err(KernelError::Attached { device: name.clone(), found });
    }
    if ours.is_none() {
        let former = Former::of(&mut work.tc, device.index);
        journal.former = former.map_err(on(name, "reading its root qdisc"))?;
    }
    refuse_configured(name, journal.former.as_ref().filter(|_| !order.replace))?;
    if assisted && journal.marker_had_clsact.is_none() {
        let qdiscs = work.qdiscs(device)?;
        let has_clsact = qdiscs.iter().any(|qdisc| qdisc.kind == "clsact");
        let had_clsact = has_clsact && !clsact::is_ours(device.index).map_err(filters)?;
        journal.marker_had_clsact = Some(had_clsact);
    }
    journal.per_queue = per_queue;
    journal.keep_offloads = order.keep_offloads;
    let wanted = match order.keep_offloads {
        true => Switched::default(),
        false => wanted(work, device, &journal, order.link.rate)?,
    };
    journal.offloads = journal.offloads.and(&wanted);
    Ok(Plan { journal, wanted, anew: ours.is_some() })
}

/// What is to be switched at this rate.
pub(super) fn wanted(
    work: &Work,
    device: &Device,
    journal: &Journal,
    rate: Rate,
) -> Result<Switched, KernelError> {
    let others = work.others(device.index)?;
    let Some(source) = ingress_of(&device.name) else {
        return Switched::for_rate(rate, device, &work.devices, &journal.offloads, &others);
    };
    let devices: Vec<_> = work.devices.iter().filter(|d| d.index == source).cloned().collect();
    let wanted = Switched::for_rate(rate, device, &devices, &journal.offloads, &others)?;
    // Nothing splits what comes to an ifb before it is queued.
    Ok(Switched { gso_max_segs: None, ..wanted })
}

fn put(work: &mut Work, device: &Device, per_queue: Option<PerQueue>) -> Result<(), KernelError> {
    if let Some(per_queue) = per_queue {
        return per_queue.put(work, device);
    }
    let handle = free_handle(work, device, 0)?;
    let put = work.tc.replace_root(device.index, super::KIND, handle, None);
    put.map_err(on(&device.name, "putting the qdisc in place"))
}

/// Puts the program that it needs in front of the qdisc, in the place of a former one's, or takes that
/// away. The qdisc works without it: an error is no more than a note.
fn assist(
    device: &Device,
    journal: &mut Journal,
    registered: &Registered,
    composition: &Composition,
) -> Option<String> {
    let placed = ecn::remove(journal).and_then(|()| registered.mark_on(&device.name));
    if composition.program().is_none() {
        journal.marker_had_clsact = None;
    }
    let name = &device.name;
    match placed {
        Err(error) => Some(format!("{name}: packets are dropped instead of marked: {error}")),
        Ok(()) if composition.nat == Nat::Absent => None,
        Ok(()) => Some(format!("{name}: hosts behind NAT on this machine are told apart")),
    }
}

/// Switches what is wanted, puts back what was switched and no longer is, and notes it.
pub(super) fn settle(
    work: &Work,
    device: &Device,
    journal: &mut Journal,
    wanted: Switched,
    rate: Rate,
) -> Result<(), KernelError> {
    wanted.switch(rate, device)?;
    let others = work.others(device.index)?;
    let kept: Vec<&Switched> = others.iter().chain([&wanted]).collect();
    journal.offloads.without(&wanted).restore(device.index, &work.devices, &kept)?;
    journal.offloads = wanted;
    work.journals.write(journal).map_err(self::journal)
}

/// What is switched, for people.
pub(super) fn switched(device: &Device, journal: &Journal, rate: Rate) -> Option<String> {
    let what = journal.offloads.describe(rate, device);
    let note = || format!("{}: {} (detach puts it back)", device.name, what.join("; "));
    (!what.is_empty()).then(note)
}

/// Takes the qdiscs off what a device sends and receives, and leaves the device as it was; also
/// what a command that was killed has left. Tells what else it changed, and what could not be put
/// back.
///
/// # Errors
/// If the device is not attached, or permission is lacking.
pub fn detach(name: &str) -> Result<Vec<String>, KernelError> {
    require("detaching", &[NET_ADMIN])?;
    let received = match ingress::remove(name) {
        // Something may be left of a device that is gone.
        Err(KernelError::NoDevice { .. }) => None,
        removed => removed?,
    };
    match (received, detach_root(name)) {
        (Some(notes), Err(KernelError::NotAttached { .. })) => Ok(notes),
        (received, detached) => Ok(received.into_iter().flatten().chain(detached?).collect()),
    }
}

/// The same for what a device sends only.
pub(super) fn detach_root(name: &str) -> Result<Vec<String>, KernelError> {
    let mut work = Work::begin()?;
    let tidied = work.tidy_up()?;
    let was_left = tidied.iter().any(|(device, _)| device == name);
    let mut notes: Vec<String> = tidied.into_iter().map(|(_, note)| note).collect();
    let device = match find_device(&work.devices, name) {
        Ok(device) => device.clone(),
        Err(_) if was_left => return Ok(notes),
        Err(error) => return Err(error),
    };
    let known = work.journal(device.index)?;
    let journal = known.unwrap_or_else(|| work.journals.begin(device.index, name));
    let qdiscs = work.qdiscs(&device)?;
    if !journal.is_attached(&qdiscs).map_err(filters)? {
        return if was_left { Ok(notes) } else { Err(not_attached(&mut work.tc, &device)) };
    }
    notes.extend(work.restore(&journal)?);
    Ok(notes)
}
