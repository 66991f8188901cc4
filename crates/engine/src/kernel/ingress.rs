//! Shaping what a device receives: a filter at its ingress sends that to an ifb device, whose
//! qdisc is ours.
//!
//! The ifb is named after the index of the device, so that it is found again whatever the device
//! is called by then. If somebody removes it, packets pass as if there had been nothing.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use super::attach::{Order, attach, detach_root, find_device, on};
use super::device::{Device, add_ifb, remove_device, set_device_up};
use super::error::KernelError;
use super::privileges::{BPF, NET_ADMIN, PERFMON, require};
use super::skeleton::ingress::IngressSkelBuilder;
use super::traffic_control::{Filter, TrafficControl};

/// What the filter's program is called, which `tc filter show` tells.
const PROGRAM: &str = "shortlane";
/// Of an ifb whose device had no place for filters before.
const MADE_CLSACT: &str = "shortlane made clsact";

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
    let devices = Device::all().map_err(on("all devices", "listing them"))?;
    let device = find_device(&devices, name)?;
    Ok(ifb_of(&devices, device).map(|ifb| ifb.name.clone()))
}

fn ifb_of<'a>(devices: &'a [Device], device: &Device) -> Option<&'a Device> {
    devices.iter().find(|found| found.ifb && found.name == ifb_name(device.index))
}

/// Puts a qdisc on what a device receives. Tells what else it changed.
///
/// # Errors
/// As [`attach`], and if somebody has filters at the ingress of the device. Then everything is as
/// it was.
pub fn attach_ingress(order: &Order<'_>) -> Result<Vec<String>, KernelError> {
    let devices = Device::all().map_err(on("all devices", "listing them"))?;
    let device = find_device(&devices, order.device)?;
    if device.loopback {
        return Err(KernelError::Loopback { device: device.name.clone() });
    }
    require("attaching", &[NET_ADMIN, BPF, PERFMON])?;
    let mut tc = open()?;
    let filters = filters(&mut tc, device)?;
    match (ifb_of(&devices, device), filters.iter().find(|filter| is_ours(filter))) {
        (Some(ifb), Some(_)) if !order.replace => {
            let found = format!("a qdisc for what it receives, on {},", ifb.name);
            return Err(KernelError::Attached { device: device.name.clone(), found });
        }
        // What a command that was killed has left.
        _ => drop(remove(order.device)?),
    }
    if let Some(other) = filters.iter().find(|filter| !is_ours(filter)) {
        let found = other.program.clone().unwrap_or_else(|| other.kind.clone());
        return Err(KernelError::Filtered { device: device.name.clone(), found });
    }
    put_in_place(&mut tc, device, order).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = remove(order.device);
    })
}

fn put_in_place(
    tc: &mut TrafficControl,
    device: &Device,
    order: &Order<'_>,
) -> Result<Vec<String>, KernelError> {
    let name = ifb_name(device.index);
    let has_place = tc.has_clsact(device.index).map_err(on(&device.name, "reading its qdiscs"))?;
    let alias = if has_place { "shortlane" } else { MADE_CLSACT };
    add_ifb(&name, alias).map_err(on(&name, "making it"))?;
    let notes = attach(&Order { device: &name, ..order.clone() })?;
    set_device_up(&name).map_err(on(&name, "switching it on"))?;
    tc.make_clsact(device.index).map_err(on(&device.name, "making a place for a filter"))?;
    redirect(tc, device, &name)?;
    Ok(notes.into_iter().filter(|note| !note.contains("is down;")).collect())
}

fn redirect(tc: &mut TrafficControl, device: &Device, ifb: &str) -> Result<(), KernelError> {
    let devices = Device::all().map_err(on("all devices", "listing them"))?;
    let target = find_device(&devices, ifb)?.index;
    let system = |error: libbpf_rs::Error| KernelError::bpf("loading a filter", "CAP_BPF", &error);
    let mut storage = MaybeUninit::uninit();
    let mut program = IngressSkelBuilder::default().open(&mut storage).map_err(system)?;
    if let Some(rodata) = &mut program.maps.rodata_data {
        rodata.target = target;
    }
    let program = program.load().map_err(system)?;
    tc.add_ingress_program(device.index, program.progs.shortlane_in.as_fd(), PROGRAM)
        .map_err(on(&device.name, "putting a filter at its ingress"))
}

/// Takes away the filter, the qdisc and the ifb of a device, as far as they are there; `None` if
/// there was nothing.
pub(super) fn remove(name: &str) -> Result<Option<Vec<String>>, KernelError> {
    let devices = Device::all().map_err(on("all devices", "listing them"))?;
    let device = find_device(&devices, name)?;
    let mut tc = open()?;
    let ours: Vec<Filter> = filters(&mut tc, device)?.into_iter().filter(is_ours).collect();
    for filter in &ours {
        tc.remove_ingress_filter(device.index, filter)
            .map_err(on(&device.name, "removing the filter at its ingress"))?;
    }
    let Some(ifb) = ifb_of(&devices, device) else {
        return Ok((!ours.is_empty()).then(Vec::new));
    };
    let notes = match detach_root(&ifb.name) {
        Err(KernelError::NotAttached { .. }) => Vec::new(),
        detached => detached?,
    };
    remove_device(ifb.index).map_err(on(&ifb.name, "removing it"))?;
    if ifb.alias == MADE_CLSACT {
        tc.remove_empty_clsact(device.index)
            .map_err(on(&device.name, "removing the place of the filter"))?;
    }
    Ok(Some(notes))
}

fn is_ours(filter: &Filter) -> bool {
    filter.program.as_deref() == Some(PROGRAM)
}

/// Of what the device receives, one for each filter.
fn filters(tc: &mut TrafficControl, device: &Device) -> Result<Vec<Filter>, KernelError> {
    let filters = tc.ingress_filters(device.index);
    filters.map_err(on(&device.name, "reading the filters at its ingress"))
}

fn open() -> Result<TrafficControl, KernelError> {
    TrafficControl::open()
        .map_err(|source| KernelError::System { doing: "opening a netlink socket", source })
}
