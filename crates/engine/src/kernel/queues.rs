//! A qdisc for each transmit queue of a device, below `mq`, with one rate in common.
//!
//! Each queue is sent from by any processor at the same time as the others, and has hosts, flows and
//! a limit of its own; what they share is the link, and how much of it each has had
//! (`bpf/pacer.h`).

use std::fs;

use netdev::device::Device;
use netdev::tc::{Place, Qdisc, handle_text};
use serde::{Deserialize, Serialize};

use super::KIND;
use super::error::KernelError;
use super::memory::INSTANCES;
use super::work::{Work, free_handle, on};
use crate::status::Status;

/// What is put at the root.
const MQ: &str = "mq";

/// The qdiscs of a device's transmit queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PerQueue {
    /// The handle of `mq`. Those of the queues follow it.
    handle: u32,
    /// How many there are.
    pub(super) queues: u32,
}

impl PerQueue {
    /// Those that a device can have.
    pub(super) fn plan(work: &mut Work, device: &Device) -> Result<Self, KernelError> {
        let queues = transmit_queues(device);
        if !(2..=INSTANCES as u32).contains(&queues) {
            let device = device.name.clone();
            return Err(KernelError::TransmitQueues { device, found: queues, most: INSTANCES });
        }
        Ok(Self { handle: free_handle(work, device, queues)?, queues })
    }

    /// Puts them in place, one after the other.
    pub(super) fn put(self, work: &mut Work, device: &Device) -> Result<(), KernelError> {
        let error = |refusal| on(&device.name, "putting the qdiscs in place")(refusal);
        work.tc.replace_root(device.index, MQ, self.handle, None).map_err(error)?;
        for queue in 1..=self.queues {
            let (parent, handle) = (self.handle | queue, self.handle + (queue << 16));
            let place = Place { ifindex: device.index, parent, handle };
            work.tc.put_qdisc(place, KIND, None).map_err(error)?;
        }
        Ok(())
    }

    /// Whether this root is what was put there.
    pub(super) fn is_root(self, root: &Qdisc) -> bool {
        root.kind == MQ && root.handle == self.handle
    }

    /// Whether they all are there.
    pub(super) fn is_whole(self, qdiscs: &[Qdisc]) -> bool {
        let ours = qdiscs.iter().filter(|qdisc| is_below(qdisc, self.handle)).count();
        ours == self.queues as usize
    }
}

/// Whether a qdisc of a transmit queue is one of these.
fn is_below(qdisc: &Qdisc, root: u32) -> bool {
    qdisc.kind == KIND && qdisc.parent >> 16 == root >> 16
}

/// The root that the qdiscs of transmit queues are below, if there are any.
pub(super) fn root_of_queues(qdiscs: &[Qdisc]) -> Option<&Qdisc> {
    let root = qdiscs.iter().find(|qdisc| qdisc.is_root() && qdisc.kind == MQ)?;
    qdiscs.iter().any(|qdisc| is_below(qdisc, root.handle)).then_some(root)
}

/// What such a root is, for people.
pub(super) fn describe(root: &Qdisc) -> String {
    format!("{KIND} in each queue of {MQ} {}", handle_text(root.handle))
}

/// Those of the transmit queues of one device as one; they follow each other.
pub(super) fn summed(all: Vec<Status>) -> Vec<Status> {
    let mut summed: Vec<Status> = Vec::new();
    for status in all {
        if !is_of_a_queue(&status) {
            summed.push(status);
            continue;
        }
        match summed.last_mut() {
            Some(first) if is_same_device(first, &status) => first.add(&status),
            _ => summed.push(first_of_queues(status)),
        }
    }
    summed
}

fn is_of_a_queue(status: &Status) -> bool {
    status.qdisc.as_ref().is_some_and(|qdisc| qdisc.kind == KIND && qdisc.parent != "root")
}

fn is_same_device(first: &Status, status: &Status) -> bool {
    let has_queues = first.qdisc.as_ref().is_some_and(|qdisc| qdisc.queues.is_some());
    has_queues && (first.ifindex, first.direction) == (status.ifindex, status.direction)
}

/// The first one, with the handle of what they are below.
fn first_of_queues(mut status: Status) -> Status {
    if let Some(qdisc) = &mut status.qdisc {
        let (root, _) = qdisc.parent.split_once(':').unwrap_or_default();
        qdisc.handle = format!("{root}:");
        qdisc.parent = "root".into();
        qdisc.queues = Some(1);
    }
    status
}

/// How many transmit queues have one of these, if any has; and how many are in use.
pub(super) fn coverage(device: &Device, qdiscs: &[Qdisc]) -> Option<(u32, u32)> {
    let root = root_of_queues(qdiscs)?;
    let ours = qdiscs.iter().filter(|qdisc| is_below(qdisc, root.handle)).count();
    Some((ours as u32, transmit_queues(device)))
}

/// Transmit queues that are in use.
fn transmit_queues(device: &Device) -> u32 {
    let entries = fs::read_dir(format!("/sys/class/net/{}/queues", device.name));
    let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with("tx-")).count() as u32
}
