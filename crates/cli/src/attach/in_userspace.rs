//! The commands by the userspace engine, and by a bridge's: a process that is asked.

#[cfg(feature = "kernel")]
pub(super) mod process;

use engine::control::{self, Changes, ControlError};
use engine::status::{Heading, Process, Status};
use netdev::link;

use super::engines::Engine;
use super::index_of;
#[cfg(not(feature = "kernel"))]
pub(super) use super::missing::process;
use super::order::Order;
use crate::{Call, Failure, say};

/// A process that holds the packets.
pub(super) struct Userspace;

impl Engine for Userspace {
    fn obstacle(&self, _: &Order) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    fn holder(&self, order: &Order) -> Result<Option<String>, Failure> {
        match control::status(index_of(&order.device)?) {
            Err(ControlError::Nobody) => Ok(None),
            Ok(status) => Ok(status.first().map(|way| match &way.process {
                Some(Process { pid, .. }) => {
                    format!("a userspace engine already, process {pid}")
                }
                None => format!("{} already, whose rate follows the link", way.scheduler),
            })),
            Err(ControlError::Silent { pid }) if order.replace => {
                Ok(Some(format!("process {pid}")))
            }
            Err(error) => Err(about(&order.device, &error)),
        }
    }

    fn attach(&self, order: &Order, since: Option<&str>, call: &Call) -> Result<(), Failure> {
        process::attach(order, since, call)
    }

    fn change(&self, device: &str, changes: &Changes) -> Result<bool, Failure> {
        match control::change(index_of(device)?, changes) {
            Err(ControlError::Nobody) => Ok(false),
            changed => changed.map(|()| true).map_err(|error| about(device, &error)),
        }
    }

    fn detach(&self, device: &str) -> Result<bool, Failure> {
        // A device that is gone took its engine along.
        let Ok(ifindex) = link::index_of(device) else { return Ok(false) };
        match control::stop(ifindex) {
            // Somebody else's qdisc may be there.
            Err(ControlError::Nobody) => process::tidy_up(device),
            Ok(was_killed) => {
                if was_killed {
                    say(&format!("{device}: the engine did not answer and was killed"));
                    process::tidy_up(device)?;
                }
                process::take_queues_off(device)?;
                Ok(true)
            }
            Err(error) => Err(about(device, &error)),
        }
    }

    fn show(&self, device: Option<&str>) -> Result<Vec<Status>, Failure> {
        if let Some(device) = device {
            return match control::status(index_of(device)?) {
                Err(ControlError::Nobody) => Ok(Vec::new()),
                found => found.map_err(|error| about(device, &error)),
            };
        }
        let mut found = Vec::new();
        for (ifindex, device) in link::all().map_err(|error| Failure::Failed(error.to_string()))? {
            match control::status(ifindex) {
                // A bridge's direction is the egress of one interface, which is enough.
                Ok(status) => found.extend(
                    status
                        .into_iter()
                        .filter(|way| way.peer.is_none() || way.direction == Heading::Egress),
                ),
                Err(ControlError::Nobody) => {}
                Err(error) => say(&format!("shortlane: {}", about(&device, &error).text())),
            }
        }
        Ok(found)
    }
}

fn about(device: &str, error: &ControlError) -> Failure {
    let text = format!("{device}: {error}");
    if error.is_usage() { Failure::Usage(text) } else { Failure::Failed(text) }
}
