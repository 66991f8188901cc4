//! Changing a qdisc on a device while packets are queued.

use netdev::device::Device;
use sched::{Nanos, Rate, Spec};

use super::attach::{Work, find_device, not_attached, on, settle, switched, wanted};
use super::compose::Shaping;
use super::error::KernelError;
use super::instance::Instance;
use super::privileges::{FIND, NET_ADMIN, require};
use crate::settings::merge::merged;
use crate::settings::overhead::Overhead;

/// What is to be changed; what is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Another rate.
    pub rate: Option<Rate>,
    /// Another discipline, or other parameters of the same one: those that were not given stay.
    pub spec: Option<Spec>,
    /// What a packet takes on the link beside its own bytes.
    pub overhead: Option<Overhead>,
    /// How far a late pacer may catch up.
    pub burst: Option<Nanos>,
}

/// Changes an attached qdisc while packets are queued; none is lost. Tells what else it changed.
///
/// # Errors
/// If the device is not attached, or the change takes other parts or more room.
pub fn change(name: &str, changes: &Changes) -> Result<Vec<String>, KernelError> {
    let devices = Device::all().map_err(on("all devices", "listing them"))?;
    let device = find_device(&devices, name)?;
    require("changing a qdisc", &[NET_ADMIN, FIND])?;
    let mut work = Work::begin()?;
    let instance = Instance::find(device.index)?;
    let Some(instance) = instance else { return Err(not_attached(&mut work.tc, device)) };
    let (spec, shaping) = merge(&instance, changes)?;
    let known = work.journal(device.index)?.filter(|journal| !journal.keep_offloads);
    let Some(mut journal) = known else {
        instance.change(&spec, &shaping)?;
        return Ok(Vec::new());
    };
    let before = journal.offloads.clone();
    let wanted = wanted(&work, device, &journal, shaping.rate)?;
    journal.offloads = before.and(&wanted);
    work.journals.write(&journal).map_err(super::attach::journal)?;
    instance.change(&spec, &shaping)?;
    settle(&work, device, &mut journal, wanted, shaping.rate)?;
    Ok(switched(device, &journal, shaping.rate)
        .filter(|_| journal.offloads != before)
        .into_iter()
        .collect())
}

/// Whether [`change`] would be accepted; nothing is changed.
///
/// # Errors
/// Those of [`change`].
pub fn check_change(name: &str, changes: &Changes) -> Result<(), KernelError> {
    let devices = Device::all().map_err(on("all devices", "listing them"))?;
    let device = find_device(&devices, name)?;
    require("changing a qdisc", &[NET_ADMIN, FIND])?;
    match Instance::find(device.index)? {
        Some(instance) => {
            let (spec, shaping) = merge(&instance, changes)?;
            instance.changed(&spec, &shaping).map(|_| ())
        }
        None => Err(not_attached(&mut Work::begin()?.tc, device)),
    }
}

/// What runs, with the changes.
fn merge(instance: &Instance, changes: &Changes) -> Result<(Spec, Shaping), KernelError> {
    let (running, shaping) = instance.running()?;
    let spec = match &changes.spec {
        None => running,
        Some(spec) if spec.info() == running.info() => {
            merged(&running, spec).map_err(KernelError::Merge)?
        }
        Some(spec) => spec.clone(),
    };
    let shaping = Shaping {
        rate: changes.rate.unwrap_or(shaping.rate),
        overhead: changes.overhead.unwrap_or(shaping.overhead),
        link_header: shaping.link_header,
        burst: changes.burst.unwrap_or(shaping.burst),
    };
    Ok((spec, shaping))
}
