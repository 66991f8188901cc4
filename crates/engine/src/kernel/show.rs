//! What is attached in the current network namespace, and what it has counted.

use netdev::device::Device;
use netdev::tc::{self, handle_text};

use super::error::KernelError;
use super::ingress::ingress_of;
use super::instance::Instance;
use super::journal::Journals;
use super::privileges::{FIND, require};
use super::queues;
use super::work::{all_devices, find_device, not_attached, on, traffic_control};
use crate::datapath::clock;
use crate::status::{DropCounter, Heading, LaneCounters, Qdisc, Status};

/// What is attached to a device, or to any.
///
/// # Errors
/// If there is no such device, nothing is attached to it, or the process may not look at maps.
pub fn show(name: Option<&str>) -> Result<Vec<Status>, KernelError> {
    let devices = all_devices()?;
    let named = name.map(|name| find_device(&devices, name)).transpose()?;
    require("looking at qdiscs", &[FIND])?;
    let mut tc = traffic_control()?;
    // An ordinary user has attached none.
    let journals = Journals::lock().and_then(|journals| journals.all()).unwrap_or_default();
    let mut shown = Vec::new();
    for instance in Instance::all()? {
        let status = instance.status();
        // One may have gone in the meantime.
        let find = |index| devices.iter().find(|device: &&Device| device.index == index);
        let Some(found) = find(status.ifindex) else { continue };
        let (device, direction) = match ingress_of(&found.name).filter(|_| found.ifb) {
            Some(index) => (find(index).unwrap_or(found), Heading::Ingress),
            None => (found, Heading::Egress),
        };
        if named.is_some_and(|named| named.index != device.index && named.index != found.index) {
            continue;
        }
        let qdiscs = tc.qdiscs(found.index).map_err(on(&found.name, "reading its qdiscs"))?;
        let handle = status.qdisc.as_ref().map(|qdisc| qdisc.handle.clone());
        let qdisc = qdiscs.into_iter().find(|qdisc| Some(handle_text(qdisc.handle)) == handle);
        let journal = journals.iter().find(|journal| journal.ifindex == found.index);
        let follows = journal.and_then(|journal| journal.follows.clone());
        let status = Status { follows, ..status };
        shown.extend(qdisc.map(|qdisc| describe(device, direction, qdisc, status)));
    }
    let place = |shown: &Status| shown.qdisc.as_ref().map(|qdisc| qdisc.parent.clone());
    shown.sort_by_key(|shown| (shown.ifindex, shown.direction, place(shown)));
    let mut shown = queues::summed(shown);
    for status in &mut shown {
        status.drops = drops(&status.lanes, status.qdisc.as_ref());
    }
    match named {
        Some(device) if shown.is_empty() => Err(not_attached(&mut tc, device)),
        _ => Ok(shown),
    }
}

fn parent(qdisc: &tc::Qdisc) -> String {
    if qdisc.is_root() {
        return "root".into();
    }
    format!("{:x}:{:x}", qdisc.parent >> 16, qdisc.parent & 0xffff)
}

fn describe(device: &Device, direction: Heading, qdisc: tc::Qdisc, status: Status) -> Status {
    let counted = status.qdisc.clone().unwrap_or_default();
    Status {
        device: device.name.clone(),
        ifindex: device.index,
        direction,
        uptime: clock::now().since(status.attached_at),
        qdisc: Some(Qdisc { parent: parent(&qdisc), kind: qdisc.kind, tc: qdisc.stats, ..counted }),
        ..status
    }
}

fn drops(lanes: &[LaneCounters], qdisc: Option<&Qdisc>) -> Vec<DropCounter> {
    let of_lane = |(lane, counters): (usize, &LaneCounters)| {
        let reasons = [
            ("full", counters.full),
            ("pushed-out", counters.pushed_out),
            ("congested", counters.congested),
        ];
        reasons.map(|(reason, packets)| (reason, Some(lane as u8), packets))
    };
    let whole = |qdisc: &Qdisc| {
        [
            ("no-slot", None, qdisc.no_slots),
            ("flushed", None, qdisc.flushed),
            ("lost", None, qdisc.lost),
        ]
    };
    let whole = qdisc.into_iter().flat_map(whole);
    let all = lanes.iter().enumerate().flat_map(of_lane).chain(whole);
    all.filter(|(_, _, packets)| *packets > 0)
        .map(|(reason, lane, packets)| DropCounter { reason: reason.to_owned(), lane, packets })
        .collect()
}
