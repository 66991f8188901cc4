//! What is attached in the current network namespace, and what it has counted.

use super::attach::{find_device, not_attached, on};
use super::device::Device;
use super::error::KernelError;
use super::instance;
use super::instance::Instance;
use super::privileges::{FIND, require};
use super::traffic_control::{self, TrafficControl, handle_text};
use crate::clock;
use crate::status::{DropCounter, EngineKind, Heading, LaneCounters, Qdisc, Status};

/// What is attached to a device, or to any.
///
/// # Errors
/// If there is no such device, nothing is attached to it, or the process may not look at maps.
pub fn show(name: Option<&str>) -> Result<Vec<Status>, KernelError> {
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
        shown.extend(found.map(|qdisc| describe(device, qdisc, status)));
    }
    let place = |shown: &Status| shown.qdisc.as_ref().map(|qdisc| qdisc.parent.clone());
    shown.sort_by_key(|shown| (shown.ifindex, place(shown)));
    match named {
        Some(device) if shown.is_empty() => Err(not_attached(&mut tc, device)),
        _ => Ok(shown),
    }
}

fn parent(qdisc: &traffic_control::Qdisc) -> String {
    if qdisc.is_root() {
        return "root".into();
    }
    format!("{:x}:{:x}", qdisc.parent >> 16, qdisc.parent & 0xffff)
}

fn describe(device: &Device, qdisc: traffic_control::Qdisc, status: instance::Status) -> Status {
    let drops = drops(&status);
    Status {
        device: device.name.clone(),
        ifindex: status.ifindex,
        engine: EngineKind::Kernel,
        direction: Heading::Egress,
        peer: None,
        scheduler: status.scheduler,
        limit: Some(status.limit),
        rate_bps: status.rate_bps,
        overhead: status.overhead,
        overhead_bytes: status.framing.overhead,
        mpu_bytes: status.framing.mpu,
        cells: status.framing.cells,
        burst_ns: status.burst_ns,
        uptime_ns: clock::now().0.saturating_sub(status.attached_at_ns),
        attached_at_ns: status.attached_at_ns,
        lanes: status.lanes.into(),
        drops,
        marked: 0,
        most_packets: status.most_packets,
        flows: status.flows.into(),
        most_flows: status.most_flows.into(),
        flow_bound: Some(status.flow_bound.into()),
        flows_created: status.flows_created,
        flows_removed: status.flows_removed,
        demoted: status.demoted,
        promoted: 0,
        flows_untracked: status.flows_untracked,
        fragments: status.fragments,
        not_ip: status.not_ip,
        super_packets: status.super_packets,
        paced: status.paced,
        qdisc: Some(Qdisc {
            parent: parent(&qdisc),
            kind: qdisc.kind,
            handle: status.handle,
            from_tc: status.from_tc,
            tc: qdisc.stats,
            no_slots: status.no_slots,
            flushed: status.flushed,
            lost: status.lost,
        }),
        process: None,
    }
}

fn drops(status: &instance::Status) -> Vec<DropCounter> {
    let of_lane = |(lane, counters): (usize, &LaneCounters)| {
        let reasons = [("full", counters.full), ("pushed-out", counters.pushed_out)];
        reasons.map(|(reason, packets)| (reason, Some(lane as u8), packets))
    };
    let whole = [
        ("no-slot", None, status.no_slots),
        ("flushed", None, status.flushed),
        ("lost", None, status.lost),
    ];
    let all = status.lanes.iter().enumerate().flat_map(of_lane).chain(whole);
    all.filter(|(_, _, packets)| *packets > 0)
        .map(|(reason, lane, packets)| DropCounter { reason: reason.to_owned(), lane, packets })
        .collect()
}
