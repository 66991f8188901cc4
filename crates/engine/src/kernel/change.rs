//! Changing a qdisc on a device while packets are queued.

use sched::{Rate, Spec};

use super::attach::{settle, switched, wanted};
use super::compose::Shaping;
use super::error::KernelError;
use super::instance::Instance;
use super::offloads::segments_at;
use super::privileges::{FIND, NET_ADMIN, require};
use super::work::{Work, all_devices, find_device, journal, not_attached};
use crate::settings::link::{LinkChanges, LinkSettings};
use crate::settings::merge::merged;

/// By which it is judged whether super-packets of another length are in time.
const MTU: u32 = 1500;

/// Changes an attached qdisc while packets are queued; none is lost. A discipline that is given
/// takes the place of the other one, or is the same with other parameters: those that are not
/// given stay. Tells what else it changed.
///
/// # Errors
/// If the device is not attached, or the change takes other parts or more room.
pub fn change(
    name: &str,
    link: LinkChanges,
    spec: Option<&Spec>,
) -> Result<Vec<String>, KernelError> {
    let devices = all_devices()?;
    let device = find_device(&devices, name)?;
    require("changing a qdisc", &[NET_ADMIN, FIND])?;
    let mut work = Work::begin()?;
    let instances = Instance::on(device.index)?;
    let Some(first) = instances.first() else { return Err(not_attached(&mut work.tc, device)) };
    let (spec, shaping) = merge(first, link, spec)?;
    let rate = shaping.link.rate;
    let known = work.journal(device.index)?.filter(|journal| !journal.keep_offloads);
    let Some(mut journal) = known else {
        Instance::change_all(&instances, &spec, &shaping)?;
        return Ok(Vec::new());
    };
    let before = journal.offloads.clone();
    let wanted = wanted(&work, device, &journal, rate)?;
    journal.offloads = before.and(&wanted);
    work.journals.write(&journal).map_err(self::journal)?;
    Instance::change_all(&instances, &spec, &shaping)?;
    settle(&work, device, &mut journal, wanted, rate)?;
    Ok(switched(device, &journal, rate)
        .filter(|_| journal.offloads != before)
        .into_iter()
        .collect())
}

/// Gives the qdiscs of a device another rate, and nothing else: for a rate that changes often. What is
/// switched for it stays, unless super-packets of another length are in time: that takes a [`change`].
///
/// # Errors
/// Those of [`change`].
pub fn change_rate(name: &str, instances: &[Instance], rate: Rate) -> Result<(), KernelError> {
    let Some(first) = instances.first() else { return Ok(()) };
    let (spec, shaping) = first.running()?;
    if segments_at(rate, MTU) != segments_at(shaping.link.rate, MTU) {
        let link = LinkChanges { rate: Some(rate), ..LinkChanges::default() };
        return change(name, link, None).map(|_| ());
    }
    let link = LinkSettings { rate, ..shaping.link };
    Instance::change_all(instances, &spec, &Shaping { link, ..shaping })
}

/// Whether [`change`] would be accepted; nothing is changed.
///
/// # Errors
/// Those of [`change`].
pub fn check_change(name: &str, link: LinkChanges, spec: Option<&Spec>) -> Result<(), KernelError> {
    let devices = all_devices()?;
    let device = find_device(&devices, name)?;
    require("changing a qdisc", &[NET_ADMIN, FIND])?;
    match Instance::find(device.index)? {
        Some(instance) => {
            let (spec, shaping) = merge(&instance, link, spec)?;
            instance.changed(&spec, &shaping).map(|_| ())
        }
        None => Err(not_attached(&mut Work::begin()?.tc, device)),
    }
}

/// What runs, with the changes.
fn merge(
    instance: &Instance,
    link: LinkChanges,
    spec: Option<&Spec>,
) -> Result<(Spec, Shaping), KernelError> {
    let (running, shaping) = instance.running()?;
    let spec = match spec {
        None => running,
        Some(spec) if spec.info() == running.info() => {
            merged(&running, spec).map_err(KernelError::Merge)?
        }
        Some(spec) => spec.clone(),
    };
    Ok((spec, Shaping { link: shaping.link.with(link), ..shaping }))
}
