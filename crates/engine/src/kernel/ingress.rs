//! Shaping what a device receives: a filter at its ingress sends that to an ifb device, whose
//! qdisc is ours.
//!
//! The ifb is named after the index of the device, so that it is found again whatever the device
//! is called by then. If somebody removes it, packets pass as if there had been nothing.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use netdev::clsact::{self, Clsact, Owner, Point};
use netdev::device::{Device, add_ifb, remove_device, set_device_up};

use super::attach::{Order, attach, detach_root};
use super::error::KernelError;
use super::privileges::{BPF, NET_ADMIN, PERFMON, require};
use super::skeleton::ingress::IngressSkelBuilder;
use super::work::{all_devices, find_device, on};

/// The ifb that has what the device of this index receives.
fn ifb_name(ifindex: u32) -> String {
    format!("{PREFIX}{ifindex}")
}

const PREFIX: &str = "sl-in-";

/// The device whose ingress an ifb of this name has.
pub(super) fn ingress_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

/// The device that has the qdisc for what another one receives; `None` if there is none.
///
/// # Errors
/// If there is no device of this name.
pub fn ingress_device(name: &str) -> Result<Option<String>, KernelError> {
    let devices = all_devices()?;
    let device = find_device(&devices, name)?;
    Ok(ifb_of(&devices, device).map(|ifb| ifb.name.clone()))
}

pub(super) fn ifb_of<'a>(devices: &'a [Device], device: &Device) -> Option<&'a Device> {
    devices.iter().find(|found| found.ifb && found.name == ifb_name(device.index))
}

/// Puts a qdisc on what a device receives. Tells what else it changed.
///
/// # Errors
/// As [`attach`], and if somebody has filters at the ingress of the device. Then everything is as
/// it was.
pub fn attach_ingress(order: &Order<'_>) -> Result<Vec<String>, KernelError> {
    attach_ifb(order.device, order.replace, |ifb| attach(&Order { device: ifb, ..order.clone() }))
}

/// The same with whatever `attach` does to the ifb device of this name.
pub(super) fn attach_ifb(
    name: &str,
    replace: bool,
    attach: impl FnOnce(&str) -> Result<Vec<String>, KernelError>,
) -> Result<Vec<String>, KernelError> {
    let devices = all_devices()?;
    let device = find_device(&devices, name)?;
    if device.loopback {
        return Err(KernelError::Loopback { device: device.name.clone() });
    }
    require("attaching", &[NET_ADMIN, BPF, PERFMON])?;
    let system = looking(&device.name);
    let is_placed = clsact::is_placed(Owner::Kernel, device.index, Point::Ingress);
    match ifb_of(&devices, device) {
        Some(ifb) if is_placed.map_err(&system)? && !replace => {
            let found = format!("a qdisc for what it receives, on {},", ifb.name);
            return Err(KernelError::Attached { device: device.name.clone(), found });
        }
        // What a command that was killed has left.
        _ => drop(remove(name)?),
    }
    let others = clsact::others(device.index, Point::Ingress).map_err(&system)?;
    if let Some(found) = others.into_iter().next() {
        return Err(KernelError::Filtered { device: device.name.clone(), found });
    }
    put_in_place(device, attach).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = remove(name);
    })
}

fn put_in_place(
    device: &Device,
    attach: impl FnOnce(&str) -> Result<Vec<String>, KernelError>,
) -> Result<Vec<String>, KernelError> {
    let name = ifb_name(device.index);
    add_ifb(&name).map_err(on(&name, "making it"))?;
    let notes = attach(&name)?;
    set_device_up(&name).map_err(on(&name, "switching it on"))?;
    redirect(device, &name)?;
    Ok(notes.into_iter().filter(|note| !note.contains("is down;")).collect())
}

fn redirect(device: &Device, ifb: &str) -> Result<(), KernelError> {
    let devices = all_devices()?;
    let target = find_device(&devices, ifb)?.index;
    let system = |error: libbpf_rs::Error| KernelError::bpf("loading a filter", "CAP_BPF", &error);
    libbpf_rs::set_print(None);
    let mut storage = MaybeUninit::uninit();
    let mut program = IngressSkelBuilder::default().open(&mut storage).map_err(system)?;
    if let Some(rodata) = &mut program.maps.rodata_data {
        rodata.target = target;
    }
    let program = program.load().map_err(system)?;
    let filter = program.progs.shortlane_in.as_fd();
    Clsact::on(device.index)
        .and_then(|clsact| clsact.redirect(Owner::Kernel, filter, Point::Ingress, target))
        .map_err(looking(&device.name))
}

/// Takes away the filter, the qdisc and the ifb of a device, as far as they are there; `None` if
/// there was nothing.
pub(super) fn remove(name: &str) -> Result<Option<Vec<String>>, KernelError> {
    let devices = all_devices()?;
    let device = find_device(&devices, name)?;
    // Packets pass again as soon as the filter is gone.
    let was_placed = clsact::tidy_up(Owner::Kernel, device.index).map_err(looking(&device.name))?;
    let Some(ifb) = ifb_of(&devices, device) else {
        return Ok(was_placed.then(Vec::new));
    };
    let notes = match detach_root(&ifb.name) {
        Err(KernelError::NotAttached { .. }) => Vec::new(),
        detached => detached?,
    };
    remove_device(ifb.index).map_err(on(&ifb.name, "removing it"))?;
    Ok(Some(notes))
}

/// What looking after the filters of a device has led to.
fn looking(device: &str) -> impl Fn(io::Error) -> KernelError {
    move |source| {
        let (device, said) = (device.to_owned(), source.to_string());
        KernelError::TrafficControl { device, doing: "its filters of what it receives", said }
    }
}
