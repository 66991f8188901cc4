//! What is attached in the current network namespace, and what it has counted.

use serde::Serialize;

use super::attach::{find_device, not_attached, on};
use super::device::Device;
use super::error::KernelError;
use super::instance::{Instance, Status};
use super::privileges::{FIND, require};
use super::traffic_control::{Qdisc, TcStats, TrafficControl, handle_text};
use crate::clock;

/// An attached qdisc.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// The device.
    pub device: String,
    /// The kind of qdisc, as `tc` shows it.
    pub kind: String,
    /// Its handle, as `tc` shows it.
    pub handle: String,
    /// Its place: `root`, or the class that it is below.
    pub parent: String,
    /// What `tc -s` shows.
    pub tc: TcStats,
    /// How long it has been attached, in nanoseconds.
    pub uptime_ns: u64,
    /// What it is and what it has counted itself.
    #[serde(flatten)]
    pub status: Status,
}

/// What is attached to a device, or to any.
///
/// # Errors
/// If there is no such device, nothing is attached to it, or the process may not look at maps.
pub fn show(name: Option<&str>) -> Result<Vec<Shown>, KernelError> {
    let devices = Device::all().map_err(on("all devices", "listing them"))?;
    let named = name.map(|name| find_device(&devices, name)).transpose()?;
    require("looking at qdiscs", &[FIND])?;
    let mut tc = TrafficControl::open()
        .map_err(|source| KernelError::System { doing: "opening a netlink socket", source })?;
    let mut shown = Vec::new();
    for instance in Instance::all()? {
        let status = instance.status();
        let index = status.ifindex;
        if named.is_some_and(|named| named.index != index) {
            continue;
        }
        // One may have gone in the meantime.
        let Some(device) = devices.iter().find(|device| device.index == index) else { continue };
        let qdiscs = tc.qdiscs(index).map_err(on(&device.name, "reading its qdiscs"))?;
        let found = qdiscs.into_iter().find(|qdisc| handle_text(qdisc.handle) == status.handle);
        shown.extend(found.map(|qdisc| Shown {
            device: device.name.clone(),
            parent: parent(&qdisc),
            kind: qdisc.kind,
            handle: status.handle.clone(),
            tc: qdisc.stats,
            uptime_ns: clock::now().0.saturating_sub(status.attached_at_ns),
            status,
        }));
    }
    shown.sort_by(|a, b| (a.status.ifindex, &a.parent).cmp(&(b.status.ifindex, &b.parent)));
    match named {
        Some(device) if shown.is_empty() => Err(not_attached(&mut tc, device)),
        _ => Ok(shown),
    }
}

fn parent(qdisc: &Qdisc) -> String {
    if qdisc.is_root() {
        return "root".into();
    }
    format!("{:x}:{:x}", qdisc.parent >> 16, qdisc.parent & 0xffff)
}
