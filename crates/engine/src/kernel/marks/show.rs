//! What marks have counted, and the queues behind them, in the shape of all engines.

use netdev::device::Device;
use netdev::routes;
use netdev::tc::{self, handle_text};

use super::program::{Counted, FLOWS, Placed};
use super::tins::{self, Tin, Tins};
use super::{Marked, Work, flows};
use crate::datapath::clock;
use crate::kernel::error::KernelError;
use crate::kernel::ingress::ingress_of;
use crate::kernel::privileges::{FIND, require};
use crate::kernel::work::on;
use crate::status::{DropCounter, EngineKind, Heading, LaneCounters, Qdisc, Status};

/// What is attached by marks to a device, or to any.
///
/// # Errors
/// If the process may not look at maps, or the kernel does not tell.
pub fn show(name: Option<&str>) -> Result<Vec<Status>, KernelError> {
    require("looking at marks", &[FIND])?;
    let mut work = Work::begin()?;
    let mut shown = Vec::new();
    for journal in work.journals.all().map_err(super::journal)? {
        let Some(marks) = journal.marks else { continue };
        let find = |index| work.devices.iter().find(|device: &&Device| device.index == index);
        let Some(found) = find(journal.ifindex).cloned() else { continue };
        let (device, direction) = match ingress_of(&found.name).filter(|_| found.ifb) {
            Some(index) => (find(index).unwrap_or(&found).clone(), Heading::Ingress),
            None => (found.clone(), Heading::Egress),
        };
        if name.is_some_and(|name| name != device.name && name != found.name) {
            continue;
        }
        let root = work.root(&found)?.filter(|root| marks.is_in_front_of(root));
        let Some(root) = root else { continue };
        let classes =
            work.tc.class_stats(found.index).map_err(on(&found.name, "reading its classes"))?;
        let of_class = |class: u32| {
            let stats = classes.iter().find(|(there, _)| *there == class);
            Tin::of(stats.map(|(_, stats)| *stats).unwrap_or_default())
        };
        let lanes = match Tins::of(&root) {
            Ok(tins) => tins.short_and_long(&root.stats),
            Err(_) => [of_class(marks.short), of_class(marks.long)],
        };
        let (counted, seen) = match Placed::find(found.index)? {
            Some(placed) => {
                let hosts = hosts_at_destination(&root, &device.name, direction);
                (Some(placed.counted()?), Some(flows::seen(&placed, hosts, clock::now())?))
            }
            None => (None, None),
        };
        let status = describe(&device, direction, &marks, root, lanes, counted.as_ref());
        shown.push(Status { follows: journal.follows, seen, ..status });
    }
    shown.sort_by_key(|shown| (shown.ifindex, shown.direction));
    Ok(shown)
}

/// Whether packets go to the hosts that share the link, or come from them; `None` if no queue shares
/// among hosts. As those of the other engines, hosts are a router's clients, or else the far ends.
fn hosts_at_destination(root: &tc::Qdisc, device: &str, direction: Heading) -> Option<bool> {
    let leaves = direction == Heading::Egress;
    tins::shares_among_hosts(root).then(|| leaves != routes::clients_send_by(device))
}

fn describe(
    device: &Device,
    direction: Heading,
    marks: &Marked,
    root: tc::Qdisc,
    lanes: [Tin; 2],
    counted: Option<&Counted>,
) -> Status {
    let count = |of: fn(&Counted) -> u64| counted.map_or(0, of);
    let flows = count(|counted| counted.flows);
    let created = count(|counted| counted.counters.flows_created);
    let queues = match marks.joined {
        true => format!("joined={}", marks.kind),
        false => format!("queues={}", marks.queues.map_or("", super::Queues::name)),
    };
    Status {
        device: device.name.clone(),
        ifindex: device.index,
        engine: EngineKind::Marks,
        direction,
        scheduler: format!("marks:{queues},threshold={}bytes", marks.threshold_bytes()),
        link: marks.link,
        framing: marks.framing(),
        uptime: clock::now().since(marks.attached_at),
        attached_at: marks.attached_at,
        lanes: lanes.iter().map(lane).collect(),
        drops: drops(&lanes),
        marked: lanes.iter().map(|lane| lane.marked).sum(),
        flows,
        most_flows: created.min(FLOWS),
        flow_bound: Some(FLOWS),
        flows_created: created,
        flows_removed: created.saturating_sub(flows),
        demoted: count(|counted| counted.counters.demoted),
        promoted: count(|counted| counted.counters.renewed),
        flows_untracked: count(|counted| counted.counters.flows_untracked),
        fragments: count(|counted| counted.counters.fragments),
        not_ip: count(|counted| counted.counters.not_ip),
        super_packets: count(|counted| counted.counters.super_packets),
        paced: root.stats.overlimits.into(),
        qdisc: Some(Qdisc {
            kind: root.kind,
            handle: handle_text(root.handle),
            parent: "root".into(),
            tc: root.stats,
            ..Qdisc::default()
        }),
        ..Status::default()
    }
}

/// A class's counters. The kernel's queues tell of packets that left, were dropped or wait, and not
/// how long they waited.
fn lane(tin: &Tin) -> LaneCounters {
    let stats = &tin.stats;
    let sent = stats.packets;
    LaneCounters {
        enqueued_packets: sent + u64::from(stats.drops) + u64::from(stats.qlen),
        sent_packets: sent,
        sent_bytes: stats.bytes,
        congested: stats.drops.into(),
        backlog_packets: stats.qlen.into(),
        backlog_segments: stats.qlen.into(),
        backlog_bytes: stats.backlog.into(),
        ..LaneCounters::default()
    }
}

fn drops(lanes: &[Tin; 2]) -> Vec<DropCounter> {
    let of_lane = |(lane, tin): (u8, &Tin)| DropCounter {
        reason: "congested".into(),
        lane: Some(lane),
        packets: tin.stats.drops.into(),
    };
    (0..).zip(lanes).map(of_lane).filter(|drop| drop.packets > 0).collect()
}
